"""The page of one task."""

from __future__ import annotations

import json
from typing import Any

from workstealing.clock import utc_time
from workstealing.dashboard.dashboard_data import TaskView
from workstealing.dashboard.drawings import LifePart, life_drawing, progress_bar
from workstealing.dashboard.layout import (
    Reader,
    act_form,
    frame,
    pause_notices,
    queue_crumb,
    where_of,
)
from workstealing.dashboard.markup import Html, badge, link, pairs_list, tag, text
from workstealing.dashboard.task_rows import trace_markup
from workstealing.inspecting import LogTail, TaskDetail
from workstealing.inspecting.formatting import duration_ms, percent, timestamp
from workstealing.inspecting.stat_rows import remaining_time
from workstealing.inspecting.views import CutText
from workstealing.tasks.outcome import State

__all__ = ("task_page",)

_OVER = (
    State.DONE,
    State.FAILED,
    State.DEAD,
    State.CANCELLED,
    State.EXPIRED,
    State.UNKNOWN,
)
_LETTERS = (State.FAILED, State.DEAD)
_SETTINGS = (
    "retries",
    "timeout",
    "priority",
    "deadline",
    "restart",
    "key",
    "principal",
)
_LONGEST_VALUE = 2000


def task_page(view: TaskView, reader: Reader) -> str:
    """Show one task: how far it is, its life, arguments, log, errors; JSON last."""
    seen, task = view.stat, view.task
    state = task.state.value
    title = task.task or task.id
    where = {**where_of(seen), "id": task.id}
    body: list[str] = [
        tag(
            "div",
            tag("h1", title),
            badge(state),
            tag("span", class_="grow"),
            *_acts(task, where, reader),
            class_="bar-top",
        ),
        tag("p", *_facts(task, where_of(seen)), class_="quiet"),
        reader.notice,
    ]
    body += pause_notices(seen)
    body.append(
        tag("ul", *(tag("li", one) for one in view.why.sentences), class_="why")
    )
    body += _progress(task)
    body += _life(task)
    body += _errors(task)
    body += _arguments(task)
    body += _log(view.log)
    body += _raw(task)
    listed = link(
        "/tasks", _list_of(task.state), **where_of(seen), state=_list_of(task.state)
    )
    crumbs = [queue_crumb(seen), listed]
    return frame(title, crumbs, body, reader, seen=seen)


def _acts(task: TaskDetail, where: dict[str, str], reader: Reader) -> list[Html]:
    if task.state in _LETTERS:
        return [act_form(reader, "replay", where), act_form(reader, "delete", where)]
    return [] if task.state in _OVER else [act_form(reader, "cancel", where)]


def _facts(task: TaskDetail, where: dict[str, str]) -> list[str]:
    facts: list[str] = [task.id]
    if task.submitted_ms:
        ago = duration_ms(task.now_ms - task.submitted_ms)
        facts += (" · ", f"submitted {ago} ago")
    if task.ended_ms:
        facts += (" · ", f"ended {duration_ms(task.now_ms - task.ended_ms)} ago")
    if task.worker:
        facts += (" · on ", link("/worker", task.worker, **where, name=task.worker))
    return facts


def _list_of(state: State) -> str:
    if state in _LETTERS:
        return "dead"
    return "done" if state in _OVER else state.value


def _progress(task: TaskDetail) -> list[Html]:
    progress = task.progress
    if progress is None:
        return []
    words = f"Progress: {progress.done:,g}"
    drawing = text()
    if progress.total:
        share = progress.done / progress.total
        words += f" of {progress.total:,g}, {percent(min(1.0, share))}"
        passed_ms = task.now_ms - task.begun_ms if task.begun_ms else 0
        if left := remaining_time(progress, passed_ms):
            words += f" · about {left} left"
        drawing = progress_bar(share, words)
    if progress.note:
        words += f" · {progress.note}"
    return [tag("section", tag("h2", words), drawing, class_="card")]


