"""A chain and a group: who waits for whom, and which results go where."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)


def draw(theme: Theme) -> str:
    """A chain of three steps above, a group of three members and what follows below."""
    canvas = Canvas(
        theme,
        560,
        372,
        "In a chain each step begins when the one before it is done, with its result."
        " The members of a group run beside each other; the last one to end enqueues"
        " the step after the group, once, which gets all results.",
    )
    canvas.text(
        14, 24, "fetch.s(url) | count.s() | save.s()", anchor="start", mono=True
    )
    for place, (name, colour) in enumerate(
        (("fetch", theme.good), ("count", theme.accent), ("save", theme.line))
    ):
        left = 14 + 204 * place
        canvas.label(left, 48, 110, name, line=colour)
        if place:
            canvas.arrow((left - 94, 65), (left - 4, 65), colour=theme.good)
            canvas.text(left - 49, 48, "result", size=14, colour=theme.quiet)
    for place, words in enumerate(("done", "runs", "waits")):
        canvas.text(69 + 204 * place, 98, words, size=14, colour=theme.quiet)
    canvas.line((14, 128), (546, 128))
    canvas.text(
        14,
        154,
        "group(count.s(p) for p in pages) | add_up.s()",
        anchor="start",
        mono=True,
    )
    for row, (words, colour) in enumerate(
        (("done", theme.good), ("failed", theme.bad), ("done, the last", theme.good))
    ):
        middle = 196 + 54 * row
        canvas.label(14, middle - 17, 110, f"count {row}", line=colour)
        canvas.text(136, middle, words, anchor="start", size=15, colour=colour)
        canvas.arrow((250, middle), (330, 242 + 8 * row), colour=colour, dashed=row < 2)
    canvas.label(334, 233, 110, "add_up", line=theme.accent)
    canvas.text(
        334, 288, "once, with every", anchor="start", size=14, colour=theme.quiet
    )
    canvas.text(
        334, 308, "member's result", anchor="start", size=14, colour=theme.quiet
    )
    canvas.text(
        14,
        350,
        "The last to end enqueues it, in the same script as its report",
        anchor="start",
        size=15,
    )
    return str(canvas)
