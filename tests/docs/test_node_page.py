"""Every conversation on the page about the node is one that a fresh node has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from workstealing.node.cluster import Cluster
from workstealing.node.cluster_state import MemoryState
from workstealing.node.messages import ErrorCode, Request
from workstealing.node.node import Node

PAGE = (Path(__file__).parents[2] / "docs" / "node.md").read_text(encoding="utf-8")
TALKS = re.findall(r"^```text\n(> .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("talk", TALKS, ids=range(len(TALKS)))
def test_a_fresh_node_answers_as_the_page_says(talk: str) -> None:
    node = Node(Cluster(MemoryState()))
    answer = ""

    for mark, line in re.findall(r"^([<>]) (.*)$", talk, re.MULTILINE):
        if mark == ">":
            answer = node.answer(line.encode())
        else:
            assert answer == line


def test_the_page_shows_every_type_of_message_and_every_code() -> None:
    asked = " ".join(TALKS)

    for kind in Request.__subclasses__():
        assert f'> {{"type": "{kind.type}"' in asked
    for code in ErrorCode:
        assert f"\n| {int(code)} |" in PAGE
