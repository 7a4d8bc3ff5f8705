"""The life of a task: where it was, for how long, and what happened to it there.

Scripts record events, in server time, only for tasks to which something unusual
happens; the life of all others is told from their envelope or outcome. Each event
begins a stretch that ends with the next one, so the stretches add up to the whole. The
first begins when the task was submitted, by the clock of its producer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from workstealing.inspecting.formatting import duration_ms
from workstealing.queue.replies import number

__all__ = ("Biography", "FailedAttempt", "LifeStretch", "biography_of")

_Kind = Literal["waits", "works", "fails"]


@dataclass(frozen=True, slots=True)
class LifeStretch:
    """A stretch of the life of a task: where it was, and what ended that."""

    kind: _Kind
    """Whether it waited, was run, or was run and failed."""
    words: str
    """Where it was, and for how long."""
    took_ms: int
    worker: str = ""
    """The worker that had it in its deque or ran it, if one did."""
    ended_by: str = ""
    """What happened to it at the end; empty if it only moved on."""

    def __str__(self) -> str:
        return f"{self.words}; {self.ended_by}" if self.ended_by else self.words


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A failed attempt that was or will be followed by another."""

    attempt: int
    worker: str
    at_ms: int
    """When it failed."""
    took_ms: int
    error: str
    """Class and message."""
    traceback: str
    """The end of it."""


@dataclass(frozen=True, slots=True)
class Biography:
    """The life of a task up to now, or to its end; `str()` tells it in a sentence."""

    began_ms: int
    """When it was submitted, or the first thing happened that is known."""
    stretches: tuple[LifeStretch, ...]
    is_whole: bool
    """Whether it begins with the submission and nothing was left out."""
    ending: str = ""
    """How it ended; empty if it has not."""

    @property
    def total_ms(self) -> int:
        """How long all of it took; its stretches add up to that."""
        return sum(one.took_ms for one in self.stretches)

    def __str__(self) -> str:
        told = "; ".join([*map(str, self.stretches), *filter(None, [self.ending])])
        total = f" That is {duration_ms(self.total_ms)} in all."
        return f"{told}.{total if len(self.stretches) > 1 else ''}"


@dataclass(frozen=True, slots=True)
class _Event:
    letter: str
    at_ms: int
    worker: str = ""
    victim: str = ""
    note: str = ""
    """The error, if it is one."""


def biography_of(
    events: Sequence[str],
    *,
    submitted_ms: int = 0,
    due_ms: int = 0,
    taken_ms: int = 0,
    worker: str = "",
    until_ms: int,
    failures: Sequence[FailedAttempt] = (),
    ending: str = "",
    took_ms: int | None = None,
) -> Biography | None:
    """Tell the life of a task; None if nothing is known of it.

    Args:
        events: what scripts have recorded, if anything.
        submitted_ms: when its envelope says that it was submitted, if there is one.
        due_ms: when its envelope says that it was to be run; 0: at once.
        taken_ms: when a worker took it, if one has it or ended it.
        worker: that worker.
        until_ms: when it ended, unless an event says so; else now.
        failures: its last failed attempts, the latest first.
        ending: how it ended; empty if it has not.
        took_ms: how long its last attempt took, if it has ended.
    """
    known = [read for read in map(_read, events) if read is not None]
    is_cut = any(one.letter == "~" for one in known)
    known = [one for one in known if one.letter != "~"]
    known = _with_errors(known, failures)
    if not any(one.letter == "n" for one in known) and submitted_ms:
        due = [_Event("q", due_ms)] if due_ms else []
        known = [_Event("n", submitted_ms), *due, *known]
    if taken_ms and (not known or known[-1].letter not in "tce"):
        known.append(_Event("t", taken_ms, worker))
    if not known or known[-1].letter != "e":
        known.append(_Event("e" if ending else "now", until_ms))
    first, *_ = ordered = _in_order(known)
    told = list(_stretches(ordered, is_cut=is_cut, took_ms=took_ms))
    if told and told[-1].kind == "works" and ending in ("failed", "dead"):
        told[-1] = replace(told[-1], kind="fails")
    stretches = tuple(told)
    is_whole = first.letter == "n" and not is_cut
    return Biography(first.at_ms, stretches, is_whole, ending) if stretches else None


def _read(text: str) -> _Event | None:
    """Read an event, whoever has written it."""
    first, worker, victim = (*text.split(" "), "", "")[:3]
    if first == "~":
        return _Event("~", 0)
    at_ms = number(first[1:])
    is_known = first[:1] in _PLACES and at_ms is not None
    return _Event(first[0], at_ms or 0, worker, victim) if is_known else None


