"""Looks up one task: what is kept of it, where it is, and why it is not running.

The explanation is written in plain sentences, the place first, so that it can be read
out to the person who asks "why does my task not run?".
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from workstealing.errors import TaskNotFound
from workstealing.inspecting.biography import (
    Biography,
    FailedAttempt,
    biography_of,
)
from workstealing.inspecting.formatting import (
    duration,
    duration_ms,
    plural,
    timestamp,
)
from workstealing.inspecting.prospects import Surroundings, prospects_of
from workstealing.inspecting.task_history import read_history
from workstealing.inspecting.views import CutText, Explanation, TaskDetail
from workstealing.queue import limit_calls, listing_calls
from workstealing.queue.inspection_calls import Trace, locate, waits_for
from workstealing.queue.keys import QueueKeys
from workstealing.queue.replies import number, shown
from workstealing.queue.settings import QueueSettings
from workstealing.queue.steps import Flow, ask
from workstealing.tasks.context import Progress
from workstealing.tasks.outcome import State, TaskOutcome
from workstealing.tasks.previews import (
    one_line_reason,
    preview_envelope,
    preview_outcome,
)

__all__ = ("examine_task", "explain_task")

# How far a list is searched for a task.
_FAR = 10_000

Sentences = Flow[list[str]]


def examine_task(
    keys: QueueKeys,
    settings: QueueSettings,
    task_id: str,
    most: int | None = None,
    *,
    around: Surroundings,
) -> Flow[tuple[TaskDetail, Explanation]]:
    """Return a task and explain it; raise `TaskNotFound` if nothing is kept of it.

    An envelope or a result of more than *most* bytes is the beginning of its text.
    """
    found = yield from _find(keys, task_id)
    if found.state is State.UNKNOWN:
        raise TaskNotFound.of(task_id)
    sentences = yield from _explain(keys, settings, found, around)
    seen = found.trace
    outcome = preview_outcome(seen.outcome) if seen.outcome else None
    detail = TaskDetail(
        id=task_id,
        state=found.state,
        summary=sentences[0],
        envelope=_decoded(seen.envelope, most) if seen.envelope else None,
        outcome=None if outcome is None else _outcome_fields(outcome),
        result=None if outcome is None else _decoded(bytes(outcome.result), most),
        traceback=outcome.error.traceback if outcome and outcome.error else "",
        task=_task_of(seen, outcome),
        worker=outcome.worker if outcome else seen.worker,
        now_ms=seen.now_ms,
        submitted_ms=preview_envelope(seen.envelope).at if seen.envelope else 0,
        begun_ms=outcome.began if outcome else found.picked_up_at_ms or 0,
        due_ms=seen.due_ms or 0,
        ended_ms=outcome.ended if outcome else 0,
        failures=tuple(map(_failed_attempt, seen.failures)),
        progress=found.progress,
        biography=_biography(found),
    )
    return detail, Explanation(task_id, found.state, tuple(sentences))


def explain_task(
    keys: QueueKeys, settings: QueueSettings, task_id: str, *, around: Surroundings
) -> Flow[Explanation]:
    """Explain where a task is, which worker has it, and why it is not running."""
    found = yield from _find(keys, task_id)
    sentences = yield from _explain(keys, settings, found, around)
    return Explanation(task_id, found.state, tuple(sentences), _biography(found))


@dataclass(frozen=True, slots=True)
class _FoundTask:
    id: str
    state: State
    trace: Trace
    picked_up_at_ms: int | None
    """When its worker picked it up to run it, if it has."""
    progress: Progress | None = None
    """What it last reported, while it runs."""


def _find(keys: QueueKeys, task_id: str) -> Flow[_FoundTask]:
    found = yield from locate(keys, task_id)
    state = found.place or State(preview_outcome(found.trace.outcome).state)
    return _FoundTask(task_id, state, found.trace, found.begun_at_ms, found.progress)


def _explain(
    keys: QueueKeys,
    settings: QueueSettings,
    found: _FoundTask,
    around: Surroundings,
) -> Sentences:
    seen = found.trace
    if found.state is State.UNKNOWN:
        return _unknown(found.id, settings)
    if found.state is State.DELAYED:
        return [*_delayed(seen), *_unique(seen), *_history(found)]
    if found.state is State.PAUSED:
        sentences = _paused(seen, around.where)
    elif seen.is_step:
        sentences = yield from _following(keys, found)
    elif found.state is State.WAITING and seen.line:
        sentences = yield from _in_line(keys, around, found)
    elif found.state is State.WAITING:
        sentences = yield from _waiting(keys, around, found)
    elif found.state is State.PARKED:
        sentences = yield from _parked(keys, seen)
    elif found.state is State.ASSIGNED:
        sentences = yield from _assigned(keys, found)
        sentences += yield from _holder(keys, settings, seen)
    elif found.state is State.RUNNING:
        sentences = _running(found)
        sentences += yield from _holder(keys, settings, seen)
        if seen.is_cancelling:
            sentences.append("It was asked to stop and has not stopped yet.")
    else:
        sentences = yield from _ended(keys, found)
    return [*sentences, *_unique(seen), *_history(found)]


def _unknown(task_id: str, settings: QueueSettings) -> list[str]:
    kept = duration_ms(settings.retention_ms)
    expired = f"it ended more than {kept} ago and its outcome has expired"
    return [
        f"Nothing is known of {task_id}.",
        f"Either it was never submitted to this run of the queue, or {expired}.",
    ]


def _delayed(seen: Trace) -> list[str]:
    due, now = seen.due_ms or 0, seen.now_ms
    if due > now:
        what = "will be retried" if seen.attempts else "is due"
        return [f"It {what} in {duration_ms(due - now)}, at {timestamp(due)}."]
    return [
        f"It was due {duration_ms(now - due)} ago.",
        "It moves to the inbox as soon as a worker asks for tasks or upkeep is done.",
    ]


def _paused(seen: Trace, where: str) -> list[str]:
    queue_is_paused = seen.pauses.queue_since_ms is not None
    reason, since_ms = seen.pauses.reason(seen.name), seen.paused_since_ms
    if not reason or since_ms is None:
        return [f"Task {seen.name} is being resumed: it returns to the inbox."]
    command = f"queue resume {where}"
    if not queue_is_paused:
        command += f" --task {shlex.quote(seen.name)}"
    ago = duration_ms(seen.now_ms - since_ms)
    place = f"It waits in {'its line' if seen.line else 'the inbox'}."
    if seen.worker:
        place = f"It waits in the deque of {seen.worker}."
    elif seen.is_aside:
        place = "It was put aside, so that others run past it."
    who, since = reason.removesuffix(" is paused"), timestamp(since_ms)
    sentences = [
        f"It is not begun: {who} has been paused since {since}, for {ago}.",
        place,
        f"`workstealing {command}` lets it run.",
    ]
    return [*sentences, *_expiry(seen)]


def _expiry(seen: Trace) -> list[str]:
    """Say until when a task may be begun, if it expires."""
    deadline = preview_envelope(seen.envelope).deadline
    if not deadline:
        return []
    if deadline > seen.now_ms:
        left = duration_ms(deadline - seen.now_ms)
        return [f"It expires if it is not begun within {left}."]
    late = duration_ms(seen.now_ms - deadline)
    return [f"It expired {late} ago: the worker that comes to it ends it unbegun."]


def _waiting(keys: QueueKeys, around: Surroundings, found: _FoundTask) -> Sentences:
    envelope = preview_envelope(found.trace.envelope)
    priority = envelope.priority if envelope.priority in (0, 2) else 1
    inbox = keys.inboxes[priority]
    ahead = yield from ask(listing_calls.position(inbox, found.id, most=_FAR))
    length = yield from ask(listing_calls.length(inbox))
    sentences = [
        f"It is waiting in the inbox of priority {priority}; no worker has it yet.",
        _position(ahead, length),
    ]
    if envelope.at:
        age = duration_ms(found.trace.now_ms - envelope.at)
        sentences.append(f"It was submitted {age} ago.")
    sentences += yield from prospects_of(keys, around, found.id, found.trace)
    return [*sentences, *_expiry(found.trace)]


def _following(keys: QueueKeys, found: _FoundTask) -> Sentences:
    seen = found.trace
    sentences = [f"It {waits_for(seen)}."]
    envelope = preview_envelope(seen.envelope)
    if seen.group is None and envelope.after is not None:
        before = yield from locate(keys, envelope.after.task)
        state = before.place or State(preview_outcome(before.trace.outcome).state)
        sentences.append(f"That one is {state.value}.")
        sentences.append("If it fails, this one is cancelled.")
    else:
        sentences.append("It is begun when the last of them has ended, however it did.")
    return [*sentences, *_expiry(seen)]


def _in_line(keys: QueueKeys, around: Surroundings, found: _FoundTask) -> Sentences:
    seen = yield from ask(limit_calls.held_back(keys, found.id))
    _, fair_key, *_ = (*found.trace.line.split("\t"), "")
    if seen.ahead < 0:
        return ["It has just moved on."]
    if seen.limit_key:
        first = f"It is {seen.reason}."
    elif fair_key:
        first = f"It is waiting for the turn of its fair key {fair_key}."
    else:
        first = "It is waiting in its line; its limits have room."
    trace = found.trace
    hope = yield from prospects_of(keys, around, found.id, trace, is_near=False)
    tasks = plural(seen.ahead, "task")
    verb = "is" if seen.ahead == 1 else "are"
    place = f"{tasks} {verb} ahead of it in its line." if seen.ahead else "It is next."
    return [first, place, *hope]


def _assigned(keys: QueueKeys, found: _FoundTask) -> Sentences:
    worker = found.trace.worker
    deque = keys.deque(worker)
    ahead = yield from ask(listing_calls.position(deque, found.id, most=_FAR))
    length = yield from ask(listing_calls.length(deque))
    return [
        f"It is in the deque of {worker} and has not started.",
        _position(ahead, length),
        "An idle worker may steal it.",
        *_expiry(found.trace),
    ]


def _running(found: _FoundTask) -> list[str]:
    seen = found.trace
    age = duration_ms(seen.now_ms - (found.picked_up_at_ms or 0))
    sentences = [f"{seen.worker} picked it up {age} ago."]
    if found.progress is not None:
        sentences.append(f"It reports being at {found.progress}.")
    return sentences


def _parked(keys: QueueKeys, seen: Trace) -> Sentences:
    capable = yield from ask(listing_calls.count_capable(keys, seen.needs))
    hope = "It returns to the inbox when a worker joins that can."
    if capable:
        workers = plural(capable, "worker")
        hope = f"Now {workers} can: the next upkeep returns it to the inbox."
    return [f"It is parked: no worker could run {seen.needs}.", hope]


def _ended(keys: QueueKeys, found: _FoundTask) -> Sentences:
    seen = found.trace
    if not seen.outcome:
        ago = duration_ms(seen.now_ms - (seen.dead_at_ms or 0))
        return [
            f"It was given up {ago} ago and is a dead letter.",
            "Its outcome, which held the reason, is no longer kept.",
        ]
    outcome = preview_outcome(seen.outcome)
    words = {
        "done": "It is done",
        "failed": "It failed",
        "dead": "It was given up",
        "expired": "It expired",
    }
    first = words.get(outcome.state, "It was cancelled")
    reason = one_line_reason(outcome)
    sentences = [f"{first}: {reason}." if reason else f"{first}."]
    if outcome.ended:
        ago = duration_ms(seen.now_ms - outcome.ended)
        took = duration_ms(outcome.took)
        where = f" on {outcome.worker}" if outcome.worker else ""
        how = f"after {took}, in attempt {outcome.attempt}"
        if outcome.state in ("cancelled", "expired") and not outcome.worker:
            how = "while it was not running"
        sentences.append(f"It ended {ago} ago{where}, {how}.")
    if not seen.events and outcome.ended and outcome.task:
        sentences += yield from _waits_of_others(keys, outcome)
    if seen.dead_at_ms is not None:
        sentences.append("It is a dead letter; you can replay or drop it.")
    expires = yield from ask(listing_calls.outcome_kept(keys, found.id))
    if expires is not None:
        left = duration_ms(expires - seen.now_ms)
        sentences.append(f"Its outcome is kept for another {left}.")
    return sentences


def _waits_of_others(keys: QueueKeys, outcome: TaskOutcome) -> Sentences:
    """Say how long tasks of its name waited then; its own wait is not kept."""
    # Workers add up what they have seen every few seconds, perhaps a minute later.
    around = yield from read_history((keys,), outcome.began + 60_000, 2)
    for one in around.tasks:
        if one.task == outcome.task and any(one.waits):
            p50, p95 = (duration(one.wait_quantile_ms(n) / 1000) for n in (0.5, 0.95))
            waited = f"half of the tasks {one.task} waited {p50} or less to be begun"
            return [f"About then, {waited}, and 95 % of them {p95} or less."]
    return []


def _holder(keys: QueueKeys, settings: QueueSettings, seen: Trace) -> Sentences:
    worker, now = seen.worker, seen.now_ms
    lease = yield from ask(listing_calls.score(keys.workers, worker))
    (info,) = yield from ask(listing_calls.describe_workers(keys, (worker,)))
    described = info.description
    sentences = [f"Its lock is {worker}#{seen.token}."]
    if described:
        pid, host = shown(described.get("pid", "?")), shown(described.get("host", "?"))
        sentences.append(f"{worker} is process {pid} on {host}.")
    if lease is None:
        sentences.append(
            "That worker is not registered: upkeep compares locks with workers, and"
            " will return the task to the inbox."
        )
    elif lease <= now:
        sentences.append(
            f"The worker's lease ended {duration_ms(now - lease)} ago, so it counts as"
            " dead: the next upkeep reassigns its tasks."
        )
    else:
        lease_ms = number(described.get("lease_ms", settings.lease_ms)) or 0
        age = duration_ms(lease_ms - (lease - now))
        left = duration_ms(lease - now)
        sentences.append(
            f"The worker renewed its lease {age} ago; it is valid for another {left}."
        )
    return sentences


def _unique(seen: Trace) -> list[str]:
    until = {"s": "until it is started", "d": "until it has ended"}.get(seen.unique)
    if until is None or seen.dead_at_ms is not None:
        return []
    return [f"It is unique {until}: no other with its unique key is submitted."]


def _history(found: _FoundTask) -> list[str]:
    seen = found.trace
    sentences = []
    if seen.attempts:
        sentences.append(f"It has failed {plural(seen.attempts, 'time')} before.")
    for last in map(_failed_attempt, seen.failures[:1]):
        ago = duration_ms(seen.now_ms - last.at_ms)
        where = f" on {last.worker}" if last.worker else ""
        sentences.append(
            f"Attempt {last.attempt} failed {ago} ago{where}: {last.error}."
        )
    if seen.deaths:
        sentences.append(
            f"{plural(seen.deaths, 'worker')} died while running it, or"
            f" {'was' if seen.deaths == 1 else 'were'} silent for longer than a lease."
        )
    if seen.steals:
        sentences.append(f"It was stolen {plural(seen.steals, 'time')}.")
    life = _biography(found) if seen.events else None
    return sentences if life is None else [*sentences, f"Its life: {life}"]


def _biography(found: _FoundTask) -> Biography | None:
    """Tell where a task has been: by its events, else by what was written of it."""
    seen = found.trace
    envelope = preview_envelope(seen.envelope) if seen.envelope else None
    submitted_ms, due_ms = (envelope.at, envelope.due) if envelope else (0, 0)
    failures = tuple(map(_failed_attempt, seen.failures))
    if not seen.outcome:
        return biography_of(
            seen.events,
            submitted_ms=submitted_ms,
            due_ms=due_ms,
            taken_ms=found.picked_up_at_ms or 0,
            worker=seen.worker,
            until_ms=seen.dead_at_ms or seen.now_ms,
            failures=failures,
            ending=found.state.value if seen.dead_at_ms else "",
        )
    outcome = preview_outcome(seen.outcome)
    is_noted = bool(seen.events)
    return biography_of(
        seen.events,
        submitted_ms=submitted_ms,
        due_ms=due_ms,
        # Its worker's clock says when; events are those of the server.
        taken_ms=outcome.began if outcome.worker and not is_noted else 0,
        worker=outcome.worker,
        until_ms=(is_noted and seen.dead_at_ms) or outcome.ended,
        failures=failures,
        ending=found.state.value,
        took_ms=outcome.took if outcome.worker else None,
    )


def _failed_attempt(text: bytes) -> FailedAttempt:
    outcome = preview_outcome(text)
    return FailedAttempt(
        attempt=outcome.attempt,
        worker=outcome.worker,
        at_ms=outcome.ended,
        took_ms=outcome.took,
        error=one_line_reason(outcome),
        traceback=outcome.error.traceback if outcome.error else "",
    )


def _task_of(seen: Trace, outcome: TaskOutcome | None) -> str:
    if seen.envelope:
        return preview_envelope(seen.envelope).ability
    return outcome.task if outcome else ""


def _position(ahead: int | None, length: int) -> str:
    if ahead is None and length > _FAR:
        return f"More than {_FAR:,} of {length:,} tasks are ahead of it."
    if ahead is None:
        return "It has just moved on."
    if ahead == 0:
        return "It is next."
    return f"{ahead:,} of {length:,} tasks {'is' if ahead == 1 else 'are'} ahead of it."


def _decoded(text: bytes, most: int | None) -> Any:
    if most is not None and len(text) > most:
        # Decoded and written again, it would take seconds.
        kept = text[:most].decode(errors="replace")
        return CutText(f"{kept}… ({len(text):,} bytes; the first {most:,} are shown)")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode(errors="replace")


def _outcome_fields(outcome: TaskOutcome) -> dict[str, Any]:
    fields: dict[str, Any] = {"state": outcome.state}
    if outcome.error is not None:
        fields["error"] = {"type": outcome.error.type, "message": outcome.error.message}
    if outcome.reason:
        fields["reason"] = outcome.reason
    if outcome.worker:
        fields["worker"] = outcome.worker
    return fields | {
        "ended": outcome.ended,
        "took": outcome.took,
        "attempt": outcome.attempt,
    }
