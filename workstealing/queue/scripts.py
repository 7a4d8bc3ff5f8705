"""Assembles a Lua script from its package file and the helpers that it names.

The first line of a script may say `--- needs: clock, ring`. Each helper is put in
once, after the helpers it needs itself; an unknown name or a cycle is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from workstealing.errors import ConfigurationError

__all__ = ("Script", "assemble", "load_script")

_NEEDS = re.compile(r"^--- needs:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """The text of a script, and the name under which a server caches it."""

    name: str
    text: str
    sha: str


@cache
def load_script(package: str, name: str) -> Script:
    """Read `lua/<name>.lua` of a package, with its helpers from `lua/lib/`."""
    folder = files(package).joinpath("lua")

    def read(path: str) -> str:
        try:
            return folder.joinpath(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise ConfigurationError(f"{package} has no lua/{path}") from None

    return assemble(name, read)


def assemble(name: str, read: Callable[[str], str]) -> Script:
    """Join a script and its helpers; *read* gives the text of a path."""
    helpers: dict[str, str] = {}

    def gather(needed: str, above: tuple[str, ...]) -> None:
        if needed in above:
            raise ConfigurationError(
                f"Lua helpers need each other: {' -> '.join((*above, needed))}"
            )
        if needed in helpers:
            return
        text = read(f"lib/{needed}.lua")
        for deeper in _needs(text):
            gather(deeper, (*above, needed))
        helpers[needed] = text

    body = read(f"{name}.lua")
    for needed in _needs(body):
        gather(needed, ())
    text = "\n".join((*helpers.values(), body))
    # The server names scripts by SHA-1; nothing is secured by it.
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, sha)


def _needs(text: str) -> list[str]:
    match = _NEEDS.search(text)
    return [part.strip() for part in match.group(1).split(",")] if match else []