def _with_errors(
    known: Sequence[_Event], failures: Sequence[FailedAttempt]
) -> list[_Event]:
    """Say of the last failures what they were."""
    left = iter(failures)
    found = []
    for one in reversed(known):
        failed = next(left, None) if one.letter == "f" else None
        error = failed.error.partition(":")[0] if failed else ""
        found.append(replace(one, note=error) if error else one)
    return found[::-1]


def _in_order(known: Sequence[_Event]) -> list[_Event]:
    """Let no event be before the one that it follows.

    A producer's clock may be ahead, and what is due may be cancelled before.
    """
    found: list[_Event] = []
    latest = 0
    for n, one in enumerate(known):
        at_ms = max(latest, one.at_ms)
        if one.letter in "nq":
            at_ms = min(at_ms, *(other.at_ms for other in known[n + 1 :]))
            at_ms = max(latest, at_ms)
        latest = at_ms
        found.append(replace(one, at_ms=at_ms))
    return found


def _stretches(
    known: Sequence[_Event], *, is_cut: bool, took_ms: int | None
) -> Iterator[LifeStretch]:
    for n, (one, following) in enumerate(pairwise(known)):
        passed = following.at_ms - one.at_ms
        if n == 0 and is_cut:
            words = f"{duration_ms(passed)} of which nothing is kept"
            yield LifeStretch("waits", words, passed)
        elif one.letter == "t" and following.letter == "e" and took_ms is not None:
            # Its worker neither began it at once nor reported its end at once.
            ran = min(passed, took_ms)
            if passed > ran:
                words = f"held by {one.worker} for {duration_ms(passed - ran)}"
                yield LifeStretch("waits", words, passed - ran, one.worker)
            words = f"ran {duration_ms(ran)} in {one.worker}"
            yield LifeStretch("works", words, ran, one.worker)
        elif one.letter == "t":
            yield _in_hand(one, following, passed)
        elif passed or _what_happened(following):
            yield _waiting(one, following, passed)


def _waiting(one: _Event, following: _Event, passed: int) -> LifeStretch:
    worker, took = one.worker, duration_ms(passed)
    place = _PLACES[one.letter].format(took, worker)
    if one.letter in _INBOX:
        # At the end it was in a deque; since when was not recorded.
        worker = (following.victim or following.worker) * (following.letter in "slh")
        if worker:
            place += f" and the deque of {worker}"
        elif following.letter == "r":
            place += " and put aside, for its name was paused"
    if one.letter == "n" and following.letter == "q":
        place = f"was not due for {took}"
    elif following.letter == "v":
        # What happened to it before was forgotten with its replay.
        place = f"{took} until it was replayed"
    if following.letter == "now":
        place += " so far"
    return LifeStretch("waits", place, passed, worker, _what_happened(following))


def _in_hand(one: _Event, following: _Event, passed: int) -> LifeStretch:
    worker, took, letter = one.worker, duration_ms(passed), following.letter
    words, then = f"ran {took} in {worker}", _what_happened(following)
    kind: _Kind = "works"
    if letter == "l":
        # When the worker renewed its lease last is unknown, and so is how long it ran.
        how_long = f"{took} from its start until its lease had ended"
        words = f"{worker} died while running it; {how_long}"
        kind, then = "fails", ""
    elif letter in "fd":
        kind = "fails"
    elif letter == "now":
        words = f"runs in {worker} for {took} so far"
    elif letter == "h":
        words = f"held by {worker} for {took}"
    elif letter not in "zce":
        words, kind = f"held by {worker} for {took}, which did not begin it", "waits"
    return LifeStretch(kind, words, passed, worker, then)


def _what_happened(event: _Event) -> str:
    told = _HAPPENED.get(event.letter, "").format(event.worker, event.note)
    return told.removesuffix(": ")


# Where a task is after an event, and what the event was.
_INBOX = "nqbhdrv"
_PLACES = {
    **dict.fromkeys(_INBOX, "waited {0} in the inbox"),
    "s": "{0} in the deque of {1}",
    "t": "",
    "f": "waited {0} for the next attempt",
    "z": "waited {0} as it had asked",
    "l": "{0} until it was given back",
    "p": "parked for {0}",
    "c": "{0} until it stopped",
    "e": "",
}
_HAPPENED = {
    "s": "stolen by {0}",
    "f": "failed: {1}",
    "z": "asked to be run again later",
    "h": "handed back by {0}",
    "d": "{0} died while running it, and was replaced",
    "l": "{0} died before it began it",
    "p": "no worker could run it",
    "c": "was asked to stop",
    "r": "resumed",
}
