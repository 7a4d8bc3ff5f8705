"""Observers of a queue see what happens to tasks, in every kind of pool.

The observer of the application writes what it sees into a list in Redis, so that it
does not matter in which process it was seen.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue, Worker, WorkerPool, WorkStealer
from workstealing.client.queue_internals import internals_of
from workstealing.queue import worker_calls
from workstealing.tasks.runner import TaskRunner
from workstealing.telemetry import flush_events
from workstealing.testing import Server, wait_until

Pools = Callable[..., WorkerPool]
Apps = Callable[..., Any]

KINDS = ["threads", "processes", "asyncio"]

_OBSERVED = """
    import json
    from dataclasses import asdict
    from workstealing.errors import StopWork

    seen = Redis.from_url({sound_url!r})


    class Noting:
        def observe(self, event):
            fields = {{name: getattr(event, name) for name in event.__slots__}}
            fields["error"] = repr(fields["error"]) if fields.get("error") else None
            noted = json.dumps([type(event).__name__, os.getpid(), fields])
            seen.rpush(f"{{NAME}}:events", noted)


    observed = TaskQueue(
        NAME, {sound_url!r}, lease=1.0, registry=queue.registry, observers=[{observer}]
    )


    @observed.task(name="twice", retries=1)
    def twice(number: int) -> int:
        if current_context().attempt == 1:
            raise ValueError("not yet")
        return number


    @observed.task(name="twice_later", retries=1)
    async def twice_later(number: int) -> int:
        await asyncio.sleep(0)
        return twice(number)


    @observed.task(name="fail")
    def fail() -> None:
        raise ValueError("never")


    @observed.task(name="plain")
    def plain(number: int) -> int:
        return number


    @observed.task(name="stuck", timeout=0.3)
    def stuck() -> None:
        endless()


    @observed.task(name="fatal")
    def fatal() -> None:
        os._exit(3)
