"""Workers die while they hold permits: no more run than permitted, none is leaked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from workstealing.client.queue_internals import internals_of
from workstealing.testing import Server, wait_until

Make = Callable[..., Any]


def events(story: Any) -> list[list[str]]:
    lines = story.sound.lrange(story.key("events"), 0, -1)
    return [line.decode().split() for line in lines]


def most_at_once(story: Any) -> dict[str, int]:
    """Count how many tasks of each customer ran at once, at most."""
    running: Counter[tuple[str, str]] = Counter()
    most: dict[str, int] = {}
    for what, process, *customer in events(story):
        if what == "killed":
            for key in [key for key in running if key[0] == process]:
                del running[key]
            continue
        running[process, customer[0]] += 1 if what == "begin" else -1
        now = sum(n for (_, of), n in running.items() if of == customer[0])
        most[customer[0]] = max(most.get(customer[0], 0), now)
    return most


def holds_permit(story: Any, pid: int) -> bool:
    own = [what for what, process, *_ in events(story) if process == str(pid)]
    return own.count("begin") > own.count("end")


def test_permits_of_a_killed_worker_come_back_and_the_limit_holds_throughout(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    workers = [processes.start(story) for _ in range(3)]
    story.limited.submit_many([(n, "ab"[n % 2], 0.05) for n in range(80)])

    wait_until(lambda: any(holds_permit(story, one.pid) for one in workers), 20, "work")
    victim = next((one for one in workers if holds_permit(story, one.pid)), workers[0])
    victim.kill()
    victim.wait()
    story.sound.rpush(story.key("events"), f"killed {victim.pid}")
    story.queue.wait(timeout=30)

    assert set(story.runs()) == set(range(80))
    assert max(most_at_once(story).values()) <= 2
    assert story.queue.counts().stats["done"] == 80
    keys = internals_of(story.queue).keys
    for key in (keys.permits, keys.permit_holders, keys.lines, keys.blocked):
        assert not story.sound.exists(key)


def test_a_worker_that_is_killed_again_and_again_leaks_no_permit(
    redis_server: Server, make_story: Make, processes: Any
) -> None:
    story = make_story(redis_server)
    story.limited.submit_many([(n, "a", 0.01) for n in range(60)])
    processes.start(story)
    for _ in range(3):
        victim = processes.start(story, pool="victim")
        seen = len(events(story))
        wait_until(
            lambda seen=seen: (
                len(events(story)) > seen or not story.queue.counts().tasks
            ),
            20,
            "something to happen",
        )
        victim.kill()
        victim.wait()
        story.sound.rpush(story.key("events"), f"killed {victim.pid}")
    story.queue.wait(timeout=30)

    assert set(story.runs()) == set(range(60))
    assert most_at_once(story)["a"] <= 2
    assert not story.sound.exists(internals_of(story.queue).keys.permits)
