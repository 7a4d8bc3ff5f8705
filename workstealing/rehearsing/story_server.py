"""The process in which stories are run: it imports the program, and forks workers.

It imports the program once and connects to nothing. Each worker is a fork of it: it
starts at once, and has seen no other story. All queues of the program are moved to the
server of the rehearsal. It ends, with all workers, when the process that started it
does.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import select
import signal
import socket
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.spawn import prepare
from types import ModuleType
from typing import Any, NoReturn

from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import QueueInternals, internals_of
from workstealing.client.task_queue import TaskQueue
from workstealing.clock import SYSTEM_CLOCK
from workstealing.drivers.async_driver import AsyncDriverSource
from workstealing.drivers.connect import async_driver_source, driver_source
from workstealing.errors import ConfigurationError, UnknownTask, WorkStealingError
from workstealing.queue.keys import queue_scripts
from workstealing.rehearsing.process_messages import (
    Continue,
    ProcessChannel,
    RunStory,
    StoryFindings,
    TaskSetup,
    WorkerFindings,
)
from workstealing.rehearsing.story_worker import WorkerSetup, run_worker

__all__ = ("serve_stories",)

_SCRIPTS = ("submit_unique", "join", "unpark", "exchange", "note", "leave", "survey")
# Seconds to wait for one worker before the other goes on; twice the undisturbed run is
# added. Databases wait for a lock longer than this.
_PATIENCE = 1.0
_OTHER_OPTIONS = (
    *("lease", "retention", "max_outcomes", "max_length", "replicas", "shards"),
    *("clock", "observers"),
)


def serve_stories(descriptor: int) -> None:
    """Import the program, and run stories until the channel is closed."""
    orders = ProcessChannel(socket.socket(fileno=descriptor))
    setup = orders.receive(TaskSetup)
    if setup is None:
        return
    try:
        queue = _imported_queue(setup)
    except BaseException as error:  # noqa: BLE001 - programs raise all sorts of things
        orders.send(StoryFindings(_described(error)))
        return
    with ExitStack() as stack:
        _move_all_queues(setup.url, stack)
        _load_scripts()
        server = _StoryServer(setup, _rehearsed_queue(queue, setup.url), orders)
        orders.send(StoryFindings())
        while (order := orders.receive(RunStory)) is not None:
            orders.send(server.run(order))


@dataclass(slots=True)
class _StoryWorker:
    """A worker, as the story server sees it."""

    pid: int
    channel: ProcessChannel


class _WentWrong(Exception):
    """A process did what the story had not planned."""


class _StoryServer:
    """Runs stories, one after the other."""

    def __init__(
        self, setup: TaskSetup, queue: TaskQueue, orders: ProcessChannel
    ) -> None:
        self._setup = setup
        self._queue = queue
        self._orders = orders
        self._findings = StoryFindings()
        self._alive: set[int] = set()
        self._patience = _PATIENCE

    def run(self, order: RunStory) -> StoryFindings:
        """Run a story; say how it went."""
        self._findings = StoryFindings()
        try:
            self._run(order)
        except _WentWrong as error:
            self._findings.problem = str(error)
        for left_over in tuple(self._alive):
            os.kill(left_over, signal.SIGKILL)
            self._await_end(left_over)
        return self._findings

    def _run(self, order: RunStory) -> None:
        story, task_id = order.story, order.task_id
        kills = story.kind in ("killed", "report lost")
        began_at = time.monotonic()
        one = self._start(WorkerSetup(task_id, True, story.first, kills))
        first = self._receive(one)
        self._findings.where = first.where
        self._findings.steps, self._findings.saves = first.steps, first.saves
        if story.first is not None and first.what == "ended":
            self._findings.is_reached = False
        elif story.kind == "undisturbed":
            self._patience = _PATIENCE + 2 * (time.monotonic() - began_at)
        else:
            submits = story.kind == "run twice"
            other = self._start(WorkerSetup(task_id, submits, story.second))
            if first.what == "held":
                self._run_both(one, other, learns_of_it=story.kind == "lease lost")
            else:
                self._receive(other)

    def _run_both(
        self, one: _StoryWorker, other: _StoryWorker, *, learns_of_it: bool
    ) -> None:
        """Let the second go as far as it gets, then the first, then the second.

        One that does not get anywhere waits for a lock or a transaction of the other:
        that is no defect, and the other goes on.
        """
        second = self._receive_soon(other)
        one.channel.send(Continue(learns_of_it))
        first = self._receive_soon(one)
        if second is None:
            second = self._receive(other)
        if second.what == "held":
            self._findings.where += f" and {second.where}"
            other.channel.send(Continue(learns_of_it=False))
            self._receive(other)
        if first is None:
            self._receive(one)

    def _start(self, worker: WorkerSetup) -> _StoryWorker:
        ours, theirs = ProcessChannel.pair()
        pid = os.fork()
        if pid == 0:
            self._become_worker(worker, theirs)
        theirs.close()
        self._alive.add(pid)
        return _StoryWorker(pid, ours)

    def _become_worker(self, worker: WorkerSetup, channel: ProcessChannel) -> NoReturn:
        code = 1
        try:
            self._orders.close()
            run_worker(worker, self._setup, self._queue, channel)
            code = 0
        except BaseException as error:  # noqa: BLE001 - it is a process of its own
            channel.send(WorkerFindings("failed", _described(error)))
        finally:
            os._exit(code)

    def _receive_soon(self, worker: _StoryWorker) -> WorkerFindings | None:
        """Wait a while until a worker is held, or over; None if it is neither."""
        if self._is_silent(worker, self._patience):
            self._findings.is_blocked = True
            return None
        return self._receive(worker)

    def _is_silent(self, worker: _StoryWorker, seconds: float | None) -> bool:
        ready, _, _ = select.select([worker.channel, self._orders], [], [], seconds)
        if self._orders in ready:
            # No order is due now, so the user's process has ended.
            os.killpg(0, signal.SIGKILL)
        return not ready

    def _receive(self, worker: _StoryWorker) -> WorkerFindings:
        """Wait until a worker is held, or over."""
        self._is_silent(worker, None)
        findings = worker.channel.receive(WorkerFindings)
        if findings is not None and findings.what == "held":
            return findings
        cause = self._await_end(worker.pid)
        worker.channel.close()
        if findings is None:
            raise _WentWrong(f"its process ended by itself, {cause}")
        if findings.what == "failed":
            raise _WentWrong(f"its worker failed: {findings.where}")
        self._findings.begun += findings.begun
        self._findings.ignored = self._findings.ignored or findings.ignored
        return findings

    def _await_end(self, pid: int) -> str:
        """Wait for the end of a worker; return how it ended."""
        _, status = os.waitpid(pid, 0)
        self._alive.discard(pid)
        code = os.waitstatus_to_exitcode(status)
        return f"with exit code {code}" if code >= 0 else f"by signal {-code}"


def _described(error: BaseException) -> str:
    if isinstance(error, WorkStealingError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _imported_queue(setup: TaskSetup) -> TaskQueue | AsyncTaskQueue:
    if setup.main:
        # It is run under another name, so what is under its
        # `if __name__ == "__main__":` is not.
        prepare(setup.main)
    modules = [_imported(name, setup.files.get(name)) for name in setup.modules]
    found: Any = modules[0]
    for name in setup.queue.split("."):
        found = getattr(found, name)
    assert isinstance(found, TaskQueue | AsyncTaskQueue)
    try:
        found.registry.find(setup.task, setup.version)
    except UnknownTask:
        raise ConfigurationError(
            f"it is not there when {' and '.join(setup.modules)} are imported:"
            " define it at the top of a module"
        ) from None
    return found


def _imported(name: str, path: str | None) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        spec = path and importlib.util.spec_from_file_location(name, path)
        # The module may exist, and import another that does not.
        missing = error.name is not None and f"{name}.".startswith(f"{error.name}.")
        if not spec or not missing or spec.loader is None:
            raise
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _move_all_queues(url: str, stack: ExitStack) -> None:
    """Move every queue that the program has, so that none of them is really used."""
    for one in gc.get_objects():
        # Not isinstance(): proxies of others pretend to be what they are not yet.
        if type(one) is QueueInternals:
            is_async = isinstance(one.source, AsyncDriverSource)
            new_source: Any = async_driver_source if is_async else driver_source
            source = new_source(url, "tasks")
            stack.enter_context(one.moved_to(source, SYSTEM_CLOCK))


def _load_scripts() -> None:
    """Read the scripts of a worker, which each worker would read for itself."""
    load = queue_scripts("workstealing.queue")
    for name in _SCRIPTS:
        load(name)


def _rehearsed_queue(queue: TaskQueue | AsyncTaskQueue, url: str) -> TaskQueue:
    """Return a queue of the same tasks, which keeps outcomes and waits for no replicas.

    It has no schedules, which would submit tasks in the middle of a story, and nobody
    is told what happens in it. Nor has it shards: there is one worker, and a worker is
    in one shard.
    """
    given = internals_of(queue).options.keywords()
    for other in _OTHER_OPTIONS:
        del given[other]
    return TaskQueue(queue.name, url, **given)
