"""Tables, plots and pages of `make bench-peers`, from figures that are made up."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers.bar_chart import DARK, LIGHT, Theme, contrast
from benchmarks.peers.pages import between_marks, write_pages, write_report
from benchmarks.peers.results import Results, load, save
from benchmarks.peers.tables import comparison, summary

SVG = "{http://www.w3.org/2000/svg}"
MARKED = "<!-- peers: written by make bench-peers -->\nold\n<!-- peers: end -->"


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Two libraries and the raw loop, stored and read again."""
    made_up = Results(
        *("2026-01-02", "2 cores", "3.11", "Redis 7.0.15"), rounds=3, is_quick=False
    )
    made_up.versions = {
        "raw": {"redis": "8.1.0"},
        "workstealing": {"workstealing": "0.1.0"},
        "huey": {"huey": "3.5.4"},
    }
    for name, drained, waiting, finished in (
        ("raw", 2_000.0, 70.0, 147.0),
        ("workstealing", 20_000.0, 139.0, 219.0),
        ("huey", 1_000.0, 137.0, 121.0),
    ):
        for noise in (0.5, 1.0, 1.5):
            figures = {
                "drained_per_s": drained * noise,
                "waiting_bytes": waiting,
                "finished_bytes": finished,
            }
            made_up.add("drain", name, figures)
        trips = {"trip_p50_ms": 1.0, "trip_p99_ms": 3.0, "idle_trip_p50_ms": 2.0}
        made_up.add("round_trip", name, trips)
    kills = {"default_tasks": 2000.0, "default_repeated": 3.0}
    made_up.add("kills", "workstealing", {**kills, "default_lost": 0.0})
    made_up.add("kills", "huey", {**kills, "default_lost": 19.0})
    save(made_up, tmp_path / "results.json")
    return load(tmp_path / "results.json")


def test_a_table_shows_the_median_of_the_rounds(results: Results) -> None:
    text = comparison(results)

    assert "| **workstealing 0.1** | 20,000 |" in text
    assert "| Huey 3.5 | 1,000 |" in text


def test_a_table_says_when_and_where_it_was_measured(results: Results) -> None:
    for text in (comparison(results), summary(results)):
        assert "2026-01-02" in text
        assert "Redis 7.0.15" in text
        assert "2 cores" in text


def test_the_page_says_in_words_where_a_peer_is_better(results: Results) -> None:
    text = comparison(results)

    assert "- memory of a finished task: Huey 121 B, here 219 B" in text
    assert "memory of a waiting task: Huey" not in text, "a tie is no win"


def test_the_page_says_which_peer_loses_nothing_either(results: Results) -> None:
    assert "lost nothing either" not in comparison(results)

    results.figures["kills"]["huey"][0]["default_lost"] = 0.0

    assert "with nothing set, Huey lost nothing either" in comparison(results)


def test_a_quick_trial_does_not_pass_for_a_measurement(results: Results) -> None:
    assert "not a measurement" in comparison(replace(results, is_quick=True))


def test_a_library_that_failed_is_named(results: Results) -> None:
    results.fail("install", "arq", "arq was not installed: no such version")

    assert "- arq, install: arq was not installed: no such version" in (
        comparison(results)
    )


def test_plots_are_pictures_with_a_title_and_a_description(
    results: Results, tmp_path: Path
) -> None:
    write_report(results, tmp_path)

    for theme in ("light", "dark"):
        picture = ET.parse(tmp_path / f"peers-drain-{theme}.svg").getroot()
        title, description = picture.find(f"{SVG}title"), picture.find(f"{SVG}desc")
        assert title is not None
        assert title.text == "No-op tasks per second, one worker process"
        assert description is not None
        assert "workstealing: 20,000" in str(description.text)


def test_a_plot_has_the_best_on_top_and_nothing_outside(
    results: Results, tmp_path: Path
) -> None:
    write_report(results, tmp_path)

    picture = ET.parse(tmp_path / "peers-drain-light.svg").getroot()
    labels = [
        text.text
        for text in picture.iter(f"{SVG}text")
        if text.get("text-anchor") == "end"
    ]
    assert labels == ["workstealing", "raw Redis loop", "Huey"]
    width = float(picture.get("width", "0"))
    for bar in picture.iter(f"{SVG}rect"):
        assert float(bar.get("x", "0")) + float(bar.get("width", "0")) <= width


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_all_colours_can_be_read(theme: Theme) -> None:
    for colour in (theme.text, theme.ours, theme.others):
        assert contrast(colour, theme.background) >= 4.5


def test_pages_get_tables_and_pictures_that_exist(
    results: Results, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    pages = [tmp_path / "README.md", tmp_path / "docs" / "comparison.md"]
    for page in pages:
        page.write_text(f"before\n\n{MARKED}\n\nafter\n", encoding="utf-8")

    write_pages(results, tmp_path)
    write_pages(results, tmp_path)

    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert text.startswith("before\n")
        assert text.endswith("after\n")
        assert "old" not in text
        assert "prefers-color-scheme: dark" in text
        for path in text.split('src="')[1:]:
            assert (page.parent / path.split('"')[0]).is_file()


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="not 0 times"):
        between_marks("no marks", "text")
