"""What a spare moment is: a little site whose fast pages tidy up after it.

`python examples/spare_cycles/main.py` needs no Redis and ends after some seconds.
"""

from __future__ import annotations

import random
import time
from itertools import islice

from workstealing import Duty, Recruiter

SECONDS = 3.0

# The default share is 1 % of the time; this one lets you see something.
recruiter = Recruiter(share=0.05)
sessions: dict[int, float] = {}  # visitor -> when the session ends
log: list[str] = []


@recruiter.job(rate=0.02)
def end_sessions() -> Duty:
    """Look at the ten oldest sessions, end those that are over: a bounded slice."""
    now = time.monotonic()
    oldest = list(islice(sessions.items(), 10))
    over = [visitor for visitor, end in oldest if end < now]
    for visitor in over:
        del sessions[visitor]
    if len(over) == 10:
        return Duty.MORE  # all were over: continue, if the slice has time left
    return Duty.RECRUITED if over else Duty.DISMISSED


@recruiter.job(every=0.25)
def trim_log() -> Duty:
    """Keep the last hundred lines; four times a second is often enough."""
    if len(log) <= 100:
        return Duty.DISMISSED
    del log[:-100]
    return Duty.RECRUITED


def serve(visitor: int) -> None:
    """Answer a request. Nine of ten are quick, and these have a moment to spare."""
    sessions[visitor] = time.monotonic() + 0.5
    log.append(f"visitor {visitor}")
    if random.random() < 0.1:
        time.sleep(0.002)  # slow: the visitor has waited enough
    else:
        time.sleep(0.0002)
        recruiter.enlist()


def main() -> int:
    """Serve for a while, then print what the recruiter has counted."""
    print(f"{SECONDS:.0f} seconds of traffic, no cron job, no second process …")
    visits, end = 0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        serve(visitor=visits)
        visits += 1
    stats = recruiter.stats()
    print(f"\n{visits:,} requests, of which {stats.calls:,} had a moment to spare:")
    for name, job in stats.jobs.items():
        slices = f"drawn {job.drawn:>3} times, worked {job.recruited:>3}"
        cost = f"{1000 * job.seconds:.1f} ms in all, {1000 * job.longest:.2f} at most"
        print(f"  {name:<12} {slices}; {cost}")
    stale = sum(end < time.monotonic() for end in sessions.values())
    print(f"\nsessions: {visits:,} begun, {len(sessions):,} left, {stale:,} are over")
    print(f"log:      {visits:,} lines written, {len(log):,} left")
    spent = sum(job.seconds for job in stats.jobs.values())
    print(f"\nSide work took {spent / SECONDS:.2%} of the time.")
    return 0 if len(sessions) < visits and len(log) < visits else 1


if __name__ == "__main__":
    raise SystemExit(main())
