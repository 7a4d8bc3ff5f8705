"""`workstealing demo`, played with a few tasks on a real server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from workstealing.testing import Server

RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.timeout(120)
def test_the_closing_figures_agree_with_each_other(
    run_cli: RunCli, redis_server: Server
) -> None:
    ended = run_cli("demo", "--tasks", "600", "--redis", redis_server.url)

    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    figures = dict(line.rsplit(maxsplit=1) for line in lines if line[-1:].isdigit())
    assert figures["tasks submitted"] == figures["tasks done"] == "600"
    assert figures["tasks lost"] == figures["tasks done twice"] == "0"
    header = next(n for n, line in enumerate(lines) if line.startswith("side work"))
    for line in lines[header + 1 : header + 4]:
        drawn, refused, slices, useful, nothing, failed = map(int, line.split()[1:7])
        assert drawn == refused + slices
        assert slices == useful + nothing + failed
    assert lines[-2].startswith("Side work took ")
