"""Writes HTML in which foreign text is always text, never markup.

A child or attribute that is a plain string is always escaped; only the result of `tag`
is not. Invisible characters, and those that change the direction of writing, are shown
by their codes.
"""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

from workstealing.inspecting.formatting import printable

__all__ = ("Html", "document", "link", "tag", "text")

_VOID = frozenset(("input", "link", "meta"))


class Html(str):
    """Markup that is known to be well-formed; made by this module only."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: str | int | float | bool) -> Html:
    """Return an element; `class_` and `data_x` mean `class` and `data-x`."""
    written = "".join(_attribute(*one) for one in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{text(*children)}</{name}>")


def text(*children: str) -> Html:
    """Return texts and elements, one after the other."""
    return Html("".join(_child(child) for child in children))


def link(path: str, label: str, class_: str = "", **query: str) -> Html:
    """Return a link to one of our own pages."""
    where = f"{path}?{urlencode(query)}" if query else path
    return tag("a", label, href=where, class_=class_ or False)


def document(*children: str) -> str:
    """Return a whole page."""
    return f"<!doctype html>\n{tag('html', *children, lang='en')}\n"


def _child(child: str) -> str:
    return child if isinstance(child, Html) else escape(printable(child))


def _attribute(name: str, value: str | float | bool) -> str:
    if value is False:
        return ""
    written = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {written}"
    return f' {written}="{escape(printable(str(value)))}"'
