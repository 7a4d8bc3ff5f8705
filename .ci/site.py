"""Brings pages that live outside docs/ into the site: README, changelog, examples.

Links between pages, and pictures for light and dark ones, are written so that they work
in the repository; here they are made to work in the site too. mkdocs calls the
functions that begin with `on_`.
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

__all__ = ("on_files", "on_page_markdown", "pages", "relinked", "repainted")

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(
    r"<picture>\s*<source [^>]*srcset=\"(?P<dark>[^\"]+)\"[^>]*>\s*"
    r"<img alt=\"(?P<alt>[^\"]+)\" src=\"(?P<light>[^\"]+)\"[^>]*>\s*</picture>"
)
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


def repainted(text: str, page: str, known: dict[str, str]) -> str:
    """Return the text of a page with pictures that follow the colours of the site.

    A reader may choose other ones than those of his system, which `<picture>` follows.
    """
    here = PurePosixPath(known[page]).parent

    def images(match: re.Match[str]) -> str:
        folder = PurePosixPath("docs") / PurePosixPath(page).parent
        return "\n".join(
            f"![{match['alt']}]({os.path.relpath(here / match[theme], folder)}"
            f"#only-{theme})"
            for theme in ("light", "dark")
        )

    return _PICTURE.sub(images, text)


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
    known = pages()
    return repainted(relinked(text, page.file.src_uri, known), page.file.src_uri, known)
