"""Says in plain sentences where a task is, who holds it, and why it does not run."""

from __future__ import annotations

from workstealing.inspecting.finding import Finding, find
from workstealing.inspecting.heads import heading_of, outcome_of, reason_of
from workstealing.inspecting.values import Explanation
from workstealing.inspecting.wording import counted, moment, span
from workstealing.queue import listing
from workstealing.queue.call import Flow, ask
from workstealing.queue.keys import QueueKeys
from workstealing.queue.reading import Trace
from workstealing.queue.replies import number, shown
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.outcome import State

__all__ = ("explain", "sentences_on")

# How far a list is searched for a task.
_FAR = 10_000

Sentences = Flow[list[str]]


def explain(
    keys: QueueKeys, settings: QueueSettings, task_id: str
) -> Flow[Explanation]:
    """Look a task up, and say what was found."""
    found = yield from find(keys, task_id)
    sentences = yield from sentences_on(keys, settings, found)
    return Explanation(task_id, found.state, tuple(sentences))


def sentences_on(keys: QueueKeys, settings: QueueSettings, found: Finding) -> Sentences:
    """Say what there is to say on a task, the place first."""
    seen = found.trace
    if found.state is State.UNKNOWN:
        return _unknown(found.id, settings)
    if found.state is State.DELAYED:
        return [*_delayed(seen), *_history(seen)]
    if found.state is State.WAITING:
        sentences = yield from _waiting(keys, found)
    elif found.state is State.PARKED:
        sentences = yield from _parked(keys, seen)
    elif found.state is State.ASSIGNED:
        sentences = yield from _assigned(keys, found)
        sentences += yield from _holder(keys, settings, seen)
    elif found.state is State.RUNNING:
        age = span(seen.now_ms - (found.begun_at_ms or 0))
        sentences = [f"{seen.worker} took it in hand {age} ago."]
        if found.progress is not None:
            sentences.append(f"It says that it is at {found.progress}.")
        sentences += yield from _holder(keys, settings, seen)
        if seen.is_cancelling:
            sentences.append("It was asked to stop, and has not done so yet.")
    else:
        sentences = yield from _ended(keys, found)
    return [*sentences, *_history(seen)]


def _unknown(task_id: str, settings: QueueSettings) -> list[str]:
    kept = span(settings.retention_ms)
    past = f"it ended more than {kept} ago and its outcome was forgotten"
    return [
        f"Nothing is known of {task_id}.",
        f"It was never submitted to this run of the queue, or {past}.",
    ]


def _delayed(seen: Trace) -> list[str]:
    due, now = seen.due_ms or 0, seen.now_ms
    if due > now:
        why = "is tried again" if seen.attempts else "is due"
        when = f"in {span(due - now)}, at {moment(due)}"
        return [f"It {why} {when}; until then it rests."]
    return [
        f"It was due {span(now - due)} ago.",
        "It moves to the inbox as soon as a worker asks for tasks or upkeep is done.",
    ]


def _waiting(keys: QueueKeys, found: Finding) -> Sentences:
    heading = heading_of(found.trace.envelope)
    priority = heading.priority if heading.priority in (0, 2) else 1
    inbox = keys.inboxes[priority]
    before = yield from ask(listing.position(inbox, found.id, most=_FAR))
    length = yield from ask(listing.length(inbox))
    living = yield from ask(listing.living(keys, found.trace.now_ms))
    able = yield from ask(listing.workers_able(keys, heading.ability))
    sentences = [
        f"It waits in the inbox of priority {priority}, assigned to nobody.",
        _standing(before, length),
    ]
    if heading.at:
        age = span(found.trace.now_ms - heading.at)
        sentences.append(f"It was submitted {age} ago.")
    if not living:
        sentences.append("It does not run because no worker lives.")
    elif not able:
        sentences.append(
            f"{_workers_live(living)}, but none can run {heading.ability}: it will be"
            " parked until one comes that can."
        )
    else:
        sentences.append(
            f"{_workers_live(living)}; it runs as soon as one of them has time for it."
        )
    return sentences


