"""Nothing from outside is ever markup."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from workstealing.dashboard.markup import Column, document, link, table, tag, text

EVIL = "<script>alert('x')</script>\"'&"


@given(st.text())
def test_no_text_can_open_an_element_or_end_an_attribute(words: str) -> None:
    inside = tag("p", words).removeprefix("<p>").removesuffix("</p>")
    quoted = tag("p", title=words).removeprefix('<p title="').removesuffix('"></p>')

    assert not set(inside) & set("<>\"'")
    assert not set(quoted) & set("<>\"'")


def test_what_was_made_here_is_not_escaped_again() -> None:
    made = tag("b", EVIL)

    assert text(made, EVIL) == made + text(EVIL)
    assert made.startswith("<b>&lt;script&gt;")


def test_a_link_leads_to_a_page_of_ours_whatever_the_id_is() -> None:
    made = link("/task", "it", id="../../?a=b&c#d<", queue="javascript:alert(1)")

    assert made == (
        '<a href="/task?id=..%2F..%2F%3Fa%3Db%26c%23d%3C&amp;'
        'queue=javascript%3Aalert%281%29">it</a>'
    )


def test_attributes_can_be_there_without_a_value_or_not_at_all() -> None:
    assert tag("input", required=True, disabled=False, data_x=1, class_="a") == (
        '<input required data-x="1" class="a">'
    )


def test_characters_that_cannot_be_seen_are_shown_by_their_codes() -> None:
    assert text("a\x00\u202eb\nc") == "a\\x00\\u202eb\nc"


def test_a_document_says_what_it_is() -> None:
    assert document("x") == '<!doctype html>\n<html lang="en">x</html>\n'


def test_a_column_without_a_title_is_named_to_a_screen_reader() -> None:
    columns = (Column("", "tick"), Column("", "drawn"), Column(""))

    head = table(columns, []).partition("</thead>")[0]

    assert re.findall(r'unseen">(\w+)<', head) == ["ticked", "drawing", "acts"]
