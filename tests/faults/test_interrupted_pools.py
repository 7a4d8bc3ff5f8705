"""Nothing that a task or the user's logging does may take a pool down.

Time limits interrupt tasks at any moment: while they log, hold a lock, import or write.
Whatever they did, the pool goes on to answer, to report and to stop. More rounds than
`make slow` can wait for: `WORKSTEALING_STRESS=2000 pytest tests/faults -k interrupt`.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.errors import TaskFailed
from workstealing.testing import Server

each_kind = pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])

# A process ends with the task that is interrupted, and another one starts.
SOME = {"threads": 120, "asyncio": 120, "processes": 8}
MANY = {"threads": 400, "asyncio": 400, "processes": 16}

_APP = """
    import importlib
    import logging
    import sys
    import tempfile
    import threading
    from contextlib import suppress

    from workstealing import TaskQueue

    queue = TaskQueue({name!r}, {url!r})
    logger = logging.getLogger({name!r})
    logger.propagate = False
    logger.setLevel(logging.INFO)
    handler = logging.FileHandler({log!r})
    logger.addHandler(handler)
    lock = threading.Lock()
    condition = threading.Condition()


    def import_anew() -> None:
        sys.modules.pop("wave", None)
        # Another thread may have taken it out meanwhile.
        with suppress(KeyError):
            importlib.import_module("wave")


    @queue.task(name="logs", timeout=0.01)
    def logs() -> None:
        while True:
            logger.info("still here")


    @queue.task(name="locks", timeout=0.01)
    def locks() -> None:
        while True:
            with lock:
                with condition:
                    sum(range(10))


    @queue.task(name="imports", timeout=0.01)
    def imports() -> None:
        while True:
            import_anew()
            sum(range(20_000))


    @queue.task(name="writes", timeout=0.01)
    def writes() -> None:
        with tempfile.TemporaryFile("w+") as file:
            while True:
                file.write("a line")
                file.seek(0)


    @queue.task(name="answer")
    def answer() -> str:
        logger.info("an answer")
        import_anew()
        with lock, condition:
            return "all locks are free"
"""


@pytest.fixture
def app(
    tmp_path: Path,
    redis_server: Server,
    key_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Any]:
    name = "app_" + key_prefix.replace("-", "_")
    code = _APP.format(
        name=key_prefix, url=redis_server.url, log=str(tmp_path / "log.txt")
    )
    (tmp_path / f"{name}.py").write_text(dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    made = importlib.import_module(name)
    yield made
    made.handler.close()
    made.queue.close()
    del sys.modules[name]


@each_kind
@pytest.mark.parametrize(
    "extent", ["some", pytest.param("many", marks=pytest.mark.slow)]
)
@pytest.mark.timeout(600)
def test_a_pool_survives_interrupts_into_tasks_that_log_lock_import_and_write(
    app: Any, kind: Any, extent: str
) -> None:
    usual = (SOME if extent == "some" else MANY)[kind]
    rounds = int(os.environ.get("WORKSTEALING_STRESS", usual))
    tasks = (app.logs, app.locks, app.imports, app.writes)
    handles = [tasks[n % len(tasks)].submit() for n in range(rounds)]

    pool = WorkerPool(app.queue, 8, kind)
    pool.start()
    for handle in handles:
        with pytest.raises(TaskFailed, match="ran for longer than"):
            handle.result(timeout=120)

    # It answers and reports; no lock was left behind.
    answers = app.answer.submit_many([()] * 16)
    assert {handle.result(timeout=60) for handle in answers} == {"all locks are free"}
    assert pool.stop(timeout=10) == 0


class RaisingFilter(logging.Filter):
    """Reads a context variable that is set only in a request, as real ones do."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request = REQUEST.get()
        return True


class RaisingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("the log server is away")

    def handleError(self, record: logging.LogRecord) -> None:
        raise RuntimeError("nor can that be handled")


REQUEST: ContextVar[str] = ContextVar("request")


@pytest.fixture(params=["filter", "handler"])
def raising_logging(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make every log line of the library raise."""
    logger = logging.getLogger("workstealing")
    handler: logging.Handler = RaisingHandler()
    if request.param == "filter":
        handler = logging.StreamHandler()
        handler.addFilter(RaisingFilter())
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    made = TaskQueue(key_prefix, redis_server.url)
    yield made
    made.close()


@pytest.mark.usefixtures("raising_logging")
@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_logging_that_raises_ends_no_slot(queue: TaskQueue, kind: Any) -> None:
    fail, add = _tasks(queue)
    bad = fail.submit_many([()] * 6)
    good = add.submit_many([(n, 1) for n in range(50)])

    with WorkerPool(queue, 4, kind):
        for handle in bad:
            with pytest.raises(TaskFailed, match="not today"):
                handle.result(timeout=20)
        assert [handle.result(timeout=20) for handle in good] == list(range(1, 51))


@pytest.mark.usefixtures("raising_logging")
def test_logging_that_raises_does_not_end_a_plain_worker(queue: TaskQueue) -> None:
    fail, add = _tasks(queue)
    bad, good = fail.submit(), add.submit(1, 1)

    Worker(queue).run(until_empty=True)

    with pytest.raises(TaskFailed, match="not today"):
        bad.result(timeout=5)
    assert good.result(timeout=5) == 2


@pytest.mark.usefixtures("raising_logging")
def test_logging_that_raises_does_not_end_the_parent_of_processes(app: Any) -> None:
    pool = WorkerPool(app.queue, 2, "processes")
    pool.start()
    late = [app.locks.submit() for _ in range(4)]
    for handle in late:
        with pytest.raises(TaskFailed):
            handle.result(timeout=30)

    assert app.answer.submit().result(timeout=30) == "all locks are free"
    assert pool.stop(timeout=10) == 0


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_handler_that_blocks_keeps_neither_loop_nor_supervisor_waiting(
    queue: TaskQueue, kind: Any
) -> None:
    fail, add = _tasks(queue)

    class BlockedHandler(logging.Handler):
        pass

    handler = BlockedHandler()
    logger = logging.getLogger("workstealing")
    logger.addHandler(handler)
    handler.acquire()
    try:
        pool = WorkerPool(queue, 2, kind)
        pool.start()
        for handle in fail.submit_many([()] * 4):
            with pytest.raises(TaskFailed, match="not today"):
                handle.result(timeout=20)
        assert add.submit(1, 1).result(timeout=20) == 2
        assert pool.stop(timeout=10) == 0
    finally:
        handler.release()
        logger.removeHandler(handler)


def _tasks(queue: TaskQueue) -> tuple[Any, Any]:
    @queue.task(name="fail")
    def fail() -> None:
        raise ValueError("not today")

    @queue.task(name="add")
    def add(a: int, b: int) -> int:
        return a + b

    return fail, add
