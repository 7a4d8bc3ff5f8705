"""What was submitted to a queue in memory, and how a test asks for it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from workstealing.client.task import AsyncTask, Task, definition_of
from workstealing.clock import EPOCH
from workstealing.errors import ConfigurationError, WorkStealingError
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.json_values import NOT_JSON, canonical_value
from workstealing.tasks.registry import Registry
from workstealing.testing.memory_server import WrittenEnvelope

__all__ = (
    "AnyTask",
    "SubmittedTask",
    "TaskPattern",
    "moment_of",
    "not_found",
    "own_arguments",
    "read_submitted",
    "unexpected",
)

AnyTask = Task[Any, Any] | AsyncTask[Any, Any] | str
"""A task, or the name of one."""

_SHOWN = 20
_UNREADABLE = Envelope(v=1, name="", version=0, payload=msgspec.Raw(b"{}"))


@dataclass(frozen=True, slots=True)
class SubmittedTask:
    """A task that was put into a queue, by any process."""

    name: str
    """The name of the task; empty if its envelope cannot be read."""
    version: int
    arguments: dict[str, Any]
    """Decoded, with defaults filled in; plain JSON values if the task is not known."""
    id: str
    queue: str
    at: datetime
    """When it was submitted, in the time of the memory."""
    due: datetime | None
    """When it is to be run, if not at once."""
    priority: int
    envelope: bytes = field(repr=False)
    """All that was written."""

    def __str__(self) -> str:
        if not self.name:
            return f"an envelope that cannot be read: {self.envelope[:100]!r}"
        text = f"{self.name}({_shown(self.arguments)})"
        return text if self.due is None else f"{text} due at {self.due}"


@dataclass(frozen=True, slots=True)
class TaskPattern:
    """A task, and some of its arguments: the others may be anything."""

    name: str
    arguments: Mapping[str, Any]

    @classmethod
    def of(
        cls, task: AnyTask, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> TaskPattern:
        """Give positional arguments their names."""
        if isinstance(task, str):
            if args:
                raise ConfigurationError(
                    f"arguments of '{task}' are given by name: only the task itself"
                    " knows their order"
                )
            return cls(task, kwargs)
        definition = definition_of(task)
        try:
            bound = inspect.signature(definition.function).bind_partial(*args, **kwargs)
        except TypeError as error:
            raise ConfigurationError(f"task '{task.name}': {error}") from error
        return cls(task.name, bound.arguments)

    def matches(self, submitted: SubmittedTask) -> bool:
        """Return whether a task is meant: what is given must be equal."""
        return submitted.name == self.name and all(
            name in submitted.arguments and _is_same(submitted.arguments[name], value)
            for name, value in self.arguments.items()
        )

    def __str__(self) -> str:
        return f"{self.name}({_shown(self.arguments)}{', …' * bool(self.arguments)})"


def not_found(pattern: TaskPattern, submitted: Sequence[SubmittedTask]) -> str:
    """Say what was submitted instead, tasks of the same name first."""
    if not submitted:
        return f"{pattern} was not submitted, nor was anything else"
    nearest = sorted(submitted, key=lambda one: one.name != pattern.name)
    return f"{pattern} was not submitted. What was:\n{_listed(nearest)}"


def unexpected(pattern: TaskPattern, found: Sequence[SubmittedTask]) -> str:
    """Say what was submitted and should not have been."""
    how_often = "once" if len(found) == 1 else f"{len(found)} times"
    return f"{pattern} was submitted {how_often}:\n{_listed(found)}"


def read_submitted(
    written: WrittenEnvelope, queue: str, registry: Registry
) -> SubmittedTask:
    """Read what was written into a queue, as the task itself would."""
    # What no worker can read becomes a dead letter; it must not hide the others.
    envelope = Envelope.read_or_none(written.envelope) or _UNREADABLE
    try:
        definition = registry.find(envelope.name, envelope.version)
        arguments = definition.decode(envelope.version, envelope.payload)
        arguments = own_arguments(definition, arguments)
    except WorkStealingError:
        # Unknown, or not acceptable to any worker: a test wants to see it all the same.
        arguments = msgspec.json.decode(envelope.payload)
    return SubmittedTask(
        name=envelope.name,
        version=envelope.version,
        arguments=arguments,
        id=written.id,
        queue=queue,
        at=moment_of(envelope.at * 1_000_000),
        due=moment_of(envelope.due * 1_000_000) if envelope.due else None,
        priority=envelope.priority,
        envelope=written.envelope,
    )


def own_arguments(
    definition: TaskDefinition, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a caller gave: neither the context nor resources."""
    signature = definition.signature
    filled_in = {signature.context_parameter, *signature.resources}
    return {name: value for name, value in arguments.items() if name not in filled_in}


def moment_of(time_ns: int) -> datetime:
    """Return a time of day in UTC."""
    return EPOCH + timedelta(microseconds=time_ns // 1000)


def _is_same(found: Any, given: Any) -> bool:
    if found == given:
        return True
    # A tuple comes back as a list, and an object as what its task says.
    try:
        return canonical_value(found) == canonical_value(given)
    except NOT_JSON:
        return False


def _shown(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def _listed(tasks: Sequence[SubmittedTask]) -> str:
    lines = [f"  {one}" for one in tasks[:_SHOWN]]
    if len(tasks) > _SHOWN:
        lines.append(f"  and {len(tasks) - _SHOWN} more")
    return "\n".join(lines)
