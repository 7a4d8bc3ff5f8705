"""Starts the story server from the user's process, has stories run, and ends it.

A story that takes too long is killed with its server, and the next one gets another.
All its processes are in a session of their own: no other process is ever killed, and a
Ctrl-C on the terminal reaches only the user's process, which ends them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from types import TracebackType

from workstealing.errors import ConfigurationError
from workstealing.rehearsing.process_messages import (
    ProcessChannel,
    RunStory,
    StoryFindings,
    TaskSetup,
)
from workstealing.rehearsing.stories import RehearsalStory

__all__ = ("IN_REHEARSAL", "StoryProcess")

IN_REHEARSAL = "WORKSTEALING_IN_REHEARSAL"
"""Set in the processes of a rehearsal, which must not begin another."""

_PROGRAM = (
    "from workstealing.rehearsing.story_server import serve_stories; serve_stories({})"
)
_IMPORT_SECONDS = 60.0
_SHOWN_LINES = 15


class StoryProcess:
    """Starts the process when it is first needed, and again after it was ended.

    Args:
        setup: what it imports.
        timeout: seconds that a story may last.
    """

    def __init__(self, setup: TaskSetup, timeout: float) -> None:
        self._setup = setup
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: ProcessChannel | None = None
        # What tasks and workers print is shown only if the process itself fails.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed with us

    def run(self, story: RehearsalStory, task_id: str) -> StoryFindings:
        """Have a story run.

        Raises:
            ConfigurationError: the program cannot be imported.
            TimeoutError: it took too long; all its processes are ended.
        """
        channel = self._channel or self._start()
        try:
            channel.send(RunStory(story, task_id))
            findings = channel.receive(StoryFindings, self._timeout)
        except TimeoutError:
            self._end()
            raise
        except BrokenPipeError:
            findings = None
        if findings is None:
            self._end()
            return StoryFindings(f"the rehearsal itself failed: {self._printed()}")
        return findings

    def __enter__(self) -> StoryProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        self._output.close()

    def _start(self) -> ProcessChannel:
        self._channel, theirs = ProcessChannel.pair()
        number = theirs.fileno()
        places = [os.path.abspath(place) for place in sys.path]
        program = f"import sys; sys.path[:] = {places!r}; {_PROGRAM.format(number)}"
        self._process = subprocess.Popen(  # noqa: S603 - the command is ours
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            env={**os.environ, IN_REHEARSAL: "1"},
            pass_fds=(number,),
            start_new_session=True,
        )
        theirs.close()
        self._channel.send(self._setup)
        try:
            findings = self._channel.receive(StoryFindings, _IMPORT_SECONDS)
        except TimeoutError:
            findings = StoryFindings(f"it took longer than {_IMPORT_SECONDS:g} s")
        problem = self._printed() if findings is None else findings.problem
        if problem:
            raise ConfigurationError(
                f"a new process cannot import task '{self._setup.task}': {problem}"
            )
        return self._channel

    def _printed(self) -> str:
        """Return the last lines that its processes have printed."""
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_SHOWN_LINES:]) or "it printed nothing"

    def _end(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
