"""Submits tasks that are unique, or whose ids are used again: one by one.

Mostly one call is enough. A second one follows if it has to name what the first one
met: the worker that holds the task to be replaced, or the task to be forgotten. So a
client that repeats a call, because the reply was lost, never forgets the task that the
call submitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from workstealing._logs import BackgroundLogger
from workstealing.errors import ConfigurationError, NotReplicated
from workstealing.queue import inspection_calls
from workstealing.queue.keys import QueueKeys
from workstealing.queue.steps import Flow, Pipeline, ask
from workstealing.queue.unique_calls import (
    UniqueRequest,
    UniqueVerdict,
    submit_unique,
)
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.envelope import EnvelopeTemplate
from workstealing.tasks.outcome import TaskOutcome
from workstealing.tasks.submission import (
    Submission,
    SubmitOptions,
    envelope_without_payload,
    lines_of,
)
from workstealing.tasks.unique import unique_key

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals

__all__ = ("UniqueSubmission", "warn_of_ended")

logger = BackgroundLogger(__name__)

# Ways to end after which a caller may well expect the task to be run.
_ENDED_BADLY = ("cancelled", "failed", "dead", "expired")
_SHOWN = 3


def warn_of_ended(ids: Sequence[str], ended: Mapping[int, str]) -> None:
    """Log which tasks were not submitted because an earlier one has ended badly."""
    kept = [(ids[at], how) for at, how in ended.items() if how in _ENDED_BADLY]
    if not kept:
        return
    shown = ", ".join(f"{task_id} ({how})" for task_id, how in kept[:_SHOWN])
    if len(kept) > _SHOWN:
        shown += f" and {len(kept) - _SHOWN} more"
    logger.warning(
        "not submitted, because a task that has ended is kept under the same id or"
        " unique key: %s; handle.found_ended says so, and .options(again=True) forgets"
        " it and submits anew",
        shown,
    )


class UniqueSubmission:
    """One submission of one or many tasks to one shard."""

    def __init__(
        self,
        internals: QueueInternals[Any],
        keys: QueueKeys,
        task: TaskInterface,
        options: SubmitOptions,
        carried: dict[str, str] | None,
        *,
        is_drawn: bool,
    ) -> None:
        self._internals = internals
        self._keys = keys
        self._task = task
        self._carried = carried
        self._unique = task.unique
        self._is_drawn = is_drawn
        if self._unique is not None and self._unique.debounce is not None:
            if options.delay is not None or options.at is not None:
                raise ConfigurationError(
                    f"debounce= says when task '{task.name}' is due: submit it without"
                    " a delay or a time"
                )
            options = replace(options, delay=self._unique.debounce)
        if self._unique is None and is_drawn:
            raise ConfigurationError(
                "again=True is about a task that has ended: say which one by id=, or"
                " ids= of submit_many()"
            )
        self._options = options

    def submit(
        self, names: Sequence[str], payloads: Sequence[bytes], before: int, whole: int
    ) -> Flow[Submission]:
        """Submit tasks, after *before* tasks of the *whole* went to other shards.

        On a conflict, the id is that of the earlier task.
        """
        internals, requests = self._internals, list(self._requests(names, payloads))
        answers: list[UniqueVerdict | None] = [None] * len(requests)
        settings = internals.shards.settings
        if len(requests) > 1 and not (settings.max_length or settings.replicas):
            answers = yield Pipeline(
                submit_unique(self._keys, settings, request) for request in requests
            )
        ids, known, ended = list(names), set(), {}
        for at, request in enumerate(requests):
            answer = yield from self._settled(request, answers[at])
            if answer.verdict == "known":
                ids[at] = answer.detail
                known.add(at)
                if answer.state != "live":
                    ended[at] = answer.state
            elif answer.verdict != "new":
                internals.submissions.refuse(answer.verdict, before + at, whole)
        warn_of_ended(ids, ended)
        return Submission(ids, frozenset(known), ended)

    def _settled(
        self, request: UniqueRequest, answer: UniqueVerdict | None
    ) -> Flow[UniqueVerdict]:
        """Repeat the call until its answer is final."""
        settings = self._internals.shards.settings
        while True:
            if answer is None:
                call = submit_unique(self._keys, settings, request)
                try:
                    answer = yield from ask(call)
                except NotReplicated as error:
                    answer = cast("UniqueVerdict", error.answer)
                    if answer.verdict == "new":
                        raise NotReplicated(
                            (request.id,), error.confirmed, error.replicas
                        ) from error.__cause__
            if answer.verdict == "moved":
                seen = yield from ask(inspection_calls.trace(self._keys, answer.detail))
                request = replace(request, worker=seen.worker, needs=seen.needs)
            elif answer.verdict == "ended" and not request.seen:
                request = replace(request, seen=answer.detail)
            elif answer.verdict == "ended":
                # Another one was submitted meanwhile, and has ended already.
                request = replace(request, again=False)
            else:
                return answer
            answer = None

    def _requests(
        self, names: Sequence[str], payloads: Sequence[bytes]
    ) -> Iterator[UniqueRequest]:
        task, unique, options = self._task, self._unique, self._options
        signer = self._internals.admission.signer
        envelope = envelope_without_payload(
            task,
            options,
            is_signed=signer is not None,
            carried=self._carried,
            time_ns=self._internals.time_ns,
        )
        around = EnvelopeTemplate.of(envelope).around
        lines, limits = lines_of(task, payloads, options)
        for at, (name, payload) in enumerate(zip(names, payloads, strict=True)):
            written = around(payload)
            request = UniqueRequest(
                id=name,
                envelope=written if signer is None else signer.sign(name, written),
                is_drawn=self._is_drawn,
                priority=envelope.priority,
                due_ms=options.due_ms,
                delay_ms=options.delay_ms,
                again=options.again,
                line=lines[at] if lines else "",
                limits=limits,
            )
            if unique is not None:
                reason = f"replaced by task {name}"
                outcome = TaskOutcome(
                    state="cancelled", reason=reason, task=task.ability
                )
                request = replace(
                    request,
                    key=unique_key(unique, task.signature, payload),
                    ends=unique.ends,
                    window_ms=unique.window_ms,
                    longest_ms=unique.longest_ms,
                    on_conflict=unique.on_conflict or "keep",
                    replaced=outcome.encode(),
                )
            yield request
