"""A worker that is killed at one of its exchanges; or a producer, amid a group.

`composed_child.py NAME URL worker WHEN NUMBER`: it is killed before it sends its
exchange of this number, or after the server has answered it and nobody has read the
answer; 0: never. `composed_child.py NAME URL producer`: it is killed after the first
thousand of three thousand members. What tasks do is in the list `<queue>:ran`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from redis import Redis

from workstealing import MemberResult, TaskQueue, Worker, group
from workstealing.client import composed_submission
from workstealing.queue import worker_calls

NAME, URL, ROLE, *MORE = sys.argv[1:] if __name__ == "__main__" else ("", "", "")


class Composed:
    """A queue with tasks to compose."""

    def __init__(self, name: str, url: str) -> None:
        self.queue = queue = TaskQueue(name, url, lease=1.0)
        sound = Redis.from_url(url)

        def member(number: int) -> int:
            sound.rpush(f"{name}:ran", f"member {number}")
            return number

        def add_up(results: list[MemberResult[int]]) -> int:
            sound.rpush(f"{name}:ran", "add_up")
            return sum(one.result() for one in results)

        def follow(number: int) -> int:
            sound.rpush(f"{name}:ran", f"follow {number}")
            return number + 1

        self.member = queue.task(name="member")(member)
        self.add_up = queue.task(name="add_up")(add_up)
        self.follow = queue.task(name="follow")(follow)
        self.sound = sound


def killed_at(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that kills this process when it is called so often."""
    calls = iter(range(1, 1_000_000))

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*args, **kwargs)

    return wrapped


def main() -> None:
    composed = Composed(NAME, URL)
    if ROLE == "producer":
        submit_steps: Any = killed_at(2, composed_submission.submit_steps)
        composed_submission.submit_steps = submit_steps
        members = group(composed.member.s(n) for n in range(3_000))
        (members | composed.add_up.s() | composed.follow.s()).submit()
    when, number = MORE
    name = {"before": "exchange", "after": "_exchanged"}[when]
    function = getattr(worker_calls, name)
    setattr(worker_calls, name, killed_at(int(number), function))
    worker = Worker(composed.queue, batch=1)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
