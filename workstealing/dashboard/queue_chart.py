"""The chart of a queue: done and failed per second, over minutes or hours."""

from __future__ import annotations

from workstealing.dashboard.dashboard_data import QueueSnapshot
from workstealing.dashboard.drawings import ChartMark, RatePoint, rate_chart
from workstealing.dashboard.layout import where_of
from workstealing.dashboard.markup import Html, link, tag, text
from workstealing.inspecting import QueueEvents, QueueHistory, Release
from workstealing.inspecting.formatting import one_decimal

__all__ = ("LAST", "chosen_span", "queue_chart")

LAST = {60: "last hour", 10: "last 10 minutes", 480: "last 8 hours"}
"""How far one can look back, in minutes and in words."""

_SHORT = {60: "1 h", 10: "10 min", 480: "8 h"}


def chosen_span(given: str) -> int:
    """Return over how many minutes a reader wants to look back."""
    return next((span for span in LAST if str(span) == given), 60)


def queue_chart(
    snapshot: QueueSnapshot, history: QueueHistory, events: QueueEvents, span: int
) -> Html:
    """Draw what ended, with marks where a release joined, and offer other spans."""
    seen, rates = snapshot.stat, snapshot.rates
    now_ms = seen.now_ms
    lately = ""
    if rates is not None:
        done, stolen = one_decimal(rates.done), one_decimal(rates.stolen)
        lately = f" · now {done} done/s, {stolen} stolen/s"
    points = _rate_points(history, now_ms)
    if span == 10 and len(snapshot.history) > 1:
        # Finer than minutes, but only from when somebody has looked.
        since_ms = snapshot.history[0].at_ms
        points = [one for one in points if one.at_ms < since_ms]
        points += snapshot.history
    marks = [ChartMark(one.at_ms, _release_words(one)) for one in events.releases]
    spans = [
        link("/queue", words, **where_of(seen), span=str(minutes))
        if minutes != span
        else text(words)
        for minutes, words in sorted(_SHORT.items())
    ]
    choice = text(*(text(" · " if n else "last ", one) for n, one in enumerate(spans)))
    if not any(one.done or one.failed for one in points):
        points = []
    return tag(
        "section",
        tag("h2", "Done and failed per second"),
        tag("p", choice, f", UTC{lately}", class_="quiet"),
        rate_chart(points, now_ms - span * 60_000, now_ms, marks),
        tag(
            "ul",
            tag("li", "done", class_="done"),
            tag("li", "failed", class_="fails"),
            class_="legend rates",
        ),
        class_="card",
    )


def _rate_points(history: QueueHistory, now_ms: int) -> list[RatePoint]:
    """Return the rate of each stretch; of the last one, of as much as has passed."""
    points = []
    for one in history.stretches:
        end_ms = min(one.at_ms, now_ms)
        passed = (end_ms - one.at_ms + history.stretch_ms) / 1000
        # Less than a minute would look like a fall: workers report every few seconds.
        if passed >= 60:
            points.append(RatePoint(end_ms, one.done / passed, one.failed / passed))
    return points


def _release_words(release: Release) -> str:
    first, *others = release.abilities
    name, _, version = first.rpartition("@")
    name = f"{name if len(name) <= 20 else f'{name[:19]}…'}@{version}"
    return f"{name} joined" if not others else f"{name} + {len(others)} joined"
