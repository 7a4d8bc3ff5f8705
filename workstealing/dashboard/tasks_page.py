"""The list of tasks of a queue: by state, filtered, page by page, with bulk acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workstealing.dashboard.bulk_acts import BULK_ACTIONS
from workstealing.dashboard.drawings import histogram
from workstealing.dashboard.layout import (
    Reader,
    act_form,
    frame,
    hidden_fields,
    queue_crumb,
    queue_head,
    where_of,
)
from workstealing.dashboard.markup import (
    Html,
    address,
    link,
    pairs_list,
    tag,
    text,
)
from workstealing.dashboard.task_rows import task_rows, trace_markup
from workstealing.inspecting import (
    DueTimes,
    ErrorGroup,
    ErrorGroups,
    QueueStat,
    TaskFilter,
    TaskPage,
)
from workstealing.inspecting.formatting import duration_ms, plural, relative_time
from workstealing.inspecting.task_search import SEARCHED

__all__ = (
    "Listing",
    "confirmation_page",
    "filter_fields",
    "tasks_in",
    "tasks_page",
)

_AGES = {
    "": "any age",
    "60": "over 1 min",
    "600": "over 10 min",
    "3600": "over 1 h",
    "86400": "over 1 day",
}
_WORDS = {"replay": "Replay", "delete": "Delete", "cancel": "Cancel"}
_GROUPS = 20


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list of tasks shows."""

    stat: QueueStat
    wanted: TaskFilter
    page: TaskPage
    groups: ErrorGroups | None = None
    """Of dead letters and delayed tasks."""
    due: DueTimes | None = None
    """Of delayed tasks."""


def tasks_page(listing: Listing, reader: Reader) -> str:
    """Show tasks in one state, those that match the filter."""
    seen, wanted, page = listing.stat, listing.wanted, listing.page
    body: list[str] = [queue_head(seen, "tasks", reader), _states(seen, wanted)]
    body.append(_filter_form(seen, wanted))
    if listing.due is not None:
        body.append(_due(listing.due))
    if listing.groups is not None and listing.groups.groups and not wanted.group:
        body += _group_part(seen, wanted, listing.groups, reader)
    if wanted.group:
        every = {**where_of(seen), "state": wanted.state}
        shown = link("/tasks", "show all", **every)
        body.append(tag("p", "One kind of error · ", shown, class_="quiet"))
    body.append(tag("h2", _count(wanted, page)))
    if page.rows:
        body.append(_list(listing, reader))
    else:
        none = f"No {tasks_in(wanted.state)}."
        if page.total:
            none = f"None of these {page.looked_at:,} match."
        body.append(tag("p", none, class_="quiet"))
    body.append(_paging(seen, wanted, page, reader))
    every_ms = 10_000 if listing.groups is not None else 2000
    return frame(
        seen.queue,
        [queue_crumb(seen)],
        body,
        reader,
        seen=seen,
        every_ms=every_ms,
    )


def confirmation_page(
    seen: QueueStat,
    action: str,
    wanted: TaskFilter,
    ids: Sequence[str],
    about: str,
    reader: Reader,
) -> str:
    """Ask once more before many tasks are changed, or any is deleted."""
    words = f"{_WORDS[action]} {about}?"
    fields = {**where_of(seen), **filter_fields(wanted), "confirmed": "yes"}
    name = action if ids else f"{action}-all"
    form = tag(
        "form",
        hidden_fields(fields),
        *(tag("input", type="hidden", name="id", value=one) for one in ids),
        tag(
            "button",
            f"Yes, {action}",
            name="action",
            value=name,
            class_="danger" if action == "delete" else False,
        ),
        " ",
        link("/tasks", "No, go back", **where_of(seen), **filter_fields(wanted)),
        method="post",
        action=address("/bulk"),
    )
    given = [(name, value) for name, value in filter_fields(wanted).items() if value]
    hint = "It cannot be undone." if action == "delete" else ""
    body = [
        tag("h1", words),
        tag("div", pairs_list(given), class_="card"),
        tag("p", hint, class_="quiet"),
        form,
    ]
    return frame(words, [queue_crumb(seen)], body, reader)


def tasks_in(state: str, number: int = 2) -> str:
    """Name tasks of a state: `dead tasks`."""
    if state == "steps":
        return "step" if number == 1 else "steps"
    return f"{state} task" if number == 1 else f"{state} tasks"


