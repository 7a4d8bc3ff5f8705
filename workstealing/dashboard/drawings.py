"""Draws small pictures as SVG: rates over time, deques, progress, a task's life.

They have no style of their own, and no script: `assets/style.css` colours them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workstealing.clock import utc_time
from workstealing.dashboard.markup import Html, tag, text
from workstealing.inspecting.formatting import one_decimal, significant

__all__ = (
    "ChartMark",
    "LifePart",
    "RatePoint",
    "bar",
    "histogram",
    "life_drawing",
    "picture",
    "progress_bar",
    "rate_chart",
    "sparkline",
    "svg_label",
)

_WIDTH, _HEIGHT = 120, 24
# Of the chart: where its axes are, with room for the large letters of a phone.
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 632.0, 22.0, 146.0
# Between the words of two marks, or they could not be read.
_MARK_ROOM = 110.0
_PART_WIDTH = 900


@dataclass(frozen=True, slots=True)
class RatePoint:
    """Tasks per second around one moment."""

    at_ms: int
    done: float
    failed: float


@dataclass(frozen=True, slots=True)
class LifePart:
    """A stretch of the life of a task."""

    label: str
    ms: int
    kind: str
    """`waits`, `works` or `fails`"""


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A moment that a chart points out."""

    at_ms: int
    label: str


def rate_chart(
    points: Sequence[RatePoint],
    from_ms: int,
    to_ms: int,
    marks: Sequence[ChartMark] = (),
) -> Html:
    """Draw tasks done and failed per second, with both axes, and marks from above."""
    top = _round_up(max((max(one.done, one.failed) for one in points), default=0.0))
    shapes: list[str] = []
    for share in (0.0, 0.5, 1.0):
        y = _BOTTOM - share * (_BOTTOM - _TOP)
        shapes.append(_line("axis", _LEFT, y, _RIGHT, y))
        shapes.append(svg_label(_LEFT - 6, y + 4, significant(top * share), "end"))
    for n in range(5):
        ms = from_ms + (to_ms - from_ms) * n // 4
        x = _LEFT + (_RIGHT - _LEFT) * n / 4
        shown = "now" if n == 4 else _clock_time(ms)
        anchor = {0: "start", 4: "end"}.get(n, "middle")
        shapes.append(svg_label(x, _BOTTOM + 20, shown, anchor))
    for kind in ("done", "failed"):
        corners = [
            (_across(one.at_ms, from_ms, to_ms), _up(getattr(one, kind), top))
            for one in points
            if from_ms <= one.at_ms <= to_ms
        ]
        for hill in _hills(corners):
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in hill)
            first, last = hill[0][0], hill[-1][0]
            area = f"{first:.1f},{_BOTTOM} {line} {last:.1f},{_BOTTOM}"
            shapes.append(tag("polygon", points=area, class_=f"area {kind}"))
            shapes.append(tag("polyline", points=line, class_=f"edge {kind}"))
    shapes += _marks(marks, from_ms, to_ms)
    if not points:
        middle = (_LEFT + _RIGHT) / 2
        shapes.append(svg_label(middle, 60, "nothing measured yet", "middle"))
    last_done = one_decimal(points[-1].done) if points else "0"
    label = f"Tasks done and failed per second; lately {last_done} done per second"
    return picture(shapes, "0 0 640 172", label, "chart")


