"""Shows a traceback with the library's own frames folded."""

from __future__ import annotations

from workstealing.dashboard.markup import Html, tag
from workstealing.inspecting.formatting import plural
from workstealing.inspecting.tracebacks import parts_of_traceback

__all__ = ("trace_markup",)


def trace_markup(traceback: str) -> Html:
    """Return a traceback; frames of workstealing are shown on request."""
    parts = []
    for part in parts_of_traceback(traceback):
        lines = tag("div", part.text)
        if part.frames:
            frames = plural(part.frames, "frame")
            summary = tag("summary", f"{frames} of workstealing")
            lines = tag("details", summary, lines)
        parts.append(lines)
    return tag("div", *parts, class_="trace", tabindex="0")
