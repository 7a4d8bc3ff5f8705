"""The tasks that a process knows, by name and version."""

from __future__ import annotations

from collections.abc import Iterator

from workstealing.errors import DuplicateTask, UnknownTask
from workstealing.tasks.task import TaskDefinition

__all__ = ("Registry",)


class Registry:
    """Definitions by name and version. Versions of one name live side by side.

    It only grows, and each step is one operation of a dictionary: threads may add
    and find at any time.
    """

    def __init__(self) -> None:
        self._definitions: dict[tuple[str, int], TaskDefinition] = {}

    def add(self, definition: TaskDefinition) -> None:
        """Take up a definition; a name and version that are taken are refused."""
        key = (definition.name, definition.version)
        if self._definitions.setdefault(key, definition) is not definition:
            raise DuplicateTask(
                f"there is a task {definition.ability} already: give another name=,"
                " or a higher version= if the parameters changed"
            )

    def find(self, name: str, version: int) -> TaskDefinition:
        """Return a definition; `UnknownTask` says which versions there are."""
        try:
            return self._definitions[name, version]
        except KeyError:
            raise UnknownTask(self._missing(name, version)) from None

    def abilities(self) -> tuple[str, ...]:
        """Return what this process can run, as `name@version`, in order."""
        return tuple(sorted(definition.ability for definition in self))

    def __iter__(self) -> Iterator[TaskDefinition]:
        return iter(tuple(self._definitions.values()))

    def __len__(self) -> int:
        return len(self._definitions)

    def _missing(self, name: str, version: int) -> str:
        versions = sorted(known.version for known in self if known.name == name)
        if versions:
            known = ", ".join(map(str, versions))
            return f"task '{name}' has no version {version} here, only {known}"
        return f"no task '{name}' here: import the module that defines it"
