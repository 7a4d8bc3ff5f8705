from __future__ import annotations

import contextlib
import dis
import gc
import importlib.util
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from types import ModuleType
from typing import Any

import pytest

from workstealing._interrupt import (
    Interruptible,
    bytecode,
    can_interrupt,
    interruptible,
)
from workstealing.clock import SYSTEM_CLOCK, Clock
from workstealing.errors import StopWork
from workstealing.testing import ManualClock


def _load_patterns() -> ModuleType:
    path = Path(__file__).with_name("interrupt_patterns.py")
    spec = importlib.util.spec_from_file_location("interrupt_patterns", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


patterns = _load_patterns()

OFTEN, SELDOM = 150, 10
"""How often a pattern is interrupted that is caught at once, or after many tries."""

_CAUGHT_SELDOM = {"PutsAndGets", "TakesCondition", "UsesContextManager"}


@pytest.fixture
def _switches_often() -> Iterator[None]:
    """Let threads that never wait be looked at more often than every 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    yield
    sys.setswitchinterval(before)


def _until(is_true: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.001)
    return False


class Running:
    """A thread that calls a function as an `Interruptible` and keeps its end."""

    def __init__(
        self, function: Callable[..., object], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.call = Interruptible(clock)
        self.begun = Event()
        self.ends: list[object] = []
        self._function = function
        self.thread = Thread(target=self._run, daemon=True)
        self.thread.start()
        assert self.begun.wait(10)

    def _run(self) -> None:
        try:
            self.ends.append(self.call.call(self._function, self.begun))
        except BaseException as error:
            self.ends.append(type(error))

    def interrupt(self, exception: type[BaseException] = StopWork) -> None:
        """Ask, and try again until it is sent."""
        assert self.call.interrupt(exception)
        assert _until(self.call.deliver)

    def end(self) -> object:
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.ends[0]


def _spin(begun: Event) -> None:
    begun.set()
    while True:
        pass


def test_a_loop_is_interrupted() -> None:
    running = Running(_spin)

    running.interrupt()

    assert running.end() is StopWork
    assert running.call.is_sent


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it collects elsewhere")
def test_no_garbage_is_collected_while_all_threads_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it is, the interpreter may wait for a lock that it holds itself."""
    collects: list[bool] = []

    def looked_at() -> object:
        collects.append(gc.isenabled())
        return sys._current_frames()

    # What sends must be a function of C; what looks first need not.
    monkeypatch.setattr(interruptible, "_current_frames", looked_at)
    assert interruptible._frames_down_to(_spin.__code__, 0) is None
    monkeypatch.undo()
    running = Running(_spin)
    running.interrupt()

    assert running.end() is StopWork
    assert collects == [False]
    assert gc.isenabled()


def test_a_broad_except_does_not_swallow_it() -> None:
    def stubborn(begun: Event) -> None:
        begun.set()
        while True:
            try:  # noqa: SIM105 - `suppress` would be code of others
                sum(range(100))
            except Exception:
                pass

    running = Running(stubborn)
    running.interrupt()

    assert running.end() is StopWork


def test_any_exception_can_be_raised() -> None:
    running = Running(_spin)
    running.interrupt(KeyError)

    assert running.end() is KeyError
    assert running.call.asked is KeyError


def test_a_c_call_sees_it_only_afterwards() -> None:
    gate = threading.Lock()
    gate.acquire()

    def blocked(begun: Event) -> None:
        begun.set()
        gate.acquire()
        sum(range(10))

    running = Running(blocked)
    running.interrupt()
    assert running.thread.is_alive()
    gate.release()

    assert running.end() is StopWork


def test_what_is_over_is_not_interrupted() -> None:
    call = Interruptible()

    assert call.call(int, "7") == 7
    assert not call.interrupt()
    assert call.asked is None
    assert call.deliver()


def test_what_has_not_begun_is_interrupted_when_it_begins() -> None:
    call, calls = Interruptible(), list[int]()

    assert call.interrupt()
    assert not call.is_sent
    assert not call.deliver()

    with pytest.raises(StopWork):
        call.call(calls.append, 1)
    assert not calls
    assert not call.interrupt()


def test_one_that_comes_too_late_never_hits_what_the_thread_does_next() -> None:
    latest: list[Interruptible] = []
    is_over = Event()
    ends = asked = 0

    def interrupts() -> None:
        nonlocal asked
        while not is_over.is_set():
            asked += bool(latest and latest[-1].interrupt())

    thread = Thread(target=interrupts, daemon=True)
    thread.start()
    strays: list[BaseException] = []
    rounds = 0
    while rounds < 20_000 or (not asked and rounds < 2_000_000):
        rounds += 1
        call = Interruptible()
        latest[:] = [call]
        try:
            call.call(sum, range(20))
            ends += 1
        except StopWork:
            pass
        try:
            sum(range(200))
            str(list(range(20)))
        except StopWork as stray:
            strays.append(stray)
    is_over.set()
    thread.join(10)

    assert not strays
    assert ends
    assert asked


def test_a_stop_that_was_asked_at_the_very_end_is_taken_back() -> None:
    """The function asks for its own interruption as its last act."""
    for _ in range(200):
        call = Interruptible()
        with contextlib.suppress(StopWork):
            call.call(call.interrupt)
        sum(range(50))
        assert call.asked is StopWork


def test_a_thread_can_interrupt_itself() -> None:
    call = Interruptible()

    def work() -> None:
        call.interrupt()
        sum(range(10))

    with pytest.raises(StopWork):
        call.call(work)


def test_a_shield_keeps_it_away_until_the_block_is_done() -> None:
    inside, go, steps = Event(), Event(), list[str]()
    calls: list[Interruptible] = []

    def careful() -> None:
        steps.append("begun")
        inside.set()
        go.wait(10)
        sum(range(100))
        steps.append("whole")

    def work(begun: Event) -> None:
        begun.set()
        while not calls:
            pass
        calls[0].shielded(careful)
        steps.append("never")

    running = Running(work)
    calls.append(running.call)
    assert inside.wait(10)

    assert running.call.interrupt()
    assert not running.call.deliver()
    go.set()

    assert running.end() is StopWork
    assert steps == ["begun", "whole"]
    assert running.call.is_sent


def test_a_shield_lets_results_and_errors_through() -> None:
    call = Interruptible()

    assert call.call(lambda: call.shielded(int, "3")) == 3
    with pytest.raises(ValueError, match="invalid literal"):
        Interruptible().call(lambda: call.shielded(int, "x"))


def test_a_shield_inside_a_shield_waits_for_the_outer_one() -> None:
    call, steps = Interruptible(), list[str]()

    def inner() -> None:
        assert call.interrupt()
        steps.append("inner")

    def outer() -> None:
        call.shielded(inner)
        steps.append("outer")

    with pytest.raises(StopWork):
        call.call(call.shielded, outer)

    assert steps == ["inner", "outer"]


def test_an_interruption_can_be_repeated() -> None:
    seen: list[int] = []

    def stubborn(begun: Event) -> str:
        begun.set()
        while len(seen) < 2:
            try:
                while True:
                    pass
            except StopWork:
                seen.append(1)
        return "gave in"

    running = Running(stubborn)
    running.interrupt()
    assert _until(lambda: len(seen) == 1)
    running.interrupt()

    assert running.end() == "gave in"


@contextlib.contextmanager
def _callback_of_the_collector(callback: Callable[..., None]) -> Iterator[None]:
    gc.callbacks.append(callback)
    try:
        yield
    finally:
        gc.callbacks.remove(callback)


def test_it_is_put_off_in_a_callback_of_the_collector() -> None:
    go, is_there, gate = Event(), Event(), threading.Lock()
    gate.acquire()

    def callback(phase: str, info: object) -> None:
        if threading.current_thread() is running.thread and phase == "start":
            is_there.set()
            gate.acquire()
            gate.release()

    def work(begun: Event) -> None:
        begun.set()
        go.wait()
        gc.collect()
        while True:
            pass

    running = Running(work)
    with _callback_of_the_collector(callback):
        go.set()
        assert is_there.wait(10)
        assert running.call.interrupt()
        assert not running.call.deliver()

        gate.release()
        assert _until(running.call.deliver)
        assert running.end() is StopWork


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_switches_often")
def test_many_interruptions_arrive_although_the_collector_calls_python_code() -> None:
    def callback(phase: str, info: object) -> None:
        abs(1)

    with _callback_of_the_collector(callback):
        found = patterns.interrupt_often(patterns.UsesLibraries, 50)

    assert found.interrupted == found.asked == 50


def test_what_was_swallowed_is_asked_again_after_a_while() -> None:
    clock, seen = ManualClock(), list[int]()

    def stubborn(begun: Event) -> None:
        begun.set()
        try:
            while True:
                pass
        except StopWork:
            seen.append(1)
        while True:
            pass

    running = Running(stubborn, clock)
    running.interrupt()
    assert _until(lambda: bool(seen))
    clock.advance(0.9)
    assert running.call.deliver()
    assert running.thread.is_alive()

    clock.advance(0.1)
    assert _until(running.call.deliver)
    assert running.end() is StopWork


class _CleansUp:
    """Tasks that take their time to clean up, each in another way."""

    def __init__(self) -> None:
        self.is_there, self.go = Event(), threading.Lock()
        self.go.acquire()
        self.is_whole = False

    def clean(self) -> None:
        self.is_there.set()
        self.go.acquire()
        self.go.release()
        sum(range(100))
        self.is_whole = True

    def in_except(self, begun: Event) -> None:
        try:
            _spin(begun)
        except StopWork:
            self.clean()
            raise

    def in_finally(self, begun: Event) -> None:
        try:
            _spin(begun)
        finally:
            self.clean()

    def in_finally_after_swallowing(self, begun: Event) -> None:
        try:
            _spin(begun)
        except StopWork:
            pass
        finally:
            self.clean()
        raise StopWork

    def in_exit(self, begun: Event) -> None:
        with self:
            _spin(begun)

    def in_generator(self, begun: Event) -> None:
        with self._cleaned():
            _spin(begun)

    def in_try_inside_except(self, begun: Event) -> None:
        try:
            _spin(begun)
        except StopWork:
            try:
                self.clean()
            except ValueError:
                begun.clear()
            raise

    def in_loop_inside_finally(self, begun: Event) -> None:
        try:
            _spin(begun)
        finally:
            for _ in range(1):
                with contextlib.nullcontext():
                    self.clean()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.clean()

    @contextlib.contextmanager
    def _cleaned(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.clean()


@pytest.mark.parametrize(
    "how", [name for name in vars(_CleansUp) if name.startswith("in_")]
)
def test_a_task_that_cleans_up_slowly_is_not_interrupted_again(how: str) -> None:
    clock, task = ManualClock(), _CleansUp()
    running = Running(getattr(task, how), clock)
    running.interrupt()
    assert task.is_there.wait(10)

    for _ in range(100):
        clock.advance(1.0)
        assert running.call.deliver()
    task.go.release()

    assert running.end() is StopWork
    assert task.is_whole


class _Handler(logging.Handler):
    """A handler that stays in `acquire` or `release`, where it must not be left."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self.is_there, self.go = Event(), threading.Lock()
        self.go.acquire()

    def emit(self, record: logging.LogRecord) -> None:
        pass

    def acquire(self) -> None:
        super().acquire()
        self._stay("acquire")

    def release(self) -> None:
        self._stay("release")
        super().release()

    def handle(self, record: logging.LogRecord) -> bool:  # as in 3.12
        self.acquire()
        try:
            self.emit(record)
        finally:
            self.release()
        return True

    def _stay(self, where: str) -> None:
        if where == self._where:
            self.is_there.set()
            self.go.acquire()
            self.go.release()


@pytest.mark.parametrize("where", ["acquire", "release"])
def test_it_is_put_off_while_a_log_handler_takes_its_lock_or_gives_it_back(
    where: str,
) -> None:
    handler = _Handler(where)
    logger = logging.Logger("test")
    logger.addHandler(handler)

    def work(begun: Event) -> None:
        begun.set()
        logger.info("a line")
        while True:
            pass

    running = Running(work)
    assert handler.is_there.wait(10)
    assert running.call.interrupt()
    assert not running.call.is_sent
    assert not running.call.deliver()

    handler.go.release()
    assert _until(running.call.deliver)
    assert running.end() is StopWork
    assert handler.lock is not None
    assert handler.lock.acquire(blocking=False)


def test_what_was_put_off_is_forgotten_when_the_call_ends() -> None:
    handler = _Handler("acquire")
    logger = logging.Logger("test")
    logger.addHandler(handler)

    def work(begun: Event) -> str:
        begun.set()
        logger.info("a line")
        return "whole"

    running = Running(work)
    assert handler.is_there.wait(10)
    assert running.call.interrupt()
    handler.go.release()

    assert running.end() == "whole"
    assert running.call.deliver()
    assert not running.call.is_sent


class _Manager:
    def __init__(self, where: str) -> None:
        self.where, self.is_there = where, Event()
        self.go = threading.Lock()
        self.go.acquire()
        self.held = 0

    def __enter__(self) -> None:
        self.held += 1
        self._stay("enter")

    def __exit__(self, *_: object) -> None:
        self._stay("exit")
        self.held -= 1

    def _stay(self, where: str) -> None:
        if where == self.where:
            self.is_there.set()
            self.go.acquire()
            self.go.release()


@pytest.mark.parametrize("where", ["enter", "exit"])
def test_it_is_put_off_while_a_with_is_entered_or_left(where: str) -> None:
    manager = _Manager(where)

    def work(begun: Event) -> None:
        begun.set()
        with manager:
            pass
        while True:
            pass

    running = Running(work)
    assert manager.is_there.wait(10)
    assert running.call.interrupt()
    assert not running.call.deliver()

    manager.go.release()
    assert _until(running.call.deliver)
    assert running.end() is StopWork
    assert manager.held == 0


def test_it_is_put_off_during_an_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Lock()
    gate.acquire()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(threading, "_test_gate", gate, raising=False)
    source = "import threading\nthreading._test_gate.acquire()\nvalue = 1\n"
    (tmp_path / "imported_slowly.py").write_text(source)

    def work(begun: Event) -> None:
        begun.set()
        import imported_slowly  # type: ignore[import-not-found]

        assert imported_slowly
        while True:
            pass

    running = Running(work)
    assert _until(lambda: "imported_slowly" in sys.modules)
    assert running.call.interrupt()
    assert not running.call.deliver()

    gate.release()
    assert _until(running.call.deliver)
    assert running.end() is StopWork
    assert sys.modules.pop("imported_slowly").value == 1


def test_locks_of_logging_that_were_left_behind_are_released_in_the_end() -> None:
    handler, call = logging.NullHandler(), Interruptible()
    handler.lock = lock = threading.RLock()

    def work() -> None:
        lock.acquire()
        lock.acquire()
        call._was_sent = call._was_logging = True
        raise StopWork

    thread = Thread(target=lambda: _swallow(call.call, work))
    thread.start()
    thread.join(10)

    assert lock.acquire(blocking=False)


def test_a_call_inside_a_call_is_interrupted_and_not_the_outer_one() -> None:
    inner, begun = Interruptible(), Event()
    ends: list[str] = []

    def work(outer_begun: Event) -> None:
        outer_begun.set()
        try:
            inner.call(_spin, begun)
        except StopWork:
            ends.append("inner")
        while True:
            pass

    running = Running(work)
    assert begun.wait(10)
    assert running.call.interrupt()
    assert not running.call.deliver()
    assert inner.interrupt()
    assert _until(inner.deliver)

    assert _until(running.call.deliver)
    assert running.end() is StopWork
    assert ends == ["inner"]


def _swallow(function: Callable[..., object], *arguments: Any) -> None:
    with contextlib.suppress(BaseException):
        function(*arguments)


# A file that was opened and not yet entered is closed when it is dropped.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("_switches_often")
@pytest.mark.parametrize("kind", patterns.PATTERNS, ids=lambda kind: kind.__name__)
def test_many_interruptions_leave_no_lock_behind(kind: Any) -> None:
    times = SELDOM if kind.__name__ in _CAUGHT_SELDOM else OFTEN
    found = patterns.interrupt_often(kind, times)

    assert found.is_whole
    assert not found.others
    assert found.interrupted == found.asked == times


def test_nothing_is_sent_to_a_thread_that_has_moved() -> None:
    running = Running(_spin)
    ident = running.thread.ident
    assert ident is not None
    stack = running.call._stack()
    assert stack is not None

    elsewhere = [lasti + 2 for lasti in stack.lastis]
    assert not interruptible._send_if_unmoved(ident, StopWork, stack.frames, elsewhere)
    deeper = [sys._getframe(), *stack.frames]
    lastis = [0, *stack.lastis]
    assert not interruptible._send_if_unmoved(ident, StopWork, deeper, lastis)

    running.interrupt()
    assert running.end() is StopWork


def test_no_other_thread_can_run_between_the_look_and_the_sending() -> None:
    """There is no instruction in between after which the interpreter switches."""
    steps = list(dis.get_instructions(interruptible._send_if_unmoved))
    names = [step.opname for step in steps]
    look = names.index("UNPACK_EX")
    sending = next(
        place for place in range(look, len(names)) if names[place] in bytecode._CALLS
    )
    between = steps[look + 1 : sending]

    assert not {step.opname for step in between} & bytecode._CHECKS
    assert not any("BACKWARD" in step.opname for step in between)
    targets = [step for step in between if step.opcode in {*dis.hasjrel, *dis.hasjabs}]
    assert all(step.argval > steps[sending].offset for step in targets)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it collects elsewhere")
def test_the_collector_runs_before_anything_is_sent_if_it_is_about_to() -> None:
    before = gc.get_threshold()
    gc.set_threshold(1000)
    runs: list[str] = []
    try:
        held: list[set[int]] = []
        while gc.get_count()[0] < 950:
            held.append(set())
        gc.callbacks.append(lambda phase, info: runs.append(phase))
        limit = interruptible._objects_until_collection()
        assert runs
        assert gc.get_count()[0] < limit
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*before)


def test_without_a_gil_nothing_that_runs_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    over = threading.Lock()
    over.acquire()

    def work(begun: Event) -> str:
        begun.set()
        over.acquire()
        return "whole"

    running = Running(work)
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)

    assert not can_interrupt()
    assert not running.call.interrupt()
    assert running.call.asked is None
    over.release()
    assert running.end() == "whole"


def test_without_ctypes_nothing_that_runs_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interruptible, "_raw", None)
    call = Interruptible()

    assert call.call(call.interrupt) is False


def test_a_task_may_be_called_like_a_function_that_gives_something_back() -> None:
    def release(begun: Event) -> None:
        begun.set()
        while True:
            pass

    running = Running(release)
    running.interrupt()

    assert running.end() is StopWork


_PROFILED = """
import sys
from threading import Event, Thread
from workstealing._interrupt import Interruptible, deliver_until_ended
from workstealing.errors import StopWork

begun = Event()

def work():
    try:
        begun.set()
        while True:
            pass
    except StopWork:
        pass

call = Interruptible()

def stop():
    begun.wait()
    call.interrupt()
    deliver_until_ended([call])

stopper = Thread(target=stop)
stopper.start()
call.call(work)
stopper.join()
sys.setprofile(lambda *_: None)
(lambda: None)()
sys.setprofile(None)
"""


def test_a_process_in_which_something_was_interrupted_can_be_profiled() -> None:
    # In a process of its own: it would hang, and no signal would end it.
    done = subprocess.run(
        [sys.executable, "-c", _PROFILED], timeout=30, check=False, capture_output=True
    )

    assert done.returncode == 0, done.stderr
