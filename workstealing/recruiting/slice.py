"""One slice: its deadline, its rounds, and how it ended.

A deadline interrupts nothing. It decides whether a job that has `MORE` is called again,
and a job that wants to end in time can ask for it by `time_left()`. What interrupts a
job that does not is `hard_deadline.py`.
"""

from __future__ import annotations

import inspect
import math
from contextvars import ContextVar, Token
from types import TracebackType

from workstealing._stop_requests import is_stop_request
from workstealing.clock import Clock
from workstealing.errors import Conflict, InvalidDuty
from workstealing.recruiting.job import Duty
from workstealing.recruiting.roster import InstalledJob
from workstealing.telemetry.events import Outcome, SliceEnded

__all__ = ("Slice", "inside_slice", "time_left")

# The next round is begun only if it fits, going by the longest one so far.
_MARGIN = 1.5

_current: ContextVar[Slice | None] = ContextVar("workstealing_slice", default=None)


def time_left() -> float:
    """Return the seconds that the running slice still has; infinite outside of one."""
    running = _current.get()
    if running is None or running.over or running.deadline is None:
        return math.inf
    return max(0.0, running.deadline - running.clock.monotonic())


def inside_slice() -> bool:
    """Return whether the caller is itself part of a slice."""
    running = _current.get()
    # A task that a slice started inherits its context, and may outlive it.
    return running is not None and not running.over


class Slice:
    """A context in which a job is called once, or again while it has more.

    Afterwards it holds what happened. What the job raises ends here, `SystemExit`
    included; what asks the host to stop passes (see `is_stop_request`), and so does
    *passing*, which the recruiter knows to be the host's own.
    """

    __slots__ = (
        "_longest",
        "_passing",
        "_round_began_at",
        "_token",
        "began_at",
        "clock",
        "deadline",
        "ended_at",
        "error",
        "job",
        "outcome",
        "over",
        "overran",
        "rounds",
        "seconds",
        "unfinished",
        "worked",
    )

    def __init__(
        self,
        job: InstalledJob,
        clock: Clock,
        now: float,
        limit: float | None,
        passing: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._passing = passing
        self._longest = 0.0
        self._token: Token[Slice | None] | None = None
        self.job = job
        self.clock = clock
        self.began_at = self._round_began_at = self.ended_at = now
        self.deadline = None if limit is None else now + limit
        self.rounds = 0
        self.worked = False
        self.unfinished = False
        self.over = False
        self.seconds = 0.0
        self.overran = False
        self.outcome = Outcome.EMPTY
        self.error: BaseException | None = None

    @property
    def duty(self) -> Duty:
        """What `enlist()` returns to the host."""
        return Duty.RECRUITED if self.worked else Duty.DISMISSED

    def event(self, calls: int) -> SliceEnded:
        """Return what observers get, with the calls since the last such event."""
        return SliceEnded(
            job=self.job.name,
            outcome=self.outcome,
            seconds=self.seconds,
            rounds=self.rounds,
            overran=self.overran,
            error=self.error,
            calls=calls,
        )

    def goes_on(self, answer: object) -> bool:
        """Take what one round returned; return whether there is time for another."""
        self.rounds += 1
        duty = _read(self.job.name, answer)
        if duty is not Duty.DISMISSED:
            self.worked = True
        self.unfinished = duty is Duty.MORE
        if not self.unfinished or self.deadline is None:
            return False
        now = self.clock.monotonic()
        self._longest = max(self._longest, now - self._round_began_at)
        self._round_began_at = now
        return self.deadline - now > _MARGIN * self._longest

    def __enter__(self) -> Slice:
        self._token = _current.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self.over = True
        assert self._token is not None
        try:  # noqa: SIM105 - quicker, and in every slice
            _current.reset(self._token)
        except ValueError:
            pass  # The garbage collector closes a coroutine in another context.
        self.ended_at = now = self.clock.monotonic()
        self.seconds = now - self.began_at
        self.overran = self.deadline is not None and now > self.deadline
        if self.worked:
            self.outcome = Outcome.RECRUITED
        if error is None:
            return False
        self.unfinished = False
        if isinstance(error, self._passing) or is_stop_request(error):
            self.outcome = Outcome.INTERRUPTED
            return False
        is_conflict = isinstance(error, Conflict)
        self.outcome = Outcome.CONFLICT if is_conflict else Outcome.ERROR
        self.error = error
        return True


def _read(job: str, answer: object) -> Duty:
    if answer is None:
        return Duty.RECRUITED
    if type(answer) is Duty:
        return answer
    if isinstance(answer, int) and 0 <= answer <= 2:
        return Duty(answer)
    if inspect.iscoroutine(answer):
        answer.close()
    raise InvalidDuty(
        f"job {job!r} must return a Duty, or None for RECRUITED, not {answer!r}"
    )
