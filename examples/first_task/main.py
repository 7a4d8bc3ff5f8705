"""A first task: define it, submit it, let a pool of workers run it, read the result.

`python examples/first_task/main.py` ends by itself in a few seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from workstealing import TaskQueue, WorkerPool
from workstealing.errors import PayloadInvalid, TaskFailed

queue = TaskQueue("first-task")  # $WORKSTEALING_URL, $REDIS_URL, or an embedded server


@dataclass
class Thumbnail:
    """What the task returns; it comes back as this class."""

    path: str
    width: int
    height: int


# 1. A typed function is a task. Its signature is the type of its payload.
@queue.task
def resize(path: str, width: int) -> Thumbnail:
    """Pretend to scale an image to a width."""
    time.sleep(0.05)
    if not path.endswith(".png"):
        raise ValueError(f"{path} is not an image")
    return Thumbnail(path, width, height=width * 3 // 4)


def main() -> int:
    """Submit, work, read."""
    # 2. Submitting checks the payload, puts it into Redis and returns a handle.
    cat = resize.submit("cat.png", width=120)
    print(f"submitted:  {cat.id} is {cat.state()}")

    # 3. A payload that does not match the signature is not even sent.
    try:
        resize.submit("dog.png", width="wide")  # type: ignore[arg-type]
    except PayloadInvalid as refused:
        print(f"refused:    {refused}")

    # 4. Many at once take one round trip.
    paths = [f"picture-{number}.png" for number in range(40)]
    album = resize.submit_many([(path, 64) for path in paths])
    notes = resize.submit("notes.txt", width=64)

    # 5. Workers: here four threads; in production `workstealing worker main:queue`.
    began = time.monotonic()
    with WorkerPool(queue, workers=4):
        thumbnail = cat.result(timeout=20)
        print(f"result:     {thumbnail}")
        heights = {handle.result(timeout=20).height for handle in album}
        print(f"album:      {len(album)} thumbnails, all {heights.pop()} pixels high")
        try:
            notes.result(timeout=20)
        except TaskFailed as failed:
            print(f"failed:     {str(failed).splitlines()[0]}")
    seconds = time.monotonic() - began
    print(f"afterwards: {cat.id} is {cat.state()}")
    print(f"42 tasks of 0.05 s took {seconds:.1f} s with four workers")
    return 0 if thumbnail == Thumbnail("cat.png", 120, 90) and not heights else 1


if __name__ == "__main__":
    raise SystemExit(main())
