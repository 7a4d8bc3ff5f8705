"""Ways to attach a recruiter to a host."""

from __future__ import annotations

import logging
import os
import sys
import threading
from pathlib import Path
from threading import Event

import pytest

from workstealing import AsyncRecruiter, Duty, Recruiter
from workstealing.errors import ConfigurationError
from workstealing.testing import ManualClock


def _recruiter() -> tuple[Recruiter, list[int]]:
    recruiter, done = Recruiter(share=None), []
    recruiter.install(lambda: done.append(1), "job", rate=1.0)
    return recruiter, done


def test_a_decorated_function_enlists_after_it_has_returned() -> None:
    recruiter, done = _recruiter()

    @recruiter.enlists
    def view(name: str, *, loud: bool = False) -> str:
        """Greet."""
        assert not done
        return name.upper() if loud else name

    assert view("ann", loud=True) == "ANN"
    assert done == [1]
    assert view.__doc__ == "Greet."


def test_a_decorated_function_that_raises_does_not_enlist() -> None:
    recruiter, done = _recruiter()

    @recruiter.enlists
    def view() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        view()
    assert not done


def test_a_block_enlists_at_its_end_unless_it_raises() -> None:
    recruiter, done = _recruiter()

    with recruiter.enlisting():
        assert not done
    assert done == [1]

    with pytest.raises(LookupError), recruiter.enlisting():
        raise LookupError
    assert done == [1]


def test_a_hook_takes_whatever_a_framework_passes() -> None:
    recruiter, done = _recruiter()

    assert recruiter.hook() is None
    assert recruiter.hook("sender", 3, signal=object()) is None
    assert done == [1, 1]


def test_a_recruiter_refuses_to_block_an_event_loop() -> None:
    async def view() -> None: ...

    with pytest.raises(ConfigurationError, match="AsyncRecruiter"):
        Recruiter().enlists(view)
    with pytest.raises(ConfigurationError, match="coroutine"):
        AsyncRecruiter().enlists(lambda: None)  # type: ignore[arg-type, return-value]


async def test_the_same_under_asyncio() -> None:
    recruiter, done = AsyncRecruiter(share=None), []

    @recruiter.job(rate=1.0)
    async def work() -> None:
        done.append(1)

    @recruiter.enlists
    async def view(name: str) -> str:
        return name

    assert await view("ann") == "ann"
    async with recruiter.enlisting():
        pass
    await recruiter.hook("anything", at=1)

    assert done == [1, 1, 1]


def test_a_ticker_works_by_itself_until_it_is_stopped() -> None:
    recruiter, worked = Recruiter(), Event()
    recruiter.install(worked.set, "job", rate=1e-9)

    ticker = recruiter.ticker(every=0.001)
    assert not ticker.is_running
    with ticker:
        assert worked.wait(10)
        assert ticker.start() is ticker
        assert ticker.is_running
    assert not ticker.is_running
    ticker.stop()

    worked.clear()
    ticker.start()
    assert worked.wait(10)
    ticker.stop()


