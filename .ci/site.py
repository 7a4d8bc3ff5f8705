"""Brings pages that live outside docs/ into the site: README, changelog, examples.

Links between pages are written so that they work in the repository; here they are made
to work in the site too. mkdocs calls the functions that begin with `on_`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = ("on_files", "on_page_markdown", "pages", "pictured", "relinked")

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(r"<picture>.*?</picture>", re.DOTALL)
_FILE = re.compile(r'\b(src|srcset)="([^":]+)"')
_OUTSIDE = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
}


def pages(root: Path = ROOT) -> dict[str, str]:
    """Return all pages of the site, and the file that each is made of."""
    docs = root / "docs"
    inside = (page.relative_to(docs).as_posix() for page in docs.rglob("*.md"))
    examples = (readme.parent.name for readme in root.glob("examples/*/README.md"))
    return {
        **{page: f"docs/{page}" for page in sorted(inside)},
        **{f"examples/{name}.md": f"examples/{name}/README.md" for name in examples},
        **_OUTSIDE,
    }


def relinked(text: str, page: str, known: dict[str, str]) -> str:
    """Return the text of a page with links to files made links to their pages."""
    here = PurePosixPath(known[page]).parent
    by_source = {source: one for one, source in known.items()}

    def link(match: re.Match[str]) -> str:
        source = os.path.normpath(here / match[1])
        # A link to a folder is one to its README, as it is where code is browsed.
        found = by_source.get(source) or by_source.get(f"{source}/README.md")
        if found is None:
            return match[0]
        target = os.path.relpath(found, PurePosixPath(page).parent)
        return f"]({target}{match[2] or ''})"

    return _LINK.sub(link, text)


def pictured(text: str, page: str, known: dict[str, str]) -> str:
    """Return the text with the files of each `<picture>` found from the page's address.

    mkdocs adapts what is Markdown, not what is HTML. The page `a.md` is at `a/`.
    """
    here = PurePosixPath(known[page]).parent
    address = PurePosixPath("docs", page.removesuffix(".md").removesuffix("index"))

    def file(match: re.Match[str]) -> str:
        found = os.path.relpath(os.path.normpath(here / match[2]), address)
        return f'{match[1]}="{found}"'

    return _PICTURE.sub(lambda picture: _FILE.sub(file, picture[0]), text)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages from outside."""
    from mkdocs.structure.files import File

    for page, source in pages().items():
        if not source.startswith("docs/"):
            text = (ROOT / source).read_text(encoding="utf-8")
            files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(text: str, page: Page, **_: Any) -> str:
    """Make the links and pictures of a page those of the site."""
    name, known = page.file.src_uri, pages()
    return pictured(relinked(text, name, known), name, known)
