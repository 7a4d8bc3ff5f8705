"""The page of one queue."""

from __future__ import annotations

from workstealing.dashboard.dashboard_data import QueueSnapshot
from workstealing.dashboard.drawings import deques_drawing, rate_chart
from workstealing.dashboard.layout import (
    Reader,
    act_form,
    alarm_line,
    frame,
    queue_crumb,
    queue_head,
    where_of,
)
from workstealing.dashboard.markup import Column, Html, address, badge, table, tag, text
from workstealing.dashboard.worker_pages import workers_table
from workstealing.inspecting import QueueStat, alarms_of
from workstealing.inspecting.formatting import one_decimal
from workstealing.inspecting.stat_rows import (
    live_first,
    oldest_age,
    place_counts,
    totals_text,
    upkeep_ages,
)

__all__ = ("queue_page",)

_TEN_MINUTES_MS = 600_000
# Places that a list of tasks does not tell apart from waiting.
_LISTED_AS = {"held_back": "waiting"}


def queue_page(snapshot: QueueSnapshot, reader: Reader) -> str:
    """Show what is wrong, counts, rates, deques, workers, task names, upkeep."""
    seen = snapshot.stat
    body: list[str] = [queue_head(seen, "overview", reader, *_acts(seen, reader))]
    body += (alarm_line(alarm, where_of(seen)) for alarm in alarms_of(seen))
    body.append(tag("div", *_tiles(seen), class_="tiles"))
    body.append(tag("div", _chart(snapshot), _deques(seen), class_="two"))
    body += (tag("h2", "Workers"), workers_table(seen.workers, where_of(seen)))
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
    if seen.task_names:
        body += (tag("h2", "Tasks that its workers can run"), _names(seen, reader))
    body += (
        tag("h2", "Totals"),
        tag("p", totals_text(seen)),
        tag("h2", "Upkeep"),
        _upkeep(seen),
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
        for place, number in place_counts(seen).items()
    ]


def _chart(snapshot: QueueSnapshot) -> Html:
    now_ms, rates = snapshot.stat.now_ms, snapshot.rates
    lately = "measured while somebody looks"
    if rates is not None:
        done, stolen = one_decimal(rates.done), one_decimal(rates.stolen)
        lately = f"now {done} done/s, {stolen} stolen/s"
    chart = rate_chart(snapshot.history, now_ms - _TEN_MINUTES_MS, now_ms)
    return tag(
        "section",
        tag("h2", "Done and given up per second"),
        tag("p", f"last 10 minutes, UTC · {lately}", class_="quiet"),
        chart,
        tag(
            "ul",
            tag("li", "done", class_="done"),
            tag("li", "given up", class_="fails"),
            class_="legend rates",
        ),
        class_="card",
    )


def _deques(seen: QueueStat) -> Html:
    workers = live_first(seen.workers)
    workers.sort(key=lambda worker: (not worker.is_alive, -worker.waiting, worker.name))
    words = "green: in hand · blue: waits in the deque, front at the left"
    drawing = deques_drawing(workers)
    if not workers:
        words, drawing = "No worker is alive.", text()
    title = tag("h2", "Deques")
    return tag(
        "section", title, tag("p", words, class_="quiet"), drawing, class_="card"
    )


def _names(seen: QueueStat, reader: Reader) -> Html:
    paused = {pause.task for pause in seen.pauses}
    where = where_of(seen)
    rows = []
    for name in seen.task_names:
        action = "resume" if name in paused else "pause"
        form = act_form(reader, action, {**where, "task": name}, whom=name)
        rows.append(
            (
                tag("a", name, href=address("/tasks", **where, task=name), title=name),
                badge("paused") if name in paused else text(),
                form,
            )
        )
    columns = (Column("task", "name"), Column(""), Column("", "tick"))
    return table(columns, rows, list(seen.task_names), label="Tasks")


def _upkeep(seen: QueueStat) -> Html:
    ages = upkeep_ages(seen)
    if not ages:
        return tag("p", "None yet.", class_="quiet")
    columns = (Column("duty", "name"), Column("last done"))
    return table(columns, list(ages.items()))
