"""A schedule: each tick is fired once, by whichever worker comes by."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)

_LEFT, _STEP = 110, 104


def draw(theme: Theme) -> str:
    """Four ticks on a line of time, and who fires each."""
    canvas = Canvas(
        theme,
        560,
        290,
        "A schedule ticks every five minutes. Each tick is fired once, by whichever"
        " worker sees first that it is due. While all workers are away no tick is lost:"
        " the first one back fires it.",
    )
    canvas.text(
        14, 24, "@queue.every(timedelta(minutes=5))", anchor="start", mono=True, size=14
    )
    for row, name in enumerate(("worker.0", "worker.1", "tasks")):
        middle = 84 + 62 * row
        canvas.text(14, middle, name, anchor="start", mono=True, size=13)
        canvas.line((94, middle), (546, middle))
    for tick, words in enumerate((":00", ":05", ":10", ":15", ":20")):
        x = _LEFT + _STEP * tick
        canvas.line((x, 50), (x, 232))
        canvas.text(x, 246, words, size=14, colour=theme.quiet)
    canvas.box(_LEFT + 1.4 * _STEP, 68, 1.1 * _STEP, 32, line=theme.bad, radius=4)
    canvas.text(_LEFT + 1.95 * _STEP, 84, "away", size=14, colour=theme.bad)
    canvas.box(_LEFT + 1.4 * _STEP, 130, 1.1 * _STEP, 32, line=theme.bad, radius=4)
    canvas.text(_LEFT + 1.95 * _STEP, 146, "away", size=14, colour=theme.bad)
    fired = ((0, 0, 0.0), (1, 1, 0.0), (2, 1, 0.55), (3, 0, 0.0))
    for tick, row, late in fired:
        begin = _LEFT + _STEP * (tick + late) + 8
        colour = theme.good
        canvas.arrow((begin, 84 + 62 * row + 4), (begin, 192), colour=colour)
        canvas.box(begin - 8, 194, 28, 28, fill=theme.accent, radius=4)
    canvas.text(
        14,
        274,
        "One task per tick; a late one if nobody was there (missed=)",
        anchor="start",
        size=15,
    )
    return str(canvas)
