"""The closing figures of the demo can be checked against each other."""

from __future__ import annotations

from workstealing.cli.demo.demo_command import closing_page, promises_hold
from workstealing.cli.demo.story import Scene
from workstealing.cli.tables import TextTable, plain_lines
from workstealing.queue.inspection_calls import Counts
from workstealing.recruiting.stats import JobStats, RecruiterStats
from workstealing.telemetry.events import Outcome


def _job(seconds: float, **outcomes: int) -> JobStats:
    counted = {outcome: outcomes.get(outcome.value, 0) for outcome in Outcome}
    return JobStats(0.01, None, counted, 0, seconds, seconds, 0, None, None)


def _scene(done: int = 100) -> Scene:
    counts = Counts(
        *(0, (0, 0, 0), 0, 0, done, 0, 0, 0, False),
        stats={"submitted": 100, "done": done, "reassigned": 9, "stolen": 7},
        upkeep={"upkeep:web": 78},
        leases={},
        loads={},
        abilities={},
    )
    jobs = {
        "sessions": _job(0.2, recruited=10, empty=3, conflict=1, error=1, budget=4),
        "tasks": _job(0.1, recruited=1, empty=70, budget=60, busy=1),
    }
    side_work = RecruiterStats(1000, jobs, {}, 0.0, 0, 0)
    return Scene(30.0, counts, 102, {}, {}, {"log": 2013}, 500, side_work)


def _side_work(scene: Scene) -> list[dict[str, str]]:
    tables = [p for p in closing_page(scene, 100) if isinstance(p, TextTable)]
    return [dict(zip(tables[1].columns, row, strict=True)) for row in tables[1].rows]


def test_what_was_drawn_was_refused_or_did_a_slice_with_one_outcome() -> None:
    for row in _side_work(_scene()):
        number = {name: int(cell) for name, cell in row.items() if cell.isdigit()}

        assert number["drawn"] == number["refused"] + number["slices"]
        assert number["slices"] == (
            number["useful"] + number["found nothing"] + number["failed"]
        )


def test_the_time_that_was_spent_is_shown_beside_the_whole_budget() -> None:
    lines = list(plain_lines(closing_page(_scene(), 100)))

    assert lines[-2] == (
        "Side work took 300 ms of the site's 30 s (1 %)."
        " Its budget was 350 ms: 1 %, and 50 ms once."
    )


def test_a_task_that_was_not_done_breaks_the_promise() -> None:
    assert promises_hold(_scene(), 100)
    assert not promises_hold(_scene(done=99), 100)
    lines = [
        " ".join(line.split()) for line in plain_lines(closing_page(_scene(99), 100))
    ]
    assert "tasks lost 1" in lines
