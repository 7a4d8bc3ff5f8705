"""`workstealing plan`, as a user meets it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import workstealing
from workstealing.cli.commands import workstealing as group
from workstealing.recruiting.plan import plan

ROOT = Path(workstealing.__file__).parents[1]
GUIDE = ROOT / "docs" / "choosing-a-rate.md"
# As wide as a plain terminal, wherever the tests run.
RUNNER = CliRunner(env={"COLUMNS": "80", "FORCE_COLOR": None})
SHOP: dict[str, Any] = {
    "calls_day": 1000,
    "calls_night": 50,
    "processes": 50,
    "garbage": 2,
    "batch": 20,
    "stale": 600,
}


def test_it_prints_the_line_to_paste() -> None:
    made = plan(**SHOP)

    output = planned().output

    assert f'recruiter.install(job, "name", rate={made.rate})' in output
    assert f'recruiter.install(job, "name", every={made.every})' in output


def test_the_table_says_what_to_expect() -> None:
    output = planned().output

    rows = {line[:24].strip(): line[24:].split("  ") for line in output.splitlines()}
    assert "27.2" in " ".join(rows["backlog, items"])
    assert "3.23 h" in " ".join(rows["drain of 10,000"])
    assert "p99.71" in " ".join(rows["latency untouched below"])
    assert "69.9 s" in " ".join(rows["longest gap in 1 day"])


def test_the_table_fits_into_eighty_columns() -> None:
    table = planned().output.split("The garbage decides")[0]

    assert max(map(len, table.splitlines())) <= 80


def test_json_holds_the_whole_plan() -> None:
    told = json.loads(planned("--json").output)

    made = plan(**SHOP)
    assert told["rate"] == made.rate
    assert told["every"] == made.every
    assert told["night"]["backlog"]["items"] == made.night.backlog.items
    assert told["every_day"]["share"] == made.every_day.share  # type: ignore[union-attr]


def test_a_rate_that_floods_the_day_comes_with_a_warning() -> None:
    assert "will cut it" not in planned().output
    assert "will cut it" in planned("--calls-night", "5", "--garbage", "20").output


def test_a_slice_beyond_the_deadline_comes_with_a_warning() -> None:
    assert "take smaller batches" in planned("--slice-seconds", "0.2").output


def test_a_rate_of_one_is_shown_without_an_interval() -> None:
    output = planned("--calls-night", repr(2 / (20 * 0.7))).output

    assert 'recruiter.install(job, "name", rate=1.0)' in output
    assert "every=" not in output


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--calls-night", "0", "Error: --calls-night must be above 0"),
        ("--stale", "nan", "Error: --stale must be above 0 and finite, not nan"),
        ("--stale", "1e9", "Error: --horizon must be longer than --stale:"),
        ("--batch", "-3", "Error: --batch must be 1 to"),
        ("--batch", "many", "'many' is not a valid integer"),
        (
            "--garbage",
            "5000",
            "items of garbage per second, even at rate 1.0. Raise --batch to",
        ),
        ("--failure", "1", "--failure must be a probability"),
    ],
)
def test_bad_input_gets_a_clear_message_and_exit_code_two(
    option: str, value: str, message: str
) -> None:
    result = planned(option, value)

    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert isinstance(result.exception, SystemExit)


def test_a_missing_option_is_named() -> None:
    result = RUNNER.invoke(group, ["plan", "--calls-day", "3"])

    assert result.exit_code == 2
    assert "--calls-night" in result.output


@pytest.mark.parametrize("more", [[], ["--garbage", "0", "--burst", "0"]])
def test_a_plot_is_a_png(tmp_path: Path, more: list[str]) -> None:
    pytest.importorskip("matplotlib")

    result = planned("--plot", str(tmp_path / "plan.png"), *more)

    assert result.exit_code == 0, result.output
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_plan_draws_the_same_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    for name in ("one.png", "two.png"):
        planned("--plot", str(tmp_path / name))

    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_plot_into_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    result = planned("--plot", str(tmp_path / "nowhere" / "plan.png"))

    assert result.exit_code == 1
    assert "No such file" in result.output


def test_a_burst_too_large_to_play_through_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    result = planned("--burst", "100000000", "--plot", str(tmp_path / "plan.png"))

    assert result.exit_code == 2
    assert "burst is too large" in result.output


def test_without_matplotlib_a_plot_names_the_pip_command(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['matplotlib'] = None"
    start = "from workstealing.cli.entry import main; main()"

    ended = subprocess.run(
        [
            *(sys.executable, "-c", f"{hide}; {start}"),
            *("plan", *options(), "--plot", str(tmp_path / "plan.png")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 1
    assert "pip install 'workstealing[plot]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_output_in_the_guide_is_real() -> None:
    blocks = re.findall(
        r"```console\n\$ workstealing (plan .*?)```", GUIDE.read_text("utf-8"), re.S
    )
    assert blocks
    for block in blocks:
        command, _, shown = block.replace("\\\n", " ").partition("\n")

        result = RUNNER.invoke(group, shlex.split(command))

        assert tidy(result.output) == tidy(shown)


def planned(*more: str) -> Result:
    return RUNNER.invoke(group, ["plan", *options(), *more])


def options() -> list[str]:
    pairs = [(f"--{name.replace('_', '-')}", str(SHOP[name])) for name in SHOP]
    return [word for pair in pairs for word in pair]


def tidy(output: str) -> list[str]:
    return [line.rstrip() for line in output.strip("\n").splitlines() if line.strip()]
