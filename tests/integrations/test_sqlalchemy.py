"""A task is submitted when a session of SQLAlchemy commits, and only then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from workstealing import AsyncTaskQueue, Middleware, TaskCall, TaskQueue
from workstealing.errors import ConfigurationError, PayloadInvalid, QueueFull
from workstealing.testing import Server

sqlalchemy = pytest.importorskip("sqlalchemy")
orm = pytest.importorskip("sqlalchemy.orm")
from workstealing.integrations.sqlalchemy import submit_on_commit  # noqa: E402


@pytest.fixture
def queue(redis_server: Server, key_prefix: str) -> Iterator[TaskQueue]:
    with TaskQueue(key_prefix, redis_server.url) as queue:
        yield queue


@pytest.fixture
def engine() -> Iterator[Any]:
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.StaticPool)
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: Any) -> Iterator[Any]:
    with orm.Session(engine) as session:
        yield session


@pytest.fixture
def welcome(queue: TaskQueue) -> Any:
    @queue.task
    def welcome(user: int) -> None: ...

    return welcome


def test_it_is_submitted_with_the_commit(
    session: Any, welcome: Any, queue: TaskQueue
) -> None:
    session.execute(sqlalchemy.text("SELECT 1"))
    submit_on_commit(session, welcome, 1)
    submit_on_commit(session, welcome, user=2)
    assert queue.counts().tasks == 0

    session.commit()
    session.commit()

    assert queue.counts().tasks == 2


def test_a_rollback_and_a_close_drop_it(
    session: Any, welcome: Any, queue: TaskQueue
) -> None:
    submit_on_commit(session, welcome, 1)
    session.rollback()
    session.commit()
    submit_on_commit(session, welcome, 2)
    session.close()
    session.commit()

    assert queue.counts().tasks == 0


def test_after_an_error_of_the_submission_the_session_can_be_used(
    session: Any, welcome: Any, redis_server: Server, key_prefix: str
) -> None:
    with TaskQueue(f"{key_prefix}-full", redis_server.url, max_length=1) as full:
        greet = full.task(name="greet")(lambda: None)
        greet.submit()
        session.execute(sqlalchemy.text("CREATE TABLE user (id INTEGER)"))
        session.execute(sqlalchemy.text("INSERT INTO user VALUES (7)"))
        submit_on_commit(session, greet)

        with pytest.raises(QueueFull):
            session.commit()

        session.rollback()
        found = session.execute(sqlalchemy.text("SELECT id FROM user")).scalars()
        assert found.all() == [7]
        session.commit()
        assert full.counts().tasks == 1


def test_it_is_submitted_when_the_session_has_returned_its_connection(
    session: Any, queue: TaskQueue
) -> None:
    seen: list[bool] = []

    class Looking(Middleware):
        def submitted(self, task: TaskCall) -> None:
            seen.append(session.in_transaction())

    queue.use(Looking())
    greet = queue.task(name="greet")(lambda: None)
    submit_on_commit(session, greet)
    session.commit()

    assert seen == [False]


def test_a_savepoint_that_is_rolled_back_drops_its_own_only(
    session: Any, welcome: Any, queue: TaskQueue
) -> None:
    session.execute(sqlalchemy.text("SELECT 1"))
    submit_on_commit(session, welcome, 1)
    with session.begin_nested():
        submit_on_commit(session, welcome, 2)
    assert queue.counts().tasks == 0
    outer = session.begin_nested()
    with session.begin_nested():
        submit_on_commit(session, welcome, 3)
    outer.rollback()
    session.commit()

    assert queue.counts().tasks == 2


def test_a_scoped_session_works_too(
    engine: Any, welcome: Any, queue: TaskQueue
) -> None:
    scoped = orm.scoped_session(orm.sessionmaker(engine))
    submit_on_commit(scoped, welcome, 1)
    scoped.commit()
    scoped.remove()

    assert queue.counts().tasks == 1


def test_what_cannot_be_submitted_is_refused_at_once(
    session: Any, welcome: Any, queue: TaskQueue
) -> None:
    awaited: Any = AsyncTaskQueue("q").task(name="a")(lambda: None)

    with pytest.raises(PayloadInvalid):
        submit_on_commit(session, welcome, "ann")
    with pytest.raises(ConfigurationError, match="a task of a TaskQueue"):
        submit_on_commit(session, awaited)
    with pytest.raises(ConfigurationError, match="submit a step, chain or group after"):
        submit_on_commit(session, welcome.s(1))
    with pytest.raises(ConfigurationError, match="session must be a Session"):
        submit_on_commit(object(), welcome, 1)
    session.commit()
    assert queue.counts().tasks == 0