"""


@pytest.fixture
def observed(make_app: Apps, redis_server: Server) -> Any:
    return make_app(
        more=_OBSERVED.format(sound_url=redis_server.url, observer="Noting()")
    )


class Seen:
    """The events that were seen, in any process."""

    def __init__(self, client: Redis, name: str) -> None:
        self._client = client
        self._name = f"{name}:events"

    def all(self, kind: str, **fields: Any) -> list[dict[str, Any]]:
        noted = map(json.loads, self._client.lrange(self._name, 0, -1))
        return [
            {"pid": pid, **event}
            for name, pid, event in noted
            if name == kind and fields.items() <= event.items()
        ]

    def wait(self, kind: str, number: int = 1, **fields: Any) -> list[dict[str, Any]]:
        wait_until(
            lambda: len(self.all(kind, **fields)) >= number, 30, f"{kind} {fields}"
        )
        found = self.all(kind, **fields)
        assert len(found) == number or kind == "TasksStolen", found
        return found


@pytest.fixture
def seen(redis_client: Redis, key_prefix: str) -> Seen:
    return Seen(redis_client, key_prefix)


class Ghost:
    """A worker that exists only in Redis."""

    def __init__(self, queue: TaskQueue, client: Redis) -> None:
        self._parts = parts = internals_of(queue)
        self._client = client
        # With a fellow, a worker takes its share of the inbox in advance.
        for name in ("fellow.0", "ghost.0"):
            call = worker_calls.join(
                parts.keys, parts.settings, name, "1", {"abilities": []}
            )
            parts.driver.call(call)

    def take(self, want: int, keep: int) -> None:
        parts = self._parts
        parts.driver.call(
            worker_calls.exchange(
                parts.keys, parts.settings, "ghost.0", "1", want=want, keep=keep
            )
        )

    def live_long(self) -> None:
        self._client.zadd(self._parts.keys.workers, {"ghost.0": 2**52})

    def die(self) -> None:
        self._client.zadd(self._parts.keys.workers, {"ghost.0": 1})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["twice", "twice_later"])
def test_submits_attempts_and_retries_are_seen(
    observed: Any, pools: Pools, seen: Seen, kind: str, task: str
) -> None:
    handle = getattr(observed, task).submit(7)
    pool = pools(observed.observed, 2, kind, name="mill")
    pool.start()

    assert handle.result(timeout=30) == 7

    (submitted,) = seen.wait("TaskSubmitted")
    assert (submitted["task"], submitted["id"]) == (task, handle.id)
    assert (submitted["number"], submitted["known"]) == (1, 0)
    first, second = seen.wait("TaskStarted", 2)
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert first["worker"].startswith("mill.")
    assert first["wait"] >= 0.0
    # Since the retry was due.
    assert 0.0 <= second["wait"] <= first["wait"] + 20.0
    failed, done = seen.wait("TaskEnded", 2)
    assert (failed["outcome"], done["outcome"]) == ("retry", "done")
    assert failed["error"] == "ValueError('not yet')"
    assert 0.0 <= done["seconds"] < 20.0
    (retried,) = seen.wait("TaskRetried", id=handle.id)
    assert retried["delay"] > 0.0
    assert (first["pid"] == submitted["pid"]) == (kind != "processes")


@pytest.mark.parametrize("kind", KINDS)
def test_what_fails_for_good_or_is_refused_is_given_up(
    observed: Any,
    pools: Pools,
    seen: Seen,
    make_other: Callable[[], TaskQueue],
    kind: str,
) -> None:
    failed = observed.fail.submit()
    other = make_other()
    refused = other.task(name="plain")(lambda wrong: wrong).submit("x")
    pools(observed.observed, 1, kind).start()

    (one,) = seen.wait("TaskGivenUp", task="fail")
    assert (one["id"], one["reason"]) == (failed.id, "ValueError: never")
    (two,) = seen.wait("TaskGivenUp", task="plain")
    assert two["id"] == refused.id
    (ended,) = seen.wait("TaskEnded", task="plain")
    assert (ended["outcome"], ended["seconds"]) == ("dead", None)
    assert seen.wait("TaskEnded", task="fail", outcome="failed")


@pytest.mark.parametrize("kind", KINDS)
def test_an_attempt_over_its_time_ends_once(
    observed: Any, pools: Pools, seen: Seen, kind: str
) -> None:
    handle = observed.stuck.submit()
    after = observed.plain.submit(1)
    pools(observed.observed, 1, kind).start()

    assert after.result(timeout=40) == 1
    (ended,) = seen.wait("TaskEnded", id=handle.id)
    assert ended["outcome"] == "failed"
    assert ended["seconds"] >= 0.3
    assert seen.wait("TaskGivenUp", id=handle.id)


@pytest.mark.parametrize("kind", KINDS)
def test_thefts_are_seen_by_the_thief(
    observed: Any, pools: Pools, seen: Seen, redis_client: Redis, kind: str
) -> None:
    ghost = Ghost(observed.observed, redis_client)
    observed.plain.submit_many([(n,) for n in range(8)])
    ghost.take(want=1, keep=8)
    ghost.live_long()

    pools(observed.observed, 1, kind, name="mill").start()

    seen.wait("TasksStolen", 1)
    stolen = seen.all("TasksStolen")
    assert all(one["number"] > 0 for one in stolen)
    assert {(one["worker"], one["victim"]) for one in stolen} == {("mill.0", "ghost.0")}


@pytest.mark.parametrize("kind", KINDS)
def test_the_tasks_of_the_dead_are_seen_by_whoever_rescues_them(
    observed: Any, pools: Pools, seen: Seen, redis_client: Redis, kind: str
) -> None:
    ghost = Ghost(observed.observed, redis_client)
    bad, *_ = observed.plain.submit_many([(n,) for n in range(3)])
    ghost.take(want=1, keep=2)
    redis_client.hset(internals_of(observed.observed).keys.history, bad.id, "0:2:0:")
    ghost.die()

    pools(observed.observed, 1, kind).start()

    seen.wait("TaskEnded", 2, outcome="done")
    (rescued,) = seen.wait("TasksReassigned")
    assert rescued["worker"] == "ghost.0"
    assert 1 <= rescued["number"] <= 3
    (given_up,) = seen.wait("TaskGivenUp")
    assert (given_up["id"], given_up["task"]) == (bad.id, "plain")


def test_a_process_that_replaces_another_tells_what_became_of_its_task(
    observed: Any, pools: Pools, seen: Seen
) -> None:
    handle = observed.fatal.submit()
    pools(observed.observed, 1, "processes").start()

    (given_up,) = seen.wait("TaskGivenUp")
    assert (given_up["id"], given_up["task"]) == (handle.id, "fatal")
    # A process that dies may take its last events with it.
    assert 1 <= sum(one["number"] for one in seen.all("TasksReassigned")) <= 3
    assert seen.all("TaskEnded") == []


def test_upkeep_elsewhere_tells_what_it_has_rescued(
    observed: Any, seen: Seen, redis_client: Redis
) -> None:
    ghost = Ghost(observed.observed, redis_client)
    observed.plain.submit(1)
    ghost.take(want=1, keep=0)
    ghost.die()

    WorkStealer(observed.observed).recruited()

    assert seen.wait("TasksReassigned", worker="ghost.0", number=1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_worker_that_lost_its_lease_says_so(
    observed: Any, pools: Pools, seen: Seen, redis_client: Redis, kind: str
) -> None:
    pools(observed.observed, 1, kind, name="mill").start()
    assert observed.plain.submit(1).result(timeout=30) == 1

    redis_client.delete(internals_of(observed.observed).keys.members)

    (lost,) = seen.wait("LeaseLost")
    assert lost["worker"] == "mill.0"
    assert observed.plain.submit(2).result(timeout=30) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_task_that_nobody_can_run_is_seen_as_parked(
    observed: Any,
    pools: Pools,
    seen: Seen,
    make_other: Callable[[], TaskQueue],
    kind: str,
) -> None:
    handle = make_other().task(name="new", version=3)(lambda: None).submit()
    pools(observed.observed, 1, kind).start()

    (parked,) = seen.wait("TaskParked")
    assert (parked["id"], parked["task"], parked["version"]) == (handle.id, "new", 3)


def test_a_worker_in_this_thread_is_observed_too(observed: Any, seen: Seen) -> None:
    observed.plain.submit(
        1,
    )
    observed.plain.options(delay=0.05).submit(2)

    Worker(observed.observed).run(until_empty="all")

    one, two = seen.wait("TaskEnded", 2, outcome="done")
    # It is due after its delay, and has waited since then.
    assert two["wait"] < one["wait"] + 20.0
    assert len(seen.all("TaskSubmitted")) == 2


def test_a_task_that_expired_ends_without_a_start(
    observed: Any, pools: Pools, seen: Seen
) -> None:
    from workstealing import ClientContext

    handle = observed.plain.options(context=ClientContext(deadline=0.001)).submit(1)
    wait_until(lambda: seen.all("TaskSubmitted"), 20, "a submit")

    Worker(observed.observed).run(until_empty=True)

    (ended,) = seen.wait("TaskEnded", id=handle.id)
    assert (ended["outcome"], ended["seconds"]) == ("expired", None)
    assert seen.all("TaskStarted") == []


def test_without_observers_a_task_passes_through_none_of_their_code(app: Any) -> None:
    handle = app.add.submit(1, 2)
    worker = Worker(app.queue)

    worker.run(until_empty=True)

    assert handle.result(timeout=10) == 3
    assert internals_of(app.queue).observers is None
    engine = worker._engine
    assert engine is not None
    assert type(engine.runner) is TaskRunner


_BROKEN = """
    class Broken(Noting):
        def observe(self, event):
            super().observe(event)
            while {blocks!r} and not may_go():
                time.sleep(0.01)
            raise SystemExit("out of order")
