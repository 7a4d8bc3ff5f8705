"""Uneven work for four threads, first without stealing and then with it.

`python examples/stealing/main.py` needs no Redis and ends after about a second.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from workstealing import Pool

WORKERS = ("w1", "w2", "w3", "w4")
LONG_S, SHORT_S = 0.040, 0.004
PIECES = 10


@dataclass
class Diary:
    """What a thread did."""

    own: int = 0
    stolen: int = 0
    busy_s: float = 0.0

    def work(self, seconds: float, *, stolen: bool = False) -> None:
        """Do one piece of work."""
        began = time.monotonic()
        time.sleep(seconds)
        self.busy_s += time.monotonic() - began
        self.own += not stolen
        self.stolen += stolen


Diaries = dict[str, Diary]


def without_stealing(diaries: Diaries) -> None:
    """Let each thread do its own share, and no more."""

    def serve(worker: str) -> None:
        mine = deque(pieces_of(worker))
        while mine:
            diaries[worker].work(mine.popleft())

    threads = [threading.Thread(target=serve, args=(worker,)) for worker in WORKERS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def with_stealing(diaries: Diaries) -> None:
    """Let a pool do the same: what a task submits goes to its own thread's deque."""
    all_here = threading.Barrier(len(WORKERS))
    names: dict[int, str] = {}

    def begin(worker: str) -> list[Future[None]]:
        all_here.wait()  # so that each thread of the pool begins for one worker
        names[threading.get_ident()] = worker
        all_here.wait()
        return [pool.submit(work, worker, piece) for piece in pieces_of(worker)]

    def work(owner: str, seconds: float) -> None:
        worker = names[threading.get_ident()]
        diaries[worker].work(seconds, stolen=worker != owner)

    with Pool(len(WORKERS)) as pool:
        for begun in [pool.submit(begin, worker) for worker in WORKERS]:
            for piece in begun.result():
                piece.result()


def pieces_of(worker: str) -> list[float]:
    """Return how long each piece of a worker's share takes: the first is unlucky."""
    return [LONG_S if worker == "w1" else SHORT_S] * PIECES


def timed(way: Callable[[Diaries], None]) -> tuple[float, Diaries]:
    """Do all the work one way; return how long it took, and who did what."""
    diaries = {worker: Diary() for worker in WORKERS}
    began = time.monotonic()
    way(diaries)
    return time.monotonic() - began, diaries


def main() -> int:
    """Do the same work twice and compare."""
    took = []
    for title, way in (
        ("without stealing", without_stealing),
        ("with stealing", with_stealing),
    ):
        seconds, diaries = timed(way)
        took.append(seconds)
        print(f"{title}: {seconds:.3f} s")
        for worker, diary in diaries.items():
            bar = "█" * round(diary.busy_s * 100)
            print(f"  {worker}  {diary.own:>2} own, {diary.stolen:>2} stolen  {bar}")
    print(f"\n{took[0] / took[1]:.1f} times as fast, by the same four threads.")
    return 0 if took[1] < took[0] else 1


if __name__ == "__main__":
    raise SystemExit(main())
