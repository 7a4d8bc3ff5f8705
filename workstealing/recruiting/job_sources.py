"""Where jobs come from: setup functions, modules, packages and installed plug-ins.

A setup function runs once per process, before the first lottery. One that raises is
called again after a pause. The jobs that it had installed by then are uninstalled, so
that the next try may install them under the same names.

A module offers its jobs by a function `install_jobs(recruiter)`. A package without one
is searched for submodules that have it. Importing a module may also be enough, if that
installs jobs on the recruiter by a decorator. A process imports a module only once, so
these jobs stay, in a forked child and after a setup that raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Protocol

from workstealing.errors import ConfigurationError

__all__ = ("Setup", "Setups", "in_setup", "load_jobs", "load_plugins", "setting_up")

Setup = Callable[[Any], Any]

_FUNCTION = "install_jobs"
_GROUP = "workstealing.jobs"

_running: ContextVar[bool] = ContextVar("workstealing_setup", default=False)
# Modules whose import has installed jobs.
_installed_by_import: set[str] = set()


def in_setup() -> bool:
    """Return whether the caller is a setup function."""
    return _running.get()


class Setups:
    """Which setup functions have run in this process, and which have not yet."""

    retry_seconds: ClassVar[float] = 10.0

    def __init__(self) -> None:
        self._all: list[Setup] = []
        self._pending: list[Setup] = []
        self.in_progress = False
        """Whether a thread or task is running setup functions."""
        self.due_at: float | None = None
        self.failures = 0

    def add(self, function: Setup, now: float) -> None:
        """Add a function; it is due at once."""
        self._all.append(function)
        self._pending.append(function)
        self.due_at = now

    def begin(self, now: float) -> list[Setup]:
        """Return what must run now; until `end()`, no other caller gets anything."""
        if self.in_progress or self.due_at is None or now < self.due_at:
            return []
        self.in_progress = True
        return list(self._pending)

    def done(self, function: Setup) -> None:
        """Note that a function has run."""
        self._pending.remove(function)

    def end(self, now: float) -> None:
        """Finish what `begin` began; what is still pending is due after a pause."""
        self.in_progress = False
        self.due_at = now + self.retry_seconds if self._pending else None

    def reset(self, now: float) -> bool:
        """Make all due again, in a forked child; return whether there are any."""
        self._pending = list(self._all)
        self.in_progress = False
        self.due_at = now if self._pending else None
        self.failures = 0
        return bool(self._pending)


@contextmanager
def setting_up() -> Iterator[None]:
    """Mark what runs inside as part of a setup."""
    token = _running.set(True)
    try:
        yield
    finally:
        # The garbage collector closes a coroutine in another context.
        with suppress(ValueError):
            _running.reset(token)


class _Loads(Protocol):
    def stats(self) -> Any: ...


def load_jobs(recruiter: _Loads, names: Iterable[str]) -> None:
    """Let each module, package or `module:function` install its jobs."""
    for name in names:
        module_name, _, function = name.partition(":")
        before = len(recruiter.stats().jobs)
        module = _imported(module_name)
        if _install_from(module, recruiter, function or _FUNCTION):
            continue
        if len(recruiter.stats().jobs) > before:
            _installed_by_import.add(module_name)
        if module_name not in _installed_by_import:
            raise ConfigurationError(
                f"{name} installs no jobs: give the module a function"
                f" {function or _FUNCTION}(recruiter), or name one as"
                f" '{module_name}:function'"
            )


def load_plugins(recruiter: _Loads) -> None:
    """Let each entry point of the group install its jobs."""
    # Costly to import, and few processes need it.
    from importlib.metadata import entry_points

    for entry_point in entry_points(group=_GROUP):
        offered = entry_point.load()
        if isinstance(offered, ModuleType):
            load_jobs(recruiter, [offered.__name__])
        else:
            offered(recruiter)


def _install_from(module: ModuleType, recruiter: _Loads, function: str) -> bool:
    install = getattr(module, function, None)
    if install is not None:
        install(recruiter)
        return True
    # Costly to import, and few processes need it.
    import pkgutil

    found = False
    for submodule in pkgutil.iter_modules(getattr(module, "__path__", ())):
        child = _imported(f"{module.__name__}.{submodule.name}")
        found = _install_from(child, recruiter, function) or found
    return found


def _imported(name: str) -> ModuleType:
    """Import a module; what that installs is not part of the setup that asks for it."""
    token = _running.set(False)
    try:
        return import_module(name)
    finally:
        _running.reset(token)
