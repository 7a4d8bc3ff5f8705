"""What client and server agree on: a task without its implementation.

    RESIZE = Contract("images.resize", payload=Resize, result=str)

A client needs no more than the module of the contracts to call a task. The server
implements it with `@registry.implements(RESIZE)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from workstealing._checks import checked_task_name, checked_whole
from workstealing.errors import NotATask
from workstealing.tasks.definition import TaskDefinition, define
from workstealing.tasks.envelope import NORMAL, PRIORITIES
from workstealing.tasks.policy import checked_permission
from workstealing.tasks.signature import Signature
from workstealing.tasks.unique import Unique, checked_unique

__all__ = ("Contract", "TaskInterface")


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """The name, the version and the types of a task, and who may call it.

    With a class as `payload`, the implementation has one parameter that takes an object
    of it. With a function as `payload`, which is never called, the implementation has
    the parameters of that function. Either may have one more for the
    `ExecutionContext`, and more for resources.
    """

    name: str
    payload: Any
    """A dataclass, msgspec struct, TypedDict or Pydantic model; or a function."""
    result: Any = None
    """What the task returns; with a function as payload, that function says it."""
    version: int = 1
    """What the payload means; raise it when its type changes."""
    permission: str | None = None
    """What its caller must be allowed, where a policy is set."""
    priority: int = NORMAL
    unique: Unique | None = None
    """What keeps a second task like it out of the queue."""
    signature: Signature = field(init=False, repr=False)

    def __post_init__(self) -> None:
        checked_task_name(self.name)
        checked_whole(self.version, "version", 1)
        checked_whole(self.priority, "priority", 0, PRIORITIES - 1)
        checked_permission(self.permission)
        if inspect.isfunction(self.payload):
            if self.result is not None:
                raise NotATask(f"task '{self.name}': its function says the result")
            signature = Signature.of(self.payload, self.name)
        else:
            signature = Signature.of_type(self.payload, self.result, self.name)
        object.__setattr__(self, "signature", signature)
        checked_unique(self.unique, signature)

    @property
    def ability(self) -> str:
        """Return how a worker announces that it can run this: `name@version`."""
        return f"{self.name}@{self.version}"

    def implemented_by(
        self, function: Callable[..., Any], **options: Any
    ) -> TaskDefinition:
        """Make a task of a function that fits; options are those of `define`."""
        if "unique" in options:
            raise NotATask(f"task '{self.name}': its contract says how it is unique")
        definition = define(
            function,
            self.name,
            self.version,
            permission=self.permission,
            priority=self.priority,
            **options,
        )
        own = definition.signature
        if self.signature.whole is None:
            if set(own.parameters) != set(self.signature.parameters):
                raise NotATask(
                    f"task '{self.name}' takes {_listed(self.signature.parameters)} by"
                    f" its contract, and {function.__qualname__} takes"
                    f" {_listed(own.parameters)}"
                )
            whole = None
        else:
            if len(own.parameters) != 1:
                raise NotATask(
                    f"task '{self.name}': {function.__qualname__} must have one"
                    f" parameter for the payload, not {_listed(own.parameters)}"
                )
            (whole,) = own.parameters
        signature = replace(
            self.signature,
            context_parameter=own.context_parameter,
            resources=own.resources,
            whole=whole,
        )
        return replace(definition, signature=signature, unique=self.unique)


TaskInterface: TypeAlias = TaskDefinition | Contract
"""What a caller needs to know of a task: it is defined here, or only its contract."""


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
