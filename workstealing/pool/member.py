"""One worker: a thread that finds work, runs it, and rests.

It looks in its own deque, then steals half of another's, then rests until someone
rings. Whatever it takes it must claim from the buffer before it runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread, local
from typing import TYPE_CHECKING, Any, TypeVar

from workstealing.errors import StopWork, UnknownWorker
from workstealing.pool.resting import Bell
from workstealing.pool.work import Work

if TYPE_CHECKING:
    from workstealing.pool.crew import Crew

__all__ = ("Member", "forget_member_here", "member_here", "works_of")

T = TypeVar("T")

_here = local()


def member_here(crew: Crew) -> Member | None:
    """Return the worker whose thread this is, if it is one of that crew."""
    member: Member | None = getattr(_here, "member", None)
    return member if member is not None and member.crew is crew else None


def forget_member_here() -> None:
    """Be no worker any more, in a forked child."""
    _here.member = None


def works_of(members: Iterable[Member]) -> list[Work[Any]]:
    """Return what these workers are at, the innermost first."""
    return [work for one in members for work in reversed(tuple(one.works))]


class Member:
    """A worker of a crew."""

    __slots__ = ("bell", "crew", "is_leaving", "number", "thread", "works")

    def __init__(self, crew: Crew, number: int) -> None:
        self.crew = crew
        self.number = number
        self.bell = Bell(number)
        self.is_leaving = False
        self.works: list[Work[Any]] = []
        """Claimed or about to be; more than one if work runs the work it waits for."""
        self.thread = Thread(
            target=self._live, name=f"{crew.name}-{number}", daemon=True
        )

    def shielded(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call it, and keep interruptions away from it if work is being run."""
        if not self.works:
            return function(*arguments)
        return self.works[-1].interruption.shielded(function, *arguments)

    def run(self, work: Work[Any]) -> None:
        """Run work that was claimed, the last of `works`."""
        function = work.function
        if function is None or not work.set_running_or_notify_cancel():
            self.works.pop()
            return
        try:
            value = work.interruption.call(function, *work.arguments, **work.keywords)
        except BaseException as error:  # noqa: BLE001 - it is the work's own
            self.works.pop()
            if isinstance(error, StopWork) and work.interruption.asked is not None:
                work.end_interrupted()
            else:
                work.fail(error)
                # The error knows this frame, and the work knows the error.
                del work
        else:
            self.works.pop()
            work.finish(value)

    def _live(self) -> None:
        _here.member = self
        buffer, works = self.crew.buffer, self.works
        work = None
        try:
            while True:
                found = self._found(has_worked=work is not None)
                # Not kept alive while the worker rests.
                work = None
                if found is None:
                    if not self._rest():
                        return
                    continue
                work = found
                del found
                # Seen here before it is claimed, or found in the buffer: never nowhere.
                works.append(work)
                if buffer.claim(work):
                    self.run(work)
                else:
                    works.pop()
        except UnknownWorker:
            # Sent away; or the work forked, and this is the child of a pool no more.
            return
        finally:
            self.crew.say_goodbye(self)

    def _found(self, has_worked: bool) -> Work[Any] | None:
        deques = self.crew.deques
        if self.is_leaving:
            if has_worked:
                deques.done(self.number)
            raise UnknownWorker(f"worker {self.number} leaves")
        work = (deques.done_and_take if has_worked else deques.take)(self.number)
        if work is None:
            loot = deques.steal(self.number, half=True)
            work = None if loot is None else loot.item
        return work

    def _rest(self) -> bool:
        """Sleep until someone rings; False if the worker is to leave."""
        crew, resting = self.crew, self.crew.resting
        resting.lie_down(self.bell)
        is_over = crew.buffer.is_closed and not len(crew.buffer)
        if is_over or self.is_leaving or crew.deques.waiting:
            resting.get_up(self.bell)
            return not is_over
        crew.tell_if_quiet()
        if resting.sleep(self.bell, crew.idle_seconds):
            return True
        return not crew.dismiss_if_spare(self)
