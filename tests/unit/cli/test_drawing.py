"""What is printed of a queue."""

from __future__ import annotations

from workstealing.cli.drawing import tree_lines
from workstealing.inspecting.values import Node


def test_a_tree_is_drawn_as_folders_with_notes_at_the_side() -> None:
    root = Node(
        "q",
        "the queue",
        (
            Node("inbox", "", (Node("a"), Node("a.lock", "pool.0#1"))),
            Node("queues", "", (Node("pool.0", "", (Node("inbox"),)),)),
        ),
    )

    assert tree_lines(root) == [
        "q                <---- the queue",
        "├── inbox",
        "│   ├── a",
        "│   └── a.lock   <---- pool.0#1",
        "└── queues",
        "    └── pool.0",
        "        └── inbox",
    ]


def test_no_name_can_play_tricks_on_a_terminal() -> None:
    (line,) = tree_lines(Node("\x1b[2Jgone\r"))

    assert line == "\\x1b[2Jgone\\r"
