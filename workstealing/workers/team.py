"""A crew of several slots that share one lease, one exchange and what they hold.

A thread leads the life and waits here until there is something to tell or to ask. The
slots, threads or coroutines, begin what waits and leave their reports. An exchange is
due when a slot has nothing to do, when a report is older than 50 ms, when the stock
runs low, or when the lease wants to be renewed. So a quick task costs a fraction of a
round trip, and a slot that falls idle is fed at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Condition, Lock

from workstealing.clock import Clock
from workstealing.queue.call import Consult, Step
from workstealing.queue.consuming import Exchanged
from workstealing.tasks.attempt import Attempt, Report, Taken, Unable
from workstealing.workers.batching import SPAN_SECONDS, Batching

__all__ = ("Team",)


class Team:
    """What the slots of one worker hold, and who of them is idle.

    Args:
        batching: how much a slot takes.
        beat: seconds after which the lease is to be renewed.
        attempts: what the slots run now.
        feed: is told how many idle slots can begin something.
        listen: is told that the bell would be heard gladly.
        clock: how old reports are.
    """

    def __init__(
        self,
        batching: Batching,
        *,
        beat: float,
        attempts: Callable[[], Iterable[Attempt]],
        feed: Callable[[int], None],
        listen: Callable[[], None],
        clock: Clock,
    ) -> None:
        self._batching = batching
        self._beat = beat
        self._attempts = attempts
        self._feed = feed
        self._listen = listen
        self._clock = clock
        self._mutex = Lock()
        self._news = Condition(self._mutex)
        self._waiting: deque[Taken] = deque()
        self._held: set[str] = set()
        self._reports: list[Report] = []
        self._unable: list[Unable] = []
        self._idle = 0
        self._is_poked = False
        self._is_unsure = False
        self._is_plenty = False
        self._is_stuck = False
        self._begun = self._begun_before = 0
        self._looked_at = self._exchanged_at = clock.monotonic()
        self._ended = 0
        self._seconds = 0.0
        self.size = 0
        """How many slots there are."""
        self.cancelled: frozenset[str] = frozenset()
        """Ids that were cancelled while they were held."""

    # What slots do.

    def begin(self) -> Taken | None:
        """Take the next task to run."""
        try:
            task = self._waiting.popleft()
        except IndexError:
            return None
        self._begun += 1
        return task

    def finish(
        self, task: Taken, ending: Report | Unable | None, seconds: float
    ) -> None:
        """Leave what came of a task; None: it is another's by now."""
        with self._mutex:
            self._ended += 1
            self._seconds += seconds
            self._is_stuck = False
            if isinstance(ending, Unable):
                self._unable.append(ending)
            elif ending is not None:
                self._reports.append(ending)
            else:
                self._held.discard(task.id)
            if self._idle or self._unable:
                self._news.notify()

    def sit_down(self) -> None:
        """Have nothing to do; `feed` is called when there is something."""
        with self._mutex:
            self._idle += 1
            self._is_poked = True
            self._news.notify()

    def stand_up(self) -> None:
        """Have something to do again, or be gone."""
        with self._mutex:
            self._idle -= 1

    def poke(self) -> None:
        """Let whoever leads look at once: the bell rang, or the plan has changed."""
        with self._mutex:
            self._is_poked = True
            self._news.notify()

    # What a life does.

    def room(self) -> int:
        """Ask for as much as the slots do in 50 ms; with long tasks, one per slot."""
        with self._mutex:
            self._batching.lasted(self._ended, self._seconds)
            self._ended, self._seconds = 0, 0.0
            if self._is_stuck and not self._idle:
                # It would only put it down again.
                return 0
            want = self._batching.want
            wanted = want * self.size if want > 1 else self._idle
            return max(0, wanted - len(self._waiting))

    def keep(self) -> int:
        """Have some batches in the deque."""
        return self._batching.keep * max(1, self.size)

    def take(self, exchanged: Exchanged) -> None:
        """Hold more tasks, and tell the slots."""
        cancelled = frozenset(exchanged.cancelled)
        with self._mutex:
            self._held.update(task.id for task in exchanged.tasks)
            self._waiting.extend(exchanged.tasks)
            self._is_plenty = bool(exchanged.tasks)
            self._exchanged_at = self._clock.monotonic()
            self.cancelled = cancelled
            fed = min(self._idle, len(self._waiting))
        if fed:
            self._feed(fed)
        if cancelled:
            for attempt in self._attempts():
                if attempt.task.id in cancelled:
                    attempt.context.tell_cancelled()

    def known(self) -> Sequence[str] | None:
        """Name what is held after a lost reply; and if it is nothing, always."""
        with self._mutex:
            if self._held and not self._is_unsure:
                return None
            self._is_unsure = False
            return tuple(self._held)

    def doubt(self) -> None:
        """Name what is held, next time."""
        self._is_unsure = True

    def take_reports(self) -> Sequence[Report]:
        """Take out what is to be delivered, on the way to an exchange."""
        with self._mutex:
            # Whoever pokes from now on may have been too late for this exchange.
            self._is_poked = False
            reports, self._reports = self._reports, []
            return reports

    def keep_reports(self, reports: Sequence[Report]) -> None:
        """Hold reports whose delivery is in doubt."""
        with self._mutex:
            self._reports[:0] = reports

    def delivered(self, reports: Sequence[Report]) -> None:
        """Hold no more what Redis was told of."""
        with self._mutex:
            self._held.difference_update(report.id for report in reports)

    def put_down(self) -> Sequence[Taken]:
        """Let go of what waits, if no slot came to begin anything for 50 ms."""
        with self._mutex:
            now = self._clock.monotonic()
            if now - self._looked_at < SPAN_SECONDS:
                return ()
            self._is_stuck = self._begun == self._begun_before and not self._idle
            self._looked_at, self._begun_before = now, self._begun
            return self._all_waiting() if self._is_stuck else ()

    def put_all_down(self) -> Sequence[Taken]:
        """Let go of all that is not begun."""
        with self._mutex:
            return self._all_waiting()

    def drop_all(self) -> None:
        """Let go of everything, and tell what runs that it is another's by now."""
        with self._mutex:
            self._waiting.clear()
            self._held.clear()
            self._reports.clear()
            self._unable.clear()
            self._is_unsure = False
        for attempt in self._attempts():
            attempt.context.tell_lease_lost()

    def is_busy(self) -> bool:
        """Whether anything is held."""
        return bool(self._held)

    def work(self) -> list[Unable]:
        """Wait until an exchange is due; tell what no slot could run."""
        self._wait_for_news(self._beat)
        with self._mutex:
            unable, self._unable = self._unable, []
            self._held.difference_update(one.task.id for one in unable)
        return unable

    def rest(self, seconds: float) -> Step:
        """Wait for the bell, or for anything else that is new."""
        return Consult(self._wait_for_news, (seconds,))

    def _wait_for_news(self, seconds: float) -> None:
        end = self._clock.monotonic() + seconds
        while True:
            if self._is_hungry():
                self._listen()
            with self._mutex:
                left = end - self._clock.monotonic()
                if left <= 0.0 or self._is_exchange_due():
                    return
                # With something at hand it looks often: slots do not call for it.
                self._news.wait(min(left, SPAN_SECONDS) if self._held else left)

    def _is_exchange_due(self) -> bool:
        if self._is_poked or self._unable or (self._idle and self._reports):
            return True
        is_low = self._is_plenty and len(self._waiting) < self.size
        if is_low and self._batching.want > 1:
            return True
        age = self._clock.monotonic() - self._exchanged_at
        return bool(self._reports or self._waiting) and age >= SPAN_SECONDS

    def _is_hungry(self) -> bool:
        return self._idle > len(self._waiting)

    def _all_waiting(self) -> list[Taken]:
        taken: list[Taken] = []
        # The other end is taken from without the mutex, so it may be gone any moment.
        while self._waiting:
            try:
                taken.append(self._waiting.pop())
            except IndexError:
                break
        self._held.difference_update(task.id for task in taken)
        return taken[::-1]