def filter_fields(wanted: TaskFilter) -> dict[str, str]:
    """Return a filter as an address and a form name it."""
    return {
        "state": wanted.state,
        "task": wanted.task,
        "worker": wanted.worker,
        "error": wanted.error,
        "prefix": wanted.id,
        "older": str(wanted.older_ms // 1000) if wanted.older_ms else "",
        "group": wanted.group,
    }


def _states(seen: QueueStat, wanted: TaskFilter) -> Html:
    counts: dict[str, int] = {
        state: seen.outcomes if state == "done" else getattr(seen, state)
        for state in SEARCHED
    }
    kept = {**filter_fields(wanted), "group": ""}
    tabs = [
        link(
            "/tasks",
            text(state, " ", tag("b", f"{counts[state]:,}")),
            "current" if state == wanted.state else "",
            **{**where_of(seen), **kept, "state": state},
        )
        for state in SEARCHED
    ]
    return tag("nav", *tabs, class_="tabs", aria_label="States")


def _filter_form(seen: QueueStat, wanted: TaskFilter) -> Html:
    def entry(label: str, name: str, value: str) -> Html:
        field = tag("input", name=name, value=value)
        return tag("label", label, tag("br"), field)

    choices = [
        tag("option", words, value=age, selected=age == _age_of(wanted))
        for age, words in _AGES.items()
    ]
    fields = {**where_of(seen), "state": wanted.state}
    return tag(
        "form",
        hidden_fields(fields),
        entry("task", "task", wanted.task),
        entry("worker", "worker", wanted.worker),
        entry("error contains", "error", wanted.error),
        entry("id begins with", "prefix", wanted.id),
        tag("label", "age", tag("br"), tag("select", *choices, name="older")),
        tag("button", "Filter"),
        text() if wanted.is_any else link("/tasks", "clear", **fields),
        method="get",
        action=address("/tasks"),
        class_="filter",
    )


def _age_of(wanted: TaskFilter) -> str:
    return str(wanted.older_ms // 1000) if wanted.older_ms else ""


def _count(wanted: TaskFilter, page: TaskPage) -> str:
    shown = f"{len(page.rows):,}"
    if wanted.is_any:
        return f"{shown} of {page.total:,} {tasks_in(wanted.state, page.total)}"
    return (
        f"{shown} match, of {page.looked_at:,} looked at;"
        f" {page.total:,} {tasks_in(wanted.state, page.total)} in all"
    )


def _list(listing: Listing, reader: Reader) -> Html:
    seen, wanted, page = listing.stat, listing.wanted, listing.page
    actions = BULK_ACTIONS.get(wanted.state, ()) if reader.may_act else ()
    rows = task_rows(page.rows, where_of(seen), seen.now_ms, with_boxes=bool(actions))
    if not actions:
        return rows
    every = "all that match" if not wanted.is_any else f"all {tasks_in(wanted.state)}"
    buttons = [
        tag("button", f"{_WORDS[action]} ticked", name="action", value=action)
        for action in actions
    ]
    buttons += [
        tag(
            "button",
            f"{_WORDS[action]} {every} …",
            name="action",
            value=f"{action}-all",
            class_="danger" if action == "delete" else False,
        )
        for action in actions
    ]
    return tag(
        "form",
        hidden_fields({**where_of(seen), **filter_fields(wanted)}),
        tag("div", *buttons, class_="acts"),
        rows,
        method="post",
        action=address("/bulk"),
    )


def _paging(
    seen: QueueStat, wanted: TaskFilter, page: TaskPage, reader: Reader
) -> Html:
    where = {**where_of(seen), **filter_fields(wanted)}
    links = []
    if reader.query.get("after"):
        links.append(link("/tasks", "« first page", **where))
    if page.after:
        label = "next page »"
        if not page.rows:
            label = "look at the next ones »"
        links.append(link("/tasks", label, **where, after=page.after))
    return tag("nav", *links, class_="paging", aria_label="Pages") if links else text()


def _due(due: DueTimes) -> Html:
    step = duration_ms(due.step_ms)
    soon, *others, far = due.tasks
    last = duration_ms(due.step_ms * (len(others) + 1))
    label = f"{soon:,} within {step}, {far:,} after {last}"
    return tag(
        "section",
        tag("h2", "When they are due"),
        tag("p", f"{label}; each bar is {step}", class_="quiet"),
        histogram(due.tasks, label),
        class_="card",
    )


def _group_part(
    seen: QueueStat, wanted: TaskFilter, found: ErrorGroups, reader: Reader
) -> list[str]:
    title = f"Errors among the latest {found.looked_at:,}"
    if wanted.state == "delayed":
        title = f"Why they are tried again, among the next {found.looked_at:,}"
    return [
        tag("h2", title),
        *(_group(seen, wanted, one, reader) for one in found.groups[:_GROUPS]),
    ]


def _group(
    seen: QueueStat, wanted: TaskFilter, one: ErrorGroup, reader: Reader
) -> Html:
    where = {**where_of(seen), "state": wanted.state, "group": one.group}
    head = [
        tag("b", f"{one.tasks:,} × {one.error}"),
        f" {one.where}" if one.where else "",
    ]
    latest = "the latest" if wanted.state == "dead" else "the last one is due"
    facts: list[str] = [
        ", ".join(
            name if len(name) < 60 else f"{name[:59]}…" for name in one.names[:5]
        ),
        " · ",
        link("/task", latest, **where_of(seen), id=one.latest_id),
        " " + relative_time(one.latest_ms, seen.now_ms),
    ]
    if one.group:
        listed = link("/tasks", "list them", **where)
        facts += (" · ", listed)
    forms = text()
    if one.group and wanted.state == "dead":
        forms = tag(
            "div",
            act_form(
                reader,
                "replay-all",
                where,
                f"Replay {plural(one.tasks, 'task')} …",
                path="/bulk",
            ),
            class_="acts",
        )
    trace: Html = text()
    if one.traceback:
        trace = tag(
            "details",
            tag("summary", one.message),
            trace_markup(one.traceback),
        )
    elif one.message != one.error:
        trace = tag("p", one.message)
    return tag(
        "section",
        tag("div", *head),
        tag("p", *facts, class_="quiet"),
        trace,
        forms,
        class_="card group",
        data_key=one.group or one.error,
    )
