"""Writes HTML, in which foreign text is always text, never markup.

A child or attribute that is a plain string is always escaped; only the result of `tag`
is not. Invisible characters, and those that change the direction of writing, are shown
by their codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

from workstealing._printing import printable

__all__ = (
    "MOUNTED_AT",
    "Column",
    "Html",
    "address",
    "badge",
    "document",
    "link",
    "pairs_list",
    "table",
    "tag",
    "text",
)

MOUNTED_AT: ContextVar[str] = ContextVar("workstealing_dashboard", default="")
"""The path under which the site of the current request has the dashboard."""

_VOID = frozenset(("br", "input", "link", "meta"))


class Html(str):
    """Markup that is known to be well-formed; made by this module only."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    kind: str = ""
    """`number`: aligned to the right; `name`: cut off if it is long; `wide`: a text;
    `tick`: boxes; `drawn`: drawings."""


def tag(name: str, /, *children: str, **attributes: str | int | float | bool) -> Html:
    """Return an element; `class_` and `data_x` mean `class` and `data-x`."""
    written = "".join(_attribute(*one) for one in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{text(*children)}</{name}>")


def text(*children: str) -> Html:
    """Return texts and elements, one after the other."""
    return Html("".join(_child(child) for child in children))


def address(path: str, **query: str) -> str:
    """Return the address of one of our own pages; empty parts are left out."""
    given = {name: value for name, value in query.items() if value}
    whole = MOUNTED_AT.get() + path
    return f"{whole}?{urlencode(given)}" if given else whole


def link(path: str, label: str, class_: str = "", **query: str) -> Html:
    """Return a link to one of our own pages."""
    where = address(path, **query)
    # A label that is cut off can still be read.
    title = label if not isinstance(label, Html) and len(label) > 24 else False
    return tag("a", label, href=where, class_=class_ or False, title=title)


def badge(state: str, label: str = "") -> Html:
    """Return a state as a pill in its colour."""
    return tag("span", label or state, class_=f"state {state}")


def document(*children: str) -> str:
    """Return a whole page."""
    return f"<!doctype html>\n{tag('html', *children, lang='en')}\n"


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    keys: Sequence[str] = (),
    label: str = "",
) -> Html:
    """Return a table; a row that has a key stays itself when the page is refreshed."""
    head = tag(
        "thead",
        tag("tr", *(tag("th", *_title(one), **_kind(one)) for one in columns)),
    )
    named = keys or [str(row[0]) for row in rows]
    body = tag(
        "tbody",
        *(
            tag("tr", *map(_cell, columns, row), data_key=key)
            for row, key in zip(rows, named, strict=True)
        ),
    )
    named_as = label or columns[0].title
    whole = tag("table", head, body, class_="cards", aria_label=named_as)
    # With a keyboard, only what has the focus can be scrolled.
    return tag(
        "div",
        whole,
        class_="scroll",
        tabindex=0,
        role="group",
        aria_label=f"{named_as}, scrollable",
    )


def pairs_list(pairs: Sequence[tuple[str, str]]) -> Html:
    """Return names with their values, one under the other."""
    return tag(
        "dl",
        *(text(tag("dt", name), tag("dd", value)) for name, value in pairs),
        class_="pairs",
    )


def _child(child: str) -> str:
    return child if isinstance(child, Html) else escape(printable(child))


def _attribute(name: str, value: str | float | bool) -> str:
    if value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {written}"
    return f' {written}="{escape(printable(str(value)))}"'


def _kind(column: Column) -> dict[str, str]:
    return {"class_": column.kind} if column.kind else {}


def _title(column: Column) -> tuple[str, ...]:
    if column.title:
        return (column.title,)
    # Nothing to see, but a screen reader names the column of each cell.
    words = {"tick": "ticked", "drawn": "drawing"}.get(column.kind, "acts")
    return (tag("span", words, class_="unseen"),)


def _cell(column: Column, value: str) -> Html:
    is_text = not isinstance(value, Html)
    title = value if is_text and len(value) > 24 else False
    return tag("td", value, data_label=column.title, title=title, **_kind(column))
