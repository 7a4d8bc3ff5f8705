"""What a package index shows leads to the project's address, wherever that will be."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
ADDRESS = "https://git.example/team/workstealing"
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


def hatchling(*words: str, address: str = "", folder: Path = ROOT) -> str:
    return subprocess.run(
        [sys.executable, "-m", "hatchling", *words],
        cwd=folder,
        env={**os.environ, "PROJECT_URL": address},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def links_of(readme: str) -> set[str]:
    # A colour scheme's picture and a link both lead somewhere; "#try-it" stays here.
    found = {one or other for one, other in LINK.findall(readme)}
    return {link for link in found if not link.startswith("#")}


@pytest.mark.parametrize("address", [ADDRESS, f"{ADDRESS}/"])
def test_every_link_of_the_published_readme_is_absolute(address: str) -> None:
    links = links_of(hatchling("metadata", "readme", address=address))

    files = {link for link in links if link.startswith(f"{ADDRESS}/")}
    assert links == files
    paths = [
        re.sub(r"^(blob|raw)/HEAD/|#.*$", "", link[len(ADDRESS) + 1 :])
        for link in files
    ]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_published_package_names_where_its_source_and_issues_are() -> None:
    urls = json.loads(hatchling("metadata", "urls", address=ADDRESS))

    assert urls["Source"] == ADDRESS
    assert set(urls) == {"Source", "Documentation", "Changelog", "Issues"}


def test_without_an_address_no_url_is_invented() -> None:
    assert hatchling("metadata", "urls").strip() == "{}"
    assert hatchling("metadata", "readme").rstrip("\n") == (
        (ROOT / "README.md").read_text(encoding="utf-8").rstrip("\n")
    )


def test_a_wheel_made_from_the_source_archive_keeps_the_address(tmp_path: Path) -> None:
    hatchling(
        "build", "--target", "sdist", "--directory", str(tmp_path), address=ADDRESS
    )
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    hatchling("build", "--target", "wheel", "--directory", str(tmp_path), folder=source)

    with ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith("/METADATA"))
        metadata = wheel.read(name).decode()
    assert f"Project-URL: Source, {ADDRESS}\n" in metadata
    assert f"]({ADDRESS}/blob/HEAD/docs/pools.md)" in metadata
