"""What one worker has in flight: tasks taken, running, and reports not delivered yet.

Every kind of worker has exactly one of these. Slots begin and finish tasks; the loop
brings new ones and carries reports away; a heartbeat may stand in for the loop. All of
it is thread-safe.

An id is *held* from the exchange that brought it until Redis has its report, or has
the task back. After a reply was lost, the next exchange names what is held, and Redis
puts everything else back into the deque.

A slot takes as many tasks at once as last about 50 ms, or a single one if tasks are
long. Thieves reach all others, and a crash repeats no more than that.

An exchange is due when a slot has nothing to do, when a report is older than 50 ms, or
when the stock of quick tasks runs low. So a quick task costs a fraction of a round
trip, and a slot that falls idle gets a task at once. If the last exchange brought too
few tasks, a wake-up tells when there are more. Until then, the reports of idle slots
wait some milliseconds for those of quick tasks that still run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from threading import Condition, Lock

from workstealing.clock import Clock
from workstealing.tasks.attempt import Delivery, Ending, Report, Unroutable
from workstealing.workers.batching import BATCH_SECONDS, TOGETHER_SECONDS, Batching

__all__ = ("InFlight",)

_ID, _TOKEN = attrgetter("id"), attrgetter("token")


class InFlight:
    """The tasks that a worker holds, and which of its slots are idle.

    Args:
        batching: how much a slot takes.
        clock: how old reports are.
    """

    def __init__(self, batching: Batching, clock: Clock) -> None:
        self._batching = batching
        self._clock = clock
        self._mutex = Lock()
        self._changed = Condition(self._mutex)
        self._waiting: deque[Delivery] = deque()
        # By identity: a task may come back while an attempt that was given up runs on.
        self._running: dict[int, Delivery] = {}
        # By token: after a lost lease a task may come back while its first attempt
        # still runs, and how that one ends says nothing about the other.
        self._held: dict[str, str] = {}
        self._reports: list[Report] = []
        # Of shards that the worker went away from: ids and tokens, and their reports.
        self._behind: set[tuple[str, str]] = set()
        self._late: list[Report] = []
        self._unroutable: list[Unroutable] = []
        # Slots in all, and those that have nothing to do.
        self._size = self._idle = 0
        # Whether the loop is to exchange now, and whether no further task is to begin.
        self._is_asked_for = self._is_closed = False
        # Whether a lost reply may have brought tasks that are not held.
        self._is_unsure = False
        # What the last exchange asked for; whether it brought any, or fewer than that.
        self._wanted = 0
        self._is_plenty = self._is_exhausted = False
        # Whether no slot has begun a task between the last two looks.
        self._is_stuck = False
        self._begun_before = 0
        self._looked_at = self._exchanged_at = clock.monotonic()
        # Tasks that ended since the batch was last adapted, and how long they took.
        self._ended, self._seconds = 0, 0.0
        self.begun = 0
        """How many tasks were ever begun."""
        self.cancelled: frozenset[str] = frozenset()
        """Ids that were cancelled while they were held."""

    # What slots do.

    def begin(self) -> Delivery | None:
        """Take the next task to run; None if there is none, or none is to begin."""
        if self._is_closed:
            return None
        try:
            delivery = self._waiting.popleft()
        except IndexError:
            return None
        self._running[id(delivery)] = delivery
        self.begun += 1
        return delivery

    def finish(self, delivery: Delivery, ending: Ending, seconds: float) -> bool:
        """Record how a task ended; False if it was given up before."""
        with self._mutex:
            if self._running.pop(id(delivery), None) is None:
                return False
            self._ended += 1
            self._seconds += seconds
            self._is_stuck = False
            if isinstance(ending, Report):
                self._reports.append(ending)
            elif ending is None:
                self._let_go((delivery,))
            else:
                self._unroutable.append(ending)
            if self._idle or self._unroutable:
                self._changed.notify()
            return True

    @property
    def size(self) -> int:
        """How many slots there are."""
        return self._size

    def resize(self, size: int) -> None:
        """Say how many slots there are."""
        self._size = size

    def slot_is_idle(self) -> None:
        """Count one more slot that has nothing to do."""
        with self._mutex:
            self._idle += 1
            self._is_asked_for |= not self._is_exhausted
            self._changed.notify()

    def slot_is_busy(self) -> None:
        """Count one fewer: it has something to do again, or is gone."""
        with self._mutex:
            self._idle -= 1

    # What the loop does.

    def wait_until_due(self, seconds: float, when_lacking: Callable[[], None]) -> None:
        """Wait until an exchange is due; call *when_lacking* if slots lack tasks."""
        end = self._clock.monotonic() + seconds
        while True:
            if self.lacks_tasks():
                when_lacking()
            with self._mutex:
                left = end - self._clock.monotonic()
                if left <= 0.0 or self.is_exchange_due():
                    return
                # While tasks are held it looks often: slots do not call for it.
                if self._held or self._behind:
                    left = min(left, BATCH_SECONDS)
                if self._idle and self._reports:
                    left = min(left, TOGETHER_SECONDS)
                self._changed.wait(left)

    def close(self) -> None:
        """Let no further task begin; safe in a signal handler."""
        self._is_closed = True

    def make_exchange_due(self) -> bool:
        """Let the loop exchange now: a wake-up came, or the slots have changed.

        Return whether a slot has nothing to do.
        """
        with self._mutex:
            self._is_asked_for = True
            self._changed.notify()
            return self._idle > len(self._waiting)

    def lacks_tasks(self) -> bool:
        """Return whether a slot has nothing to do."""
        return self._idle > len(self._waiting)

    def is_exchange_due(self) -> bool:
        """Return whether the loop should not wait any longer."""
        if self._is_asked_for or self._unroutable:
            return True
        is_low = self._is_plenty and len(self._waiting) < self._size
        if is_low and self._batching.want > 1 and not self._is_exhausted:
            return True
        age = self._clock.monotonic() - self._exchanged_at
        if self._idle and self._reports:
            others_end_soon = self._running and self._batching.is_quick
            return not others_end_soon or age >= TOGETHER_SECONDS
        return bool(self._reports or self._waiting) and age >= BATCH_SECONDS

    def is_busy(self) -> bool:
        """Return whether anything is held, or was left behind."""
        return bool(self._held or self._behind)

    def is_waiting_for_tasks(self) -> bool:
        """Return whether slots are idle, and nothing is in hand for them."""
        return self._idle > 0 and not self._waiting

    def has_reports(self) -> bool:
        """Return whether Redis lacks the reports of tasks that have ended."""
        return bool(self._reports)

    def room(self) -> int:
        """Return how many to ask for: 50 ms of work, or one per idle slot."""
        with self._mutex:
            self._learn()
            if self._is_stuck and not self._idle:
                # It would only be put down again.
                return 0
            want = self._batching.want
            wanted = want * self._size if want > 1 else self._idle
            wanted = self._half() or wanted
            self._wanted = max(0, wanted - len(self._waiting))
            return self._wanted

    def room_ahead(self) -> int:
        """Return how many to ask for while others are run; 0: not to ask yet.

        Not if the last exchange brought less than it was asked for: there is no more,
        or it is a task that is to run alone.
        """
        with self._mutex:
            self._learn()
            half, waiting = self._half(), len(self._waiting)
            if self._is_exhausted or self._is_unsure or not waiting:
                return 0
            room = min(half, 2 * half - waiting)
            self._wanted = room if room > 1 else 0
            return self._wanted

    @property
    def turn_seconds(self) -> float:
        """For how long a slot in the thread of the loop runs tasks at a time."""
        return BATCH_SECONDS / 2 if self._batching.half else BATCH_SECONDS

    def keep(self) -> int:
        """Return how many to have in the deque, where thieves reach them."""
        return self._batching.keep * max(1, self._size)

    def take(self, deliveries: Sequence[Delivery], cancelled: Iterable[str]) -> int:
        """Hold more tasks; return how many idle slots can begin something."""
        with self._mutex:
            self._held.update(
                zip(map(_ID, deliveries), map(_TOKEN, deliveries), strict=True)
            )
            self._waiting.extend(deliveries)
            self._is_plenty = bool(deliveries)
            self._is_exhausted = len(deliveries) < self._wanted
            self._exchanged_at = self._clock.monotonic()
            self.cancelled = frozenset(cancelled)
            return min(self._idle, len(self._waiting))

    def take_reports(self) -> list[Report]:
        """Take out the reports that the next exchange delivers."""
        with self._mutex:
            # A slot that asks from now on may be too late for this exchange.
            self._is_asked_for = False
            self._set_aside_late()
            reports, self._reports = self._reports, []
            return reports

    def keep_reports(self, reports: Sequence[Report]) -> None:
        """Take back reports whose delivery is in doubt, and doubt what is held, too."""
        with self._mutex:
            self._reports[:0] = reports
            self._is_unsure = True

    def delivered(self, reports: Sequence[Report]) -> None:
        """Hold no more what Redis has a report of."""
        with self._mutex:
            self._let_go(reports)

    def held_besides(
        self, reports: Sequence[Report], *, is_occasion: bool
    ) -> Sequence[str] | None:
        """Return the held tasks that an exchange with these reports is to name, if any.

        After a lost reply, it names all of them. On *occasion* it says that there are
        none besides the reported ones, which costs little: a client that repeats
        commands on its own loses replies that nobody notices.
        """
        with self._mutex:
            is_short = is_occasion and len(self._held) <= len(reports)
            if not is_short and not self._is_unsure:
                return None
            reported = dict(zip(map(_ID, reports), map(_TOKEN, reports), strict=True))
            left = [
                one for one, token in self._held.items() if reported.get(one) != token
            ]
            if left and not self._is_unsure:
                return None
            self._is_unsure = False
            return tuple(left)

    def doubt(self) -> None:
        """Name what is held, next time: Redis may think that it is more."""
        self._is_unsure = True

    def has_unroutable(self) -> bool:
        """Return whether there are tasks that no slot could run."""
        return bool(self._unroutable)

    def take_unroutable(self) -> list[Unroutable]:
        """Let go of what no slot could run."""
        with self._mutex:
            unroutable, self._unroutable = self._unroutable, []
            if self._behind:
                unroutable = [one for one in unroutable if not self._send_back(one)]
            self._let_go([one.task for one in unroutable])
            return unroutable

    def release_if_stuck(self) -> list[Delivery]:
        """Let go of what waits, if no slot came to begin anything for 50 ms."""
        with self._mutex:
            now = self._clock.monotonic()
            if now - self._looked_at < BATCH_SECONDS:
                return []
            self._is_stuck = self.begun == self._begun_before and not self._idle
            self._looked_at, self._begun_before = now, self.begun
            return self._all_waiting() if self._is_stuck else []

    def is_report_overdue(self) -> bool:
        """Return whether reports wait while every slot is stuck in a long task."""
        return self._is_stuck and bool(self._reports)

    def release_all(self) -> list[Delivery]:
        """Let go of all that is not begun."""
        with self._mutex:
            return self._all_waiting()

    def drop_all(self) -> None:
        """Let go of everything but running tasks: other workers have it."""
        with self._mutex:
            self._set_aside_late()
            self._waiting.clear()
            self._held.clear()
            self._reports.clear()
            self._unroutable.clear()
            self._is_unsure = False

    # What is left behind in a shard that the worker goes away from.

    def leave_behind(self) -> dict[str, str]:
        """Hold running tasks apart from those taken from now on; return ids and tokens.

        Tasks that are not begun were handed back before.
        """
        with self._mutex:
            held, self._held = self._held, {}
            self._behind.update(held.items())
            self._is_unsure = False
            return held

    def come_back(
        self, held: Mapping[str, str], reports: Sequence[Report], *, doubts: bool
    ) -> None:
        """Hold tasks that were left behind together with those taken from now on."""
        with self._mutex:
            self._behind.difference_update(held.items())
            self._held.update(held)
            self._reports += reports
            self._is_unsure |= doubts

    def take_late(self) -> list[Report]:
        """Take out the reports on tasks that were left behind."""
        with self._mutex:
            self._set_aside_late()
            late, self._late = self._late, []
            return late

    def delivered_late(self, reports: Sequence[Report]) -> None:
        """Hold no more what Redis has a report of."""
        with self._mutex:
            self._behind.difference_update((one.id, one.token) for one in reports)

    def is_behind(self, task_id: str, token: str) -> bool:
        """Return whether a task is still left behind."""
        return (task_id, token) in self._behind

    def give_up_behind(self, held: Mapping[str, str]) -> None:
        """Let go of tasks that others have by now, or that went back to the queue."""
        with self._mutex:
            self._behind.difference_update(held.items())

    def _set_aside_late(self) -> None:
        if self._behind:
            late = [one for one in self._reports if (one.id, one.token) in self._behind]
            if late:
                self._late += late
                self._reports = [one for one in self._reports if one not in late]

    def _send_back(self, unroutable: Unroutable) -> bool:
        """Have a task that was left behind go back to the queue, if it was."""
        task = unroutable.task
        if (task.id, task.token) not in self._behind:
            return False
        self._late.append(Report(task.id, task.token, "back"))
        return True

    def _half(self) -> int:
        """Return how many tasks run while as many are on their way, if they overlap."""
        return self._batching.half * self._size

    def _learn(self) -> None:
        self._batching.lasted(self._ended, self._seconds)
        self._ended, self._seconds = 0, 0.0

    def _let_go(self, tasks: Iterable[Delivery | Report]) -> None:
        held = self._held
        for task in tasks:
            if held.get(task.id) == task.token:
                del held[task.id]
            elif self._behind:
                self._behind.discard((task.id, task.token))

    def _all_waiting(self) -> list[Delivery]:
        taken: list[Delivery] = []
        # Slots take from the other end without the mutex, so it may be gone any moment.
        while self._waiting:
            try:
                taken.append(self._waiting.pop())
            except IndexError:
                break
        self._let_go(taken)
        return taken[::-1]
