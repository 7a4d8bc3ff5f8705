"""Where a task may be, and how it gets there."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)


def draw(theme: Theme) -> str:
    """The states as boxes: waiting at the left, ended at the right."""
    canvas = Canvas(
        theme,
        960,
        330,
        "A submitted task waits in the inbox, or is delayed first. A worker takes it"
        " into its deque and runs it. It ends as done, dead, cancelled or expired. A"
        " failed attempt is retried; a task without a capable worker is parked.",
    )
    canvas.text(20, 24, "waits", anchor="start", size=12, colour=theme.quiet)
    canvas.text(770, 24, "has ended", anchor="start", size=12, colour=theme.quiet)
    canvas.label(20, 140, 110, "submit()", line=theme.accent)
    canvas.label(200, 50, 130, "delayed")
    canvas.label(200, 140, 130, "inbox")
    canvas.label(200, 230, 130, "parked")
    canvas.label(400, 140, 130, "deque")
    canvas.label(590, 140, 120, "running", line=theme.accent)
    canvas.arrow((130, 157), (196, 157))
    canvas.arrow((75, 140), (75, 67), (196, 67))
    canvas.arrow((265, 84), (265, 136))
    canvas.text(273, 110, "due", anchor="start", size=12, colour=theme.quiet)
    canvas.arrow((330, 157), (396, 157))
    canvas.arrow((530, 157), (586, 157))
    canvas.arrow((250, 174), (250, 226))
    canvas.arrow((280, 230), (280, 178))
    canvas.text(
        288, 202, "until a worker can", anchor="start", size=12, colour=theme.quiet
    )
    canvas.arrow((650, 140), (650, 67), (334, 67))
    canvas.text(490, 55, "failed: tried again later", size=12, colour=theme.quiet)
    canvas.arrow((650, 174), (650, 300), (160, 300), (160, 165), dashed=True)
    canvas.text(
        410, 288, "its worker stopped or died: handed back", size=12, colour=theme.quiet
    )
    ends = (
        ("done", theme.good, "returned; kept for an hour"),
        ("dead", theme.bad, "failed, or three workers died"),
        ("cancelled", theme.quiet, "by its caller"),
        ("expired", theme.quiet, "not begun in time"),
    )
    for row, (state, colour, why) in enumerate(ends):
        middle = 67 + 60 * row
        canvas.arrow((710, 157), (766, middle))
        canvas.label(770, middle - 17, 110, state, line=colour, colour=colour)
        canvas.text(770, middle + 27, why, anchor="start", size=11, colour=theme.quiet)
    return str(canvas)