def test_a_ticker_that_several_threads_start_at_once_is_one_thread() -> None:
    ticker = Recruiter().ticker(every=60.0)
    before, together = set(threading.enumerate()), threading.Barrier(8)

    def start() -> None:
        together.wait(20)
        ticker.start()

    threads = [threading.Thread(target=start) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    finally:
        sys.setswitchinterval(interval)

    assert len(set(threading.enumerate()) - before) == 1
    ticker.stop()
    assert set(threading.enumerate()) <= before


def test_a_ticker_survives_a_job_that_fails() -> None:
    recruiter, tries, enough = Recruiter(breaker=None), [], Event()

    @recruiter.job(rate=1e-9)
    def broken() -> None:
        tries.append(1)
        if len(tries) == 3:
            enough.set()
        raise ValueError

    with recruiter.ticker(every=0.001):
        assert enough.wait(10)


def test_a_ticker_survives_a_stop_request_and_a_filter_of_logs_that_raises(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recruiter, tries, enough = Recruiter(breaker=None), [], Event()

    @recruiter.job(rate=1e-9)
    def interrupted() -> None:
        tries.append(1)
        if len(tries) == 3:
            enough.set()
        raise KeyboardInterrupt

    def refuse(record: logging.LogRecord) -> bool:
        raise ValueError

    log = logging.getLogger("workstealing.recruiting.recruiter")
    monkeypatch.setattr(log, "filters", [refuse])

    with recruiter.ticker(every=0.001):
        assert enough.wait(10)


async def test_an_asyncio_ticker_works_by_itself_until_it_is_stopped() -> None:
    import asyncio

    recruiter, worked = AsyncRecruiter(), asyncio.Event()

    @recruiter.job(rate=1e-9)
    async def work() -> None:
        worked.set()

    async with recruiter.ticker(every=0.001) as ticker:
        await asyncio.wait_for(worked.wait(), 10)
        assert ticker.is_running
    assert not ticker.is_running
    await ticker.stop()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"app_{tmp_path.name.replace('-', '_')}"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    text = "def install_jobs(r):\n    r.install(lambda: None, {!r}, rate=0.1)\n"
    (folder / "first.py").write_text(text.format("first"))
    (folder / "second.py").write_text(text.format("second"))
    (folder / "plain.py").write_text(
        "def bring(r):\n    r.install(lambda: None, 'brought', rate=0.1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    metadata = tmp_path / "plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        f"[workstealing.jobs]\none = {name}.first\ntwo = {name}.plain:bring\n"
    )
    yield name
    for module in [key for key in sys.modules if key.split(".")[0] == name]:
        del sys.modules[module]


def test_a_module_installs_its_jobs(package: str) -> None:
    recruiter = Recruiter()
    recruiter.load(f"{package}.first", f"{package}.plain:bring")

    assert set(recruiter.stats().jobs) == {"first", "brought"}


def test_a_package_installs_the_jobs_of_its_modules(package: str) -> None:
    recruiter = Recruiter()
    recruiter.load(package)

    assert set(recruiter.stats().jobs) == {"first", "second"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_jobs_that_an_import_installs_stay_when_the_setup_runs_again(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it raised, and in a forked child: a module is imported once."""
    clock = ManualClock()
    recruiter = Recruiter(share=None, clock=clock)
    monkeypatch.setitem(sys.modules, "its_recruiter", recruiter)
    (tmp_path / package / "decorated.py").write_text(
        "import sys\n"
        "@sys.modules['its_recruiter'].job(rate=1.0)\n"
        "def decorated(): pass\n"
    )
    errors = [OSError("not mounted yet")]

    @recruiter.setup
    def load(recruiter: Recruiter) -> None:
        recruiter.load(f"{package}.decorated")
        if errors:
            raise errors.pop()

    recruiter.enlist()
    assert recruiter.stats().setup_failures == 1
    clock.advance(11.0)
    recruiter.enlist()
    child = os.fork()
    if not child:
        duty, stats = recruiter.enlist(), recruiter.stats()
        as_hoped = duty is Duty.RECRUITED and list(stats.jobs) == ["decorated"]
        os._exit(0 if as_hoped and not stats.setup_failures else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert recruiter.stats().setup_failures == 1
    assert recruiter.stats().jobs["decorated"].recruited


def test_installed_plugins_install_their_jobs(package: str) -> None:
    recruiter = Recruiter()
    recruiter.load_plugins()

    assert set(recruiter.stats().jobs) == {"first", "brought"}


def test_a_module_without_jobs_is_refused_with_what_to_do(package: str) -> None:
    with pytest.raises(ConfigurationError, match=r"install_jobs\(recruiter\)"):
        Recruiter().load(f"{package}.plain")
    with pytest.raises(ModuleNotFoundError):
        Recruiter().load("no_such_module_anywhere")
