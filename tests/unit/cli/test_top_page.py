"""What `workstealing top` draws."""

from __future__ import annotations

from workstealing.cli.sheets import plain_lines
from workstealing.cli.top_page import View, page
from workstealing.inspecting.rates import Rates
from workstealing.inspecting.values import Stat, Totals, Upkeep, WorkerStat

NOW_MS = 1_800_000_000_000


def _worker(name: str, **told: int) -> WorkerStat:
    left = told.get("left", 14_000)
    return WorkerStat(
        name=name,
        is_alive=left > 0,
        waiting=told.get("waiting", 0),
        running=told.get("running", 0),
        stolen=told.get("stolen", 0),
        lease_age_ms=15_000 - left,
        lease_left_ms=left,
        host="mill",
        pid=4711,
        since_ms=0,
    )


def _stat(*workers: WorkerStat, is_closed: bool = False, is_known: bool = True) -> Stat:
    return Stat(
        queue="thumbnails",
        run="default",
        server="localhost:6379/0",
        is_known=is_known,
        now_ms=NOW_MS,
        is_closed=is_closed,
        waiting=1200,
        inbox=(0, 1200, 0),
        oldest_at_ms=NOW_MS - 42_000,
        assigned=30,
        running=4,
        delayed=5,
        parked=6,
        dead=7,
        outcomes=800,
        unfinished=1239,
        backlog=1234,
        living=2,
        backlog_per_worker=617.0,
        workers=workers,
        parkings=(),
        totals=Totals(1, 2, 0, 3, 0, 4, 5, 6, 7, 8),
        upkeep=Upkeep({"expire": NOW_MS - 3_000, "reassign": NOW_MS - 1_000}, {}),
        bytes=None,
    )


def _lines(view: View, workers: int = 10) -> list[str]:
    return list(plain_lines(page(view, workers)))


def _view(stat: Stat | None = None, **more: object) -> View:
    return View("thumbnails/default", stat, **more)  # type: ignore[arg-type]


def test_a_frame_tells_counts_rates_workers_and_upkeep() -> None:
    crew = (
        _worker("pool.1", left=-2_000, waiting=3),
        _worker("pool.0", waiting=27, running=4, stolen=12),
        _worker("pool.2"),
    )
    rates = Rates(1234.5, 99.94, 0.0, 0.0, 0.25, 0.0, 3.0)

    lines = _lines(_view(_stat(*crew), rates=rates))

    assert lines[0] == (
        "thumbnails/default on localhost:6379/0 at 2027-01-15 08:00:00Z"
    )
    assert lines[2].split() == ["1,200", "30", "4", "5", "6", "7", "800", "42", "s"]
    assert lines[4].split() == ["1,234", "99.9", "0.0", "0.0", "0.2", "0.0", "3.0"]
    assert [" ".join(line.split()) for line in lines[5:9]] == [
        "worker state deque running stolen renewed host process",
        "pool.0 runs 27 4 12 1 s ago mill 4711",
        "pool.2 rests 0 0 0 1 s ago mill 4711",
        "pool.1 dead for 2 s 3 0 0 17 s ago mill 4711",
    ]
    assert lines[9] == "Upkeep: expire 3 s ago, reassign 1 s ago"


def test_rates_are_dashes_until_they_are_known() -> None:
    assert _lines(_view(_stat()))[4].split() == ["-"] * 7


def test_the_living_are_shown_first_and_how_many_more_there_are() -> None:
    crew = [_worker(f"pool.{n}", left=-1 if n < 5 else 9) for n in range(8)]

    lines = _lines(_view(_stat(*crew)), workers=3)

    assert [line.split()[0] for line in lines[6:9]] == ["pool.5", "pool.6", "pool.7"]
    assert lines[9] == "… 5 more workers"


def test_a_server_that_is_away_leaves_the_last_frame_standing() -> None:
    view = _view(_stat(), problem="Connection refused", silent_ms=3_000)

    lines = _lines(view)

    assert lines[1] == ("NOT REACHED for 3 s, this is from before: Connection refused")
    assert lines[3].split()[0] == "1,200"


def test_a_server_that_was_never_reached_is_told_in_one_line() -> None:
    lines = _lines(_view(problem="Connection refused"))

    assert lines == ["thumbnails/default: Connection refused"]


def test_a_frame_says_what_is_special_about_the_queue() -> None:
    assert _lines(_view(_stat(is_closed=True)))[0].endswith("closed: no more input")
    assert "there is no such queue" in _lines(_view(_stat(is_known=False)))[0]
    assert "no worker lives" in _lines(_view(_stat()))
