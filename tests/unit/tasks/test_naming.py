"""Names and ids that can stand in a key and on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing._checks import checked_id, checked_queue_name, checked_task_name
from workstealing.errors import InvalidName
from workstealing.tasks.submission import new_ids

CHECKS = [checked_id, checked_queue_name, checked_task_name]
Check = Callable[[Any], str]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", ["a", "images.resize", "user:42", "größe", "x" * 200])
def test_ordinary_names_are_taken_as_they_are(check: Check, name: str) -> None:
    assert check(name) == name


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "name",
    [
        *("", "a b", "{a}", "a}", "a\n", "a\tb", "\x00", "a\x7f", "\u2028", "\xa0"),
        *("\ud800", "x" * 201, None, 5, b"bytes"),
    ],
)
def test_other_names_are_refused_and_the_message_says_what_is_allowed(
    check: Check, name: Any
) -> None:
    with pytest.raises(InvalidName, match="1 to 200 printable characters") as caught:
        check(name)

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_marks_that_separate_names_are_refused_in_names() -> None:
    with pytest.raises(InvalidName, match="without /"):
        checked_queue_name("a/b")
    with pytest.raises(InvalidName, match="without @"):
        checked_task_name("a@1")
    with pytest.raises(InvalidName, match="the name of a run"):
        checked_queue_name("", "the name of a run")


@given(st.text())
def test_a_name_that_passes_is_one_word_of_a_line(name: str) -> None:
    for check in CHECKS:
        try:
            passed = check(name)
        except InvalidName:
            continue
        assert passed.split() == [passed]
        assert passed.splitlines() == [passed]
        assert not set("{}") & set(passed)
        assert passed.encode()


def test_new_ids_are_many_and_differ() -> None:
    ids = new_ids(5000)

    assert len(set(ids)) == len(ids) == 5000
    assert all(re.fullmatch(r"[0-9A-Za-z]{12}", each) for each in ids)
    assert all(checked_id(each) == each for each in ids)
    assert new_ids(0) == []
