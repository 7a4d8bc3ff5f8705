"""A worker is killed while it runs, and its tasks are done by others.

`python examples/crash_and_rescue/main.py` ends by itself in some ten seconds.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter

from workstealing import TaskQueue, Worker, connect, current_context
from workstealing.inspecting import Inspector

TASKS = 90
VICTIM = "pool.1"
# A silent worker counts as dead after 15 s by default; here after 2 s, to save time.
queue = TaskQueue("crash-and-rescue", lease=2.0)
redis = connect(profile="tasks")
begun = "example:crash-and-rescue:begun"


@queue.task
def develop(picture: int) -> str:
    """Take a while, and return who did it."""
    redis.hincrby(begun, str(picture), 1)
    time.sleep(0.1)
    context = current_context()
    return context.worker if context else "nobody"


def main() -> int:
    """Start three workers, kill one, and count."""
    inspector = Inspector(queue)
    before = inspector.stat().totals.done
    workers = [subprocess.Popen([sys.executable, __file__, str(i)]) for i in range(3)]  # noqa: S603
    try:
        while inspector.stat().living < 3:
            time.sleep(0.05)
        handles = develop.submit_many([(number,) for number in range(TASKS)])
        handles[TASKS // 4].result(timeout=30)

        workers[1].send_signal(
            signal.SIGSTOP
        )  # so that we see what it has when it dies
        held = {entry.id for entry in inspector.ls(f"queues/{VICTIM}", limit=TASKS)}
        workers[1].kill()
        killed_at = time.monotonic()
        print(f"{VICTIM} is killed with {len(held)} tasks in its deque and running")

        who = {handle.id: handle.result(timeout=30) for handle in handles}
        print(f"all is done {time.monotonic() - killed_at:.1f} s later\n")
    finally:
        for process in workers:
            process.terminate()
        for process in workers:
            process.wait()
    for worker, tasks in sorted(Counter(who.values()).items()):
        print(f"{worker} has done {tasks:>2} tasks")
    rescued = Counter(who[task] for task in held)
    by = ", ".join(f"{tasks} by {worker}" for worker, tasks in sorted(rescued.items()))
    print(f"\nthose that {VICTIM} held were done: {by}")
    done = inspector.stat().totals.done - before
    twice = sum(int(times) > 1 for times in redis.hvals(begun))
    print(f"submitted {TASKS}, completed {done}, begun a second time {twice}")
    redis.unlink(begun)
    return 0 if done == len(who) == TASKS and held and VICTIM not in rescued else 1


def work(index: int) -> int:
    """Run one of the workers, until SIGTERM."""
    worker = Worker(queue, pool="pool", index=index)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(work(int(sys.argv[1])) if sys.argv[1:] else main())
