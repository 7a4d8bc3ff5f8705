"""What users call to bring jobs in: the same on both recruiters."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, ClassVar, TypeVar, cast

from workstealing.errors import ConfigurationError
from workstealing.recruiting.loading import load_jobs, load_plugins
from workstealing.recruiting.office import Office
from workstealing.recruiting.pacing import Every

__all__ = ("RecruiterFace",)

Self = TypeVar("Self", bound="RecruiterFace")
Function = TypeVar("Function", bound=Callable[..., Any])


class RecruiterFace(Office):
    """Decorators and loaders; see `Office` for the arguments."""

    _masters: ClassVar[dict[type[RecruiterFace], RecruiterFace]] = {}

    @classmethod
    def master(cls: type[Self]) -> Self:
        """Return the one of this process, made with defaults when first asked for."""
        # One operation of a dictionary: no lock that a forked child could inherit.
        masters = RecruiterFace._masters
        if cls not in masters:
            masters.setdefault(cls, cls())
        return cast("Self", masters[cls])

    def job(
        self,
        function: None = None,
        /,
        *,
        rate: float | None = None,
        every: Every | None = None,
        name: str | None = None,
        target: str | None = None,
    ) -> Callable[[Function], Function]:
        """Install the decorated function, by its own name unless one is given."""
        if function is not None:
            raise ConfigurationError(
                "how often? a job needs its rate: write @recruiter.job(rate=0.001),"
                " or @recruiter.job(every=30.0), with parentheses"
            )

        def install(function: Function) -> Function:
            own_name = name or str(getattr(function, "__name__", ""))
            self.install(function, own_name, rate=rate, every=every, target=target)
            return function

        return install

    def setup(self, function: Function) -> Function:
        """Run the decorated function once per process, before the first lottery.

        It is given the recruiter. One that raises is logged and tried again later.
        """
        if iscoroutinefunction(function) and not self._takes_coroutines:
            raise ConfigurationError(
                "a Recruiter cannot await a setup: use a plain function, or an"
                " AsyncRecruiter"
            )
        self._add_setup(function)
        return function

    def load(self, *modules: str) -> None:
        """Let each module, package or `module:function` install its jobs.

        A module does so by a function `install_jobs(recruiter)`.
        """
        load_jobs(self, modules)

    def load_plugins(self) -> None:
        """Let installed packages install theirs, by the group `workstealing.jobs`."""
        load_plugins(self)

    def dismisses(self) -> bool:
        """Dismiss the caller if nobody is drawn; or else it is to call `enlist()`.

        For hosts that know in advance that a moment may come, and would have to prepare
        for it: nearly always this spares them that. One that finds in the end that it
        was no moment calls `forgo()` instead.
        """
        for _ in self._stride:
            return True
        return False
