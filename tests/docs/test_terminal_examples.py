"""The commands that the page about the command line shows print what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner

from workstealing import ExecutionContext, TaskQueue, WorkerPool
from workstealing.cli.commands import workstealing
from workstealing.inspecting import Inspector
from workstealing.testing import Server, wait_until

PAGE = (Path(__file__).parents[2] / "docs/command-line.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(
    r"```console\n\$ workstealing ([^\n]* --queue media)\n(.*?)```", re.S
)
EXAMPLES = {match[1]: match[2] for match in EXAMPLE.finditer(PAGE)}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of their own: the examples count everything that was ever done."""
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def media(server: Server) -> Iterator[str]:
    """The queue of the examples: one task runs, two are done, one is dead."""
    queue, go_on = TaskQueue("media", server.url), Event()

    @queue.task(name="resize")
    def resize() -> None: ...

    @queue.task(name="caption")
    def caption() -> None:
        raise OSError(28, "No space left on device")

    @queue.task(name="transcode")
    def transcode(context: ExecutionContext) -> None:
        context.progress(910, 1100, "pass 1 of 1")
        go_on.wait(60)

    resize.submit_many([()] * 2)
    caption.submit()
    transcode.options(id="video-1").submit()
    inspector = Inspector(queue)
    with WorkerPool(queue, name="pool1"):
        wait_until(
            lambda: (
                len(inspector.history(inspector.stat().now_ms).tasks) == 2
                and any(row.progress for row in inspector.ls("running"))
                and bool(inspector.stat().upkeep.slices)
            ),
            30,
            "the queue of the examples",
        )
        yield server.url
        go_on.set()
    queue.close()


@pytest.mark.parametrize("command", EXAMPLES)
def test_an_example_prints_what_the_page_says(media: str, command: str) -> None:
    arguments = [*command.split(), "--redis", media]

    printed = CliRunner().invoke(workstealing, arguments).output

    assert [_shape(line) for line in printed.splitlines()] == [
        _shape(line) for line in EXAMPLES[command].splitlines()
    ]


def _shape(line: str) -> str:
    """Return a line without what differs from run to run: times, bars, hosts."""
    if "/default on " in line:
        return "media/default on"
    if "alive; so far" in line:
        return line.partition(" 1 failed")[0]
    if line.startswith("pool1.0"):
        return "pool1.0"
    line = re.sub(r"[▁▂▃▄▅▆▇█]{60}", "bars", line)
    line = re.sub(r"[\d.]+ (ms|s|min)\b", "time", line)
    if line.startswith(("done/min", "failed/min", "worker ")):
        line = re.sub(r"\d+", "n", line)
    if line.startswith(("resize@1", "caption@1")):
        return line.split()[0]
    return " ".join(line.split())
