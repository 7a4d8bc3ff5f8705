"""How long tasks wait and run is told to Prometheus, by task name."""

from __future__ import annotations

from tests.unit.inspecting.test_rates import STAT
from workstealing.dashboard.gauges import gauges
from workstealing.inspecting import QueueHistory, TaskStat


def test_waits_and_runs_of_the_last_minutes_are_told_by_name_and_quantile() -> None:
    counts = [0] * 18
    counts[4] = 10
    waits = [0] * 24
    waits[11] = 10
    task = TaskStat("resize@1", 10, 0, 120, tuple(counts), 15_000, tuple(waits))
    unknown = TaskStat("idle@1", 0, 0, 0, (), 0, ())

    lines = gauges([STAT], [QueueHistory((), (task, unknown))]).splitlines()

    where = f'queue="{STAT.queue}",run="{STAT.run}",task="resize@1"'
    assert f'workstealing_queue_run_seconds{{{where},quantile="0.5"}} 0.012' in lines
    assert f'workstealing_queue_wait_seconds{{{where},quantile="0.5"}} 1.5' in lines
    told = [line for line in lines if "_seconds{" in line and "resize" in line]
    assert [line.split('quantile="')[1][:4] for line in told] == [
        *('0.5"', "0.95", "0.99"),
        *('0.5"', "0.95", "0.99"),
    ]
    assert not any("idle@1" in line for line in lines)
