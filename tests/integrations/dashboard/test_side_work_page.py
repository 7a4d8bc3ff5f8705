"""The side work of a fleet in a browser, and as metrics of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from redis import Redis

from workstealing import Duty, Recruiter
from workstealing.testing import Server


@pytest.fixture
def fleet(redis_server: Server) -> Iterator[None]:
    """A process that has published what came of two jobs."""
    client = Redis.from_url(redis_server.url)
    _forget(client)
    recruiter = Recruiter(share=None, deadline=None)
    recruiter.install(lambda: Duty.DISMISSED, "trim", rate=0.02)
    recruiter.install(lambda: None, "report", every=600)
    recruiter.publish(client)
    for name in [*["trim"] * 60, "report", "ledger"]:
        recruiter.run_now(name)
    yield
    _forget(client)
    client.close()


def _forget(client: Redis) -> None:
    for key in client.scan_iter("ws:{side-work}:*", count=1000):
        client.delete(key)


async def test_the_page_says_what_needs_a_look_and_which_pace_would_be_planned(
    browser: httpx.AsyncClient, fleet: None
) -> None:
    page = (await browser.get("/side-work")).text

    assert "does nothing: none of 60 slices found work" in page
    assert "useless" in page
    assert "0.00179 of calls" in page
    assert "0.02 of calls" in page


async def test_prometheus_reads_verdicts_and_paces_of_the_whole_fleet(
    browser: httpx.AsyncClient, fleet: None
) -> None:
    parser = pytest.importorskip("prometheus_client.parser")

    answer = await browser.get("/metrics")

    told = {
        (
            sample.name.removeprefix("workstealing_side_work_"),
            sample.labels.get("side_job"),
            sample.labels.get("verdict") or sample.labels.get("outcome"),
        ): sample.value
        for family in parser.text_string_to_metric_families(answer.text)
        for sample in family.samples
        if "side_work" in sample.name
    }
    assert told["verdict", "trim", "useless"] == 1
    assert told["verdict", "trim", "good"] == 0
    assert told["verdict", "report", "good"] == 1
    assert told["slices", "trim", "empty"] == 60
    assert told["rate", "trim", None] == 0.02
    assert told["planned_rate", "trim", None] < 0.01
    assert told["interval_seconds", "report", None] == 600
    assert told["planned_interval_seconds", "report", None] == 600
    assert ("rate", "report", None) not in told
    assert ("calls_per_second", "trim", None) in told
    assert 'side_work_slices{job="' not in answer.text, "Prometheus has its own job"
