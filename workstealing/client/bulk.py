"""Counts tasks by name, state and age, and changes them in bulk.

No call holds the server up: it scans about a megabyte of tasks, or changes a few
hundred. Other tasks come and go between two calls. A task that is there from beginning
to end is found, and no task is changed twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeAlias

from workstealing._checks import checked_name, checked_seconds
from workstealing.client.queue_internals import QueueInternals
from workstealing.errors import ConfigurationError, NotUnique
from workstealing.queue import inspection_calls, listing_calls, producer_calls
from workstealing.queue.listing_calls import CHUNK, ScannedTask, TaskSummary
from workstealing.queue.pause_calls import Pauses
from workstealing.queue.producer_calls import Cancelled
from workstealing.queue.steps import Call, Flow, Pipeline, ask
from workstealing.tasks.outcome import UNFINISHED, State, TaskOutcome
from workstealing.tasks.previews import preview_envelope, preview_outcome

__all__ = (
    "DEAD_LETTERS",
    "ENDED",
    "BulkChanges",
    "BulkResult",
    "OnProgress",
    "States",
)

States: TypeAlias = State | str | Collection[State | str] | None
OnProgress: TypeAlias = Callable[[int, int], Any]
"""Called with how many tasks were looked at, and about how many there are."""

DEAD_LETTERS = frozenset({State.FAILED, State.DEAD})
"""The states of tasks that can be replayed and dropped."""
ENDED = frozenset(State) - UNFINISHED - DEAD_LETTERS - {State.UNKNOWN}
"""The states of tasks that can be purged."""

_Age: TypeAlias = float | timedelta | None
# About how much one script scans.
_STRETCH_BYTES = 1 << 20
_HELD = frozenset({State.ASSIGNED, State.RUNNING})
# Replaces bytes that are not UTF-8; the server knows no task by such an id.
_REPLACED = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class BulkResult:
    """What became of tasks that were changed in bulk."""

    matched: int
    """Tasks that were chosen."""
    changed: int
    """Those that were cancelled, replayed, dropped or purged."""
    asked: int = 0
    """Running tasks that were asked to stop."""
    refused: tuple[NotUnique, ...] = ()
    """Why dead letters were not replayed: other tasks have their unique keys."""


@dataclass(frozen=True, slots=True)
class _Selection:
    """Which tasks to count or change."""

    task: str | None
    """The name of the task, or `name@version`."""
    states: frozenset[State]
    older_ms: float | None
    """The least age: since submission, since a dead letter was given up, or since any
    other task ended."""

    @classmethod
    def of(
        cls,
        task: str | None,
        state: States,
        older_than: _Age,
        among: frozenset[State],
    ) -> _Selection:
        """Check the keywords that a user gave; *among* are the states allowed."""
        if task is not None:
            checked_name(task, "task")
        older_ms = None
        if older_than is not None:
            older_ms = checked_seconds(older_than, "older_than", zero=True) * 1000
        return cls(task, _checked_states(state, among), older_ms)

    def has(self, task: str, at_ms: int, now_ms: int) -> bool:
        """Return whether a task is selected, given its `name@version` and its time."""
        if self.task is not None and self.task not in (task, task.rpartition("@")[0]):
            return False
        return self.older_ms is None or 0 < at_ms <= now_ms - self.older_ms


@dataclass(frozen=True, slots=True)
class _Found:
    id: str
    task: str
    state: State
    worker: str = ""
    needs: str = ""


_Act: TypeAlias = Callable[[Sequence[_Found]], Flow[int]]
"""Changes tasks; returns how many of them left the list that they were found in."""


class BulkChanges:
    """The flow of one bulk operation on a queue.

    All methods but `end_letters` take what users select tasks by, and refuse what is
    wrong with it before the flow begins.
    """

    def __init__(
        self, internals: QueueInternals[Any], on_progress: OnProgress | None = None
    ) -> None:
        self._internals = internals
        self._keys = internals.keys
        """The keys of the shard that is being walked."""
        self._on_progress = on_progress
        self._seen = self._total = 0
        self._matched = self._changed = self._asked = 0
        self._refused: list[NotUnique] = []

    def count(self, task: str | None, state: States, older_than: _Age) -> Flow[int]:
        """Count the tasks that are selected."""
        every = UNFINISHED | DEAD_LETTERS | ENDED
        return self._count(_Selection.of(task, state, older_than, every))

    def cancel(
        self, task: str | None, state: States, older_than: _Age
    ) -> Flow[BulkResult]:
        """Cancel tasks: at once if they wait, by asking if they run."""
        chosen = _Selection.of(task, state, older_than, UNFINISHED)
        return self._change(chosen, self._cancel)

    def replay(
        self, task: str | None, state: States, older_than: _Age
    ) -> Flow[BulkResult]:
        """Put dead letters back into the queue, with a clean slate."""
        chosen = _Selection.of(task, state, older_than, DEAD_LETTERS)
        return self._change(chosen, self._replay)

    def drop(
        self, task: str | None, state: States, older_than: _Age
    ) -> Flow[BulkResult]:
        """Delete dead letters for good."""
        chosen = _Selection.of(task, state, older_than, DEAD_LETTERS)
        return self._change(chosen, self._drop)

    def purge(
        self, task: str | None, state: States, older_than: _Age
    ) -> Flow[BulkResult]:
        """Forget the outcomes of tasks that are done, cancelled or expired."""
        chosen = _Selection.of(task, state, older_than, ENDED)
        return self._change(chosen, self._forget)

    def end_letters(self, ids: Sequence[str], *, drop: bool) -> Flow[BulkResult]:
        """Put dead letters back into the queue by their ids, or delete them."""
        act = self._drop if drop else self._replay
        for keys, some in (yield from self._internals.shards.found(ids)):
            self._keys = keys
            found = [_Found(task_id, "", State.DEAD) for task_id in some]
            yield from self._apply(found, act)
        return BulkResult(self._matched, self._changed, refused=tuple(self._refused))

    def _count(self, chosen: _Selection) -> Flow[int]:
        yield from self._walk(chosen, self._change_nothing)
        return self._matched

    def _change(self, chosen: _Selection, act: _Act) -> Flow[BulkResult]:
        yield from self._walk(chosen, act)
        return BulkResult(
            self._matched, self._changed, self._asked, tuple(self._refused)
        )

    def _walk(self, chosen: _Selection, act: _Act) -> Flow[None]:
        for keys in (yield from self._internals.shards.known()):
            self._keys = keys
            yield from self._walk_shard(chosen, act)

    def _walk_shard(self, chosen: _Selection, act: _Act) -> Flow[None]:
        keys = self._keys
        seen = yield from ask(inspection_calls.counts(keys))
        if chosen.states & UNFINISHED:
            self._total += seen.tasks
        if chosen.states & DEAD_LETTERS:
            self._total += seen.dead
        if chosen.states & ENDED:
            self._total += seen.outcomes
        if chosen.states & UNFINISHED:
            yield from self._walk_unfinished(chosen, act, seen.pauses)
        if chosen.states & DEAD_LETTERS:
            yield from self._walk_letters(chosen, act, seen.now_ms)
        if chosen.states & ENDED:
            yield from self._walk_outcomes(chosen, act, seen.now_ms)

    def _walk_unfinished(
        self, chosen: _Selection, act: _Act, pauses: Pauses
    ) -> Flow[None]:
        cursor, count = "0", 100
        while True:
            call = listing_calls.scan_tasks(self._keys, cursor, count=count)
            stretch = yield from ask(call)
            found = [
                _Found(
                    one.id, ability, _place(one, ability, pauses), one.worker, one.needs
                )
                for one in stretch.tasks
                if not one.is_dead and _REPLACED not in one.id
                for ability, at_ms in [_previewed(one)]
                if chosen.has(ability, at_ms, stretch.now_ms)
            ]
            if chosen.states & _HELD and not chosen.states >= _HELD:
                found = yield from self._split_running(found)
            yield from self._apply(
                [one for one in found if _is_in(one, chosen.states)], act
            )
            self._report_progress(len(stretch.tasks))
            cursor = stretch.cursor
            if cursor == "0":
                return
            average = stretch.size / max(1, len(stretch.tasks))
            count = int(max(10, min(CHUNK, _STRETCH_BYTES / max(1.0, average))))

    def _walk_outcomes(
        self, chosen: _Selection, act: _Act, began_ms: int
    ) -> Flow[None]:
        """Walk through the list of outcomes, page by page."""
        key, after, seen = self._keys.outcome_times, b"", set[str]()
        while True:
            call = listing_calls.ended(key, most=CHUNK, after=after)
            page = yield from ask(call)
            # An id that was purged and used again is in the list twice.
            times = {one.id: 0 for one in page if one.id not in seen}
            seen.update(times)
            if not page:
                return
            if times:
                yield from self._look(chosen, act, times, began_ms)
            after = page[-1].written

    def _walk_letters(self, chosen: _Selection, act: _Act, began_ms: int) -> Flow[None]:
        """Walk through the dead letters; ranks move up when some are removed."""
        first = 0
        while True:
            call = listing_calls.ranked(self._keys.dead, most=CHUNK, first=first)
            page = yield from ask(call)
            # A replayed task may be given up again: it must not be changed twice.
            times = {name: at for name, at in page if at <= began_ms}
            if not times:
                return
            first += len(times) - (yield from self._look(chosen, act, times, began_ms))

    def _look(
        self, chosen: _Selection, act: _Act, times: dict[str, int], began_ms: int
    ) -> Flow[int]:
        """Change the selected ones of these tasks; return how many left the list.

        *times* maps ids to when the task was given up; 0 if it is not a dead letter.
        """
        tasks = yield from ask(
            listing_calls.summarize(self._keys, tuple(times), most=512)
        )
        found = [
            _Found(one.id, ability, state)
            for one in tasks
            if _REPLACED not in one.id
            and (one.envelope if times[one.id] else one.outcome and not one.envelope)
            for ability, state, ended_ms in [_summed_up(one)]
            if state in chosen.states
            and chosen.has(ability, times[one.id] or ended_ms, began_ms)
        ]
        gone = yield from self._apply(found, act)
        self._report_progress(len(times))
        return gone

    def _apply(self, found: Sequence[_Found], act: _Act) -> Flow[int]:
        self._matched += len(found)
        gone = 0
        for start in range(0, len(found), CHUNK):
            gone += yield from act(found[start : start + CHUNK])
        return gone

    def _report_progress(self, number: int) -> None:
        self._seen += number
        if self._on_progress is not None:
            # A scan may return a task twice.
            self._on_progress(min(self._seen, self._total), self._total)

    def _split_running(self, found: Sequence[_Found]) -> Flow[list[_Found]]:
        held = defaultdict(list)
        for one in found:
            held[one.worker].append(one)
        told = held.pop("", [])
        for worker, tasks in held.items():
            ids = [one.id for one in tasks]
            call = listing_calls.which_run(self._keys, worker, ids)
            flags = yield from ask(call)
            told += (
                replace(one, state=State.RUNNING if is_running else State.ASSIGNED)
                for one, is_running in zip(tasks, flags, strict=True)
            )
        return told

    def _change_nothing(self, found: Sequence[_Found]) -> Flow[int]:  # noqa: ARG002
        yield from ()
        return 0

    def _cancel(self, found: Sequence[_Found]) -> Flow[int]:
        # One script for all that are in the same place: one for each would take more
        # than twice as long.
        places = defaultdict(list)
        for one in found:
            places[one.worker, one.needs].append(one)
        calls = [
            producer_calls.cancel_all(
                self._keys,
                self._internals.settings,
                [(one.id, _cancelled(one.task)) for one in some],
                worker,
                needs,
            )
            for (worker, needs), some in places.items()
        ]
        verdicts: list[list[Cancelled]] = yield Pipeline(calls)
        for some, their_verdicts in zip(places.values(), verdicts, strict=True):
            for one, verdict in zip(some, their_verdicts, strict=True):
                final = verdict
                if verdict == "moved":
                    final = yield from self._internals.cancel(one.id)
                self._changed += final == "cancelled"
                self._asked += final == "asked"
        return 0

    def _replay(self, found: Sequence[_Found]) -> Flow[int]:
        return (yield from self._end_letters(found, drop=False))

    def _drop(self, found: Sequence[_Found]) -> Flow[int]:
        return (yield from self._end_letters(found, drop=True))

    def _end_letters(self, found: Sequence[_Found], *, drop: bool) -> Flow[int]:
        calls = [
            _not_raising(producer_calls.replay(self._keys, one.id, drop=drop))
            for one in found
        ]
        answers: list[bool | NotUnique] = yield Pipeline(calls)
        refused = [answer for answer in answers if isinstance(answer, NotUnique)]
        self._refused += refused
        self._changed += sum(answer is True for answer in answers)
        return len(found) - len(refused)

    def _forget(self, found: Sequence[_Found]) -> Flow[int]:
        ids = [one.id for one in found]
        forgotten = yield from ask(producer_calls.forget(self._keys, ids))
        self._changed += forgotten
        # The outcome that a waiting step needs stays, and is not looked at again.
        return forgotten


def _cancelled(task: str) -> bytes:
    reason = "by a bulk cancellation"
    return TaskOutcome(state="cancelled", reason=reason, task=task).encode()


def _not_raising(call: Call[bool]) -> Call[bool | NotUnique]:
    """Return a call that returns `NotUnique` as its answer, so that others go on."""

    def parse(reply: Any) -> bool | NotUnique:
        try:
            return call.parse(reply)
        except NotUnique as error:
            return error

    return Call(call.script, call.keys, call.arguments, parse)


def _checked_states(state: States, among: frozenset[State]) -> frozenset[State]:
    if state is None:
        return among
    known = sorted(one.value for one in among)
    named = [state] if isinstance(state, str) else state
    try:
        states = frozenset(State(one) for one in named)
    except (TypeError, ValueError):
        states = frozenset()
    if not states or not states <= among:
        raise ConfigurationError(
            f"state must be one or more of {', '.join(known)}, not {state!r}"
        )
    return states


def _place(one: ScannedTask, ability: str, pauses: Pauses) -> State:
    if one.needs:
        return State.PARKED
    if one.is_delayed:
        return State.DELAYED
    if one.worker:
        # Or assigned; `_split_running` asks the worker's own keys if it matters.
        return State.RUNNING
    is_paused = pauses.since_ms(ability.rpartition("@")[0]) is not None
    return State.PAUSED if one.is_aside or is_paused else State.WAITING


def _is_in(one: _Found, states: frozenset[State]) -> bool:
    return one.state in states or (bool(one.worker) and states >= _HELD)


def _previewed(one: ScannedTask) -> tuple[str, int]:
    envelope = preview_envelope(one.envelope)
    return envelope.ability, envelope.at


def _summed_up(one: TaskSummary) -> tuple[str, State, int]:
    outcome = preview_outcome(one.outcome)
    task = preview_envelope(one.envelope).ability if one.envelope else outcome.task
    return task, State(outcome.state), outcome.ended
