"""A recorded terminal session as a picture that moves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from pictures.canvas import Theme
from pictures.demo_recording import COLUMNS, LINES, RECORDING
from pictures.screen import Screen, Span

__all__ = ("draw",)

_Shown = tuple[tuple[Span, ...], ...]

_COMMAND = "$ make demo"
# Seconds of the recording between two frames, and how long one is shown.
_STEP, _SHOWN, _LAST = 1.0, 0.5, 8.0
_ADVANCE, _LINE = 8.4, 19
_SIZE = 14
_TITLE = (
    "The demo in a terminal: four workers share uneven tasks and steal from each other,"
    " one is killed and its tasks are taken back, another joins late. In the end each"
    " task was done exactly once."
)


def draw(theme: Theme) -> str:
    """Show the recording, sampled, and then its last screen for a while."""
    frames = list(_frames(RECORDING))
    seconds = _SHOWN * (len(frames) - 1) + _LAST
    width, height = round(_ADVANCE * COLUMNS) + 28, _LINE * (LINES + 1) + 26
    names: dict[tuple[Span, ...], str] = {}
    groups, rules = [], []
    for number, frame in enumerate(frames):
        uses = []
        for row, line in enumerate(frame):
            if line:
                name = names.setdefault(line, f"l{len(names)}")
                uses.append(f'<use href="#{name}" y="{_LINE * (row + 1)}"/>')
        groups.append(f'<g class="f f{number}">{"".join(uses)}</g>')
        rules.append(_rule(number, len(frames), seconds))
    lines = (_line(theme, name, spans) for spans, name in names.items())
    still = (
        "@media(prefers-reduced-motion:reduce){.f{animation:none!important}"
        f".f{len(frames) - 1}{{visibility:visible}}}}"
    )
    style = f".f{{visibility:hidden}}{''.join(rules)}{still}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        f' role="img" font-family="ui-monospace,Menlo,Consolas,monospace"'
        f' font-size="{_SIZE}">\n'
        f"<title>{escape(_TITLE)}</title><style>{style}</style>\n"
        f"<defs>\n{chr(10).join(lines)}\n</defs>\n"
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"'
        f' fill="{theme.box}" stroke="{theme.line}"/>\n'
        f'<g transform="translate(14,26)">'
        f'<text fill="{theme.quiet}">{_COMMAND}</text>\n'
        + "\n".join(groups)
        + "</g>\n</svg>\n"
    )


def _frames(recording: Path) -> Iterator[_Shown]:
    """Return a screen for each second, as it was when nothing was being drawn."""
    header, *events = recording.read_text(encoding="utf-8").splitlines()
    screen = Screen(json.loads(header)["height"])
    due = _STEP
    shown: _Shown = ()
    for at, _, text in map(json.loads, events):
        # A redraw comes in several parts: what is seen is what stood before it.
        if at >= due and shown:
            yield shown
            due = at + _STEP
        screen.write(text)
        if _is_whole(screen.shown()):
            shown = screen.shown()
    yield screen.shown()


def _is_whole(shown: _Shown) -> bool:
    return bool(shown) and bool(shown[-1]) and shown[-1][0].text.startswith("╰")


def _rule(number: int, frames: int, seconds: float) -> str:
    begin = 100 * _SHOWN * number / seconds
    end = 100.0 if number == frames - 1 else 100 * _SHOWN * (number + 1) / seconds
    before = f"0%,{begin:.3f}%{{visibility:hidden}}" if number else ""
    after = f"{end:.3f}%,100%{{visibility:hidden}}" if end < 100 else ""
    return (
        f"@keyframes k{number}{{{before}{begin + 0.001:.3f}%{{visibility:visible}}"
        f"{after}}}.f{number}{{animation:k{number} {seconds:g}s step-end infinite}}"
    )


def _line(theme: Theme, name: str, spans: tuple[Span, ...]) -> str:
    return f'<g id="{name}">{"".join(_text(theme, span) for span in spans)}</g>'


def _text(theme: Theme, span: Span) -> str:
    colours = {"red": theme.bad, "green": theme.good, "quiet": theme.quiet}
    colour = colours.get(span.style.colour, theme.accent if span.style.colour else "")
    if not colour:
        colour = theme.quiet if span.style.dim else theme.text
    bold = ' font-weight="600"' if span.style.bold else ""
    # Whatever the font: a column is as wide as it is here.
    length = (
        f'textLength="{_ADVANCE * len(span.text):.1f}" lengthAdjust="spacingAndGlyphs"'
    )
    return (
        f'<text x="{_ADVANCE * span.column:.1f}" {length} fill="{colour}"{bold}>'
        f"{escape(span.text)}</text>"
    )