"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", [False, True])
def test_an_observer_that_raises_or_blocks_harms_no_pool(
    make_app: Apps,
    redis_server: Server,
    pools: Pools,
    see: Any,
    seen: Seen,
    kind: str,
    blocks: bool,
) -> None:
    more = _OBSERVED.replace("\n    observed =", _BROKEN + "\n\n    observed =", 1)
    app = make_app(
        more=more.format(sound_url=redis_server.url, observer="Broken()", blocks=blocks)
    )
    pool = pools(app.observed, 2, kind)
    pool.start()

    handles = app.plain.submit_many([(n,) for n in range(50)])

    assert [one.result(timeout=30) for one in handles] == list(range(50))
    assert app.twice.submit(3).result(timeout=30) == 3
    assert pool.stats().lost_leases == 0
    pool.stop()
    see.let_go()
    assert flush_events(20)
    assert len(seen.all("TaskSubmitted")) == 2


@pytest.fixture
def make_other(redis_server: Server, key_prefix: str) -> Any:
    """Make the queue of a program that has other tasks, and no observers."""
    made: list[TaskQueue] = []

    def make() -> TaskQueue:
        made.append(TaskQueue(key_prefix, redis_server.url))
        return made[-1]

    yield make
    for queue in made:
        queue.close()


_SERVE = """
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector
    from metrics_app import observed, plain
    from workstealing import WorkerPool

    if __name__ == "__main__":
        with WorkerPool(observed, 2, "processes"):
            for handle in plain.submit_many([(n,) for n in range(40)]):
                handle.result(timeout=30)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)
        print(generate_latest(registry).decode())
"""


def test_prometheus_adds_up_processes_in_its_multiprocess_mode(
    tmp_path: Any,
    write_app: Callable[..., str],
    redis_server: Server,
    script: Callable[..., subprocess.Popen[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "metrics").mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "metrics"))
    more = _OBSERVED.format(sound_url=redis_server.url, observer="PrometheusObserver()")
    name = write_app(
        more="\n    from workstealing.telemetry import PrometheusObserver\n" + more
    )
    (tmp_path / f"{name}.py").rename(tmp_path / "metrics_app.py")

    process = script(_SERVE)

    shown, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    samples = dict(
        line.rsplit(" ", 1) for line in shown.splitlines() if line[:1] not in ("", "#")
    )
    ends = {
        sample: value
        for sample, value in samples.items()
        if sample.startswith("workstealing_task_ends_total")
    }
    assert list(ends.values()) == ["40.0"]
    assert 'outcome="done"' in "".join(ends)
    submitted = [n for n in samples if n.startswith("workstealing_tasks_submitted")]
    assert [samples[name] for name in submitted] == ["40.0"]
