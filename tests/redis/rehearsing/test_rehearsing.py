"""A rehearsal finds what is wrong with a task, and nothing where nothing is wrong."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from workstealing import AsyncTaskQueue, ExecutionContext, TaskQueue
from workstealing.errors import StopWork
from workstealing.testing import Rehearsal, rehearse

pytestmark = pytest.mark.slow

# Nobody can reach it: a rehearsal must not even try.
queue = TaskQueue("rehearsed", "redis://nowhere.invalid:6379/0")
others = TaskQueue("others", "redis://nowhere.invalid:6379/0")
awaited = AsyncTaskQueue("awaited", "redis://nowhere.invalid:6379/0")


@queue.task
def export(folder: str, rows: int, context: ExecutionContext) -> int:
    for row in range(context.checkpoint or 0, rows):
        context.check()
        Path(folder, f"{row}.txt").write_text(f"row {row}")
        context.save(row + 1)
    return rows


@queue.task
def count(folder: str) -> str:
    counter = Path(folder, "counter")
    number = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(number + 1))
    return "counted"


@queue.task
def write_before_saving(folder: str, rows: int, context: ExecutionContext) -> None:
    log = Path(folder, "log")
    for row in range(context.checkpoint or 0, rows):
        with log.open("a") as lines:
            lines.write(f"{row}\n")
        context.save(row + 1)


@queue.task
def ignore_the_lost_lease(folder: str, rows: int, context: ExecutionContext) -> None:
    append_rows(folder, rows, context, ignores=True)


@queue.task
def heed_the_lost_lease(folder: str, rows: int, context: ExecutionContext) -> None:
    append_rows(folder, rows, context, ignores=False)


def append_rows(
    folder: str, rows: int, context: ExecutionContext, *, ignores: bool
) -> None:
    log = Path(folder, "log")
    start, size = context.checkpoint or (0, 0)
    with log.open("a") as lines:
        lines.truncate(size)
    for row in range(start, rows):
        try:
            context.check()
        except StopWork:
            if not ignores:
                raise
        with log.open("a") as lines:
            lines.write(f"{row}\n")
        context.save((row + 1, log.stat().st_size))


@queue.task
def deposit(path: str, context: ExecutionContext) -> str:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        try:
            database.execute("INSERT INTO seen VALUES (?)", (context.id,))
            database.execute("UPDATE account SET balance = balance + 1")
        except sqlite3.IntegrityError:
            database.execute("ROLLBACK")
        else:
            database.execute("COMMIT")
    return "deposited"


@queue.task
def never_stop(times: int, context: ExecutionContext) -> None:
    for _ in range(times):
        with suppress(StopWork):
            context.check()


@queue.task
def ask_only_once(number: int, context: ExecutionContext) -> int:
    total = 0
    for each in range(number):
        if each == number // 2:
            with suppress(BaseException):
                context.check()
        total += each
    return total


@queue.task
def stop_politely(number: int, context: ExecutionContext) -> int:
    total = 0
    try:
        for each in range(number):
            context.check()
            total += each
    except StopWork:
        total = -total
        logging.info("stopped at %d", total)
        return 0
    return total


@queue.task
def break_off(number: int, context: ExecutionContext) -> int:
    total = 0
    for each in range(number):
        try:
            context.check()
        except StopWork:
            break
        total += each
    logging.info("tidied up at %d", total)
    return total


@queue.task
def order(item: str) -> str:
    invoice.submit(item)
    return item


@queue.task
def order_once(item: str) -> None:
    invoice.options(id=f"invoice-{item}").submit(item)


@others.task
def invoice(item: str) -> None: ...


@awaited.task
async def fetch(folder: str, context: ExecutionContext) -> str:
    Path(folder, "page").write_text("hello")
    context.save(1)
    return "hello"


@awaited.task
async def tally(folder: str) -> str:
    return str(count(folder))


@pytest.fixture
def before(tmp_path: Path) -> Callable[[], None]:
    """What empties the folder."""

    def empty() -> None:
        for file in tmp_path.iterdir():
            file.unlink()

    return empty


@pytest.fixture
def after(tmp_path: Path) -> Callable[[], dict[str, str]]:
    """What reads the folder."""
    return lambda: {file.name: file.read_text() for file in tmp_path.iterdir()}


def kinds_of_failures(rehearsal: Rehearsal) -> set[str]:
    return {one.explanation.partition(":")[0] for one in rehearsal.failures}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_clean_task_passes_twenty_times_of_twenty(
    tmp_path: Path, before: Callable[[], None], after: Callable[[], dict[str, str]]
) -> None:
    for _ in range(20):
        rehearsal = rehearse(
            export, str(tmp_path), 2, before=before, after=after, points=2
        )
        rehearsal.raise_for_failures()
        assert {one.status for one in rehearsal.verdicts} == {"passed"}


def test_a_counter_is_found_by_whatever_runs_it_again(
    tmp_path: Path, before: Callable[[], None], after: Callable[[], dict[str, str]]
) -> None:
    rehearsal = rehearse(count, str(tmp_path), before=before, after=after)

    assert not rehearsal.passed
    # Each of its few steps is among the points, so nothing here depends on the seed.
    assert kinds_of_failures(rehearsal) == {
        *("run twice", "killed", "report lost", "lease lost", "two at once"),
    }
    with pytest.raises(AssertionError, match="'counter' is '2' instead of '1'"):
        rehearsal.raise_for_failures()


def test_a_file_written_before_the_save_is_found_by_a_kill_between_them(
    tmp_path: Path, before: Callable[[], None], after: Callable[[], dict[str, str]]
) -> None:
    rehearsal = rehearse(
        write_before_saving, str(tmp_path), 2, before=before, after=after, points=1
    )

    failed = [one.story.partition(",")[0] for one in rehearsal.failures]
    passed = [
        one.story.partition(",")[0]
        for one in rehearsal.verdicts
        if one.status == "passed"
    ]
    assert {"killed before save 1", "killed before save 2"} <= set(failed)
    assert {"killed after save 1", "killed after save 2"} <= set(passed)


def test_a_lost_lease_that_is_ignored_is_found_by_losing_it(
    tmp_path: Path, before: Callable[[], None], after: Callable[[], dict[str, str]]
) -> None:
    rehearsal = rehearse(
        ignore_the_lost_lease, str(tmp_path), 3, before=before, after=after, points=3
    )

    # It bears to be killed anywhere and to be run again.
    assert kinds_of_failures(rehearsal) <= {"lease lost", "two at once"}
    assert "lease lost" in kinds_of_failures(rehearsal)


def test_a_lost_lease_that_is_heeded_is_not_taken_for_one_that_is_ignored(
    tmp_path: Path,
) -> None:
    assert rehearse(heed_the_lost_lease, str(tmp_path), 3, points=2).passed


def test_a_lost_lease_that_is_ignored_is_found_although_nothing_is_compared() -> None:
    rehearsal = rehearse(never_stop, 8, points=2)

    assert kinds_of_failures(rehearsal) == {"lease lost"}
    assert "It was told by StopWork that its lease was lost" in str(rehearsal)


def test_one_order_to_stop_that_is_swallowed_is_found() -> None:
    rehearsal = rehearse(ask_only_once, 6, points=4)

    assert kinds_of_failures(rehearsal) == {"lease lost"}
    assert "and went on, " in str(rehearsal)


def test_who_tidies_up_and_returns_has_obeyed() -> None:
    assert rehearse(stop_politely, 3, points=4).passed


def test_who_leaves_the_loop_tidies_up_and_returns_has_obeyed() -> None:
    assert rehearse(break_off, 3, points=4).passed


def test_a_task_that_submits_another_twice_is_found_without_any_hook() -> None:
    rehearsal = rehearse(order, "tea", points=2)

    assert {"killed", "report lost", "run twice"} <= kinds_of_failures(rehearsal)
    (problem,) = rehearsal.failures[0].problems
    assert problem == (
        f'It submitted {invoice.name} {{"item":"tea"}} twice, instead of once.'
    )
    assert rehearse(order_once, "tea", points=1).passed


def test_coroutines_are_rehearsed_too(
    tmp_path: Path, before: Callable[[], None], after: Callable[[], dict[str, str]]
) -> None:
    good = rehearse(fetch, str(tmp_path), before=before, after=after, points=1)
    bad = rehearse(tally, str(tmp_path), before=before, after=after, points=1)

    good.raise_for_failures()
    assert {"run twice", "report lost"} <= kinds_of_failures(bad)
    assert any(one.story.startswith("killed before save 1") for one in good.verdicts)


def test_a_transaction_that_is_open_makes_the_other_process_wait_and_is_no_defect(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "bank.db")

    def open_account() -> None:
        Path(path).unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE seen (id TEXT PRIMARY KEY)")
            database.execute("CREATE TABLE account (balance INT)")
            database.execute("INSERT INTO account VALUES (0)")
            database.commit()

    def balance() -> int:
        with closing(sqlite3.connect(path)) as database:
            (found,) = database.execute("SELECT balance FROM account").fetchone()
            return int(found)

    rehearsal = rehearse(deposit, path, before=open_account, after=balance, points=3)

    rehearsal.raise_for_failures()
    assert "(one process had to wait for the other)" in str(rehearsal)


def test_the_same_seed_gives_the_same_points_again(tmp_path: Path) -> None:
    one, same, other = (
        rehearse(export, str(tmp_path), 1, points=2, seed=seed) for seed in (7, 7, 8)
    )

    assert [verdict.story for verdict in one.verdicts] == [
        verdict.story for verdict in same.verdicts
    ]
    assert [verdict.story for verdict in one.verdicts] != [
        verdict.story for verdict in other.verdicts
    ]
    assert "(seed 7)" in str(one)


def test_a_story_that_is_not_run_says_why(tmp_path: Path) -> None:
    rehearsal = rehearse(count, str(tmp_path), before=lambda: None, key=lambda _: None)

    skipped = [one for one in rehearsal.verdicts if one.status == "skipped"]
    assert [str(one) for one in skipped] == [
        "skipped killed at a save (it saves no checkpoint)"
    ]
