"""Puts a chain, a group, or a group and the steps after it, into the queue.

All tasks are in Redis at once, so each has an id, a state and a handle; those that
wait for others are put into the queue by the script that ends the last of these. A
group goes in by slices of a thousand members, and its members may begin before the last
slice is in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from workstealing.client.queue_submissions import (
    BYTES_PER_CALL,
    TASKS_PER_CALL,
    check_payloads,
)
from workstealing.errors import (
    ConfigurationError,
    GroupIncomplete,
    KeyFailed,
    NotReplicated,
    PayloadInvalid,
)
from workstealing.queue.composition_calls import NewGroup, NewStep, submit_steps
from workstealing.queue.keys import QueueKeys
from workstealing.queue.placement import id_in_shard
from workstealing.queue.steps import Flow, ask
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.envelope import (
    MOST_MEMBERS,
    After,
    Envelope,
    EnvelopeTemplate,
    member_id,
)
from workstealing.tasks.hooks import TaskCall
from workstealing.tasks.submission import (
    Submission,
    SubmitOptions,
    envelope_without_payload,
    has_limits,
    lines_of,
    new_ids,
)
from workstealing.telemetry.task_events import TaskSubmitted

if TYPE_CHECKING:
    from workstealing.client.queue_internals import QueueInternals
    from workstealing.telemetry.task_observers import SubmitSpans

__all__ = (
    "ComposedIds",
    "PlannedStep",
    "planned_step",
    "submit_alone",
    "submit_composed",
)

_LONGEST_CHAIN = 500


@dataclass(frozen=True, slots=True, eq=False)
class PlannedStep:
    """A task with its arguments, all or all but the first, not submitted yet."""

    internals: QueueInternals[Any]
    definition: TaskDefinition
    options: SubmitOptions
    payload: bytes
    into: str = ""
    """The argument that takes the result of the step before it; empty if none does."""

    @property
    def result_type(self) -> Any:
        """What the task returns."""
        return self.definition.signature.result_type


@dataclass(frozen=True, slots=True)
class ComposedIds:
    """The ids of what was submitted."""

    group: str
    members: list[str]
    steps: list[str]


def planned_step(
    internals: QueueInternals[Any],
    definition: TaskDefinition,
    options: SubmitOptions,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> PlannedStep:
    """Check the arguments of a step: all of them, or else all but the first."""
    name, signature = definition.name, definition.signature
    for what, is_given in (
        ("options(id=…)", options.id is not None),
        ("options(again=True)", options.again),
        ("unique=", definition.unique is not None),
    ):
        if is_given:
            raise ConfigurationError(
                f"task '{name}' cannot be a step with {what}: a step that was there"
                " before would belong to two compositions; submit it alone"
            )
    try:
        payload = signature.encode(args, kwargs)
    except PayloadInvalid as error:
        # A link lacks its first argument. If all arguments are there, but of a wrong
        # type, it is a mistake.
        first = next(iter(signature.positional), "")
        if not first or first in kwargs:
            raise
        if signature.has_all(args, kwargs):
            hint = ""
            if 0 < len(args) < len(signature.positional):
                hint = (
                    f"; if '{first}' is to come from the step before, give the others"
                    " by name"
                )
            problem = f"{error.problem}{hint}"
            raise PayloadInvalid(error.task, error.field, problem) from None
    else:
        return PlannedStep(internals, definition, options, payload)
    payload = signature.without_first().encode(args, kwargs)
    return PlannedStep(internals, definition, options, payload, first)


def submit_alone(plan: PlannedStep) -> Flow[Submission]:
    """Submit a step that is not part of a chain or group, as an ordinary task."""
    plan.internals.admission.permit(plan.definition, plan.options.context)
    return plan.internals.submit(plan.definition, [plan.payload], plan.options, None)


def submit_composed(
    members: Sequence[PlannedStep] | None, steps: Sequence[PlannedStep]
) -> Flow[ComposedIds]:
    """Submit a group if there are *members*, and the steps after it, or a chain."""
    plans = [*(members or ()), *steps]
    _check(plans, members, steps)
    keys = yield from _one_shard(plans)
    ids = _draw_ids(members, steps, keys)
    if keys is None:
        return ids
    internals = plans[0].internals
    submission = _Submission(internals, keys, _begin_spans(internals, plans))
    began_at = internals.clock.monotonic()
    try:
        yield from submission.submit(members or (), steps, ids)
    except BaseException as error:
        for _, spans in submission.spans.values():
            spans.end(error)
        raise
    if internals.middleware.all:
        for plan, task_id in zip(plans, [*ids.members, *ids.steps], strict=True):
            read: Any = plan.definition.signature.decode
            if plan.into:
                # Without its first argument, which is not known yet.
                read = msgspec.json.decode
            name, version = plan.definition.name, plan.definition.version
            call = TaskCall(name, version, task_id, partial(read, plan.payload))
            yield from internals.submissions.notify_submitted(call)
    if internals.observers is not None:
        took = internals.clock.monotonic() - began_at
        queue, first = internals.observers.queue, dict[str, str]()
        for plan, task_id in zip(plans, [*ids.members, *ids.steps], strict=True):
            first.setdefault(plan.definition.name, task_id)
        for name, (number, spans) in submission.spans.items():
            spans.end(TaskSubmitted(queue, name, first[name], number, 0, took))
    return ids


def _check(
    plans: Sequence[PlannedStep],
    members: Sequence[PlannedStep] | None,
    steps: Sequence[PlannedStep],
) -> None:
    queues = {plan.internals.full_name for plan in plans}
    if len(queues) > 1:
        names = " and ".join(sorted(queues))
        raise ConfigurationError(
            f"all steps of a chain or group are tasks of one queue, not of {names}:"
            " submit to the other queue from within the last step"
        )
    if members is not None and len(members) > MOST_MEMBERS:
        raise ConfigurationError(
            f"a group has {MOST_MEMBERS:,} members at most, not {len(members):,}: give"
            " each member more to do"
        )
    if len(steps) > _LONGEST_CHAIN:
        raise ConfigurationError(
            f"a chain has {_LONGEST_CHAIN} steps at most, not {len(steps)}"
        )
    first = steps[0] if members is None and steps else None
    for plan in (*(members or ()), *([first] if first else [])):
        if plan.into:
            raise ConfigurationError(
                f"task '{plan.definition.name}' lacks its argument '{plan.into}', and"
                " no step before it returns one: give it to .s()"
            )
    for plan in plans:
        plan.internals.admission.permit(plan.definition, plan.options.context)
        check_payloads(
            plan.definition.name, [plan.payload], plan.internals.settings.max_payload
        )


def _one_shard(plans: Sequence[PlannedStep]) -> Flow[QueueKeys | None]:
    """Choose the shard of a whole composition; None if there is nothing to submit."""
    if not plans:
        return None
    shards = plans[0].internals.shards
    if not shards.are_several:
        return shards.all[0]
    yield from shards.known()
    if any(has_limits(plan.definition) for plan in plans):
        return shards.all[0]
    named = (plan.options.shard_key for plan in plans)
    key = next((one for one in named if one is not None), None)
    if key is not None:
        return shards.all[shards.of_key(key)]
    (home,) = shards.next_homes(1)
    return shards.all[home]


def _draw_ids(
    members: Sequence[PlannedStep] | None,
    steps: Sequence[PlannedStep],
    keys: QueueKeys | None,
) -> ComposedIds:
    """Draw ids; a group shares the id of the step after it, if there is one."""
    drawn = new_ids(max(1, len(steps)))
    plan = next(iter((*(members or ()), *steps)), None)
    if keys is not None and plan is not None and plan.internals.shards.are_several:
        drawn = [id_in_shard(one, keys.shard) for one in drawn]
    if members is None:
        return ComposedIds("", [], drawn)
    names = [member_id(drawn[0], place) for place in range(len(members))]
    return ComposedIds(drawn[0], names, drawn if steps else [])


def _begin_spans(
    internals: QueueInternals[Any], plans: Sequence[PlannedStep]
) -> dict[str, tuple[int, SubmitSpans]]:
    """Begin a span for each name of a task, if there are observers."""
    observers = internals.observers
    if observers is None:
        return {}
    traces = {plan.definition.name: plan.options.context.trace for plan in plans}
    numbers = Counter(plan.definition.name for plan in plans)
    return {
        name: (number, observers.submitting(name, number, traces[name]))
        for name, number in numbers.items()
    }


@dataclass(slots=True)
class _Submission:
    """One composition on its way into the queue."""

    internals: QueueInternals[Any]
    keys: QueueKeys
    spans: dict[str, tuple[int, SubmitSpans]]
    limits: dict[str, str] = field(default_factory=dict)
    _templates: dict[tuple[int, int], EnvelopeTemplate] = field(default_factory=dict)

    def submit(
        self,
        members: Sequence[PlannedStep],
        steps: Sequence[PlannedStep],
        ids: ComposedIds,
    ) -> Flow[None]:
        """Submit it, slice by slice."""
        internals, whole = self.internals, len(members) + len(steps)
        slices = list(
            _slices(
                list(self._steps(steps, ids, len(members))),
                list(self._members(members, ids)),
            )
        )
        submitted, confirmed, refusal = 0, None, None
        for place, part in enumerate(slices):
            group = NewGroup(
                ids.group if members else "",
                len(members),
                place=place,
                is_last=place == len(slices) - 1,
            )
            call = submit_steps(
                self.keys,
                internals.shards.settings,
                part,
                group,
                whole=whole,
                limits=self.limits,
            )
            try:
                verdict = yield from ask(call)
            except NotReplicated as error:
                # Submit the rest all the same: a part of a group is of no use.
                confirmed, verdict = error.confirmed, cast("Any", error.answer)
                refusal = error.__cause__
            if verdict == "over":
                raise GroupIncomplete(ids.group, submitted, len(members))
            internals.submissions.refuse(verdict, submitted, whole)
            submitted += sum(step.is_member for step in part)
        if confirmed is not None:
            names = (*ids.members, *ids.steps)
            missing = NotReplicated(names, confirmed, internals.settings.replicas)
            raise missing from refusal

    def _steps(
        self, plans: Sequence[PlannedStep], ids: ComposedIds, members: int
    ) -> Iterator[NewStep]:
        for place, plan in enumerate(plans):
            follower = ids.steps[place + 1] if place + 1 < len(plans) else ""
            after = None
            if place:
                after = After(task=ids.steps[place - 1], into=plan.into)
            elif ids.group:
                after = After(group=ids.group, members=members, into=plan.into)
            waits = place > 0 or members > 0
            yield self._new(
                plan, ids.steps[place], after, follower, waits=waits, is_member=False
            )

    def _members(
        self, plans: Sequence[PlannedStep], ids: ComposedIds
    ) -> Iterator[NewStep]:
        for plan, task_id in zip(plans, ids.members, strict=True):
            yield self._new(plan, task_id, None, ids.group, waits=False, is_member=True)

    def _new(
        self,
        plan: PlannedStep,
        task_id: str,
        after: After | None,
        follower: str,
        *,
        waits: bool,
        is_member: bool,
    ) -> NewStep:
        if after is None:
            # The members of a group are mostly of the same task.
            same = (id(plan.definition), id(plan.options))
            template = self._templates.get(same)
            if template is None:
                template = EnvelopeTemplate.of(self._envelope(plan, None))
                self._templates[same] = template
        else:
            template = EnvelopeTemplate.of(self._envelope(plan, after))
        envelope = template.around(plan.payload)
        signer = self.internals.admission.signer
        if signer is not None:
            envelope = signer.sign(task_id, envelope)
        options, task = plan.options, plan.definition
        return NewStep(
            task_id,
            envelope,
            task.priority if options.priority is None else options.priority,
            options.due_ms,
            options.delay_ms,
            self._line(plan),
            follower,
            is_member,
            waits,
        )

    def _envelope(self, plan: PlannedStep, after: After | None) -> Envelope:
        internals, options = self.internals, plan.options
        _, spans = self.spans.get(plan.definition.name, (0, None))
        if spans is not None and spans.trace != options.context.trace:
            context = replace(options.context, trace=spans.trace)
            options = replace(options, context=context)
        envelope = envelope_without_payload(
            plan.definition,
            options,
            is_signed=internals.admission.signer is not None,
            carried=None if internals.carried is None else internals.carried.values(),
            time_ns=internals.time_ns,
        )
        return msgspec.structs.replace(envelope, after=after)

    def _line(self, plan: PlannedStep) -> str:
        if not plan.into:
            lines, limits = lines_of(plan.definition, [plan.payload], plan.options)
            self.limits.update(limits)
            return lines[0] if lines else ""
        signature = plan.definition.signature.without_first()
        known = replace(plan.definition, signature=signature)
        try:
            lines, limits = lines_of(known, [plan.payload], plan.options)
        except (KeyFailed, KeyError) as error:
            raise ConfigurationError(
                f"task '{plan.definition.name}' has limits or a fair key that depend on"
                f" its arguments, and '{plan.into}' is not known before the step"
                " before it ends: give options(fair_key=…), or submit it from within"
                " that step"
            ) from error
        self.limits.update(limits)
        return lines[0] if lines else ""


def _slices(
    steps: Sequence[NewStep], members: Sequence[NewStep]
) -> Iterator[Sequence[NewStep]]:
    """Divide a submission, so that no call holds the server up.

    All steps are in the first part: a chain is submitted whole, or not at all.
    """
    part = list(steps)
    size = sum(len(step.envelope) for step in part)
    for step in members:
        if part and (len(part) == TASKS_PER_CALL or size > BYTES_PER_CALL):
            yield part
            part, size = [], 0
        part.append(step)
        size += len(step.envelope)
    yield part
