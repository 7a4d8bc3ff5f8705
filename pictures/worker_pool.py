"""Kinds of pools: slots that share one lease, or processes with one each."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)


def draw(theme: Theme) -> str:
    """A pool of threads above, a pool of processes below; Redis at the left."""
    canvas = Canvas(
        theme,
        560,
        352,
        "A pool of threads or coroutines is one process with several slots: one worker"
        " with one lease, which exchanges reports for batches of tasks. A pool of"
        " processes has a worker and a lease per child; one that dies is replaced.",
    )
    canvas.label(14, 150, 84, "Redis", line=theme.accent)
    for middle, bend in ((98, 156), (258, 178)):
        canvas.arrow((98, bend), (130, bend), (130, middle), (164, middle))
    canvas.text(14, 206, "batches of", anchor="start", size=14, colour=theme.quiet)
    canvas.text(14, 226, "tasks for", anchor="start", size=14, colour=theme.quiet)
    canvas.text(14, 246, "reports", anchor="start", size=14, colour=theme.quiet)
    canvas.text(168, 24, 'kind="threads" or "asyncio"', anchor="start", mono=True)
    canvas.box(168, 44, 378, 108, fill="none", line=theme.accent)
    canvas.text(182, 66, "one process, one lease:", anchor="start", size=15)
    canvas.text(532, 66, "web1.0", anchor="end", mono=True, colour=theme.accent)
    for place in range(4):
        words = "idle" if place == 3 else "runs"
        colour = theme.line if place == 3 else theme.accent
        canvas.label(182 + 89 * place, 98, 82, f"slot {words}", line=colour)
    canvas.text(168, 184, 'kind="processes"', anchor="start", mono=True)
    children = (("web1.0", "runs", "accent"), ("web1.1", "runs", "accent"))
    for place, (name, words, colour) in enumerate(
        (*children, ("web1.2", "died", "bad"))
    ):
        _child(canvas, 168 + 130 * place, name, words, getattr(theme, colour))
    canvas.arrow((487, 296), (487, 316), (440, 316), colour=theme.good)
    canvas.text(434, 316, "replaced at once", anchor="end", size=15, colour=theme.good)
    canvas.text(
        14, 338, "Stopping hands back what waits and lets what runs end", anchor="start"
    )
    return str(canvas)


def _child(canvas: Canvas, left: float, name: str, words: str, colour: str) -> None:
    canvas.box(left, 204, 118, 92, line=colour)
    canvas.text(left + 59, 228, name, mono=True, colour=colour)
    canvas.text(left + 59, 252, "its own lease", colour=canvas.theme.quiet)
    canvas.text(left + 59, 276, words, colour=colour)
