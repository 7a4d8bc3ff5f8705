"""Finds jobs by name: in modules, in packages and in installed plug-ins.

A module offers its jobs by a function `install_jobs(recruiter)`. A package without one
is searched for submodules that have it. Importing a module may also be enough, if that
installs jobs on the recruiter by a decorator.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from workstealing.errors import ConfigurationError

__all__ = ("load_jobs", "load_plugins")

_FUNCTION = "install_jobs"
_GROUP = "workstealing.jobs"


class _Loads(Protocol):
    def stats(self) -> Any: ...


def load_jobs(recruiter: _Loads, names: Iterable[str]) -> None:
    """Let each module, package or `module:function` install its jobs."""
    for name in names:
        module_name, _, function = name.partition(":")
        before = len(recruiter.stats().jobs)
        module = import_module(module_name)
        installed = _install_from(module, recruiter, function or _FUNCTION)
        if not installed and len(recruiter.stats().jobs) == before:
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
        child = import_module(f"{module.__name__}.{submodule.name}")
        found = _install_from(child, recruiter, function) or found
    return found
