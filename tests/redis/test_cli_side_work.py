"""`top --side-work` and `plan --observed`, on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from workstealing import Duty, Fleet, Recruiter
from workstealing.cli.commands import workstealing
from workstealing.testing import Server

from .pseudo_terminal import PseudoTerminal

RUNNER = CliRunner(env={"COLUMNS": "80", "FORCE_COLOR": None})


@pytest.fixture(scope="module")
def shop() -> Iterator[Server]:
    """A server on which a process has published what came of four jobs."""
    with Server() as server:
        _live(server.url)
        yield server


def _live(url: str) -> None:
    recruiter = Recruiter(share=None, deadline=None, breaker=None)
    recruiter.install(lambda: Duty.MORE, "session-gc", rate=0.02)
    recruiter.install(lambda: Duty.DISMISSED, "trim-logs", rate=0.02)
    recruiter.install(lambda: 1 / 0, "carts", rate=0.001)
    recruiter.install(lambda: None, "report", every=600, of=Fleet(url, "shop"))
    recruiter.publish(url)
    slices = [*["session-gc", "trim-logs"] * 60, *["carts"] * 3, *["report"] * 2]
    for name in slices:
        recruiter.run_now(name)
    recruiter.run_now("ledger")


def _run(server: Server, *words: str) -> Result:
    return RUNNER.invoke(workstealing, [*words, "--redis", server.url])


def _row(output: str, first: str) -> str:
    return next(line for line in output.splitlines() if line.startswith(f"{first} "))


def test_top_says_which_job_starves_fails_falls_behind_or_does_nothing(
    shop: Server,
) -> None:
    output = _run(shop, "top", "--side-work", "--once").output

    assert "side work took" in output
    assert "trim-logs: does nothing: none of 60 slices found work" in output
    assert "carts: failing: 3 of 3 slices raised" in output
    behind = "session-gc: falls behind: 100 % of its slices end with work left"
    assert behind in output
    assert "report:" not in output, "nothing is wrong with it"


def test_top_shows_what_came_of_each_job_and_which_pace_would_be_planned(
    shop: Server,
) -> None:
    output = _run(shop, "top", "--side-work", "--once").output

    row = _row(output, "trim-logs")
    assert row.split()[:8] == ["trim-logs", "1", "0.02", "of", "calls", "60", "0", "60"]
    assert "useless" in row
    assert _row(output, "session-gc").rstrip().endswith("behind   0.04 of calls")
    assert "every 600 s of the fleet" in _row(output, "report")


def test_top_of_side_work_is_about_no_queue(shop: Server) -> None:
    ended = _run(shop, "top", "--side-work", "--queue", "q")

    assert ended.exit_code == 2
    assert "--side-work is about no queue" in ended.output


def test_where_nobody_publishes_both_say_what_to_do() -> None:
    with Server() as server:
        top = _run(server, "top", "--side-work", "--once")
        plan = _run(server, "plan", "--observed")

    assert top.exit_code == 0
    assert plan.exit_code == 1
    for ended in (top, plan):
        assert "No recruiter has published anything" in ended.output
        assert "recruiter.publish()" in ended.output


def test_on_a_terminal_keys_switch_its_views_and_redis_may_go_away(app: Path) -> None:
    with Server() as server:
        _live(server.url)
        where = ("--side-work", "--interval", "0.1", "--redis", server.url)
        terminal = PseudoTerminal(app, "top", *where, width=160)
        terminal.wait_for("planned pace")
        terminal.press("2")
        terminal.wait_for("process time")
        server.kill()
        terminal.wait_for("REDIS UNREACHABLE for")
        terminal.press("q")

        assert terminal.ended() == 0
        terminal.close()


def test_a_plan_from_what_was_seen_proposes_a_step_and_says_why(shop: Server) -> None:
    ended = _run(shop, "plan", "--observed")

    assert ended.exit_code == 0, ended.output
    gc, trim = _row(ended.output, "session-gc"), _row(ended.output, "trim-logs")
    assert "rate=0.04" in gc
    assert "it falls behind: 100 % of its slices end with work left" in gc
    assert "rate=0.01" in trim
    assert "none of its 60 slices found work" in trim
    assert 'recruiter.set_rate("session-gc", rate=0.04)' in ended.output
    assert 'recruiter.set_rate("trim-logs", rate=0.01)' in ended.output


def test_a_plan_says_where_too_little_was_seen(shop: Server) -> None:
    output = _run(shop, "plan", "--observed").output

    assert "1 of the 50 slices that are needed" in _row(output, "report")
    assert "most slices raise: mend the job first" in _row(output, "carts")
    assert "no change" in _row(output, "report")
    assert 'set_rate("report"' not in output
    assert not [line for line in output.splitlines() if line.startswith("ledger")]


def test_a_plan_as_json_has_what_was_seen_and_what_follows(shop: Server) -> None:
    told = {
        one["job"]: one
        for one in json.loads(_run(shop, "plan", "--observed", "--json").output)
    }

    gc = told["session-gc"]
    assert (gc["rate"], gc["slices"], gc["unfinished"]) == (0.02, 60, 60)
    assert (gc["planned_rate"], gc["proposed_rate"]) == (0.04, 0.04)
    assert told["trim-logs"]["planned_rate"] < told["trim-logs"]["proposed_rate"]
    assert told["report"]["is_known"] is False
    assert told["report"]["proposed_every"] == told["report"]["every"] == 600


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--observed", "--batch", "3"], "--batch is not for --observed"),
        (["--observed", "--plot", "x.png"], "--plot is not for --observed"),
        (["--redis", "redis://localhost"], "--redis needs --observed"),
        (["--observed", "--stale", "-1"], "stale must be above 0"),
        ([], "Missing option '--calls-day'"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(
    shop: Server, words: list[str], message: str
) -> None:
    where = ["--redis", shop.url] if "--observed" in words else []

    ended = RUNNER.invoke(workstealing, ["plan", *words, *where])

    assert ended.exit_code == 2
    assert message in ended.output