def _hills(corners: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Part a curve into what rises above zero: a line along the axis says nothing."""
    hills: list[list[tuple[float, float]]] = [[]]
    for n, corner in enumerate(corners):
        around = corners[max(0, n - 1) : n + 2]
        if any(y < _BOTTOM for _, y in around):
            hills[-1].append(corner)
        elif hills[-1]:
            hills.append([])
    return [hill for hill in hills if len(hill) > 1]


def _marks(marks: Sequence[ChartMark], from_ms: int, to_ms: int) -> list[Html]:
    """Draw marks, the latest first: it is the one that must have its words."""
    shapes: list[Html] = []
    free = math.inf
    for mark in sorted(marks, key=lambda one: -one.at_ms):
        if not from_ms < mark.at_ms <= to_ms:
            continue
        x = _across(mark.at_ms, from_ms, to_ms)
        shapes.append(_line("mark", x, _TOP - 6, x, _BOTTOM))
        if x + _MARK_ROOM <= free:
            anchor, at = ("start", x + 4) if x < _RIGHT - 230 else ("end", x - 4)
            shapes.append(svg_label(at, _TOP - 2, mark.label, anchor, "label mark"))
            free = min(at, x) - (0 if anchor == "start" else 160)
    return shapes


def life_drawing(parts: Sequence[LifePart]) -> Html:
    """Draw the life of a task, stretch by stretch, with a legend below."""
    total = sum(max(1, part.ms) for part in parts) or 1
    # Each stretch can be seen, however short it was.
    widths = [max(0.02, part.ms / total) for part in parts]
    scale = (_PART_WIDTH - 4 * (len(parts) - 1)) / sum(widths)
    x, shapes = 0.0, []
    for part, width in zip(parts, widths, strict=True):
        shapes.append(
            tag(
                "rect",
                x=f"{x:.1f}",
                y=0,
                width=f"{width * scale:.1f}",
                height=14,
                rx=3,
                class_=part.kind,
            )
        )
        x += width * scale + 4
    legend = tag(
        "ol",
        *(tag("li", part.label, class_=part.kind) for part in parts),
        class_="legend",
    )
    size = f"0 0 {_PART_WIDTH} 14"
    drawing = tag(
        "svg",
        *shapes,
        viewBox=size,
        preserveAspectRatio="none",
        class_="life",
        aria_hidden="true",
    )
    return text(drawing, legend)


def progress_bar(share: float, label: str) -> Html:
    """Draw how far a task is."""
    width = round(max(0.0, min(1.0, share)) * _PART_WIDTH)
    shapes = (
        tag("rect", width=_PART_WIDTH, height=12, rx=4, class_="rest"),
        tag("rect", width=width, height=12, rx=4, class_="works"),
    )
    return tag(
        "svg",
        *shapes,
        viewBox=f"0 0 {_PART_WIDTH} 12",
        preserveAspectRatio="none",
        class_="life",
        role="img",
        aria_label=label,
    )


def histogram(counts: Sequence[int], label: str) -> Html:
    """Draw how many there are of each of a few sizes."""
    highest = max(counts, default=0) or 1
    shapes = []
    for n, count in enumerate(counts):
        height = 22 * count / highest if count else 0.0
        height = max(height, 1.5) if count else 0.0
        shapes.append(
            tag(
                "rect",
                x=n * 12,
                y=f"{_HEIGHT - height:.1f}",
                width=10,
                height=f"{height:.1f}",
                class_="waits",
            )
        )
    size = f"0 0 {12 * max(1, len(counts))} {_HEIGHT}"
    return tag(
        "svg", *shapes, viewBox=size, class_="mini", role="img", aria_label=label
    )


def sparkline(history: Sequence[float]) -> Html:
    """Draw the history of a rate."""
    if len(history) < 2:
        return text()
    highest = max(history) or 1.0
    step = _WIDTH / (len(history) - 1)
    points = " ".join(
        f"{number * step:.1f},{_HEIGHT - 1 - value / highest * (_HEIGHT - 2):.1f}"
        for number, value in enumerate(history)
    )
    return _small("spark", tag("polyline", points=points))


def bar(value: int, longest: int) -> Html:
    """Draw a number, compared with the largest of its column."""
    if not value:
        return text()
    share = max(1, round(value / longest * _WIDTH))
    return _small("bar", tag("rect", width=share, height=_HEIGHT))


def _small(kind: str, shape: Html) -> Html:
    size = f"0 0 {_WIDTH} {_HEIGHT}"
    return tag(
        "svg",
        shape,
        viewBox=size,
        preserveAspectRatio="none",
        class_=kind,
        aria_hidden="true",
    )


def picture(shapes: Sequence[str], size: str, label: str, kind: str = "") -> Html:
    """Return shapes as a picture that says in words what it shows."""
    return tag(
        "svg",
        *shapes,
        viewBox=size,
        role="img",
        aria_label=label,
        class_=kind or False,
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def svg_label(x: float, y: float, words: str, anchor: str, kind: str = "label") -> Html:
    """Return words in a picture."""
    return tag("text", words, x=x, y=y, text_anchor=anchor, class_=kind)


def _across(ms: int, from_ms: int, to_ms: int) -> float:
    return _LEFT + (_RIGHT - _LEFT) * (ms - from_ms) / max(1, to_ms - from_ms)


def _up(value: float, top: float) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * min(value, top) / top


def _round_up(value: float) -> float:
    """Return the end of an axis: 1, 2 or 5 and zeros."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)


def _clock_time(ms: int) -> str:
    when = utc_time(ms)
    return "" if when is None else f"{when:%H:%M}"
