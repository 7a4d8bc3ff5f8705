from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from threading import Event, Thread

import pytest

from workstealing.errors import StopWork
from workstealing.pool.interrupting import Interruptible, interrupt, withdraw


def _until(is_true: Callable[[], bool], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if is_true():
            return True
        time.sleep(0.001)
    return False


class Running:
    """A thread that calls a function as an `Interruptible` and keeps its end."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.call = Interruptible()
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

    def end(self) -> object:
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.ends[0]


def test_a_loop_is_interrupted() -> None:
    def spin(begun: Event) -> None:
        begun.set()
        while True:
            pass

    running = Running(spin)

    assert running.call.interrupt()
    assert running.end() is StopWork


def test_a_broad_except_does_not_swallow_it() -> None:
    def stubborn(begun: Event) -> None:
        begun.set()
        while True:
            with contextlib.suppress(Exception):
                sum(range(100))

    running = Running(stubborn)

    assert running.call.interrupt()
    assert running.end() is StopWork


def test_any_exception_can_be_raised() -> None:
    def spin(begun: Event) -> None:
        begun.set()
        while True:
            pass

    running = Running(spin)
    running.call.interrupt(KeyError)

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

    assert running.call.interrupt()
    running.thread.join(0.05)
    assert running.thread.is_alive()
    gate.release()
    assert running.end() is StopWork


def test_what_is_over_is_not_interrupted() -> None:
    call = Interruptible()

    assert call.call(int, "7") == 7
    assert not call.interrupt()
    assert call.asked is None


def test_what_has_not_begun_is_interrupted_when_it_begins() -> None:
    call, calls = Interruptible(), []

    assert call.interrupt()

    with pytest.raises(StopWork):
        call.call(calls.append, 1)
    assert not calls
    assert not call.interrupt()


def test_one_that_comes_too_late_never_hits_what_the_thread_does_next() -> None:
    latest: list[Interruptible] = []
    is_over = Event()
    hits = ends = asked = 0

    def interrupts() -> None:
        nonlocal asked
        while not is_over.is_set():
            asked += bool(latest and latest[-1].interrupt())

    thread = Thread(target=interrupts, daemon=True)
    thread.start()
    deadline = time.monotonic() + 2.0
    strays: list[BaseException] = []
    while time.monotonic() < deadline:
        call = Interruptible()
        latest[:] = [call]
        try:
            call.call(sum, range(20))
            ends += 1
        except StopWork:
            hits += 1
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
    """The function asks for its own interruption as its last act, in C."""
    seen = []
    for _ in range(200):
        call = Interruptible()
        try:
            call.call(call.interrupt)
        except StopWork:
            seen.append(call)
        sum(range(50))

    assert all(call.asked is StopWork for call in seen)


def test_a_shield_keeps_it_away_until_the_block_is_done() -> None:
    inside, go, steps = Event(), Event(), []
    running: Running

    def careful() -> None:
        steps.append("begun")
        inside.set()
        go.wait(10)
        sum(range(100))
        steps.append("whole")

    def work(begun: Event) -> None:
        begun.set()
        while not hasattr(work, "call"):
            pass
        work.call.shielded(careful)  # type: ignore[attr-defined]
        steps.append("never")

    running = Running(work)
    work.call = running.call  # type: ignore[attr-defined]
    assert inside.wait(10)

    assert running.call.interrupt()
    go.set()

    assert running.end() is StopWork
    assert steps == ["begun", "whole"]


def test_a_shield_lets_results_and_errors_through() -> None:
    call = Interruptible()

    assert call.call(lambda: call.shielded(int, "3")) == 3
    with pytest.raises(ValueError, match="invalid literal"):
        Interruptible().call(lambda: call.shielded(int, "x"))


def test_a_shield_inside_a_shield_waits_for_the_outer_one() -> None:
    call, steps = Interruptible(), []

    def inner() -> None:
        assert call.interrupt()
        steps.append("inner")

    def outer() -> None:
        call.shielded(inner)
        steps.append("outer")

    with pytest.raises(StopWork):
        call.call(call.shielded, outer)

    assert steps == ["inner", "outer"]


def test_a_thread_that_does_not_exist_is_told_apart() -> None:
    assert not interrupt(2**40 + 7)
    withdraw(2**40 + 7)


def test_what_is_withdrawn_is_never_raised() -> None:
    ends = []

    def work() -> None:
        sum(range(1000))
        ends.append("whole")

    gate = threading.Lock()
    gate.acquire()
    thread = Thread(target=lambda: (gate.acquire(), work()), daemon=True)
    thread.start()
    assert _until(lambda: thread.ident is not None)
    assert thread.ident is not None
    interrupt(thread.ident)
    withdraw(thread.ident)
    gate.release()
    thread.join(10)

    assert ends == ["whole"]


def test_an_interruption_can_be_repeated() -> None:
    seen = []

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
    assert running.call.interrupt()
    assert _until(lambda: len(seen) == 1)
    assert running.call.interrupt()

    assert running.end() == "gave in"