def _life(task: TaskDetail) -> list[Html]:
    """Draw the stretches of which the times are known."""
    life = task.biography
    if life is None:
        return []
    parts = [LifePart(str(one), one.took_ms, one.kind) for one in life.stretches]
    begins, ends = timestamp(life.began_ms), timestamp(life.began_ms + life.total_ms)
    if task.due_ms > task.now_ms:
        ends += f" · due in {duration_ms(task.due_ms - task.now_ms)}"
    return [
        tag("h2", "Life"),
        tag(
            "section",
            life_drawing(parts),
            tag("p", f"{begins} – {ends}", class_="quiet"),
            class_="card",
        ),
    ]


def _errors(task: TaskDetail) -> list[Html]:
    found: list[Html] = []
    if task.traceback:
        found += (tag("h2", "Why it failed"), trace_markup(task.traceback))
    for failed in task.failures:
        when = duration_ms(task.now_ms - failed.at_ms)
        on = f" on {failed.worker}" if failed.worker else ""
        title = f"Why attempt {failed.attempt} failed{on}, {when} ago"
        shown = tag("p", failed.error)
        if failed.traceback:
            shown = trace_markup(failed.traceback)
        found += (tag("h2", title), shown)
    return found


def _arguments(task: TaskDetail) -> list[Html]:
    envelope = task.envelope
    if envelope is None:
        words = "The arguments of a task that is over are not kept."
        return [tag("h2", "Arguments"), tag("p", words, class_="quiet")]
    if not isinstance(envelope, dict):
        return []
    payload = envelope.get("payload")
    pairs = [("", _value(payload))]
    if isinstance(payload, dict):
        pairs = [(str(name), _value(value)) for name, value in payload.items()]
    left = tag(
        "div",
        tag("h2", "Arguments"),
        tag("div", pairs_list(pairs) if pairs else "none", class_="card"),
    )
    settings = [
        (name, _setting(name, envelope[name])) for name in _SETTINGS if name in envelope
    ]
    if not settings:
        return [left]
    right = tag(
        "div", tag("h2", "Settings"), tag("div", pairs_list(settings), class_="card")
    )
    return [tag("div", left, right, class_="two")]


def _setting(name: str, value: Any) -> str:
    if name == "deadline" and isinstance(value, int):
        return timestamp(value)
    return _value(value)


def _log(log: LogTail) -> list[Html]:
    if not log.records:
        return []
    rows = []
    for record in log.records:
        level = record.level.lower()
        kind = "error" if level in ("error", "critical") else level
        rows.append(
            tag(
                "tr",
                tag("td", _time(record.time)),
                tag("td", record.level or record.stream),
                tag("td", f"{record.worker} #{record.attempt}"),
                tag("td", record.message),
                class_=kind if kind in ("warning", "error") else False,
                data_key=f"{record.attempt}.{record.worker}.{record.sequence}",
            )
        )
    title = f"Log, {len(log.records):,} of {log.total:,} records"
    table = tag("table", tag("tbody", *rows))
    return [
        tag("h2", title),
        tag("div", table, class_="log", tabindex="0", role="log", aria_label=title),
    ]


def _raw(task: TaskDetail) -> list[Html]:
    found = _titled("Result", task.result)
    folded = _titled("Outcome", _with_times(task.outcome))
    folded += _titled("Envelope", _with_times(task.envelope))
    if folded:
        summary = tag("summary", "Envelope and outcome as JSON")
        found.append(tag("details", summary, *folded))
    return found


def _titled(title: str, value: Any) -> list[Html]:
    if value is None:
        return []
    return [tag("h2", title), tag("pre", _pretty(value), tabindex="0")]


def _with_times(value: Any) -> Any:
    """Add to a time in milliseconds since 1970 what people read."""
    if not isinstance(value, dict):
        return value
    return {
        name: f"{one} ({timestamp(one)})"
        if name in ("at", "ended", "due", "deadline") and type(one) is int
        else one
        for name, one in value.items()
    }


def _value(value: Any) -> str:
    words = json.dumps(value, ensure_ascii=False)
    return words if len(words) <= _LONGEST_VALUE else f"{words[:_LONGEST_VALUE]}…"


def _pretty(value: Any) -> str:
    if isinstance(value, CutText):
        return value
    return json.dumps(value, indent=2, ensure_ascii=False)


def _time(ms: int) -> str:
    when = utc_time(ms)
    return "" if when is None else f"{when:%H:%M:%S}.{ms % 1000 // 100}"
