"""What a frame of `workstealing top` shows."""

from __future__ import annotations

from workstealing.cli.tables import plain_lines
from workstealing.cli.top_command import TopFrame, top_page
from workstealing.inspecting import (
    QueueStat,
    QueueTotals,
    Rates,
    UpkeepStat,
    WorkerStat,
)

NOW_MS = 1_800_000_000_000


def _worker(name: str, **numbers: int) -> WorkerStat:
    left = numbers.get("left", 14_000)
    return WorkerStat(
        name=name,
        is_alive=left > 0,
        waiting=numbers.get("waiting", 0),
        running=numbers.get("running", 0),
        stolen=numbers.get("stolen", 0),
        lease_age_ms=15_000 - left,
        lease_left_ms=left,
        host="mill",
        pid=4711,
        since_ms=0,
    )


def _stat(
    *workers: WorkerStat, input_ended: bool = False, is_known: bool = True
) -> QueueStat:
    return QueueStat(
        queue="thumbnails",
        run="default",
        server="localhost:6379/0",
        is_known=is_known,
        now_ms=NOW_MS,
        input_ended=input_ended,
        waiting=1200,
        inbox=(0, 1200, 0),
        oldest_at_ms=NOW_MS - 42_000,
        assigned=30,
        running=4,
        delayed=5,
        parked=6,
        paused=0,
        held_back=0,
        dead=7,
        outcomes=800,
        unfinished=1239,
        backlog=1234,
        living=sum(worker.is_alive for worker in workers),
        backlog_per_worker=617.0,
        workers=workers,
        parked_abilities=(),
        pauses=(),
        task_names=(),
        totals=QueueTotals(1, 2, 0, 3, 0, 4, 0, 5, 6, 7, 8),
        upkeep=UpkeepStat({"expire": NOW_MS - 3_000, "reassign": NOW_MS - 1_000}, {}),
        bytes=None,
    )


def _lines(frame: TopFrame, workers: int = 10) -> list[str]:
    return list(plain_lines(top_page(frame, workers)))


def _frame(stat: QueueStat | None = None, **more: object) -> TopFrame:
    return TopFrame("thumbnails/default", stat, **more)  # type: ignore[arg-type]


def test_a_frame_shows_counts_rates_workers_and_upkeep() -> None:
    workers = (
        _worker("pool.1", left=-2_000, waiting=3),
        _worker("pool.0", waiting=27, running=4, stolen=12),
        _worker("pool.2"),
    )
    rates = Rates(1234.5, 99.94, 0.0, 0.0, 0.25, 0.0, 3.0)

    lines = _lines(_frame(_stat(*workers), rates=rates))

    assert lines[0] == (
        "thumbnails/default on localhost:6379/0 at 2027-01-15 08:00:00Z"
    )
    assert lines[2].split() == [
        *("1,200", "30", "4", "5", "6", "0", "0", "7", "800", "42", "s")
    ]
    assert lines[4].split() == ["1,234", "99.9", "0.0", "0.0", "0.2", "0.0", "3.0"]
    assert [" ".join(line.split()) for line in lines[5:9]] == [
        "worker state deque running stolen renewed host pid",
        "pool.0 running 27 4 12 1 s ago mill 4711",
        "pool.2 idle 0 0 0 1 s ago mill 4711",
        "pool.1 dead for 2 s 3 0 0 17 s ago mill 4711",
    ]
    assert lines[9] == "Upkeep: expire 3 s ago, reassign 1 s ago"


def test_rates_are_dashes_until_they_are_known() -> None:
    assert _lines(_frame(_stat()))[4].split() == ["-"] * 7


def test_live_workers_are_shown_first_and_how_many_more_there_are() -> None:
    workers = [_worker(f"pool.{n}", left=-1 if n < 5 else 9) for n in range(8)]

    lines = _lines(_frame(_stat(*workers)), workers=3)

    assert [line.split()[0] for line in lines[6:9]] == ["pool.5", "pool.6", "pool.7"]
    assert lines[9] == "… 5 more workers"


def test_a_server_that_is_away_leaves_the_last_numbers_on_the_screen() -> None:
    frame = _frame(_stat(), problem="Connection refused", silent_ms=3_000)

    lines = _lines(frame)

    assert lines[1] == (
        "REDIS UNREACHABLE for 3 s, last numbers below: Connection refused"
    )
    assert lines[3].split()[0] == "1,200"


def test_a_server_that_was_never_reached_is_one_line() -> None:
    lines = _lines(_frame(problem="Connection refused"))

    assert lines == ["thumbnails/default: Connection refused"]


def test_a_frame_says_what_is_special_about_the_queue() -> None:
    assert _lines(_frame(_stat(input_ended=True)))[0].endswith("; its input has ended")
    assert "there is no such queue" in _lines(_frame(_stat(is_known=False)))[0]
    assert "no worker is alive" in _lines(_frame(_stat()))
