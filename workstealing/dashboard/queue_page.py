"""The page of one queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from workstealing.dashboard.dashboard_data import QueueSnapshot
from workstealing.dashboard.deque_drawing import deques_drawing, lately_stolen
from workstealing.dashboard.drawings import histogram
from workstealing.dashboard.layout import (
    Reader,
    act_form,
    alarm_line,
    frame,
    queue_crumb,
    queue_head,
    where_of,
)
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
from workstealing.dashboard.queue_chart import LAST, queue_chart
from workstealing.dashboard.worker_pages import workers_table
from workstealing.inspecting import (
    QueueEvents,
    QueueHistory,
    QueueStat,
    TaskStat,
    alarms_of,
)
from workstealing.inspecting.formatting import (
    duration,
    duration_ms,
    percent,
)
from workstealing.inspecting.stat_rows import (
    live_first,
    oldest_age,
    place_counts,
    upkeep_ages,
)

__all__ = ("queue_page",)

_ALARMING = 0.1
_NAMES = 100
_STEALS = 50
_NAME_COLUMNS = (
    Column("task", "name"),
    Column("done", "number"),
    Column("failed", "number"),
    Column("p50", "number"),
    Column("p95", "number"),
    Column("wait p50", "number"),
    Column("wait p95", "number"),
    Column("total time", "number"),
    Column("how long they take"),
    Column(""),
)
# Places that a list of tasks does not tell apart from waiting.
_LISTED_AS = {"held_back": "waiting"}


def queue_page(
    snapshot: QueueSnapshot,
    history: QueueHistory,
    events: QueueEvents,
    span: int,
    reader: Reader,
) -> str:
    """Show what is wrong, counts, rates, deques, tasks by name, workers, upkeep."""
    seen = snapshot.stat
    body: list[str] = [queue_head(seen, "overview", reader, *_acts(seen, reader))]
    body += (alarm_line(alarm, where_of(seen)) for alarm in alarms_of(seen))
    body.append(tag("div", *_tiles(seen), class_="tiles"))
    chart = queue_chart(snapshot, history, events, span)
    body.append(tag("div", chart, _deques(seen, events), class_="two"))
    if seen.task_names or history.tasks:
        title = f"Tasks, {LAST[span]}"
        body += (tag("h2", title), _names(seen, history, reader))
    body += (tag("h2", "Workers"), workers_table(seen))
    if seen.parked_abilities:
        columns = (
            Column("needs", "name"),
            Column("tasks", "number"),
            Column("because", "wide"),
        )
        rows = [
            (one.ability, f"{one.tasks:,}", one.reason) for one in seen.parked_abilities
        ]
        body += (tag("h2", "Parked"), table(columns, rows))
    body += (
        tag("h2", "Totals"),
        _facts(
            (name.replace("_", " "), f"{number:,}")
            for name, number in asdict(seen.totals).items()
            if number
        ),
        tag("h2", "Upkeep, last done"),
        _facts(upkeep_ages(seen).items()),
    )
    return frame(seen.queue, [queue_crumb(seen)], body, reader, seen=seen)


def _acts(seen: QueueStat, reader: Reader) -> list[Html]:
    where = where_of(seen)
    is_paused = any(not pause.task for pause in seen.pauses)
    pause, words = ("pause", "Pause the queue")
    if is_paused:
        pause, words = ("resume", "Resume the queue")
    end = act_form(reader, "end-input", where, "End the input")
    if seen.input_ended:
        end = act_form(reader, "reopen", where, "Reopen the input")
    return [end, act_form(reader, pause, {**where, "task": ""}, words)]


def _tiles(seen: QueueStat) -> list[Html]:
    oldest = oldest_age(seen)
    notes = {"waiting": f"oldest {oldest}" if oldest else ""}
    counts = place_counts(seen)
    if seen.steps:
        # Where no chain or group is used, nobody has to wonder what it means.
        counts["steps"] = f"{seen.steps:,}"
        notes["steps"] = "wait for others"
    return [
        tag(
            "a",
            tag("b", number),
            tag("span", place.replace("_", " ")),
            tag("span", notes[place]) if notes.get(place) else "",
            href=address(
                "/tasks", **where_of(seen), state=_LISTED_AS.get(place, place)
            ),
            class_=place if number != "0" else False,
            data_key=place,
        )
        for place, number in counts.items()
    ]


def _deques(seen: QueueStat, events: QueueEvents) -> Html:
    workers = live_first(seen.workers)
    pairs = lately_stolen(events.steals, seen.now_ms)
    thieves = {name for one in pairs for name in (one.thief, one.victim)}
    workers.sort(
        key=lambda worker: (
            not worker.is_alive,
            worker.name not in thieves,
            -worker.waiting,
            worker.name,
        )
    )
    parts: list[str] = [tag("h2", "Deques: who steals from whom")]
    if not workers:
        parts.append(tag("p", "No worker is alive.", class_="quiet"))
        return tag("section", *parts, class_="card")
    words = "green: in hand · blue: waits in the deque, front at the left"
    parts.append(tag("p", words, class_="quiet"))
    parts.append(deques_drawing(workers, events.steals, seen.now_ms))
    if events.steals:
        columns = (
            Column("thief", "name"),
            Column("stole from", "name"),
            Column("tasks", "number"),
            Column("when", "plain"),
        )
        shown = events.steals[:_STEALS]
        rows = [
            (one.thief, one.victim, f"{one.tasks:,}", _when(one.at_ms, seen.now_ms))
            for one in shown
        ]
        keys = [f"{one.at_ms} {one.thief} {n}" for n, one in enumerate(shown)]
        listed = table(columns, rows, keys, label="The last steals")
        number = len(events.steals)
        title = "The last steal" if number == 1 else f"The last {number} steals"
        summary = tag("summary", title)
        parts.append(tag("details", summary, listed, data_key="steals"))
    return tag("section", *parts, class_="card")


def _when(at_ms: int, now_ms: int) -> str:
    return f"{duration_ms(max(0, now_ms - at_ms))} ago"


def _names(seen: QueueStat, history: QueueHistory, reader: Reader) -> Html:
    paused = {pause.task for pause in seen.pauses}
    where = where_of(seen)
    found = {one.task.rpartition("@")[0] or one.task for one in history.tasks}
    idle = [name for name in seen.task_names if name not in found]
    stats = [*history.tasks, *(TaskStat(name, 0, 0, 0, ()) for name in idle)]
    rows, keys = [], []
    for one in stats[:_NAMES]:
        name = one.task.rpartition("@")[0] or one.task
        action = "resume" if name in paused else "pause"
        listed = link("/tasks", one.task, **where, task=name)
        badges = text(" ", badge("paused")) if name in paused else text()
        rows.append(
            (
                text(listed, badges),
                *_numbers(one),
                act_form(reader, action, {**where, "task": name}, whom=name),
            )
        )
        keys.append(one.task)
    return table(_NAME_COLUMNS, rows, keys, label="Tasks by name")


def _numbers(one: TaskStat) -> tuple[str, ...]:
    ended = one.done + one.failed
    if not ended:
        return ("0", "", "", "", "", "", "", "")
    share = one.failed / ended
    words = percent(share) if one.failed else "0 %"
    failed = badge("failed", words) if share >= _ALARMING else text(words)
    p50, p95 = (_about(one.quantile_ms(part)) for part in (0.5, 0.95))
    waits = [_about(one.wait_quantile_ms(part)) for part in (0.5, 0.95)]
    label = f"How long {one.task} takes: half {p50} at most, 95 % {p95}"
    return (
        f"{one.done:,}",
        failed,
        p50,
        p95,
        *(waits if any(one.waits) else ("", "")),
        duration_ms(one.total_ms),
        histogram(one.histogram, label),
    )


def _about(ms: float) -> str:
    """Say an estimate in two digits."""
    if ms < 1:
        return "< 1 ms"
    return f"≈ {duration(float(f'{ms:.2g}') / 1000)}"


def _facts(facts: Iterable[tuple[str, str]]) -> Html:
    """Return names and values beside each other, as many as fit."""
    pairs = [
        tag("li", tag("span", name, class_="quiet"), " ", tag("b", value))
        for name, value in facts
    ]
    if not pairs:
        return tag("p", "None yet.", class_="quiet")
    return tag("ul", *pairs, class_="facts card")
