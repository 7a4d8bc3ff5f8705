"""The names of the keys of a queue, as the documentation lists them."""

from __future__ import annotations

import re
from pathlib import Path

from workstealing.queue.keys import QueueKeys, queue_scripts

PAGE = Path(__file__).parents[3] / "docs" / "envelope.md"


def test_the_keys_of_a_worker_are_kept_and_bounded() -> None:
    keys = QueueKeys("thumbnails", "default")
    script = queue_scripts("workstealing.queue")("release")
    first = keys.of_worker(script, "w.0")

    assert keys.of_worker(script, "w.0") is first
    assert keys.deque("w.0") in first
    for number in range(3000):
        keys.of_worker(script, f"w.{number}")
    assert len(vars(keys)["_of_workers"]) <= 1000


def test_the_page_lists_each_key_and_no_other() -> None:
    keys = QueueKeys("thumbnails", "default")
    names = [*keys.shared(), keys.deque("<worker>"), keys.running("<worker>")]
    names += [keys.parked_for("<name>@<version>"), keys.log("<id>"), keys.notes("<id>")]
    for of_minutes in (keys.ten_minutes, keys.hundred_minutes):
        names.append(of_minutes(7).replace("7", "<number>"))
    section = PAGE.read_text().split("## The keys of a queue")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    listed = {name for row in rows for name in re.findall("`(.+?)`", row)}

    assert listed == {name.removeprefix(keys.prefix) for name in names}
    assert f"`{keys.prefix}`" in section
    assert keys.channel("<subscriber>").removeprefix(keys.prefix) in section
