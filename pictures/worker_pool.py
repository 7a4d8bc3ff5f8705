"""A pool of workers: what it takes in, and what it looks after."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)

_WORKERS = (
    ("web1.0", "runs", "accent"),
    ("web1.1", "runs", "accent"),
    ("web1.2", "over time: stopped", "bad"),
    ("web1.3", "in its place", "good"),
)


def draw(theme: Theme) -> str:
    """The queue at the left, slots in the middle, what is added at the right."""
    canvas = Canvas(
        theme,
        560,
        330,
        "A pool takes batches of tasks from Redis and runs several at a time, in threads,"
        " processes or coroutines. A worker that hangs or dies is replaced; with"
        " autoscaling, workers are added while tasks wait and leave when idle.",
    )
    canvas.label(14, 138, 84, "Redis", line=theme.accent)
    canvas.arrow((98, 149), (166, 149))
    canvas.text(130, 132, "batches", size=13, colour=theme.quiet)
    canvas.arrow((166, 163), (102, 163), colour=theme.good)
    canvas.text(132, 181, "reports", size=13, colour=theme.good)
    canvas.box(170, 40, 376, 238, fill="none")
    canvas.text(
        184, 24, "WorkerPool(queue, workers=3)", anchor="start", mono=True, size=14
    )
    for row, (name, words, colour) in enumerate(_WORKERS):
        middle = 70 + 46 * row
        shade = getattr(theme, colour)
        canvas.box(186, middle - 17, 84, 34, line=shade)
        canvas.text(228, middle, name, mono=True, size=14)
        canvas.text(284, middle, words, anchor="start", size=15, colour=shade)
    canvas.line((180, 162), (420, 162), theme.bad)
    canvas.arrow((470, 162), (490, 162), (490, 208), (400, 208), colour=theme.good)
    canvas.arrow((228, 227), (228, 244), dashed=True)
    canvas.text(
        186,
        260,
        "autoscale: more while tasks wait, fewer when idle",
        anchor="start",
        size=14,
        colour=theme.quiet,
    )
    canvas.text(
        14,
        306,
        "stop: what waits is handed back, what runs may finish",
        anchor="start",
        size=15,
    )
    return str(canvas)
