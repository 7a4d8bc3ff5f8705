"""The pages of workers: those of all queues, and one."""

from __future__ import annotations

from collections.abc import Sequence

from workstealing.dashboard.dashboard_data import Overview, WorkerView
from workstealing.dashboard.drawings import bar
from workstealing.dashboard.layout import (
    Reader,
    frame,
    queue_crumb,
    queue_head,
    where_of,
)
from workstealing.dashboard.markup import (
    Column,
    Html,
    badge,
    link,
    pairs_list,
    table,
    tag,
    text,
)
from workstealing.dashboard.task_rows import task_rows
from workstealing.inspecting import QueueStat, WorkerStat
from workstealing.inspecting.formatting import duration_ms, plural, timestamp
from workstealing.inspecting.stat_rows import live_first, worker_row

__all__ = (
    "OVERVIEW_WORKERS",
    "PAGE_WORKERS",
    "QUEUE_WORKERS",
    "queue_workers_page",
    "worker_page",
    "workers_page",
    "workers_table",
)

QUEUE_WORKERS = 20
"""How many the page of a queue shows."""
OVERVIEW_WORKERS = 5
"""How many of each queue the page of all workers shows."""
PAGE_WORKERS = 25
"""How many a page of the workers of one queue has."""

_COLUMNS = (
    Column("worker", "name"),
    Column("state"),
    Column("deque", "number"),
    Column("", "drawn"),
    Column("running", "number"),
    Column("stolen", "number"),
    Column("renewed", "plain"),
    Column("process", "name"),
)


def workers_page(seen: Overview, reader: Reader) -> str:
    """Show the workers of all queues, of each those with the longest deques."""
    body: list[str] = [tag("h1", "Workers")]
    for snapshot in seen.snapshots:
        stat = snapshot.stat
        if stat.workers:
            body += (tag("h2", queue_crumb(stat)), workers_table(stat))
    for one in seen.unreadable:
        name = link("/queue", f"{one.queue}/{one.run}", queue=one.queue, run=one.run)
        problem = f"Its workers cannot be read: {one.problem}"
        body += (tag("h2", name), tag("p", problem, class_="quiet"))
    if len(body) == 1:
        body.append(tag("p", "No worker is alive.", class_="quiet"))
    return frame("Workers", [], body, reader)


def queue_workers_page(seen: QueueStat, first: str, reader: Reader) -> str:
    """Show the workers of one queue by name, a page at a time."""
    named = sorted(
        (one for one in seen.workers if one.name >= first), key=lambda one: one.name
    )
    body: list[str] = [queue_head(seen, "workers", reader)]
    title = f"{plural(seen.living, 'worker')} alive"
    if len(named) > PAGE_WORKERS or first:
        title += f", {PAGE_WORKERS} to a page, by name"
    body += (tag("h2", title), _table(named[:PAGE_WORKERS], where_of(seen)))
    links = []
    if first:
        links.append(link("/workers", "« first page", **where_of(seen)))
    if len(named) > PAGE_WORKERS:
        following = named[PAGE_WORKERS].name
        links.append(link("/workers", "next page »", **where_of(seen), first=following))
    if links:
        body.append(tag("nav", *links, class_="paging", aria_label="Pages"))
    return frame(seen.queue, [queue_crumb(seen)], body, reader, seen=seen)


def worker_page(view: WorkerView, reader: Reader) -> str:
    """Show one worker: its process, its lease, what it runs, its deque."""
    seen, worker = view.stat, view.worker
    row = worker_row(worker)
    state = row["state"].split()[0]
    facts = [
        ("queue", queue_crumb(seen)),
        ("process", f"{worker.pid or '?'} on {worker.host or '?'}"),
        ("joined", _joined(worker, seen.now_ms)),
        ("lease", _lease(worker)),
        ("in hand", f"{worker.running:,}"),
        ("in its deque", f"{worker.waiting:,}"),
        ("stolen from others", f"{worker.stolen:,}"),
    ]
    body: list[str] = [
        tag(
            "div", tag("h1", worker.name), badge(state, row["state"]), class_="bar-top"
        ),
        tag("div", pairs_list(facts), class_="card"),
    ]
    for title, rows, total in (
        ("In hand", view.running, worker.running),
        ("Its deque, the next first", view.deque, worker.waiting),
    ):
        body.append(tag("h2", title))
        if rows:
            body.append(task_rows(rows, where_of(seen), seen.now_ms))
            if total > len(rows):
                more = f"The first {len(rows):,} of {total:,}."
                body.append(tag("p", more, class_="quiet"))
        else:
            body.append(tag("p", "Nothing.", class_="quiet"))
    return frame(worker.name, [queue_crumb(seen)], body, reader, seen=seen)


def workers_table(seen: QueueStat) -> Html:
    """Show the workers that were described, the live ones first."""
    shown = _table(live_first(seen.workers), where_of(seen))
    others = seen.living - sum(one.is_alive for one in seen.workers)
    if others <= 0:
        return shown
    words = f"All {seen.living:,} workers"
    hint = "These have the longest deques. "
    every = link("/workers", words, **where_of(seen))
    return text(shown, tag("p", hint, every, class_="quiet"))


def _table(workers: Sequence[WorkerStat], where: dict[str, str]) -> Html:
    if not workers:
        return tag("p", "No worker is alive.", class_="quiet")
    longest = max(worker.waiting for worker in workers)
    rows = [_cells(worker, longest, where) for worker in workers]
    keys = [worker.name for worker in workers]
    return table(_COLUMNS, rows, keys, label="Workers")


def _cells(worker: WorkerStat, longest: int, where: dict[str, str]) -> tuple[str, ...]:
    row = worker_row(worker)
    return (
        link("/worker", row["worker"], **where, name=worker.name),
        # The first word of a state is a class of the style sheet.
        badge(row["state"].split()[0], row["state"]),
        row["deque"],
        bar(worker.waiting, longest),
        row["running"],
        row["stolen"],
        row["renewed"],
        f"{row['host']} {row['pid']}".strip(),
    )


def _joined(worker: WorkerStat, now_ms: int) -> str:
    if not worker.since_ms:
        return "unknown"
    ago = duration_ms(now_ms - worker.since_ms)
    return f"{timestamp(worker.since_ms)}, {ago} ago"


def _lease(worker: WorkerStat) -> str:
    renewed = f"renewed {duration_ms(worker.lease_age_ms)} ago"
    if worker.is_alive:
        return f"{renewed}, valid for another {duration_ms(worker.lease_left_ms)}"
    return f"ended {duration_ms(-worker.lease_left_ms)} ago: it counts as dead"
