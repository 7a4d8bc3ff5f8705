"""A crew of one: the thread that leads the life also runs the tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workstealing.clock import Clock
from workstealing.queue.call import Command, Step
from workstealing.queue.consuming import Exchanged
from workstealing.tasks.attempt import Report, Taken, Unable
from workstealing.tasks.executing import Executor
from workstealing.workers.batching import SPAN_SECONDS, Batching
from workstealing.workers.hands import Hands
from workstealing.workers.running import Runner

__all__ = ("Solo",)


class Solo:
    """Works through what its hands hold, a batch at a time."""

    def __init__(
        self,
        hands: Hands,
        batching: Batching,
        executor: Executor,
        runner: Runner,
        *,
        bell: str,
        is_stopping: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._hands = hands
        self._batching = batching
        self._executor = executor
        self._runner = runner
        self._bell = bell
        self._is_stopping = is_stopping
        self._clock = clock
        self.known = hands.known
        self.take_reports = hands.take_reports
        self.keep_reports = hands.keep_reports
        self.put_all_down = hands.put_down
        self.drop_all = hands.drop_all

    def room(self) -> int:
        """Fill up to a batch."""
        return max(0, self._batching.want - self._hands.waiting)

    def keep(self) -> int:
        """Have some batches in the deque."""
        return self._batching.keep

    def take(self, exchanged: Exchanged) -> None:
        """Hold more tasks, and hear which are cancelled."""
        self._hands.cancelled = set(exchanged.cancelled)
        self._hands.take(exchanged.tasks)

    def doubt(self) -> None:
        """Name what it holds, next time."""
        self._hands.is_unsure = True

    def delivered(self, reports: Sequence[Report]) -> None:
        """Nothing is left of a report that was taken out."""

    def put_down(self) -> Sequence[Taken]:
        """Nothing: the heart does that while a task runs long."""
        return ()

    def is_busy(self) -> bool:
        """Whether anything is left to run."""
        return self._hands.waiting > 0

    def work(self) -> list[Unable]:
        """Run what the hands hold, for about as long as a batch should last."""
        hands, executor = self._hands, self._executor
        monotonic, execute, begin = (
            self._clock.monotonic,
            self._runner.execute,
            hands.begin,
        )
        unable: list[Unable] = []
        reports = hands.reports
        began_at = now = monotonic()
        done = 0
        while not self._is_stopping() and (task := begin()) is not None:
            is_cancelled = task.id in hands.cancelled
            report = executor.cancelled(task) if is_cancelled else execute(task)
            done += 1
            if isinstance(report, Unable):
                unable.append(report)
            elif report is not None:
                reports.append(report)
            now = monotonic()
            if now - began_at > SPAN_SECONDS:
                break
        self._batching.lasted(done, now - began_at)
        return unable

    def rest(self, seconds: float) -> Step:
        """Wait for the bell."""
        return Command(("BLPOP", self._bell, seconds), parse=bool)
