"""A steal that moves: an idle worker takes half of what waits, from the back."""

from __future__ import annotations

from pictures.canvas import Canvas, Theme

__all__ = ("draw",)

_TASKS, _STOLEN = 8, 4
_STEP = 34
_SECONDS = 6


def draw(theme: Theme) -> str:
    """Two deques; the last four tasks of the first go to the second, and again."""
    rules = "".join(
        f".t{place}{{animation:steal {_SECONDS}s ease-in-out infinite}}"
        for place in range(_STOLEN)
    )
    move = (
        "@keyframes steal{0%,25%{transform:none}45%,90%"
        f"{{transform:translate({_STEP * (_TASKS - _STOLEN)}px,90px)}}"
        "100%{transform:none}}"
    )
    still = "@media(prefers-reduced-motion:reduce){rect{animation:none!important}}"
    canvas = Canvas(
        theme,
        560,
        190,
        "Worker 1 has nothing to do. It takes the last four of the eight tasks that"
        " wait in the deque of worker 0, which goes on at the front.",
        move + rules + still,
    )
    canvas.text(34, 26, "back", size=14, colour=theme.quiet)
    canvas.text(34 + _STEP * (_TASKS - 1), 26, "front", size=14, colour=theme.quiet)
    owner = "busy: takes from the front"
    thief = "idle: steals half, at the back"
    for middle, worker, words in ((60, "worker.0", owner), (150, "worker.1", thief)):
        canvas.box(12, middle - 24, _STEP * _TASKS + 10, 48, fill="none")
        canvas.arrow((298, middle), (330, middle))
        canvas.text(338, middle - 11, worker, anchor="start", mono=True, size=15)
        canvas.text(
            338, middle + 11, words, anchor="start", size=14, colour=theme.quiet
        )
    for place in range(_TASKS):
        canvas.box(
            20 + _STEP * place,
            44,
            28,
            32,
            fill=theme.good if place < _STOLEN else theme.accent,
            name=f"t{place}",
            radius=4,
        )
    return str(canvas)
