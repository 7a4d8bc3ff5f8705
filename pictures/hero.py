"""The picture at the top of the README: both halves of the library."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)

_HOSTS = ("a quick page", "a cache hit", "an idle worker")
_SLICES = (
    "expire fields, trim windows",
    "evict, repair, refresh ahead",
    "upkeep of the task queue",
)


def draw(theme: Theme) -> str:
    """Who enlists and what becomes of it; below, how tasks reach workers."""
    canvas = Canvas(
        theme,
        960,
        430,
        "A process with a spare moment enlists: of 1000 calls 997 are dismissed in"
        " 0.1 microseconds and 3 are recruited for one slice of a job. Tasks go from"
        " the inbox to one deque per worker; an idle worker steals from the back.",
    )
    _side_work(canvas)
    canvas.line((20, 206), (940, 206))
    _tasks(canvas)
    return str(canvas)


def _side_work(canvas: Canvas) -> None:
    theme = canvas.theme
    for row, host in enumerate(_HOSTS):
        top = 26 + 52 * row
        canvas.label(20, top, 150, host)
        canvas.arrow((170, top + 17), (232, 95))
    canvas.box(236, 70, 168, 50, line=theme.accent)
    canvas.text(320, 95, "recruiter.enlist()", mono=True, colour=theme.accent)
    canvas.arrow((404, 88), (548, 50))
    canvas.text(556, 42, "997 of 1000: dismissed", anchor="start", colour=theme.quiet)
    canvas.text(556, 61, "in 0.1 µs", anchor="start", size=12, colour=theme.quiet)
    canvas.arrow((404, 102), (548, 134), colour=theme.good)
    canvas.text(556, 126, "3 of 1000: recruited", anchor="start", colour=theme.good)
    canvas.text(
        556, 145, "for one slice, 50 ms", anchor="start", size=12, colour=theme.good
    )
    canvas.arrow((704, 126), (738, 126), colour=theme.good)
    canvas.box(742, 78, 198, 96, line=theme.good)
    for row, words in enumerate(_SLICES):
        canvas.text(841, 100 + 26 * row, words, size=13)


def _tasks(canvas: Canvas) -> None:
    theme = canvas.theme
    canvas.label(20, 306, 100, "submit()")
    canvas.arrow((120, 323), (144, 323))
    canvas.label(148, 306, 80, "inbox")
    canvas.text(310, 233, "back", size=12, colour=theme.quiet)
    canvas.text(492, 233, "front", size=12, colour=theme.quiet)
    workers = (("worker.0", 8), ("worker.1", 0), ("worker.2", 2))
    for row, (worker, tasks) in enumerate(workers):
        middle = 264 + 62 * row
        canvas.arrow((228, 323), (288, middle), dashed=not tasks)
        canvas.box(292, middle - 19, 218, 38, fill="none")
        for place in range(8 - tasks, 8):
            canvas.box(
                299 + 26 * place, middle - 13, 22, 26, fill=theme.accent, radius=4
            )
        canvas.arrow((510, middle), (546, middle))
        canvas.label(550, middle - 17, 100, worker)
        canvas.arrow((650, middle), (716, 326))
    canvas.arrow((310, 283), (310, 316), colour=theme.good)
    canvas.text(
        322,
        326,
        "idle: steals from the back",
        anchor="start",
        size=13,
        colour=theme.good,
    )
    canvas.label(720, 309, 90, "outbox")
    canvas.arrow((810, 326), (836, 326))
    canvas.text(844, 326, "result()", anchor="start", mono=True, size=13)
