"""The pages that are about no single queue: home, search, acts, sign in, errors."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.dashboard.act_log import Act
from workstealing.dashboard.dashboard_data import (
    FoundTask,
    Overview,
    QueueSnapshot,
    UnreadableQueue,
)
from workstealing.dashboard.drawings import sparkline
from workstealing.dashboard.layout import Reader, alarm_line, entrance, frame, where_of
from workstealing.dashboard.markup import (
    Column,
    Html,
    address,
    badge,
    link,
    table,
    tag,
    text,
)
from workstealing.inspecting import alarms_of
from workstealing.inspecting.formatting import one_decimal, plural, timestamp
from workstealing.inspecting.stat_rows import PLACE_TITLES, oldest_age, place_counts

__all__ = ("acts_page", "error_page", "home_page", "login_page", "search_page")

_ALARMS = 20


def home_page(seen: Overview, reader: Reader) -> str:
    """Show what is wrong, and all queues."""
    wanted = reader.query.get("filter", "")
    shown = [one for one in seen.snapshots if wanted in _name(one)]
    body: list[str] = [tag("h1", "Queues")]
    alarms = [
        alarm_line(alarm, where_of(one.stat), _name(one))
        for one in seen.snapshots
        for alarm in alarms_of(one.stat)
    ]
    body += alarms[:_ALARMS]
    if len(alarms) > _ALARMS:
        more = plural(len(alarms) - _ALARMS, "more alarm")
        body.append(tag("p", f"… {more}", class_="quiet"))
    if len(seen.snapshots) > 1:
        body.append(_filter_form(wanted))
    rows = [_row(one) for one in shown]
    rows += [_unreadable(one) for one in seen.unreadable]
    if rows:
        keys = [_name(one) for one in shown]
        keys += [f"{one.queue}/{one.run}" for one in seen.unreadable]
        body.append(table(_COLUMNS, rows, keys, label="Queues"))
    elif wanted:
        body.append(tag("p", f"No queue has {wanted!r} in its name.", class_="quiet"))
    else:
        hint = "No queues were found on this server."
        body.append(tag("p", hint, class_="quiet"))
    if seen.more:
        body.append(tag("p", f"… {plural(seen.more, 'more queue')}", class_="quiet"))
    if seen.unreachable:
        nodes = ", ".join(seen.unreachable)
        hint = f"No answer from {nodes}: queues that are only there may be missing."
        body.append(tag("p", hint, class_="quiet"))
    elif not seen.is_all:
        hint = "Not all keys of the server were scanned: add a queue with --queue."
        body.append(tag("p", hint, class_="quiet"))
    first = seen.snapshots[0].stat if seen.snapshots else None
    return frame("Queues", [], body, reader, seen=first)


def search_page(task_id: str, found: Sequence[FoundTask], reader: Reader) -> str:
    """Show in which queues there is a task of an id."""
    body: list[str] = [tag("h1", f"Task {task_id}" if task_id else "Find a task")]
    rows = [
        (
            link("/task", one.task or one.id, queue=one.queue, run=one.run, id=one.id),
            badge(one.state),
            f"{one.queue}/{one.run}",
        )
        for one in found
    ]
    if rows:
        body.append(
            table((Column("task", "name"), Column("state"), Column("queue")), rows)
        )
    else:
        hint = (
            "No queue shown here has a task with this id. It was never submitted, or"
            " its outcome has expired."
        )
        body.append(tag("p", hint, class_="quiet"))
    return frame("Search", [], body, reader, every_ms=10_000)


def acts_page(acts: Sequence[Act], reader: Reader) -> str:
    """Show what was done from this dashboard."""
    rows = [
        (
            timestamp(act.at_ms),
            act.who,
            act.action,
            link("/queue", f"{act.queue}/{act.run}", queue=act.queue, run=act.run),
            act.subject,
            act.result.replace("-", " "),
        )
        for act in acts
    ]
    body: list[str] = [tag("h1", "Acts")]
    hint = "The last acts from this dashboard, since it started. Its log has them all."
    body.append(tag("p", hint, class_="quiet"))
    if rows:
        kinds = ("when", "from", "act", "queue", "what")
        columns = [*map(Column, kinds), Column("result", "wide")]
        columns[4] = Column("what", "name")
        keys = [f"{act.number}" for act in acts]
        body.append(table(columns, rows, keys, label="Acts"))
    else:
        body.append(tag("p", "Nothing yet.", class_="quiet"))
    return frame("Acts", [], body, reader)


def login_page(problem: str = "") -> str:
    """Show the form for the token."""
    entry = tag(
        "input",
        type="password",
        name="token",
        id="token",
        autocomplete="current-password",
        aria_label="Token",
        required=True,
        autofocus=True,
    )
    return entrance(
        [
            tag("h1", "workstealing"),
            tag("p", "The token was printed when the dashboard was started."),
            tag("p", problem, class_="notice bad") if problem else "",
            tag(
                "form",
                entry,
                tag("button", "Sign in"),
                method="post",
                action=address("/login"),
            ),
        ]
    )


def error_page(title: str, problem: str, reader: Reader, status: int) -> str:
    """Show an error; it is gone when the page can be shown again."""
    body = [tag("h1", title), tag("p", problem, class_="notice bad")]
    return frame(title, [], body, reader, status=status)


_COLUMNS = (
    Column("queue", "name"),
    *(Column(place.replace("_", " "), "number") for place in PLACE_TITLES),
    Column("done/s", "number"),
    Column("", "drawn"),
    Column("workers", "number"),
    Column("oldest", "number"),
)


def _name(one: QueueSnapshot) -> str:
    return f"{one.stat.queue}/{one.stat.run}"


def _row(one: QueueSnapshot) -> tuple[str, ...]:
    stat = one.stat
    return (
        text(link("/queue", _name(one), **where_of(stat)), " ", *_pauses(one)),
        *place_counts(stat).values(),
        "" if one.rates is None else one_decimal(one.rates.done),
        sparkline([point.done for point in one.history]),
        f"{stat.living:,}",
        oldest_age(stat),
    )


def _pauses(one: QueueSnapshot) -> list[Html]:
    reasons = "; ".join(pause.reason for pause in one.stat.pauses)
    return (
        [tag("span", "paused", class_="state paused", title=reasons)] if reasons else []
    )


def _unreadable(one: UnreadableQueue) -> tuple[str, ...]:
    name = link("/queue", f"{one.queue}/{one.run}", queue=one.queue, run=one.run)
    problem = tag("span", "cannot be read", class_="state dead", title=one.problem)
    blank = [""] * (len(_COLUMNS) - 1)
    return (text(name, " ", problem), *blank)


def _filter_form(wanted: str) -> Html:
    entry = tag(
        "input",
        name="filter",
        value=wanted,
        placeholder="Part of a name",
        aria_label="Show queues whose name has",
    )
    button = tag("button", "Filter")
    return tag(
        "form", entry, button, method="get", action=address("/"), class_="filter"
    )
