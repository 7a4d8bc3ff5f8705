"""The site has every page, and every page that it names is there.

mkdocs.yml is read as text, and the hook that it names is used as it is. mkdocs itself
is not needed.
"""

from __future__ import annotations

import ast
import importlib.util
import pkgutil
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import workstealing
from workstealing import dashboard, inspecting, jobs, node, telemetry, testing

ROOT = Path(__file__).parents[2]
NAV = re.compile(r"^nav:\n((?:[ -].*\n|\n)+)", re.MULTILINE)
PAGE = re.compile(r"([\w./-]+\.md)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s:]+)(?:#[^)\s]*)?\)")
# Modules of the package of integrations that are none, and not public.
SHARED_BY_INTEGRATIONS = {"cache_hooks", "conditions"}
OBJECT = re.compile(r"^::: (workstealing[\w.]*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def site() -> ModuleType:
    """The hook that brings pages from outside docs/ into the site."""
    spec = importlib.util.spec_from_file_location("site_hook", ROOT / ".ci/site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def named() -> list[str]:
    """The pages of the navigation, in order."""
    nav = NAV.search((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert nav is not None
    return PAGE.findall(nav[1])


def test_the_navigation_names_every_page_once(
    site: ModuleType, named: list[str]
) -> None:
    assert sorted(named) == sorted(site.pages(ROOT))


def test_every_page_of_the_navigation_exists(
    site: ModuleType, named: list[str]
) -> None:
    sources = site.pages(ROOT)

    assert [
        page for page in named if not (ROOT / sources.get(page, page)).is_file()
    ] == []


def test_links_between_files_become_links_between_pages(site: ModuleType) -> None:
    known = site.pages(ROOT)
    text = "[a](docs/tasks.md#asyncio) [b](CHANGELOG.md) [c](https://x.org/tasks.md)"

    assert site.relinked(text, "index.md", known) == (
        "[a](tasks.md#asyncio) [b](changelog.md) [c](https://x.org/tasks.md)"
    )
    assert site.relinked(
        "[t](../../docs/tasks.md)", "examples/first_task.md", known
    ) == ("[t](../tasks.md)")
    assert site.relinked("[x](../README.md)", "tasks.md", known) == "[x](index.md)"


def test_a_link_to_the_folder_of_an_example_becomes_one_to_its_page(
    site: ModuleType,
) -> None:
    known = site.pages(ROOT)

    assert site.relinked("[f](examples/first_task)", "index.md", known) == (
        "[f](examples/first_task.md)"
    )


def test_a_picture_follows_the_colours_that_the_reader_has_chosen(
    site: ModuleType,
) -> None:
    known = site.pages(ROOT)
    picture = (
        '<picture>\n<source media="…" srcset="{0}-dark.svg">\n'
        '<img alt="A plot" src="{0}-light.svg">\n</picture>'
    )

    def shown(page: str, path: str) -> str:
        found: str = site.repainted(picture.format(path), page, known)
        return found

    assert shown("index.md", "docs/images/a") == (
        "![A plot](images/a-light.svg#only-light)\n"
        "![A plot](images/a-dark.svg#only-dark)"
    )
    assert "(../images/a-dark.svg#" in shown("jobs/keep-until.md", "../images/a")


def test_every_link_of_the_site_leads_to_one_of_its_pages(site: ModuleType) -> None:
    known = site.pages(ROOT)

    for page, source in known.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        for link in LINK.findall(site.relinked(text, page, known)):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
            assert target in known or (ROOT / "docs" / target).is_file(), (page, link)


def test_no_drawing_is_wider_than_a_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

    for drawing in page.split("```\n")[1::2]:
        widest = max(drawing.splitlines(), key=len)
        assert len(widest) <= 95, widest


def test_the_reference_describes_every_public_name() -> None:
    described = {path.rpartition(".")[2] for path in _described()}

    # The page of the errors describes their whole module.
    places = (workstealing, dashboard, inspecting, jobs, node, telemetry, testing)
    public = {name for place in places for name in place.__all__}
    assert public - described == set()


def test_the_reference_describes_what_each_integration_offers() -> None:
    described = set(_described())
    folder = ROOT / "workstealing" / "integrations"
    modules = [*folder.glob("*.py"), folder / "django/__init__.py"]

    missing = {
        f"{_module_of(module)}.{name}"
        for module in modules
        if module.stem not in SHARED_BY_INTEGRATIONS
        for name in _offered(module)
    }
    assert missing - described == set()


def test_what_the_reference_describes_is_there() -> None:
    for path in _described():
        if "integrations" not in path:  # their frameworks may be missing
            assert pkgutil.resolve_name(path) is not None


def _module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _offered(file: Path) -> tuple[str, ...]:
    """The names of a module, which is read: its framework may be missing."""
    for line in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
            return tuple(ast.literal_eval(line.value))
    raise AssertionError(f"{file} has no __all__")


def _described() -> Iterator[str]:
    for page in sorted((ROOT / "docs/reference").glob("*.md")):
        yield from OBJECT.findall(page.read_text(encoding="utf-8"))
