"""The tasks that a process knows, by name and version: to call them, or to run them.

Registrations are grouped by giving a module a registry of its own, which others load by
the name of the module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, TypeVar

from workstealing.errors import ConfigurationError, DuplicateTask, UnknownTask
from workstealing.tasks.contract import Contract, TaskInterface
from workstealing.tasks.definition import TaskDefinition
from workstealing.tasks.resource import ResourceDefinition, define_resource

__all__ = (
    "GROUP",
    "Registry",
    "found_in_entry_points",
    "found_in_module",
)

F = TypeVar("F", bound=Callable[..., Any])


class Registry:
    """Definitions and contracts by name and version. Versions live side by side.

    It only grows, and each step is one operation of a dictionary: threads may add
    and find at any time.
    """

    def __init__(self) -> None:
        self._contracts: dict[tuple[str, int], Contract] = {}
        self._newest: dict[str, int] = {}
        self._definitions: dict[tuple[str, int], TaskDefinition] = {}
        self._accepting: dict[tuple[str, int], TaskDefinition] = {}
        self._resources: list[ResourceDefinition] = []
        self.uses_resources = False
        """Whether there are resources, or tasks that ask for any."""
        self._renamed: dict[str, str] = {}

    def add(self, definition: TaskDefinition) -> None:
        """Add a definition; a name and version that are taken are refused."""
        key = (definition.name, definition.version)
        self._refuse_other_numbers(definition)
        self._refuse_names_in_use(definition)
        if self._definitions.setdefault(key, definition) is not definition:
            raise DuplicateTask(
                f"a task {definition.ability} exists already: give another name=,"
                " or a higher version= if the parameters changed"
            )
        self._note(*key)
        if definition.signature.resources:
            self.uses_resources = True
        for name in definition.formerly:
            self._renamed[name] = definition.name
            self._accept(name, definition.version, definition)
        for version in definition.accepts:
            for name in (definition.name, *definition.formerly):
                self._accept(name, version, definition)

    def _refuse_other_numbers(self, definition: TaskDefinition) -> None:
        """Refuse a limit that another task has by the same name and other numbers."""
        own = definition.line_names.numbers if definition.line_names else {}
        for other in self if own else ():
            theirs = other.line_names.numbers if other.line_names else {}
            for name in own.keys() & theirs.keys():
                # Versions of one task may differ: the newest submission counts.
                if own[name] != theirs[name] and other.name != definition.name:
                    raise ConfigurationError(
                        f"tasks '{other.name}' and '{definition.name}' share the limit"
                        f" {name} and give it different numbers: give both the same"
                        " Limit"
                    )

    def contract(
        self, name: str, payload: Any, result: Any = None, **options: Any
    ) -> Contract:
        """Add a contract and return it; options are those of `Contract`."""
        contract = Contract(name, payload, result, **options)
        self.add_contract(contract)
        return contract

    def add_contract(self, contract: Contract) -> None:
        """Add a contract; a name and version that are taken are refused."""
        key = (contract.name, contract.version)
        if self._contracts.setdefault(key, contract) is not contract:
            raise DuplicateTask(f"a contract of {contract.ability} exists already")
        self._note(*key)

    def implements(self, contract: Contract, **options: Any) -> Callable[[F], F]:
        """Make the decorated function the implementation of a contract.

        Options are those of `@queue.task`, but for what the contract says.
        """

        def implement(function: F) -> F:
            self.add_contract(contract)
            self.add(contract.implemented_by(function, **options))
            return function

        return implement

    def resource(self, function: F) -> F:
        """Let workers open what the decorated function yields, for tasks that ask.

        It is a generator function, `def` or `async def`, that yields once.
        """
        self.add_resource(define_resource(function))
        return function

    def add_resource(self, resource: ResourceDefinition) -> None:
        """Add a resource; a type that is taken is refused."""
        for known in self._resources:
            if known is resource:
                return
            if known.type is not None and known.type == resource.type:
                raise ConfigurationError(
                    f"resources '{known.name}' and '{resource.name}' yield the same"
                    f" type, {_type_name(known.type)}, by which tasks ask for them:"
                    " give one of them a subclass or a NewType"
                )
        self._resources.append(resource)
        self.uses_resources = True

    def resources(self) -> tuple[ResourceDefinition, ...]:
        """Return the resources in the order of their definition.

        A task that asks for one that nobody yields is refused.
        """
        known = [one.type for one in self._resources]
        for definition in self:
            for name, kind in definition.signature.resources.items():
                if kind not in known:
                    raise ConfigurationError(
                        f"task '{definition.name}' asks for the resource"
                        f" {_type_name(kind)} (parameter '{name}'), and nothing yields"
                        " one: define it with @queue.resource"
                    )
        return tuple(self._resources)

    @contextmanager
    def fake(self, contract: Contract, function: Callable[..., Any]) -> Iterator[None]:
        """Let another function implement a contract for a while; for tests."""
        self.add_contract(contract)
        key = (contract.name, contract.version)
        real = self._definitions.get(key)
        self._definitions[key] = contract.implemented_by(function)
        try:
            yield
        finally:
            if real is None:
                del self._definitions[key]
            else:
                self._definitions[key] = real

    def include(self, other: Registry) -> None:
        """Add everything that another registry has."""
        for contract in tuple(other._contracts.values()):
            self.add_contract(contract)
        for definition in other:
            self.add(definition)
        for resource in other._resources:
            self.add_resource(resource)

    def load(self, module: str) -> None:
        """Import a module; add its contracts, and what its registries have."""
        self._add_all(found_in_module(module), module)

    def load_entry_points(self) -> None:
        """Add what installed packages offer in the group `workstealing.tasks`."""
        for name, found in found_in_entry_points():
            self._add_all(found, name)

    def interface(self, name: str, version: int | None = None) -> TaskInterface:
        """Return what a caller needs to know; the newest version unless it is given."""
        name = self._renamed.get(name, name)
        key = (name, self._newest.get(name, 1) if version is None else version)
        known = self._definitions.get(key) or self._contracts.get(key)
        if known is None:
            every = (*self, *tuple(self._contracts.values()))
            versions = {one.version for one in every if one.name == name}
            raise UnknownTask(_missing(*key, versions))
        return known

    def find(self, name: str, version: int) -> TaskDefinition:
        """Return what runs a version: its own definition, or one that accepts it.

        `UnknownTask` says which versions there are.
        """
        key = (name, version)
        definition = self._definitions.get(key) or self._accepting.get(key)
        if definition is None:
            versions = {
                one
                for known in self
                if known.name == name or name in known.formerly
                for one in (known.version, *known.accepts)
            }
            raise UnknownTask(_missing(name, version, versions))
        return definition

    def abilities(self) -> tuple[str, ...]:
        """Return what this process can run, as `name@version`, in order."""
        return tuple(sorted({ability for known in self for ability in known.abilities}))

    def __iter__(self) -> Iterator[TaskDefinition]:
        return iter(tuple(self._definitions.values()))

    def __len__(self) -> int:
        return len(self._definitions)

    def _add_all(self, found: list[Any], name: str) -> None:
        offered = [part for part in found if isinstance(part, (Contract, Registry))]
        for part in offered:
            if isinstance(part, Contract):
                self.add_contract(part)
            elif part is not self:
                self.include(part)
        if not offered:
            raise ConfigurationError(
                f"there is no Registry and no Contract in {name}: give it one, such as"
                " `tasks = Registry()` at the top of the module"
            )

    def _accept(self, name: str, version: int, definition: TaskDefinition) -> None:
        known = self._accepting.setdefault((name, version), definition)
        if known.version < definition.version:
            self._accepting[name, version] = definition

    def _refuse_names_in_use(self, definition: TaskDefinition) -> None:
        own = definition.name
        heir = self._renamed.get(own)
        if heir is not None:
            raise DuplicateTask(
                f"the name {own!r} is taken: task {heir!r} lists it in formerly="
            )
        for name in definition.formerly:
            if self._renamed.get(name, own) != own or any(
                known.name == name for known in self
            ):
                raise DuplicateTask(
                    f"task {own!r}: formerly={name!r} is refused, because another task"
                    " has or had that name"
                )

    def _note(self, name: str, version: int) -> None:
        if version > self._newest.get(name, 0):
            self._newest[name] = version


def _type_name(kind: Any) -> str:
    return str(getattr(kind, "__qualname__", kind))


def _missing(name: str, version: int, versions: set[int]) -> str:
    if versions:
        known = ", ".join(map(str, sorted(versions)))
        return f"task '{name}' has no version {version} here, only {known}"
    return f"no task '{name}' here: import the module that defines it"


GROUP = "workstealing.tasks"
"""The group of entry points; each names a module, or a registry in one."""


def found_in_module(name: str) -> list[Any]:
    """Import a module and return all that it has."""
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        # A module that is there, and imports one that is not, is another problem.
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(
            f"there is no module {name} to load tasks from"
        ) from error
    return list(vars(module).values())


def found_in_entry_points() -> Iterator[tuple[str, list[Any]]]:
    """Import what installed packages offer; return each with its name."""
    for entry_point in entry_points(group=GROUP):
        found = entry_point.load()
        is_module = isinstance(found, ModuleType)
        yield entry_point.name, list(vars(found).values()) if is_module else [found]
