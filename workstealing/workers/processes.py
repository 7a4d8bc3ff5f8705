"""Workers that are processes: started, watched, replaced, recycled and stopped.

Each child is a worker of its own, with its own name, lease and deque. The parent runs
no tasks. When a child dies another takes its name at once, and with it what waits in
its deque; what it was running goes back to the queue, and a death is counted.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Event, Lock, Thread
from typing import Any, Literal

from workstealing.client.queue import TaskQueue
from workstealing.drivers.children import address_for_children
from workstealing.errors import PoolBroken, RedisError
from workstealing.queue import presence
from workstealing.workers.board import Board, Line
from workstealing.workers.child import HOT, STOP, ChildOrders, ExitCode, main
from workstealing.workers.lifecycle import STOP_SECONDS, Phase
from workstealing.workers.member import member_of
from workstealing.workers.naming import new_incarnation, worker_name
from workstealing.workers.overseer import GRACE_SECONDS
from workstealing.workers.placing import Place
from workstealing.workers.statistics import PoolStats

__all__ = ("Children", "StartMethod")

logger = logging.getLogger(__name__)

StartMethod = Literal["spawn", "forkserver", "fork"]

_TICK_SECONDS = 0.05
_LAST_SECONDS = 3.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
# So many that never got to work are no accident.
_HOPELESS = 5
# What tells children where Redis is must not be seen by those of another pool.
_birth = Lock()


@dataclass(slots=True)
class _Child:
    index: int
    incarnation: str
    process: BaseProcess
    pipe: Connection
    board: Board
    is_leaving: bool = False
    is_killed: bool = False
    was_ready: bool = False
    told: bytes = b""

    def tell(self, order: bytes) -> None:
        """Send an order, once: a pipe that nobody reads would fill up."""
        if order == self.told or self.told == HOT:
            return
        self.told = order
        try:
            self.pipe.send_bytes(order)
        except OSError:
            logger.debug("worker process %s is gone already", self.process.pid)


@dataclass(slots=True)
class _Counted:
    """What children counted that are no more."""

    lines: dict[Line, float] = field(default_factory=dict)
    replaced: int = 0
    cut: int = 0

    def add(self, board: Board) -> None:
        for line in _SUMS:
            self.lines[line] = self.lines.get(line, 0.0) + board[line]


class Children:
    """The processes of a pool.

    Args:
        queue: whose tasks.
        place: where children find it.
        pool: the first part of their names.
        batch: tasks that one takes at once, at most.
        max_tasks: after how many tasks one is replaced.
        max_memory: beyond how many MiB one is replaced.
        start_method: how processes are made.
        tick: what else to look at, some times a second.
    """

    def __init__(
        self,
        queue: TaskQueue,
        place: Place,
        pool: str,
        *,
        batch: int,
        max_tasks: int | None,
        max_memory: float | None,
        start_method: StartMethod,
        tick: Callable[[], None],
    ) -> None:
        self._queue = queue
        self._pool = pool
        self._place = place
        self._batch = batch
        self._max_tasks = max_tasks
        self._max_memory = max_memory
        self._context: Any = multiprocessing.get_context(start_method)
        self._tick = tick
        self._mutex = Lock()
        self._children: dict[int, _Child] = {}
        self._wanted = 0
        self._is_done: set[int] = set()
        self._renewals: deque[int] = deque()
        self._counted = _Counted()
        self._deaths_in_a_row = 0
        self._not_before = 0.0
        self._phase = Phase.WORKING
        self._until_empty = False
        self._error: Exception | None = None
        self._ended = Event()

    def start(self, number: int, *, until_empty: bool) -> None:
        """Begin, with so many processes."""
        self._until_empty = until_empty
        self._wanted = number
        try:
            self._look()
        except BaseException:
            self._tell_all(STOP)
            self._ended.set()
            raise
        # An interpreter that ends with a pool left open would wait for it for ever.
        atexit.register(self._end_at_exit)
        Thread(target=self._live, name=f"{self._pool}/parent", daemon=True).start()

    def scale(self, number: int, *, hot: bool) -> None:
        """Have so many; hot: interrupt what the surplus ones run."""
        with self._mutex:
            self._wanted = number
            surplus = [self._children[i] for i in self._children if i >= number]
            for child in surplus:
                child.is_leaving = True
                child.tell(HOT if hot else STOP)

    def reload(self) -> None:
        """Replace them one by one, so that the new ones import the code anew."""
        with self._mutex:
            self._renewals = deque(sorted(self._children))

    def quiet(self) -> None:
        """Take no more, and hand back what waits; each ends when it is done."""
        self._phase = max(self._phase, Phase.QUIET)
        self._tell_all(STOP)

    def stop(self, *, hot: bool, timeout: float) -> int:
        """End; return how many tasks were cut off and handed back."""
        self._phase = max(self._phase, Phase.STOPPING)
        self._tell_all(HOT if hot else STOP)
        if not self._ended.wait(_LAST_SECONDS if hot else timeout):
            if not hot:
                self._tell_all(HOT)
                self._ended.wait(_LAST_SECONDS)
            self._kill_all()
            self._ended.wait(_LAST_SECONDS)
        atexit.unregister(self._end_at_exit)
        return self._counted.cut

    def wait(self, timeout: float | None) -> bool:
        """Wait until all have ended by themselves; tell whether they have."""
        if not self._ended.wait(timeout):
            return False
        atexit.unregister(self._end_at_exit)
        if self._error is not None:
            raise self._error
        return True

    @property
    def error(self) -> BaseException | None:
        """Why it ended, if it was not asked to."""
        return self._error

    def stats(self) -> PoolStats:
        """Add up what the children wrote."""
        with self._mutex:
            boards = [child.board for child in self._children.values()]
            gone = dict(self._counted.lines)
            replaced = self._counted.replaced
        total = {
            line: int(gone.get(line, 0.0) + sum(board[line] for board in boards))
            for line in _SUMS
        }
        answered = [board[Line.ANSWERED] for board in boards if board[Line.ANSWERED]]
        return PoolStats(
            workers=len(boards),
            running=int(sum(board[Line.RUNNING] for board in boards)),
            taken=total[Line.TAKEN],
            stolen=total[Line.STOLEN],
            refused=total[Line.REFUSED],
            lost_leases=total[Line.LOST_LEASES],
            failures=total[Line.FAILURES],
            due=int(max((b[Line.DUE] for b in boards), default=0.0)),
            replaced=replaced,
            silence=time.monotonic() - max(answered) if answered else 0.0,
        )

    def _end_at_exit(self) -> None:
        self.stop(hot=False, timeout=STOP_SECONDS)

    def _live(self) -> None:
        while not self._ended.wait(_TICK_SECONDS):
            try:
                self._look()
                self._tick()
            except Exception:
                logger.exception("the parent of %s failed; it goes on", self._pool)

    def _look(self) -> None:
        """See who died, who is stuck and who is missing."""
        with self._mutex:
            for child in tuple(self._children.values()):
                child.was_ready = child.was_ready or child.board[Line.READY] > 0.0
                if child.board[Line.BORN]:
                    self._deaths_in_a_row = 0
                if not child.process.is_alive():
                    self._bury(child)
                elif _is_stuck(child.board):
                    logger.error(
                        "worker %s holds the interpreter beyond its task's time limit;"
                        " it is killed",
                        self._name(child),
                    )
                    child.process.kill()
            if self._phase is Phase.WORKING and self._error is None:
                self._give_birth()
                self._renew()
            is_over = self._phase >= Phase.STOPPING or self._error is not None
            is_over = is_over or len(self._is_done) >= self._wanted
            if is_over and not self._children:
                self._ended.set()

    def _bury(self, child: _Child) -> None:
        child.process.join()
        child.pipe.close()
        del self._children[child.index]
        self._counted.add(child.board)
        code = child.process.exitcode
        if code == ExitCode.DONE:
            if self._until_empty and not child.is_leaving:
                self._is_done.add(child.index)
            return
        if code == ExitCode.CUT_OFF:
            self._counted.cut += self._phase >= Phase.STOPPING
            return
        if code in (ExitCode.RECYCLED, ExitCode.GIVEN_UP):
            return
        self._mourn(child, code)

    def _mourn(self, child: _Child, code: int | None) -> None:
        self._counted.replaced += 1
        if not child.is_killed:
            logger.warning("worker %s died: %s", self._name(child), _cause(code))
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _HOPELESS:
            self._error = PoolBroken(
                f"{_HOPELESS} processes in a row died before they got to work, the"
                f" last by {_cause(code)}: their own output says why. A script that"
                ' starts a pool needs `if __name__ == "__main__":` around it.'
            )
            logger.error("pool %s gives up: %s", self._pool, self._error)
            for other in self._children.values():
                other.tell(STOP)
        pause = _FIRST_PAUSE * 2.0 ** min(self._deaths_in_a_row - 1, 10)
        self._not_before = time.monotonic() + min(_LONGEST_PAUSE, pause)
        if child.index >= self._wanted or self._phase is not Phase.WORKING:
            self._leave_for(child)

    def _leave_for(self, child: _Child) -> None:
        """Hand back what a dead one held, since nobody takes its name again."""
        queue, name = self._queue, self._name(child)
        keys, incarnation = queue.keys, child.incarnation
        try:
            if not child.is_killed:
                # Whoever joins under a name inherits, and a death is counted.
                heir = member_of(queue, name)
                incarnation = heir.incarnation
                call = presence.join(
                    keys, queue.settings, name, incarnation, heir.description
                )
                queue.driver.call(call)
            left = 1
            while left:
                left = queue.driver.call(
                    presence.leave(keys, name, incarnation, final=True)
                )[1]
        except RedisError as error:
            logger.warning("nothing handed back for %s: %s", name, error)

    def _give_birth(self) -> None:
        if time.monotonic() < self._not_before:
            return
        for index in range(self._wanted):
            if index not in self._children and index not in self._is_done:
                self._children[index] = self._new_child(index)

    def _new_child(self, index: int) -> _Child:
        ours, theirs = self._context.Pipe()
        board, incarnation = Board(self._context), new_incarnation()
        orders = ChildOrders(
            self._place,
            self._pool,
            index,
            incarnation,
            self._batch,
            self._until_empty,
            self._max_tasks,
            self._max_memory,
        )
        process = self._context.Process(
            target=main,
            args=(orders, board, theirs),
            name=worker_name(self._pool, index),
        )
        with _birth, address_for_children(self._queue.redis):
            process.start()
        theirs.close()
        return _Child(index, incarnation, process, ours, board)

    def _renew(self) -> None:
        """Replace the next one, when all that were replaced before are at work."""
        if not self._renewals:
            return
        are_ready = all(
            child.was_ready and not child.is_leaving
            for child in self._children.values()
        )
        if are_ready and len(self._children) >= self._wanted:
            child = self._children.get(self._renewals.popleft())
            if child is not None:
                child.is_leaving = True
                child.tell(STOP)

    def _tell_all(self, order: bytes) -> None:
        with self._mutex:
            for child in self._children.values():
                child.tell(order)

    def _kill_all(self) -> None:
        with self._mutex:
            for child in self._children.values():
                logger.error("worker %s does not end; it is killed", self._name(child))
                child.is_killed = True
                self._counted.cut += int(child.board[Line.RUNNING])
                child.process.kill()

    def _name(self, child: _Child) -> str:
        return worker_name(self._pool, child.index)


_SUMS = (
    Line.TAKEN,
    Line.STOLEN,
    Line.REFUSED,
    Line.LOST_LEASES,
    Line.FAILURES,
)


def _is_stuck(board: Board) -> bool:
    kill_at, now = board[Line.KILL_AT], time.monotonic()
    return 0.0 < kill_at < now and now - board[Line.PULSE] > GRACE_SECONDS


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
