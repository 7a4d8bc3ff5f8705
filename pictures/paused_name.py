"""A pause of one name: its tasks stand aside, the others run."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)


def draw(theme: Theme) -> str:
    """Tasks of two names in the inbox; those of the paused one are put aside."""
    canvas = Canvas(
        theme,
        560,
        262,
        "The name resize is paused. A worker that comes across such a task puts it"
        " aside, where it waits until it is resumed; mail runs past it, and what ran"
        " already ends.",
    )
    canvas.text(14, 24, 'queue.pause("resize")', anchor="start", mono=True, size=14)
    canvas.text(14, 66, "inbox", anchor="start", size=15)
    for place, name in enumerate(("mail", "resize", "mail", "resize")):
        colour = theme.accent if name == "mail" else theme.bad
        canvas.label(66 + 78 * place, 49, 72, name, line=colour)
    canvas.arrow((382, 66), (424, 66))
    canvas.label(428, 49, 118, "worker", line=theme.accent)
    canvas.arrow((487, 83), (487, 118), colour=theme.good)
    canvas.label(428, 122, 118, "mail runs", line=theme.good, colour=theme.good)
    canvas.arrow((450, 83), (450, 100), (260, 100), (260, 158), colour=theme.bad)
    canvas.text(268, 120, "put aside", anchor="start", size=15, colour=theme.bad)
    canvas.box(66, 162, 316, 46, fill="none", line=theme.bad)
    for place in range(3):
        canvas.label(80 + 78 * place, 168, 72, "resize", line=theme.bad)
    canvas.text(340, 185, "aside", size=14, colour=theme.quiet)
    canvas.arrow((66, 185), (30, 185), (30, 86), colour=theme.good, dashed=True)
    canvas.text(
        14,
        238,
        "queue.resume() brings them back; what runs is left alone",
        anchor="start",
        size=15,
    )
    return str(canvas)
