"""The picture at the top of the README: both halves of the library."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)

_HOSTS = ("a quick page", "a cache hit", "an idle worker")
_SLICES = ("expire, trim, evict", "repair, refresh ahead", "upkeep of tasks")


def draw(theme: Theme) -> str:
    """Who enlists and what becomes of it; below, how tasks reach workers."""
    canvas = Canvas(
        theme,
        640,
        560,
        "A process with a spare moment enlists: of 1000 calls 997 are dismissed in"
        " 0.1 microseconds and 3 are recruited for one slice of a job. Tasks go from"
        " the inbox to one deque per worker; an idle worker steals from the back.",
    )
    _side_work(canvas)
    canvas.line((14, 258), (626, 258))
    _tasks(canvas)
    return str(canvas)


def _side_work(canvas: Canvas) -> None:
    theme = canvas.theme
    canvas.text(14, 22, "side work", anchor="start", size=18, bold=True)
    for row, host in enumerate(_HOSTS):
        top = 48 + 46 * row
        canvas.box(14, top, 136, 36)
        canvas.text(82, top + 18, host, size=16)
        canvas.arrow((150, top + 18), (184, 112))
    canvas.box(188, 88, 178, 48, line=theme.accent)
    canvas.text(277, 112, "recruiter.enlist()", mono=True, size=15, colour=theme.accent)
    canvas.arrow((366, 104), (412, 74))
    canvas.text(
        420, 62, "997 of 1000: dismissed", anchor="start", size=16, colour=theme.quiet
    )
    canvas.text(420, 84, "in 0.1 µs", anchor="start", size=15, colour=theme.quiet)
    canvas.arrow((366, 120), (412, 138), colour=theme.good)
    canvas.text(
        420, 130, "3 of 1000: recruited", anchor="start", size=16, colour=theme.good
    )
    canvas.text(
        420, 152, "for one slice, 50 ms", anchor="start", size=15, colour=theme.good
    )
    canvas.arrow((500, 166), (500, 186), colour=theme.good)
    canvas.box(14, 190, 612, 46, line=theme.good)
    for place, words in enumerate(_SLICES):
        canvas.text(116 + 204 * place, 213, words, size=16)


def _tasks(canvas: Canvas) -> None:
    theme = canvas.theme
    canvas.text(14, 286, "tasks", anchor="start", size=18, bold=True)
    canvas.box(14, 386, 92, 40)
    canvas.text(60, 406, "submit()", mono=True, size=15)
    canvas.arrow((106, 406), (126, 406))
    canvas.box(130, 386, 72, 40)
    canvas.text(166, 406, "inbox", size=16)
    canvas.text(272, 300, "back", size=15, colour=theme.quiet)
    canvas.text(420, 300, "front", size=15, colour=theme.quiet)
    workers = (("worker.0", 7), ("worker.1", 0), ("worker.2", 2))
    for row, (worker, tasks) in enumerate(workers):
        middle = 336 + 70 * row
        canvas.arrow((202, 406), (244, middle), dashed=not tasks)
        canvas.box(248, middle - 20, 196, 40, fill="none")
        for place in range(7 - tasks, 7):
            canvas.box(
                255 + 27 * place, middle - 13, 22, 26, fill=theme.accent, radius=4
            )
        canvas.arrow((444, middle), (470, middle))
        canvas.box(474, middle - 18, 88, 36)
        canvas.text(518, middle, worker, size=16)
        canvas.arrow((562, middle), (594, middle), (594, 510))
    canvas.arrow((266, 356), (266, 384), colour=theme.good)
    canvas.text(
        276,
        406,
        "idle: steals here",
        anchor="start",
        size=15,
        colour=theme.good,
    )
    canvas.box(516, 514, 110, 38)
    canvas.text(571, 533, "outbox", size=16)
    canvas.arrow((516, 533), (470, 533))
    canvas.text(462, 533, "result()", anchor="end", mono=True, size=15)
