"""What all pages of the dashboard share: frame, notices, forms, the head of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workstealing.dashboard.markup import (
    Html,
    address,
    badge,
    document,
    link,
    tag,
    text,
)
from workstealing.inspecting import Alarm, QueueStat
from workstealing.inspecting.formatting import plural, timestamp
from workstealing.inspecting.stat_rows import pause_lines

__all__ = (
    "Reader",
    "act_form",
    "alarm_line",
    "entrance",
    "frame",
    "hidden_fields",
    "pause_notices",
    "queue_crumb",
    "queue_head",
    "where_of",
)

_NOTICES = {
    "replayed": "Replayed: it is back in the inbox, with all its attempts ahead of it.",
    "deleted": "Deleted.",
    "not-dead": "It is no longer a dead letter: nothing was changed.",
    "not-unique": "Another task has its unique key: nothing was changed.",
    "cancelled": "Cancelled.",
    "asked": "It is running; its worker was asked to stop it.",
    "ended": "It had already ended: nothing was changed.",
    "paused": "Paused: nothing new starts. What is running now finishes.",
    "was-paused": "It was already paused: nothing was changed.",
    "resumed": "Resumed.",
    "not-paused": "It was not paused: nothing was changed.",
    "input-ended": "Input ended: new tasks are refused until you reopen it.",
    "reopened": "The input is open again.",
    "schedule-paused": "The schedule is paused until you resume it.",
    "schedule-resumed": "The schedule resumes with its next tick.",
    "removed": "The schedule was removed. A newer release may bring it back.",
    "no-schedule": "There is no such schedule: nothing was changed.",
    "unknown": "The task does not exist: nothing was changed.",
    "none-ticked": "No task was ticked: nothing was changed.",
}
_MANY = {"replay": "replayed", "delete": "deleted", "cancel": "cancelled"}
# What cannot be undone takes one more click.
_FINAL = ("delete", "remove", "end-input")


@dataclass(frozen=True, slots=True)
class Reader:
    """Who looks at a page: what they may do, and the result of their last act."""

    may_act: bool = True
    query: Mapping[str, str] = field(default_factory=dict)
    """Of the address of the page."""
    has_session: bool = True
    """False in a site that has its own login, and its own way out."""
    sent_form: bool = False
    """The page answers a form, so it cannot be fetched again from its address."""

    @property
    def notice(self) -> Html:
        """Say what became of an act; the words are ours, whatever the address says."""
        notice = self.query.get("notice", "")
        if notice in _NOTICES:
            return tag("p", _NOTICES[notice], class_="notice", role="status")
        if notice not in _MANY:
            return text()
        changed, matched, asked = map(self._count, ("changed", "matched", "asked"))
        words = f"{changed:,} of {plural(matched, 'task')} {_MANY[notice]}."
        if asked:
            words += f" {plural(asked, 'running task')} asked to stop."
        if self._count("more"):
            words += " More match: press again to go on."
        return tag("p", words, class_="notice", role="status")

    def _count(self, name: str) -> int:
        given = self.query.get(name, "")
        return (
            int(given) if given.isascii() and given.isdigit() and len(given) < 9 else 0
        )


def frame(
    title: str,
    crumbs: Sequence[Html],
    body: Sequence[str],
    reader: Reader,
    *,
    seen: QueueStat | None = None,
    every_ms: int = 2000,
    status: int = 200,
) -> str:
    """Return a whole page; it refreshes itself every so many milliseconds.

    The answer to a form stays as it is.
    """
    trail = text(*(text(" / ", crumb) for crumb in crumbs))
    sign_out = tag(
        "form",
        tag("button", "Sign out", class_="plain"),
        method="post",
        action=address("/logout"),
    )
    search = tag(
        "form",
        tag(
            "input",
            type="search",
            name="id",
            placeholder="Task id (/)",
            aria_label="Find a task by its id",
        ),
        action=address("/search"),
        method="get",
    )
    header = tag(
        "header",
        tag("nav", link("/", "Queues"), trail, class_="crumbs", aria_label="Where"),
        tag("span", id="liveness", class_="pill", aria_live="off"),
        tag(
            "nav",
            link("/workers", "Workers"),
            link("/side-work", "Side work"),
            link("/acts", "Acts"),
            search,
            sign_out if reader.has_session else text(),
            aria_label="Everywhere",
        ),
    )
    facts = [] if reader.may_act else ["read-only"]
    if seen is not None:
        facts += (seen.server, timestamp(seen.now_ms))
    footer = tag("footer", " · ".join(facts))
    main = tag(
        "main",
        *body,
        footer,
        id="live",
        data_every=0 if reader.sent_form else every_ms,
        data_status=status,
    )
    banner = tag("div", id="banner", hidden=True, role="alert")
    return document(_html_head(title, "live.js"), tag("body", header, banner, main))


def entrance(body: Sequence[str]) -> str:
    """Return the page of somebody who has not signed in."""
    return document(
        _html_head("Sign in", "login.js"),
        tag("body", tag("main", *body, class_="login")),
    )


def queue_head(seen: QueueStat, current: str, reader: Reader, *acts: str) -> Html:
    """Return the top of each page of a queue: name, acts, what is paused, tabs."""
    badges = [badge("ended", "input ended")] if seen.input_ended else []
    if not seen.is_known:
        badges.append(badge("dead", "no such queue, or not used yet"))
    title = tag(
        "div",
        tag("h1", f"{seen.queue}/{seen.run} "),
        *badges,
        tag("span", class_="grow"),
        *acts,
        class_="bar-top",
    )
    tabs = [
        link(path, label, "current" if label == current else "", **where_of(seen))
        for path, label in (
            ("/queue", "overview"),
            ("/tasks", "tasks"),
            ("/workers", "workers"),
            ("/schedules", "schedules and limits"),
        )
    ]
    nav = tag("nav", *tabs, class_="tabs", aria_label="Of this queue")
    return text(title, reader.notice, *pause_notices(seen), nav)


def pause_notices(seen: QueueStat) -> list[Html]:
    """Return what is paused, a sentence each."""
    return [
        tag("p", f"{line[:1].upper()}{line[1:]}.", class_="notice paused")
        for line in pause_lines(seen)
    ]


def queue_crumb(seen: QueueStat) -> Html:
    """Return a link to the page of a queue."""
    return link("/queue", f"{seen.queue}/{seen.run}", **where_of(seen))


def alarm_line(alarm: Alarm, where: dict[str, str], named: str = "") -> Html:
    """Return an alarm as a sentence that leads to what it is about."""
    path, query = "/queue", where
    if alarm.state:
        path, query = "/tasks", {**where, "state": alarm.state}
    words = link(path, f"{alarm.headline}.", **query)
    before = f"{named}: " if named else ""
    return tag(
        "p",
        tag("b", before, words),
        " ",
        alarm.more,
        class_="alarm",
        data_key=f"{named}{alarm.state}",
    )


def act_form(
    reader: Reader,
    action: str,
    fields: dict[str, str],
    label: str = "",
    path: str = "/act",
    whom: str = "",
) -> Html:
    """Return a button that does something; nothing for a read-only reader.

    *whom* tells a screen reader which one it is of several buttons with one label.
    """
    if not reader.may_act:
        return text()
    words = label or action.capitalize()
    button = tag("button", words, aria_label=f"{words} {whom}" if whom else False)
    if action in _FINAL:
        sure = tag("button", f"Yes, {words[:1].lower()}{words[1:]}", class_="danger")
        button = tag("details", tag("summary", f"{words} …"), sure)
    return tag(
        "form",
        hidden_fields({**fields, "action": action}),
        button,
        method="post",
        action=address(path),
        class_="act",
    )


def hidden_fields(fields: dict[str, str]) -> Html:
    """Return fields of a form that the reader does not see."""
    return text(
        *(
            tag("input", type="hidden", name=name, value=value)
            for name, value in fields.items()
        )
    )


def where_of(seen: QueueStat) -> dict[str, str]:
    """Return how addresses name a queue."""
    return {"queue": seen.queue, "run": seen.run}


def _html_head(title: str, script: str) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · workstealing"),
        tag("link", rel="stylesheet", href=address("/assets/style.css")),
        tag("script", src=address(f"/assets/{script}"), defer=True),
    )
