"""What holds for each queue: a worker enlists after its tasks, and while it is idle."""

from __future__ import annotations

from typing import Any

import pytest

EVERY_QUEUE = pytest.mark.parametrize(
    "site", ["arq", "celery", "dramatiq", "rq", "saq"], indirect=True
)


@EVERY_QUEUE
def test_a_worker_enlists_after_each_task(site: Any) -> None:
    worker = site.start(rate=1.0)
    site.submit()
    site.wait_for(lambda marks: marks == ["task", "slice"])

    site.submit()

    site.wait_for(lambda marks: marks == ["task", "slice"] * 2)
    assert site.end(worker) == 0, site.output


@EVERY_QUEUE
def test_an_idle_worker_does_slices(site: Any) -> None:
    site.start(idle=0.1)

    site.wait_for(lambda marks: len(marks) >= 3)

    assert set(site.marks) == {"slice"}


@EVERY_QUEUE
def test_a_job_that_fails_leaves_the_worker_at_work(site: Any) -> None:
    worker = site.start(rate=1.0, idle=0.1, then="fail")
    site.wait_for(lambda marks: "slice" in marks)

    site.submit()
    site.wait_for(lambda marks: marks.count("task") == 1)
    site.submit()
    site.wait_for(lambda marks: marks.count("task") == 2)

    assert worker.poll() is None


@pytest.mark.parametrize("site", ["celery", "rq"], indirect=True)
def test_a_worker_that_is_asked_to_stop_during_a_slice_stops(site: Any) -> None:
    worker = site.start(idle=0.1, then="stop")

    assert worker.wait(30) == 0, site.output

    assert set(site.marks) == {"slice"}


@pytest.mark.parametrize("site", ["rq"], indirect=True)
def test_a_worker_that_is_asked_to_stop_after_a_job_stops(site: Any) -> None:
    worker = site.start(rate=1.0, then="stop")
    site.submit()

    assert worker.wait(30) == 0, site.output

    assert site.marks == ["task", "slice"]
