"""The pages of the dashboard, as HTML; does no I/O and decides nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from workstealing.client.queue_schedules import ScheduleState
from workstealing.dashboard.dashboard_data import (
    Action,
    Overview,
    QueueSnapshot,
    ScheduleAction,
    UnreadableQueue,
)
from workstealing.dashboard.markup import (
    Html,
    document,
    entries_table,
    link,
    sparkline,
    table,
    tag,
    text,
    workers_table,
)
from workstealing.inspecting import (
    PLACES,
    Explanation,
    QueueStat,
    TaskDetail,
    TaskRow,
)
from workstealing.inspecting.formatting import one_decimal, plural, timestamp
from workstealing.inspecting.schedule_rows import SCHEDULE_TITLES, schedule_row
from workstealing.inspecting.stat_rows import (
    PLACE_TITLES,
    oldest_age,
    pause_lines,
    place_counts,
    totals_text,
    upkeep_ages,
)
from workstealing.inspecting.views import CutText
from workstealing.tasks.outcome import State

__all__ = (
    "error_page",
    "login_page",
    "overview_page",
    "place_page",
    "queue_page",
    "schedules_page",
    "task_page",
)

_NOTICES = {
    "replayed": "It is back in the inbox, and its attempts start from zero.",
    "deleted": "It was deleted.",
    "not-dead": "It is no longer a dead letter: nothing was changed.",
    "not-unique": "Another task has its unique key: nothing was changed.",
    "cancelled": "It was cancelled.",
    "asked": "It is running; its worker was asked to stop it.",
    "ended": "It had already ended: nothing was changed.",
    "paused": "It is paused: nothing more is begun. What runs now ends.",
    "was-paused": "It was paused already: nothing was changed.",
    "resumed": "It is resumed.",
    "not-paused": "It was not paused: nothing was changed.",
    "schedule-paused": "The schedule is paused, until it is resumed.",
    "schedule-resumed": "The schedule goes on from its next tick.",
    "removed": "The schedule was removed. A newer release may bring it back.",
    "no-schedule": "There is no such schedule: nothing was changed.",
    "unknown": "The task does not exist: nothing was changed.",
}
_SCHEDULES = 200
_OVER = (
    State.DONE,
    State.FAILED,
    State.DEAD,
    State.CANCELLED,
    State.EXPIRED,
    State.UNKNOWN,
)


def overview_page(seen: Overview, server: str) -> str:
    """Show all queues."""
    places = (place.replace("_", " ") for place in PLACE_TITLES)
    titles = ("queue", *places, "done/s", "", "workers", "oldest", "")
    rows = [
        (
            link(
                "/queue",
                f"{snapshot.stat.queue}/{snapshot.stat.run}",
                **_where(snapshot.stat),
            ),
            *place_counts(snapshot.stat).values(),
            "" if snapshot.rates is None else one_decimal(snapshot.rates.done),
            sparkline(snapshot.history),
            f"{snapshot.stat.living:,}",
            oldest_age(snapshot.stat),
            "; ".join(pause.reason for pause in snapshot.stat.pauses),
        )
        for snapshot in seen.snapshots
    ]
    rows += map(_unreadable_row, seen.unreadable)
    body = [table(titles, rows)]
    if not rows:
        body = [tag("p", "No queues were found on this server.", class_="quiet")]
    if seen.more:
        body.append(tag("p", f"… {plural(seen.more, 'more queue')}", class_="quiet"))
    if not seen.is_all:
        hint = "Not all keys of the server were scanned: add a queue with --queue."
        body.append(tag("p", hint, class_="quiet"))
    return _page("Queues", [], [tag("h1", "Queues"), *body], server, is_live=True)


def queue_page(snapshot: QueueSnapshot, notice: str = "") -> str:
    """Show one queue: counts, rates, workers, parked tasks, pauses, upkeep."""
    seen = snapshot.stat
    tiles = [
        *_tiles(seen),
        _tile(
            "done/s",
            "–" if snapshot.rates is None else one_decimal(snapshot.rates.done),
        ),
        _tile(
            "stolen/s",
            "–" if snapshot.rates is None else one_decimal(snapshot.rates.stolen),
        ),
        _tile("oldest", oldest_age(seen) or "–"),
        _tile("per worker", f"{seen.backlog_per_worker:,g}"),
    ]
    body: list[str] = [_head(seen, "stat"), _notice(notice)]
    body.append(tag("div", *tiles, class_="tiles"))
    body.append(tag("div", sparkline(snapshot.history), class_="wide"))
    body += (tag("h2", plural(seen.living, "worker")), workers_table(seen))
    if seen.parked_abilities:
        rows = [
            (one.ability, f"{one.tasks:,}", one.reason) for one in seen.parked_abilities
        ]
        body += (tag("h2", "Parked"), table(("needs", "tasks", "because"), rows))
    body += (
        tag("h2", "Totals"),
        tag("p", totals_text(seen)),
        tag("h2", "Upkeep"),
        _upkeep(seen),
        tag("h2", "Pause"),
        *_pause_forms(seen),
    )
    return _page(seen.queue, _crumbs(seen), body, seen.server, is_live=True)


def place_page(
    snapshot: QueueSnapshot,
    place: str,
    entries: Sequence[TaskRow],
    tracebacks: dict[str, str],
    notice: str = "",
) -> str:
    """Show the tasks of one place; dead letters with their tracebacks."""
    seen = snapshot.stat
    body: list[str] = [_head(seen, place), _notice(notice)]
    if not entries:
        body.append(tag("p", f"No tasks in {place}.", class_="quiet"))
    else:
        listed = entries_table(entries, _where(seen), seen.now_ms, tracebacks)
        body.append(listed)
    is_live = place != "dead"
    return _page(seen.queue, _crumbs(seen), body, seen.server, is_live=is_live)


def schedules_page(
    snapshot: QueueSnapshot, schedules: Sequence[ScheduleState], notice: str = ""
) -> str:
    """Show the schedules of a queue, with their next ticks, and their actions."""
    seen = snapshot.stat
    body: list[str] = [_head(seen, "schedules"), _notice(notice)]
    rows = []
    for state in schedules[:_SCHEDULES]:
        cells = schedule_row(state, seen.now_ms)
        where = {**_where(seen), "name": state.name}
        if state.last_id:
            cells["last"] = link(
                "/task", cells["last"], **_where(seen), id=state.last_id
            )
        if state.paused:
            cells["next"] = tag("span", "paused", class_="state ended")
        actions: tuple[ScheduleAction, ...] = (
            "resume" if state.paused else "pause",
            "run",
            "remove",
        )
        forms = text(*(_form(action, where, path="/steer") for action in actions))
        rows.append((*cells.values(), forms))
    if rows:
        body.append(table((*SCHEDULE_TITLES, ""), rows))
    else:
        body.append(tag("p", "No schedules.", class_="quiet"))
    more = len(schedules) - _SCHEDULES
    if more > 0:
        body.append(tag("p", f"… {plural(more, 'more schedule')}", class_="quiet"))
    return _page(seen.queue, _crumbs(seen), body, seen.server, is_live=False)


def task_page(
    snapshot: QueueSnapshot, view: TaskDetail, why: Explanation, notice: str = ""
) -> str:
    """Show one task, and its actions."""
    seen = snapshot.stat
    state = view.state.value
    body: list[str] = [
        tag("h1", view.id, " ", tag("span", state, class_=f"state {state}")),
        _notice(notice),
        tag("ul", *(tag("li", sentence) for sentence in why.sentences)),
    ]
    body += _banner(seen)
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
    """Show the form for the token."""
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
        tag("form", entry, tag("button", "Sign in"), method="post", action="/login"),
    ]
    return document(
        _html_head("Sign in", "login.js"),
        tag("body", tag("main", *body, class_="login")),
    )


def error_page(title: str, problem: str) -> str:
    """Show an error."""
    body = [tag("h1", title), tag("p", problem, class_="notice bad")]
    return _page(title, [], body, "", is_live=True)


def _unreadable_row(one: UnreadableQueue) -> tuple[str, ...]:
    name = link("/queue", f"{one.queue}/{one.run}", queue=one.queue, run=one.run)
    badge = tag("span", "cannot be read", class_="state dead")
    return (name, badge, *[""] * 11, one.problem)


def _page(
    title: str, crumbs: Sequence[Html], body: Sequence[str], server: str, is_live: bool
) -> str:
    trail = text(*(text(" / ", crumb) for crumb in crumbs))
    sign_out = tag(
        "form",
        tag("button", "Sign out", class_="plain"),
        method="post",
        action="/logout",
    )
    header = tag("header", tag("nav", link("/", "Queues"), trail), sign_out)
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


def _crumbs(seen: QueueStat) -> list[Html]:
    return [link("/queue", f"{seen.queue}/{seen.run}", **_where(seen))]


def _head(seen: QueueStat, current: str) -> Html:
    badges = (
        [tag("span", "input ended", class_="state ended")] if seen.input_ended else []
    )
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
    is_current = "current" if current == "schedules" else ""
    tabs.append(link("/schedules", "schedules", is_current, **_where(seen)))
    when = tag("p", timestamp(seen.now_ms), class_="quiet")
    return text(title, when, *_banner(seen), tag("nav", *tabs, class_="tabs"))


def _banner(seen: QueueStat) -> list[Html]:
    """Say at the top of each page what is paused."""
    return [
        tag("p", f"{line[:1].upper()}{line[1:]}.", class_="notice paused")
        for line in pause_lines(seen)
    ]


def _pause_forms(seen: QueueStat) -> list[Html]:
    """Offer to resume what is paused, and to pause the queue or a task name."""
    where = _where(seen)
    paused = {pause.task for pause in seen.pauses}
    forms = [
        _form("resume", where, f"Resume {pause.task or 'the queue'}", task=pause.task)
        for pause in seen.pauses
    ]
    if "" not in paused:
        forms.append(_form("pause", where, "Pause the queue", task=""))
    forms += [
        _form("pause", where, f"Pause {name}", task=name)
        for name in seen.task_names
        if name not in paused
    ]
    return forms


def _tiles(seen: QueueStat) -> list[Html]:
    return [
        _tile(place.replace("_", " "), number, place if number != "0" else "")
        for place, number in place_counts(seen).items()
    ]


def _tile(title: str, value: str, kind: str = "") -> Html:
    cells = (tag("b", value), tag("span", title))
    return tag("div", *cells, class_=f"tile {kind}".rstrip())


def _upkeep(seen: QueueStat) -> Html:
    ages = upkeep_ages(seen)
    if not ages:
        return tag("p", "None yet.", class_="quiet")
    return table(("duty", "last done"), list(ages.items()))


def _notice(notice: str) -> Html:
    return tag("p", _NOTICES[notice], class_="notice") if notice in _NOTICES else text()


def _form(
    action: Action | ScheduleAction,
    where: dict[str, str],
    label: str = "",
    path: str = "/act",
    **more: str,
) -> Html:
    fields = [
        tag("input", type="hidden", name=name, value=value)
        for name, value in {**where, **more, "action": action}.items()
    ]
    button = tag("button", label or action.capitalize())
    if action in ("delete", "remove"):
        # One more click: it cannot be undone.
        sure = tag("button", f"Yes, {action} it", class_="danger")
        button = tag("details", tag("summary", f"{action.capitalize()} …"), sure)
    return tag("form", *fields, button, method="post", action=path, class_="act")


def _where(seen: QueueStat) -> dict[str, str]:
    return {"queue": seen.queue, "run": seen.run}


def _pretty(value: Any) -> str:
    if isinstance(value, CutText):
        return value
    return json.dumps(value, indent=2, ensure_ascii=False)
