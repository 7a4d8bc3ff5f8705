"""Numbers that a child writes and its parent reads."""

from __future__ import annotations

import multiprocessing

import pytest

from workstealing.workers.board import Board, Line


def _write(board: Board) -> None:
    board[Line.TAKEN] = 41
    board[Line.PULSE] = 1.5


def test_a_new_board_is_blank() -> None:
    board = Board(multiprocessing.get_context("spawn"))

    assert [board[line] for line in Line] == [0.0] * len(Line)


def test_each_line_keeps_its_own_number() -> None:
    board = Board(multiprocessing.get_context("spawn"))

    for line in Line:
        board[line] = line + 0.5

    assert [board[line] for line in Line] == [line + 0.5 for line in Line]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_what_a_child_writes_its_parent_reads() -> None:
    context = multiprocessing.get_context("fork")
    board = Board(context)

    child = context.Process(target=_write, args=(board,))
    child.start()
    child.join(20)

    assert (board[Line.TAKEN], board[Line.PULSE]) == (41.0, 1.5)
