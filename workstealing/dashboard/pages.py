"""The pages of the dashboard, as HTML; does no I/O and decides nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workstealing.dashboard.board import Action, Look, Overview, Unreadable
from workstealing.dashboard.markup import Html, document, link, tag, text
from workstealing.dashboard.parts import (
    crew_table,
    entries_table,
    numbers,
    sparkline,
    table,
)
from workstealing.inspecting.listing import PLACES
from workstealing.inspecting.values import Entry, Explanation, Stat, TaskView
from workstealing.inspecting.wording import counted, moment, rate, span
from workstealing.tasks.outcome import State

__all__ = (
    "login_page",
    "overview_page",
    "place_page",
    "queue_page",
    "task_page",
    "trouble_page",
)

_TOLD = {
    "replayed": "It is back in its inbox, with a clean slate.",
    "deleted": "It is gone for good.",
    "not-dead": "It is no dead letter any more: nothing was done.",
    "cancelled": "It is cancelled.",
    "asked": "It runs, and its worker is asked to stop it.",
    "ended": "It had ended before: nothing was done.",
    "unknown": "Nothing is known of it: nothing was done.",
}
_OVER = (State.DONE, State.FAILED, State.DEAD, State.CANCELLED, State.UNKNOWN)


def overview_page(seen: Overview, server: str) -> str:
    """Show all queues."""
    titles = ("queue", "waiting", "assigned", "running", "delayed", "parked", "dead")
    rows = [
        (
            link("/queue", f"{look.stat.queue}/{look.stat.run}", **_where(look.stat)),
            *numbers(look.stat),
            "" if look.rates is None else rate(look.rates.done),
            sparkline(look.history),
            f"{look.stat.living:,}",
            _oldest(look.stat),
        )
        for look in seen.looks
    ]
    rows += map(_unreadable_row, seen.unreadable)
    body = [table((*titles, "done/s", "", "workers", "oldest waits"), rows)]
    if not rows:
        body = [tag("p", "No queue was found on this server.", class_="quiet")]
    if seen.more:
        body.append(tag("p", f"… {counted(seen.more, 'more queue')}", class_="quiet"))
    if not seen.is_all:
        hint = "Not all keys of the server were looked at: name a queue with --queue."
        body.append(tag("p", hint, class_="quiet"))
    return _page("Queues", [], [tag("h1", "Queues"), *body], server, is_live=True)


def queue_page(look: Look) -> str:
    """Show one queue: counts, rates, workers, what is parked, upkeep."""
    seen = look.stat
    tiles = [
        *_tiles(seen),
        _tile("done/s", "–" if look.rates is None else rate(look.rates.done)),
        _tile("stolen/s", "–" if look.rates is None else rate(look.rates.stolen)),
        _tile("oldest waits", _oldest(seen) or "–"),
        _tile("per worker", f"{seen.backlog_per_worker:,g}"),
    ]
    body: list[str] = [_head(seen, "stat"), tag("div", *tiles, class_="tiles")]
    body.append(tag("div", sparkline(look.history), class_="wide"))
    body += (tag("h2", counted(seen.living, "worker")), crew_table(seen))
    if seen.parkings:
        rows = [(one.ability, f"{one.tasks:,}", one.reason) for one in seen.parkings]
        body += (tag("h2", "Parked"), table(("needs", "tasks", "because"), rows))
    body += (tag("h2", "So far"), _totals(seen), tag("h2", "Upkeep"), _upkeep(seen))
    return _page(seen.queue, _crumbs(seen), body, seen.server, is_live=True)


def place_page(
    look: Look,
    place: str,
    entries: Sequence[Entry],
    tracebacks: dict[str, str],
    told: str = "",
) -> str:
    """Show the tasks of one place; dead letters with their tracebacks."""
    seen = look.stat
    body: list[str] = [_head(seen, place), _notice(told)]
    if not entries:
        body.append(tag("p", f"Nothing in {place}.", class_="quiet"))
    else:
        listed = entries_table(entries, _where(seen), seen.now_ms, tracebacks)
        body.append(listed)
    is_live = place != "dead"
    return _page(seen.queue, _crumbs(seen), body, seen.server, is_live=is_live)


def task_page(look: Look, view: TaskView, why: Explanation, told: str = "") -> str:
    """Show one task, and what can be done to it."""
    seen = look.stat
    state = view.state.value
    body: list[str] = [
        tag("h1", view.id, " ", tag("span", state, class_=f"state {state}")),
        _notice(told),
        tag("ul", *(tag("li", sentence) for sentence in why.sentences)),
    ]
    where = {**_where(seen), "id": view.id}
    if view.state in (State.FAILED, State.DEAD):
        body += (_form("replay", where), _form("delete", where))
    elif view.state not in _OVER:
        body.append(_form("cancel", where))
    for title, value in (
        ("Envelope", view.envelope),
        ("Outcome", view.outcome),
        ("Result", view.result),
    ):
        if value is not None:
            body += (tag("h2", title), tag("pre", _pretty(value)))
    if view.traceback:
        body += (tag("h2", "Traceback"), tag("pre", view.traceback, class_="error"))
    crumbs = [*_crumbs(seen), link("/queue", seen.run, **_where(seen))]
    return _page(view.id, crumbs, body, seen.server, is_live=False)


def login_page(problem: str = "") -> str:
    """Ask for the token."""
    entry = tag(
        "input",
        type="password",
        name="token",
        id="token",
        autocomplete="current-password",
        required=True,
        autofocus=True,
    )
    body = [
        tag("h1", "workstealing"),
        tag("p", "The token was printed when the dashboard was started."),
        tag("p", problem, class_="notice bad") if problem else "",
        tag("form", entry, tag("button", "Come in"), method="post", action="/login"),
    ]
    return document(
        _html_head("Come in", "login.js"),
        tag("body", tag("main", *body, class_="login")),
    )


def trouble_page(title: str, problem: str) -> str:
    """Say what is wrong."""
    body = [tag("h1", title), tag("p", problem, class_="notice bad")]
    return _page(title, [], body, "", is_live=True)


def _unreadable_row(one: Unreadable) -> tuple[str, ...]:
    name = link("/queue", f"{one.queue}/{one.run}", queue=one.queue, run=one.run)
    badge = tag("span", "cannot be read", class_="state dead")
    return (name, badge, *[""] * 8, one.problem)


def _page(
    title: str, crumbs: Sequence[Html], body: Sequence[str], server: str, is_live: bool
) -> str:
    trail = text(*(text(" / ", crumb) for crumb in crumbs))
    leave = tag(
        "form", tag("button", "Leave", class_="plain"), method="post", action="/logout"
    )
    header = tag("header", tag("nav", link("/", "Queues"), trail), leave)
    main = tag("main", *body, id="live" if is_live else "still")
    footer = tag("footer", server)
    return document(_html_head(title, "live.js"), tag("body", header, main, footer))


def _html_head(title: str, script: str) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · workstealing"),
        tag("link", rel="stylesheet", href="/assets/style.css"),
        tag("script", src=f"/assets/{script}", defer=True),
    )


def _crumbs(seen: Stat) -> list[Html]:
    return [link("/queue", f"{seen.queue}/{seen.run}", **_where(seen))]


def _head(seen: Stat, current: str) -> Html:
    badges = [tag("span", "closed", class_="state closed")] if seen.is_closed else []
    if not seen.is_known:
        badges.append(
            tag("span", "no such queue, or not used yet", class_="state dead")
        )
    title = tag("h1", f"{seen.queue}/{seen.run} ", *badges)
    tabs = [
        link(
            "/queue",
            {"stat": "overview"}.get(place, place),
            "current" if place == current else "",
            **_where(seen),
            **({} if place == "stat" else {"place": place}),
        )
        for place in ("stat", *PLACES)
    ]
    when = tag("p", moment(seen.now_ms), class_="quiet")
    return text(title, when, tag("nav", *tabs, class_="tabs"))


def _tiles(seen: Stat) -> list[Html]:
    names = ("waiting", "assigned", "running", "delayed", "parked", "dead")
    return [
        _tile(name, number, name if number != "0" else "")
        for name, number in zip(names, numbers(seen), strict=True)
    ]


def _tile(title: str, value: str, kind: str = "") -> Html:
    cells = (tag("b", value), tag("span", title))
    return tag("div", *cells, class_=f"tile {kind}".rstrip())


def _totals(seen: Stat) -> Html:
    totals = seen.totals
    told = [
        f"{getattr(totals, name):,} {name.replace('_', ' ')}"
        for name in type(totals).__slots__
    ]
    return tag("p", ", ".join(told))


def _upkeep(seen: Stat) -> Html:
    rows = [
        (duty, f"{span(seen.now_ms - at_ms)} ago")
        for duty, at_ms in seen.upkeep.done_at_ms.items()
    ]
    if not rows:
        return tag("p", "None yet.", class_="quiet")
    return table(("duty", "last done"), rows)


def _notice(told: str) -> Html:
    return tag("p", _TOLD[told], class_="notice") if told in _TOLD else text()


def _form(action: Action, where: dict[str, str]) -> Html:
    fields = [
        tag("input", type="hidden", name=name, value=value)
        for name, value in {**where, "action": action}.items()
    ]
    button = tag("button", action.capitalize())
    if action == "delete":
        # One click more: it cannot be taken back.
        sure = tag("button", "Yes, delete it for good", class_="danger")
        button = tag("details", tag("summary", "Delete …"), sure)
    return tag("form", *fields, button, method="post", action="/act", class_="act")


def _where(seen: Stat) -> dict[str, str]:
    return {"queue": seen.queue, "run": seen.run}


def _oldest(seen: Stat) -> str:
    oldest = seen.oldest_at_ms
    return "" if oldest is None else span(seen.now_ms - oldest)


def _pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
