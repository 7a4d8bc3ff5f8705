"""Puts tables and plots into the pages that show them, between two marks.

So a run updates the pages, and nobody copies a figure by hand.
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.peers.plots import Plot, picture, write_plots
from benchmarks.peers.results import Results
from benchmarks.peers.tables import comparison, summary

__all__ = ("between_marks", "write_pages", "write_report")

_BEGINS = "<!-- peers: written by make bench-peers -->"
_ENDS = "<!-- peers: end -->"
_MARKED = re.compile(f"{re.escape(_BEGINS)}\n.*?{re.escape(_ENDS)}", re.DOTALL)
_IN_README = ("peers-drain", "peers-round-trip")


def write_pages(results: Results, root: Path) -> None:
    """Write the plots, and what README.md and docs/comparison.md say."""
    drawn = write_plots(results, root / "docs" / "images")
    first = [plot for plot in drawn if plot.name in _IN_README]
    _replace(
        root / "README.md", f"{_pictures(first, 'docs/images')}\n\n{summary(results)}"
    )
    _replace(
        root / "docs" / "comparison.md",
        f"{_pictures(drawn, 'images')}\n\n{comparison(results)}",
    )


def write_report(results: Results, folder: Path) -> None:
    """Write the same into a folder, without touching a page."""
    drawn = write_plots(results, folder)
    text = f"{_pictures(drawn, '.')}\n\n{comparison(results)}\n"
    (folder / "report.md").write_text(text, encoding="utf-8")


def between_marks(page: str, text: str) -> str:
    """Return a page with what is between its marks replaced.

    Raises:
        ValueError: the page has not exactly one pair of marks.
    """
    marked = f"{_BEGINS}\n\n{text}\n\n{_ENDS}"
    replaced, count = _MARKED.subn(lambda _: marked, page)
    if count != 1:
        raise ValueError(
            f"the page must have {_BEGINS} and {_ENDS} once, not {count} times"
        )
    return replaced


def _pictures(plots: list[Plot], folder: str) -> str:
    return "\n\n".join(picture(plot, folder) for plot in plots)


def _replace(path: Path, text: str) -> None:
    page = path.read_text(encoding="utf-8")
    path.write_text(between_marks(page, text), encoding="utf-8")
