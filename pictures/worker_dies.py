"""A worker is killed, and its tasks are run by another: a timeline."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)

_LEFT, _RIGHT, _SECONDS = 92, 540, 24


def draw(theme: Theme) -> str:
    """Two workers and the upkeep, over 24 seconds."""
    canvas = Canvas(
        theme,
        560,
        270,
        "Worker 0 is killed after 4 seconds. Its lease ends after 15 more seconds;"
        " whoever does upkeep next gives its tasks back, and worker 1 runs them."
        " A report of the dead worker that arrives later is refused.",
    )
    rows = {"worker.0": 60, "upkeep": 122, "worker.1": 204}
    for name, middle in rows.items():
        canvas.text(10, middle, name, anchor="start", mono=True)
        canvas.line((_LEFT, middle), (_RIGHT, middle))
    _span(canvas, 60, 0, 4, "runs a", theme.accent)
    _span(canvas, 60, 4, 19, "dead, until its lease ends (15 s)", theme.bad)
    _span(canvas, 204, 0, 3, "runs b", theme.accent)
    _span(canvas, 204, 3, 6, "runs c", theme.accent)
    _span(canvas, 204, 6, 19.6, "goes on, and steals what waits", theme.accent)
    _span(canvas, 204, 19.6, 23, "runs a", theme.good)
    canvas.text(_at(4), 28, "SIGKILL", size=14, bold=True, colour=theme.bad)
    canvas.arrow((_at(4), 38), (_at(4), 46), colour=theme.bad)
    canvas.arrow((_at(19), 76), (_at(19), 118), colour=theme.good)
    canvas.arrow((_at(19), 122), (_at(19.8), 188), colour=theme.good)
    for row, words in enumerate(
        (
            "whoever has a moment sees that the lease is over",
            "and gives a back; a late report of it is refused",
        )
    ):
        canvas.text(
            _at(19) - 10,
            143 + 20 * row,
            words,
            anchor="end",
            size=14,
            colour=theme.quiet,
        )
    for second in range(0, _SECONDS + 1, 4):
        canvas.text(_at(second), 254, f"{second} s", size=14, colour=theme.quiet)
    return str(canvas)


def _span(
    canvas: Canvas, middle: float, start: float, end: float, words: str, colour: str
) -> None:
    left, width = _at(start) + 1, _at(end) - _at(start) - 2
    canvas.box(left, middle - 14, width, 28, line=colour, radius=4)
    canvas.text(left + width / 2, middle, words, colour=colour)


def _at(second: float) -> float:
    return _LEFT + (_RIGHT - _LEFT) * second / _SECONDS
