"""Lines: what a limit holds back stands aside, and others run past it."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)


def draw(theme: Theme) -> str:
    """Two lines with a limit each, and the inbox of tasks without limits."""
    canvas = Canvas(
        theme,
        560,
        310,
        "Of customer 42 two tasks may run at once, and two run: the others stand in a"
        " line and take no worker's time. Tasks of customer 7, and those without"
        " limits, go past them.",
    )
    canvas.text(
        14, 24, "Limit(concurrency=2, per=…)", anchor="start", mono=True, size=14
    )
    rows = (
        ("customer 42", 5, "2 of 2 run: held back", theme.bad),
        ("customer 7", 2, "1 of 2 runs: goes on", theme.good),
        ("no limit", 3, "goes on", theme.good),
    )
    for row, (name, tasks, words, colour) in enumerate(rows):
        middle = 72 + 76 * row
        canvas.text(14, middle - 2, name, anchor="start", size=15, bold=True)
        canvas.text(14, middle + 20, words, anchor="start", size=14, colour=colour)
        canvas.box(176, middle - 20, 184, 40, fill="none")
        for place in range(5 - tasks, 5):
            canvas.box(
                184 + 34 * place, middle - 14, 28, 28, fill=theme.accent, radius=4
            )
        if colour == theme.bad:
            canvas.line((384, middle - 22), (384, middle + 22), theme.bad)
            canvas.line((390, middle - 22), (390, middle + 22), theme.bad)
        else:
            canvas.arrow((360, middle), (430, middle), colour=theme.good)
    canvas.box(434, 50, 112, 200, line=theme.accent)
    canvas.text(490, 72, "workers", size=15)
    for row, (words, colour) in enumerate(
        (
            ("42", theme.accent),
            ("42", theme.accent),
            ("7", theme.good),
            ("free", "none"),
        )
    ):
        top = 92 + 38 * row
        canvas.box(450, top, 80, 30, line=theme.line if colour == "none" else colour)
        canvas.text(490, top + 15, words, size=14)
    canvas.text(
        14,
        288,
        "A line with room takes its turn: tenants in rotation",
        anchor="start",
        size=15,
        colour=theme.quiet,
    )
    return str(canvas)
