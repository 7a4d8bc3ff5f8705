"""Adds the project's address to the metadata that a package index shows.

The repository has no public address of its own yet, so `pyproject.toml` names none.
`make dist URL=https://github.com/<owner>/<name>` builds the archives for that address:
the project's links lead there, and so do those of the README, which are relative, and
which an index cannot follow. Without an address nothing is added.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)(?=[^)]+\))")
IMAGE = re.compile(r'(?<=src=")(?![a-z]+:)|(?<=srcset=")(?![a-z]+:)')


class PublishedMetadata(MetadataHookInterface):
    """Fills in the two fields that `pyproject.toml` calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the URLs, and the README with links that work anywhere."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["urls"] = {}
        if address := os.environ.get("PROJECT_URL", "").rstrip("/"):
            files = f"{address}/blob/HEAD/"
            metadata["urls"] = {
                "Source": address,
                "Documentation": f"{files}docs/quickstart.md",
                "Changelog": f"{files}CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
            text = LINK.sub(files, text)
            text = IMAGE.sub(f"{address}/raw/HEAD/", text)
            text = text.replace("<this repository>", address)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
