"""Uneven work for four threads, first without stealing and then with it.

`python examples/stealing/main.py` needs no Redis and ends after about a second.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from workstealing.pool.deques import Deques

WORKERS = ("w1", "w2", "w3", "w4")
LONG_S, SHORT_S = 0.040, 0.004


@dataclass
class Diary:
    """What a worker did."""

    own: int = 0
    stolen: int = 0
    busy_s: float = 0.0


def work(deques: Deques[float], worker: str, diary: Diary, *, steals: bool) -> None:
    """Do what is in the own deque; then, perhaps, what others have not begun."""
    while True:
        seconds = deques.take(worker)  # at the front
        if seconds is not None:
            diary.own += 1
        elif steals and (loot := deques.steal(worker)) is not None:  # at the back
            seconds = loot.item
            diary.stolen += 1
        else:
            return
        began = time.monotonic()
        time.sleep(seconds)
        diary.busy_s += time.monotonic() - began
        deques.done(worker)


def run(*, steals: bool) -> tuple[float, dict[str, Diary]]:
    """Give each worker ten jobs, the first the long ones; return how it went."""
    deques: Deques[float] = Deques(WORKERS)
    for worker in WORKERS:
        for _ in range(10):
            deques.push(worker, LONG_S if worker == "w1" else SHORT_S)
    diaries = {worker: Diary() for worker in WORKERS}
    threads = [
        threading.Thread(
            target=work, args=(deques, worker, diary), kwargs={"steals": steals}
        )
        for worker, diary in diaries.items()
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began, diaries


def main() -> int:
    """Do the same work twice and compare."""
    took = {}
    for steals in (False, True):
        took[steals], diaries = run(steals=steals)
        print(f"{'with' if steals else 'without'} stealing: {took[steals]:.3f} s")
        for worker, diary in diaries.items():
            bar = "█" * round(diary.busy_s * 100)
            print(f"  {worker}  {diary.own:>2} own, {diary.stolen:>2} stolen  {bar}")
    print(f"\n{took[False] / took[True]:.1f} times as fast, by the same four threads.")
    return 0 if took[True] < took[False] else 1


if __name__ == "__main__":
    raise SystemExit(main())
