"""Counts the steps and saves of a task, and kills or holds its process at one of them.

Steps, the lines that are executed, are counted by Python's own tracing, in the thread
that runs the task and in the code of the task's package only. Outside of a rehearsal
nothing is traced.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import weakref
from collections.abc import Callable
from threading import Lock
from types import FrameType
from typing import Any

from workstealing.errors import StopWork
from workstealing.rehearsing.process_messages import (
    Continue,
    ProcessChannel,
    WorkerFindings,
)
from workstealing.rehearsing.stories import StoryPoint
from workstealing.tasks.attempt import Attempt
from workstealing.tasks.context import (
    ExecutionContext,
    NotesKeeper,
    Progress,
    TaskNotes,
    control_of,
)

__all__ = ("FaultInjector", "HeldClock")

_LOOK_SECONDS = 0.001


class HeldClock:
    """The clock of a worker: it can be stopped, and jumps ahead when it is released."""

    def __init__(self) -> None:
        self._behind = 0.0
        self._held_at: float | None = None

    def monotonic(self) -> float:
        """Return the time as this worker sees it, in seconds."""
        # Read once: the supervisor asks while the thread of the task may release it.
        held_at = self._held_at
        if held_at is not None:
            return held_at
        return time.monotonic() - self._behind

    def hold(self) -> None:
        """Stop the clock."""
        self._held_at = self.monotonic()

    def release(self, later: float) -> None:
        """Start the clock again, as if it had been stopped for *later* seconds."""
        assert self._held_at is not None, "it is held"
        self._behind = time.monotonic() - self._held_at - later
        self._held_at = None


class FaultInjector:
    """Kills or holds the process that runs a task, at one point of its run.

    Args:
        package: the package whose lines count as steps.
        point: where it happens; None for an undisturbed run.
        kills: whether the process is killed there; otherwise it is held.
        channel: to the story server, which says when to go on.
        clock: the clock of the worker.
        lease: the worker loses its lease after this many silent seconds.
    """

    def __init__(
        self,
        package: str,
        point: StoryPoint | None,
        *,
        kills: bool,
        channel: ProcessChannel,
        clock: HeldClock,
        lease: float,
    ) -> None:
        self._package = package
        self._point = point
        self._kills = kills
        self._channel = channel
        self._clock = clock
        self._lease = lease
        self._can_speak = Lock()
        self._context: ExecutionContext | None = None
        # Not the exception and its frames themselves: all that they refer to would be
        # kept alive, and a file that the task does not close would stay open.
        self._stop: weakref.ref[StopWork] | None = None
        self._stopped_at: dict[int, int] = {}
        self._gone_back: set[int] = set()
        self._went_on = ""
        self.findings = WorkerFindings("ended")
        """What was counted and seen so far."""

    def cut_off_at_point(self, heartbeat: Callable[[], None]) -> Callable[[], None]:
        """Return a heartbeat that is silent from the moment the process is held."""

        def beat() -> None:
            if self._can_speak.acquire(blocking=False):
                try:
                    heartbeat()
                finally:
                    self._can_speak.release()

        return beat

    def began(self, attempt: Attempt) -> None:
        """Watch an attempt from here on, in this thread."""
        self.findings.begun += 1
        self._context = attempt.context
        control = control_of(attempt.context)
        assert control.output is not None, "a worker has one"
        control.output = _WatchedOutput(control.output, self)
        sys.settrace(self._entered)

    def ended(self, *, is_done: bool) -> None:
        """Watch no longer."""
        sys.settrace(None)
        if is_done and self._went_on:
            self.findings.ignored = self._went_on
        self._reach(StoryPoint("end"))

    def save(self, notes: TaskNotes, value: Any) -> bool:
        """Save a checkpoint; it may be the last thing that happens."""
        self.findings.saves += 1
        number = self.findings.saves
        if self._stop is not None:
            self._note_going_on(self._where(None))
        self._reach(StoryPoint("before save", number))
        is_saved = notes.save(value)
        self._reach(StoryPoint("after save", number))
        return is_saved

    def _entered(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002
        if not self._is_own(frame):
            return None
        if frame.f_trace is None:
            # A new frame may have the id of one that has ended.
            self._stopped_at.pop(id(frame), None)
        return self._in_frame

    def _in_frame(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.findings.steps += 1
            point = self._point
            if point is not None and point.number == self.findings.steps:
                self._reach(StoryPoint("at step", self.findings.steps), frame)
            if self._stop is not None and self._is_back_at_work(frame):
                self._note_going_on(_place(frame))
        elif event == "exception" and isinstance(argument[1], StopWork):
            self._see_stop(argument[1], frame)
        return self._in_frame

    def _see_stop(self, stop: StopWork, frame: FrameType) -> None:
        """Note a StopWork; a second one means that the first was not obeyed.

        Each frame that one passes through reports it again.
        """
        if self._stop is None:
            self._stop = weakref.ref(stop)
            caller: FrameType | None = frame
            while caller is not None:
                if self._is_own(caller):
                    self._stopped_at[id(caller)] = caller.f_lasti
                caller = caller.f_back
        elif stop is not self._stop():
            self._note_going_on(_place(frame))

    def _is_back_at_work(self, frame: FrameType) -> bool:
        """Tell whether a loop has begun another round after StopWork was raised.

        Code after that point is taken for tidying up, however much of it there is.
        """
        if frame.f_lasti > self._stopped_at.get(id(frame), -1):
            return False
        if id(frame) in self._gone_back:
            return True
        # The first line back may be the condition that ends the loop.
        self._gone_back.add(id(frame))
        return False

    def _note_going_on(self, where: str) -> None:
        self._went_on = self._went_on or where

    def _reach(self, point: StoryPoint, frame: FrameType | None = None) -> None:
        if point != self._point:
            return
        self.findings.where = "" if point.at == "end" else self._where(frame)
        if self._kills:
            self.findings.what = "dying"
            self._channel.send(self.findings)
            os.kill(os.getpid(), signal.SIGKILL)
        self._hold()

    def _hold(self) -> None:
        """Stop here until the story server says how to go on."""
        # Never released; and a heartbeat that is under way ends first.
        self._can_speak.acquire()
        self._clock.hold()
        self.findings.what = "held"
        self._channel.send(self.findings)
        go_on = self._channel.receive(Continue)
        if go_on is None:
            os._exit(1)
        self.findings.what = "ended"
        self._clock.release(self._lease if go_on.learns_of_it else 0.0)
        context = self._context
        while go_on.learns_of_it and context is not None and not context.lease_lost:
            # The supervisor will notice and tell the task.
            time.sleep(_LOOK_SECONDS)

    def _where(self, frame: FrameType | None) -> str:
        frame = frame or sys._getframe()  # noqa: SLF001 - there is no other way
        while frame is not None and not self._is_own(frame):
            frame = frame.f_back
        return "" if frame is None else _place(frame)

    def _is_own(self, frame: FrameType) -> bool:
        name: str = frame.f_globals.get("__name__", "")
        return name.partition(".")[0] == self._package


class _WatchedOutput:
    """Hands out notes whose saves are counted."""

    def __init__(self, output: NotesKeeper, injector: FaultInjector) -> None:
        self._output = output
        self._injector = injector

    def notes(self, attempt: Any) -> TaskNotes:
        """Return the place for the notes of an attempt."""
        return _WatchedNotes(self._output.notes(attempt), self._injector)


class _WatchedNotes:
    """The notes of an attempt, each save of which may be its last."""

    def __init__(self, notes: TaskNotes, injector: FaultInjector) -> None:
        self._notes = notes
        self._injector = injector

    def progress(self, progress: Progress) -> None:
        """Show how far the task is."""
        self._notes.progress(progress)

    def checkpoint(self) -> Any:
        """Return what was saved last."""
        return self._notes.checkpoint()

    def save(self, value: Any) -> bool:
        """Keep where to continue."""
        return self._injector.save(self._notes, value)

    @property
    def has_notes(self) -> bool:
        """Whether anything is kept that must be deleted when the task ends."""
        return self._notes.has_notes


def _place(frame: FrameType) -> str:
    """Return a file and a line, from the current folder if the file is below it."""
    path, here = frame.f_code.co_filename, os.getcwd() + os.sep
    return f"{path.removeprefix(here)}:{frame.f_lineno}"
