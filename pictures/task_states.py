"""Where a task may be, and how it gets there."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)


def draw(theme: Theme) -> str:
    """The states as boxes: waiting above, ended below."""
    canvas = Canvas(
        theme,
        560,
        372,
        "A submitted task waits in the inbox, or is delayed first. A worker takes it"
        " into its deque and runs it. It ends as done, dead, cancelled or expired. A"
        " failed attempt is retried; a task without a capable worker is parked.",
    )
    canvas.label(14, 102, 92, "submit()", line=theme.accent)
    canvas.label(160, 20, 100, "delayed")
    canvas.label(160, 102, 100, "inbox")
    canvas.label(160, 184, 100, "parked")
    canvas.label(308, 102, 90, "deque")
    canvas.label(446, 102, 100, "running", line=theme.accent)
    canvas.arrow((106, 119), (156, 119))
    canvas.arrow((60, 102), (60, 37), (156, 37))
    canvas.arrow((210, 54), (210, 98))
    canvas.text(218, 77, "due", anchor="start", colour=theme.quiet)
    canvas.arrow((260, 119), (304, 119))
    canvas.arrow((398, 119), (442, 119))
    canvas.arrow((196, 136), (196, 180))
    canvas.arrow((224, 184), (224, 140))
    canvas.text(232, 162, "until a worker can", anchor="start", colour=theme.quiet)
    canvas.arrow((496, 102), (496, 37), (264, 37))
    canvas.text(378, 24, "failed: tried again later", colour=theme.quiet)
    canvas.arrow((470, 136), (470, 246), (134, 246), (134, 125), dashed=True)
    canvas.text(302, 233, "worker stopped or died: handed back", colour=theme.quiet)
    canvas.line((524, 136), (524, 282))
    canvas.line((75, 282), (524, 282))
    ends = (
        ("done", theme.good, "kept for 1 h"),
        ("dead", theme.bad, "given up"),
        ("cancelled", theme.quiet, "by its caller"),
        ("expired", theme.quiet, "not begun in time"),
    )
    for place, (state, colour, why) in enumerate(ends):
        left = 14 + 138 * place
        canvas.arrow((left + 61, 282), (left + 61, 304))
        canvas.label(left, 308, 122, state, line=colour, colour=colour)
        canvas.text(left + 61, 358, why, colour=theme.quiet)
    return str(canvas)
