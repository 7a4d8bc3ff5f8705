"""Draws the deques of workers, and who steals from whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from workstealing.dashboard.drawings import picture, svg_label
from workstealing.dashboard.markup import Html, tag
from workstealing.inspecting import Steal, WorkerStat
from workstealing.inspecting.formatting import duration_ms, plural

__all__ = ("deques_drawing", "lately_stolen", "steal_words")

_WORKERS = 12
_TASKS = 14
_IN_HAND = 6
_THIEVES = 4
_ROW = 37
_LEFT, _RIGHT, _BEND, _WORDS, _EDGE = 122, 250, 296, 300, 446
_LATELY_MS = 10 * 60_000


def lately_stolen(steals: Sequence[Steal], now_ms: int) -> list[Steal]:
    """Sum up the last ten minutes by thief and victim, the latest first."""
    found: dict[tuple[str, str], Steal] = {}
    for one in steals:
        if now_ms - one.at_ms > _LATELY_MS:
            continue
        pair = (one.thief, one.victim)
        known = found.get(pair)
        found[pair] = one if known is None else _sum(known, one)
    return list(found.values())


def deques_drawing(
    workers: Sequence[WorkerStat], steals: Sequence[Steal], now_ms: int
) -> Html:
    """Draw what each worker has in hand, its deque, front at the left, and thefts."""
    shapes: list[str] = []
    shown = workers[:_WORKERS]
    rows = {worker.name: _ROW * n for n, worker in enumerate(shown)}
    backs: dict[str, float] = {}
    for worker in shown:
        y = rows[worker.name]
        state = f"{worker.running:,} in hand" if worker.is_alive else "dead"
        stolen = f", {worker.stolen:,} stolen" if worker.stolen else ""
        shapes.append(svg_label(0, y + 12, _cut(worker.name, 16), "start", "ink"))
        shapes.append(svg_label(0, y + 26, f"{state}{stolen}", "start"))
        in_hand = min(worker.running, _IN_HAND)
        shapes += _squares("hand", _LEFT, y, in_hand, 10)
        x = _LEFT + 10 * in_hand + 8
        most = min(worker.waiting, _TASKS, int((_RIGHT - x) / 9))
        shapes += _squares("waits", x, y, most, 9)
        after = f"{worker.waiting:,}" if worker.waiting else "empty"
        shapes.append(svg_label(x + 9 * most + 4, y + 12, after, "start"))
        backs[worker.name] = x + 9 * most + 10 + 7 * len(after)
    drawn = [
        one
        for one in lately_stolen(steals, now_ms)
        if one.thief in rows and one.victim in rows
    ]
    labelled: set[str] = set()
    for one in drawn[:_THIEVES]:
        thief, victim = rows[one.thief] + 8, rows[one.victim] + 8
        start, end = backs[one.thief], backs[one.victim]
        way = (
            f"M{start:.0f},{thief} C{_BEND},{thief} {_BEND},{victim} {end:.0f},{victim}"
        )
        shapes.append(tag("path", d=way, class_="theft"))
        if one.thief not in labelled:
            labelled.add(one.thief)
            words = f"{one.tasks:,} stolen, {_ago(one, now_ms)}"
            shapes.append(svg_label(_WORDS, thief + 4, words, "start", "label theft"))
    height = _ROW * len(shown) + 2
    label = "What each worker has in its deque"
    if drawn:
        label += "".join(f"; {steal_words(one, now_ms)}" for one in drawn[:_THIEVES])
    return picture(shapes, f"0 0 {_EDGE} {height}", label, "deques")


def steal_words(one: Steal, now_ms: int) -> str:
    """Say who stole how much from whom."""
    tasks = plural(one.tasks, "task")
    return f"{one.thief} stole {tasks} from {one.victim}, {_ago(one, now_ms)}"


def _sum(latest: Steal, earlier: Steal) -> Steal:
    return replace(latest, tasks=latest.tasks + earlier.tasks)


def _ago(one: Steal, now_ms: int) -> str:
    return f"{duration_ms(max(0, now_ms - one.at_ms))} ago"


def _squares(kind: str, x: float, y: float, number: int, step: int) -> list[Html]:
    return [
        tag(
            "rect",
            x=x + step * n,
            y=y + 2,
            width=step - 2,
            height=12,
            rx=2,
            class_=kind,
        )
        for n in range(number)
    ]


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
