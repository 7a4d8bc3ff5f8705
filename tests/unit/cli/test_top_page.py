"""What a frame of `workstealing top` shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.cli import top_command
from workstealing.cli.tables import plain_lines
from workstealing.cli.top_views import TITLES, TopFrame, top_parts
from workstealing.errors import RedisUnavailable
from workstealing.inspecting import (
    HistoryStretch,
    QueueHistory,
    QueueStat,
    QueueTotals,
    Rates,
    TaskRow,
    TaskStat,
    UpkeepStat,
    WorkerStat,
)
from workstealing.tasks.context import Progress
from workstealing.tasks.outcome import State

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


def _lines(frame: TopFrame, view: str = "") -> list[str]:
    """Return the lines of one view, or of all of them."""
    if not view:
        return list(plain_lines(top_parts(frame, tuple(TITLES))))
    (chosen,) = (key for key, title in TITLES.items() if title == view)
    return list(plain_lines(top_parts(frame, (chosen,))))


def _running(task_id: str, told: Progress | None) -> TaskRow:
    return TaskRow(
        id=task_id,
        task="transcode@1",
        state=State.RUNNING,
        place="queues/pool.0",
        worker="pool.0",
        at_ms=NOW_MS - 10_000,
        note="",
        attempts=0,
        deaths=0,
        steals=0,
        size=1,
        progress=told,
    )


def _frame(stat: QueueStat | None = None, **more: object) -> TopFrame:
    return TopFrame("thumbnails/default", stat, **more)  # type: ignore[arg-type]


def test_a_frame_shows_counts_and_rates() -> None:
    rates = Rates(1234.5, 99.94, 0.0, 0.0, 0.25, 0.0, 3.0)

    lines = _lines(_frame(_stat(_worker("pool.0")), rates=rates), "queue")

    assert lines[0] == (
        "thumbnails/default on localhost:6379/0 at 2027-01-15 08:00:00Z"
    )
    assert lines[2].split() == [
        *("1,200", "30", "4", "5", "6", "0", "0", "7", "800", "42", "s")
    ]
    assert lines[4].split() == ["1,234", "99.9", "0.0", "0.0", "0.2", "0.0", "3.0"]


def test_the_view_of_workers_has_live_ones_first() -> None:
    workers = (
        _worker("pool.1", left=-2_000, waiting=3),
        _worker("pool.0", waiting=27, running=4, stolen=12),
        _worker("pool.2"),
    )

    lines = _lines(_frame(_stat(*workers)), "workers")

    assert [" ".join(line.split()) for line in lines[1:]] == [
        "worker state deque running stolen renewed host pid",
        "pool.0 running 27 4 12 1 s ago mill 4711",
        "pool.2 idle 0 0 0 1 s ago mill 4711",
        "pool.1 dead for 2 s 3 0 0 17 s ago mill 4711",
    ]


def test_the_last_hour_is_a_curve_of_what_was_done_and_what_failed() -> None:
    minutes = tuple(HistoryStretch(n, 70 * n, int(n == 9)) for n in range(10))
    history = QueueHistory(minutes, ())

    lines = _lines(_frame(_stat(), history=history), "queue")

    assert "done/min    ▁▂▃▄▅▅▆▇██  now 630, most 630" in map(str.rstrip, lines)
    assert "failed/min  ▁▁▁▁▁▁▁▁▁█  now 1, most 1" in map(str.rstrip, lines)


def test_names_of_tasks_have_rates_failures_and_durations() -> None:
    histogram = [0] * 18
    histogram[4] = 600
    waits = [0] * 24
    waits[11] = 10  # of 1.5 s
    known = tuple(histogram), 15_000, tuple(waits)
    task = TaskStat("resize@1", 590, 10, 600 * 12, *known)
    minutes = tuple(HistoryStretch(n, 59 * (n > 0), n > 0) for n in range(11))

    lines = _lines(_frame(_stat(), history=QueueHistory(minutes, (task,))), "names")

    assert lines[-2].split() == [
        *("resize@1", "590", "10", "59.0"),
        *("12", "ms", "15.6", "ms"),
        *("1.5", "s", "1.93", "s"),
    ]
    assert lines[-1] == "attempts in the last 10 min, of 60 at most"


def test_running_tasks_show_how_far_they_are_and_how_long_it_takes_yet() -> None:
    told = Progress(done=25, total=100, note="page 25")
    row = _running("video-1", told)
    silent = _running("video-2", None)
    endless = _running("video-3", Progress(done=7))

    lines = _lines(_frame(_stat(), running=(row, silent, endless)), "running")

    assert "██░░░░░░░░ 25 %  30 s  page 25" in lines[-4]
    assert [line.split()[0] for line in lines[-4:-1]] == [
        *("video-1", "video-2", "video-3")
    ]
    assert lines[-2].split()[5] == "7"
    assert lines[-1] == "… 1 more that workers have taken"


def test_upkeep_is_shown_duty_by_duty() -> None:
    lines = _lines(_frame(_stat()), "upkeep")

    assert [" ".join(line.split()) for line in lines[-3:]] == [
        *("upkeep last done", "expire 3 s ago", "reassign 1 s ago")
    ]


def test_every_view_has_a_key_of_its_own() -> None:
    assert not set(TITLES) & {"q", "j", "k"}


def test_rates_are_dashes_until_they_are_known() -> None:
    assert _lines(_frame(_stat(_worker("pool.0"))))[4].split() == ["-"] * 7


def test_a_server_that_is_away_leaves_the_last_numbers_on_the_screen() -> None:
    stat = _stat(_worker("pool.0"))
    frame = _frame(stat, problem="Connection refused", silent_ms=3_000)

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


def test_what_spare_moments_took_is_shown_if_they_took_any() -> None:
    stat = _stat(_worker("pool.0"))
    some = replace(stat, totals=replace(stat.totals, brief=12))

    assert "brief" not in "".join(_lines(_frame(stat), "queue"))
    assert ", 12 brief" in "".join(_lines(_frame(some), "queue"))


def test_while_a_shard_is_away_running_tasks_are_counted_and_not_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class PartOfACluster:
        def __init__(self, _: TaskQueue) -> None: ...

        def stat(self) -> QueueStat:
            return replace(_stat(), unreachable=(1,))

        def history(self, _: int) -> QueueHistory:
            return QueueHistory((), ())

        def ls(self, *_: Any) -> None:
            raise RedisUnavailable("the server did not answer")

    monkeypatch.setattr(top_command, "Inspector", PartOfACluster)

    frame = top_command._TopReader(TaskQueue("thumbnails", "redis://nowhere")).read()

    assert "4 running tasks, not listed while a node of the Cluster is away" in (
        plain_lines(top_parts(frame, tuple(TITLES)))
    )