def _assigned(keys: QueueKeys, found: Finding) -> Sentences:
    worker = found.trace.worker
    deque = keys.deque(worker)
    before = yield from ask(listing.position(deque, found.id, most=_FAR))
    length = yield from ask(listing.length(deque))
    return [
        f"It is in the deque of {worker}, not begun.",
        _standing(before, length),
        "A worker that has nothing to do may steal it.",
    ]


def _parked(keys: QueueKeys, seen: Trace) -> Sentences:
    able = yield from ask(listing.workers_able(keys, seen.needs))
    hope = "It goes back to the inbox when one comes that can."
    if able:
        workers = counted(able, "worker")
        hope = f"By now {workers} can: the next upkeep gives it back to the inbox."
    return [f"It is parked: no worker could run {seen.needs}.", hope]


def _ended(keys: QueueKeys, found: Finding) -> Sentences:
    seen = found.trace
    if not seen.outcome:
        ago = span(seen.now_ms - (seen.dead_at_ms or 0))
        return [
            f"It was given up {ago} ago and is a dead letter.",
            "Its outcome, with the reason, is no longer kept.",
        ]
    outcome = outcome_of(seen.outcome)
    words = {"done": "It is done", "failed": "It failed", "dead": "It was given up"}
    first = words.get(outcome.state, "It was cancelled")
    reason = reason_of(outcome)
    sentences = [f"{first}: {reason}." if reason else f"{first}."]
    if outcome.ended:
        ago, took = span(seen.now_ms - outcome.ended), span(outcome.took)
        where = f" on {outcome.worker}" if outcome.worker else ""
        sentences.append(
            f"It ended {ago} ago{where}, after {took}, in attempt {outcome.attempt}."
        )
    if seen.dead_at_ms is not None:
        sentences.append("It is a dead letter, and can be replayed or dropped.")
    expires = yield from ask(listing.score(keys.outbox, found.id))
    if expires is not None:
        sentences.append(f"Its outcome is kept for {span(expires - seen.now_ms)} more.")
    return sentences


def _holder(keys: QueueKeys, settings: QueueSettings, seen: Trace) -> Sentences:
    worker, now = seen.worker, seen.now_ms
    lease = yield from ask(listing.score(keys.workers, worker))
    (fellow,) = yield from ask(listing.crew(keys, (worker,)))
    told = fellow.description
    sentences = [f"Its lock is {worker}#{seen.token}."]
    if told:
        pid, host = shown(told.get("pid", "?")), shown(told.get("host", "?"))
        sentences.append(f"{worker} is process {pid} on {host}.")
    if lease is None:
        sentences.append(
            "Nobody knows that worker: upkeep compares locks with workers, and will"
            " give the task back."
        )
    elif lease <= now:
        sentences.append(
            f"The lease of the worker ended {span(now - lease)} ago, so it is taken for"
            " dead: the next upkeep gives its tasks to others."
        )
    else:
        lease_ms = number(told.get("lease_ms", settings.lease_ms)) or 0
        age = lease_ms - (lease - now)
        left = span(lease - now)
        sentences.append(
            f"The worker renewed its lease {span(age)} ago; it holds for {left}."
        )
    return sentences


def _history(seen: Trace) -> list[str]:
    sentences = []
    if seen.attempts:
        sentences.append(f"It failed {counted(seen.attempts, 'time')} before.")
    if seen.deaths:
        sentences.append(f"{counted(seen.deaths, 'worker')} died while running it.")
    if seen.steals:
        sentences.append(f"It was stolen {counted(seen.steals, 'time')}.")
    return sentences


def _standing(before: int | None, length: int) -> str:
    if before is None and length > _FAR:
        return f"More than {_FAR:,} of {length:,} tasks stand before it."
    if before is None:
        return "It has just moved on."
    if before == 0:
        return "It is the next."
    stand = "stands" if before == 1 else "stand"
    return f"{counted(before, 'task')} of {length:,} {stand} before it."


def _workers_live(living: int) -> str:
    return counted(living, "worker lives", "workers live")
