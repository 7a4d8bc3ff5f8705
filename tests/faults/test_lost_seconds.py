"""A server comes back without its last second, as after a crash with AOF `everysec`.

Here it is a snapshot that is older than what was acknowledged since.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from redis import Redis

from workstealing import TaskQueue, Worker, WorkerPool
from workstealing.errors import TaskNotFound
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until


@pytest.fixture
def forgetful() -> Iterator[Server]:
    """A server that keeps what it has when it is told to, and nothing else."""
    with Server(tcp=True) as server:
        yield server


def save(server: Server) -> None:
    with Redis.from_url(server.url) as client:
        client.save()


def crash(server: Server) -> None:
    """Let it lose all since it was saved."""
    server.kill()
    server.start()


def test_what_was_submitted_before_the_lost_second_is_done_and_counted_once(
    forgetful: Server, key_prefix: str
) -> None:
    runs: Counter[int] = Counter()
    with TaskQueue(key_prefix, forgetful.url) as queue:

        @queue.task
        def note(number: int) -> int:
            runs[number] += 1
            return number

        kept = note.submit_many([(n,) for n in range(200)])
        Worker(queue).run(until_empty=True)
        more = note.submit_many([(n,) for n in range(200, 400)])
        save(forgetful)
        lost = note.submit(1000)
        Worker(queue).run(until_empty=True)
        assert lost.result(timeout=5) == 1000

        crash(forgetful)

        with pytest.raises(TaskNotFound):
            lost.result(timeout=0.1)
        assert {handle.state().state for handle in more} == {State.WAITING}
        Worker(queue).run(until_empty=True)
        assert [handle.result(timeout=5) for handle in (*kept, *more)] == list(
            range(400)
        )
        counts = queue.counts()
        assert counts.stats["done"] == counts.outcomes == 400
    # The outcomes of the lost second are gone, so their tasks ran again.
    assert {runs[number] for number in range(200)} == {1}
    assert {runs[number] for number in range(200, 400)} == {2}


_APP = """
    from pathlib import Path

    from workstealing import TaskQueue
    from workstealing.testing import wait_until

    folder = Path({folder!r})
    queue = TaskQueue({name!r}, {url!r}, lease=2.0)


    @queue.task
    def note(number: int) -> int:
        with (folder / "runs").open("a") as runs:
            runs.write(f"{{number}} ")
        if number < 2:
            wait_until((folder / "go").exists, 30, "the word to go on")
        return number
"""


@pytest.fixture
def app(
    forgetful: Server,
    key_prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Any]:
    """An application that children can import; it writes down what it ran."""
    name = "app_" + key_prefix.replace("-", "_")
    code = _APP.format(folder=str(tmp_path), name=key_prefix, url=forgetful.url)
    (tmp_path / f"{name}.py").write_text(dedent(code))
    (tmp_path / "runs").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield (app := importlib.import_module(name))
    app.queue.close()
    del sys.modules[name]


def runs_of(app: Any) -> Counter[int]:
    return Counter(map(int, (app.folder / "runs").read_text().split()))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", ["threads", "asyncio", "processes"])
def test_a_pool_whose_server_forgot_a_second_goes_on_by_itself(
    forgetful: Server, app: Any, kind: Any
) -> None:
    pool = WorkerPool(app.queue, 2, kind)
    before = app.note.submit_many([(n,) for n in range(2)])
    save(forgetful)
    pool.start()
    try:
        wait_until(lambda: len(runs_of(app)) == 2, 30, "both to run")

        # It knows neither the pool nor that it took anything.
        crash(forgetful)
        (app.folder / "go").touch()

        assert [handle.result(timeout=30) for handle in before] == [0, 1]
        after = app.note.submit_many([(n,) for n in range(2, 50)])
        assert [handle.result(timeout=30) for handle in after] == list(range(2, 50))
        counts = app.queue.counts()
        assert counts.stats["done"] == counts.outcomes == 50
    finally:
        code = pool.stop()
    assert code == 0
    runs = runs_of(app)
    assert all(runs[number] == 1 for number in range(2, 50))


def test_a_task_whose_submission_was_lost_may_be_submitted_again_under_its_id(
    forgetful: Server, key_prefix: str
) -> None:
    with TaskQueue(key_prefix, forgetful.url) as queue:

        @queue.task
        def note(number: int) -> int:
            return number

        save(forgetful)
        assert note.options(id="once").submit(1).is_new
        crash(forgetful)

        again = note.options(id="once").submit(1)

        assert again.is_new
        assert not note.options(id="once").submit(1).is_new
        Worker(queue).run(until_empty=True)
        assert again.result(timeout=5) == 1
