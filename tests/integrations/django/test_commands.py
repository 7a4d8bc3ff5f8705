"""`manage.py workstealing_…`: the command line, with the queues of the settings."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from workstealing.testing import Server

Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def site(manage: Manage, redis_server: Server, key_prefix: str) -> Manage:
    """Run a command of a site with a queue."""
    queues = {"QUEUES": {"parcels": {"run": key_prefix}}}

    def site(*words: str, **settings: str) -> Any:
        settings = {"MORE": json.dumps(queues), "REDIS": redis_server.url, **settings}
        return manage(*words, **settings)

    return site


def test_a_task_is_added_run_and_looked_at(site: Manage) -> None:
    added = site("workstealing_queue", "add", "bazaar.tasks:wrap", "what=cake")
    assert added.returncode == 0, added.stderr
    waiting = site("workstealing_queue", "ls", "parcels", "--json")
    assert [task["id"] for task in json.loads(waiting.stdout)] == [added.stdout.strip()]

    worked = site("workstealing_worker", "parcels", "--until-empty")
    assert worked.returncode == 0, worked.stderr
    assert "1 task taken" in worked.stderr

    shown = site("workstealing_queue", "cat", "parcels", added.stdout.strip())
    assert "cake in 1 ribbons" in shown.stdout


@pytest.mark.timeout(180)
def test_processes_of_a_worker_set_the_site_up(site: Manage) -> None:
    added = site("workstealing_queue", "add", "bazaar.tasks:stands").stdout.strip()
    words = ("--until-empty", "--kind=processes", "--workers=1")

    worked = site("workstealing_worker", "parcels", *words)
    assert worked.returncode == 0, worked.stderr
    assert "result:\ntrue" in site("workstealing_queue", "cat", "parcels", added).stdout


def test_the_options_of_django_are_not_in_the_way(site: Manage) -> None:
    words = ("ls", "parcels", "--json", "--settings=bazaar.settings")

    assert site("workstealing_queue", *words).returncode == 0


def test_the_only_queue_needs_no_name(site: Manage) -> None:
    counted = site("workstealing_queue", "stat", "--json")

    assert json.loads(counted.stdout)["queue"] == "parcels"


def test_a_queue_that_is_not_in_the_settings_is_refused(site: Manage) -> None:
    refused = site("workstealing_worker", "letters")

    assert refused.returncode == 2
    assert "there is no queue 'letters'" in refused.stderr
    assert "'parcels'" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_the_name_is_needed_where_there_are_several(site: Manage) -> None:
    queues = json.dumps({"QUEUES": {"parcels": {}, "letters": {}}})

    refused = site("workstealing_queue", "stat", MORE=queues)
    assert refused.returncode == 2
    assert "the settings have parcels, letters" in refused.stderr


def test_a_wrong_option_is_refused_in_one_line(site: Manage) -> None:
    refused = site("workstealing_worker", "parcels", "--batch", "0")

    assert refused.returncode == 2
    assert "batch" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_redis_that_is_down_is_told_in_one_line(site: Manage, tmp_path: Any) -> None:
    refused = site("workstealing_queue", "stat", REDIS=f"unix://{tmp_path}/none")

    assert refused.returncode == 1
    assert refused.stderr.startswith("CommandError: ")
    assert "Traceback" not in refused.stderr


def test_side_work_is_done_without_requests(site: Manage) -> None:
    done = site("workstealing_recruit")

    assert done.returncode == 0, done.stderr
    assert "job: recruited" in done.stdout
    assert "upkeep:parcels: " in done.stdout


def test_side_work_that_fails_is_told(site: Manage) -> None:
    done = site("workstealing_recruit", JOB="fail")

    assert done.returncode == 1
    assert "job: error" in done.stdout


def test_jobs_of_the_settings_are_done(site: Manage) -> None:
    jobs = {"JOBS": {"sweep": {"job": "bazaar.jobs.note", "rate": 0.5}}}

    done = site("workstealing_recruit", MORE=json.dumps(jobs), JOB="none")
    assert done.stdout.startswith("sweep: recruited")


def test_a_worker_leaves_no_old_connection_to_the_next_task(site: Manage) -> None:
    ids = [
        site("workstealing_queue", "add", f"bazaar.tasks:{name}").stdout.strip()
        for name in ("opens", "finds")
    ]
    worked = site("workstealing_worker", "parcels", "--until-empty", "--workers=1")
    assert worked.returncode == 0, worked.stderr

    shown = [site("workstealing_queue", "cat", "parcels", one).stdout for one in ids]
    assert "result:\ntrue" in shown[0]
    assert "result:\nfalse" in shown[1]
