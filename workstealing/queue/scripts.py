"""Assembles a Lua script from its file, its header and the helpers that it needs.

A header declares what the script takes. The order of its lines is the order on the
wire, and nobody else has to know it: the script reads names, and callers pass names.

    --- needs: clock, wake_workers
    -- KEY inboxes[3]  list  one for each priority
    -- KEY lock        hash  id -> worker#token
    -- ARG most        int   tasks moved at most
    -- ARG wake        flag  the thief does not know of it
    -- ARGS ids        str   any number of them

`KEY lock` gives the script a local `lock`, and `inboxes[3]` a table of three keys. An
argument that is an `int` becomes a number, a `flag` a boolean, any other stays the text
that was sent. `KEYS` and `ARGS` end a list with any number of values: the local
`ids_at` is the position of the first one in `ARGV`.

In Python the header becomes two functions, `script.keys(lock=…, …)` and
`script.arguments(most=…, …)`. They take each name, in any order, and return a tuple; a
missing or unknown name is a `TypeError`. They are as fast as a tuple written by hand.

Helpers live in `lua/lib/`. Each is put in once, after the helpers that it needs itself.
A helper says in each function which names of the header it wants, `--- uses: lock,
inboxes`, and gets locals in the place of that line: a value that a closure captures
costs more than one that is looked up. A script that needs the helper without declaring
these names is refused.

Each function of a helper is made anew whenever the script runs, which costs more than
most commands. Helpers that hardly any call uses are named apart:

    --- needs rarely: lines, permits

They are made together, when a function of theirs is first called, unless something
else in the script needs them always.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

from workstealing.errors import ConfigurationError

__all__ = ("Declared", "Script", "assemble", "load_script")

_DECLARED = re.compile(
    r"^-- (KEY|ARG)(S?) +([a-z]\w*)(?:\[(\d)\])? *(\w*).*$", re.MULTILINE
)
_NEEDS = re.compile(r"^--- needs: *(.+)$", re.MULTILINE)
_RARELY = re.compile(r"^--- needs rarely: *(.+)$", re.MULTILINE)
_USES = re.compile(r"^( *)--- uses: *(.+)$", re.MULTILINE)
_COMMENT = re.compile(r"^ *--.*$", re.MULTILINE)
_FUNCTION = re.compile(r"^local function (\w+)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_IN_LUA = {"int": "tonumber({})", "flag": "{} == '1'"}


@cache
def load_script(
    package: str, name: str, shared: Collection[str] = frozenset()
) -> Script:
    """Read `lua/<name>.lua` of a package, with its helpers.

    Those are in its `lua/lib/`, or else in that of this package. *shared* names keys
    that `script.keys` reads from attributes of its first argument, so that callers name
    only the others.
    """

    def read(path: str) -> str:
        for place in (package, __package__)[: 2 if path.startswith("lib/") else 1]:
            file = files(place).joinpath("lua").joinpath(path)
            if file.is_file():
                return file.read_text(encoding="utf-8")
        raise ConfigurationError(f"{package} has no lua/{path}")

    return assemble(name, read, shared)


def assemble(
    name: str, read: Callable[[str], str], shared: Collection[str] = frozenset()
) -> Script:
    """Join a script and its helpers; *read* returns the text of a path."""
    body = read(f"{name}.lua")
    keys = Declared.read(name, "KEY", body)
    arguments = Declared.read(name, "ARG", body)
    values = keys.in_lua("KEYS") | arguments.in_lua("ARGV")
    always = _helpers(_needed(body), read)
    rarely = _helpers(_needed_rarely(body, *always.values()), read, beside=always)
    used = {
        path: _with_used(helper, values, f"lua/{name}.lua needs lua/{path}, which")
        for path, helper in (always | rarely).items()
    }
    parts = _with_rare(used, rarely, f"{name}.lua", _with_declared(body, values))
    text = "\n".join(parts.values())
    return Script(
        name,
        text,
        # The server names scripts by SHA-1; nothing is secured by it.
        hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
        keys.function(f"{name}.keys", shared),
        arguments.function(f"{name}.arguments"),
        keys,
        arguments,
        tuple((path, part.count("\n") + 1) for path, part in parts.items()),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Script:
    """The text of a script, the name by which a server caches it, and its header."""

    name: str
    text: str = field(repr=False)
    sha: str
    keys: Callable[..., tuple[str, ...]] = field(repr=False)
    """Returns the keys of a call, given by name."""
    arguments: Callable[..., tuple[Any, ...]] = field(repr=False)
    """Returns the arguments of a call, given by name."""
    declared_keys: Declared = field(repr=False)
    declared_arguments: Declared = field(repr=False)
    parts: tuple[tuple[str, int], ...] = field(repr=False)
    """The files that the text was made of, and how many lines each has."""

    def source_of(self, line: int) -> str:
        """Return the file and line that a server's `user_script:<line>` means."""
        left = line
        for path, length in self.parts:
            if left <= length:
                return f"{path}:{left}"
            left -= length
        return f"{self.name}:{line}"


@dataclass(frozen=True, slots=True)
class Declared:
    """The keys, or the arguments, that the header of a script declares."""

    types: Mapping[str, str]
    """Each name, in the order of the wire, but for the tail."""
    sizes: Mapping[str, int]
    """How many values a name stands for, if not for one."""
    tail: str | None
    """Stands for any number of values, which come last."""

    @classmethod
    def read(cls, script: str, word: Literal["KEY", "ARG"], text: str) -> Declared:
        """Read the lines of a header that begin with `KEY`, or with `ARG`."""
        types: dict[str, str] = {}
        sizes: dict[str, int] = {}
        tail: str | None = None
        for which, is_tail, name, size, type_ in _DECLARED.findall(text):
            if which != word:
                continue
            if tail is not None or name in types:
                raise ConfigurationError(
                    f"lua/{script}.lua declares {word} {name}"
                    + (" twice" if name in types else f" after {word}S {tail}")
                )
            if is_tail:
                tail = name
            else:
                types[name] = type_
            if size:
                sizes[name] = int(size)
        return cls(types, sizes, tail)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of the wire."""
        return (*self.types, *((self.tail,) if self.tail else ()))

    def in_lua(self, table: Literal["KEYS", "ARGV"]) -> dict[str, str]:
        """Return what each name means in the script."""
        values: dict[str, str] = {}
        position = 1
        for name, type_ in self.types.items():
            size = self.sizes.get(name, 1)
            places = [f"{table}[{position + n}]" for n in range(size)]
            if name in self.sizes:
                values[name] = f"{{{', '.join(places)}}}"
            else:
                values[name] = _IN_LUA.get(type_, "{}").format(*places)
            position += size
        if self.tail:
            values[f"{self.tail}_at"] = str(position)
        return values

    def function(
        self, name: str, shared: Collection[str] = ()
    ) -> Callable[..., tuple[Any, ...]]:
        """Return a function that puts values given by name into the order of the wire.

        It reads those that are *shared* from its first argument, if there are any.
        """
        names = self.names
        own = [each for each in names if each not in shared]
        parameters = ["shared", "/"] if shared else []
        parameters += ["*", *own] if own else []
        values = (
            ("*" if each in self.sizes or each == self.tail else "")
            + (f"shared.{each}" if each in shared else each)
            for each in names
        )
        source = f"lambda {', '.join(parameters)}: ({', '.join((*values, ''))})"
        # Made of the names in a file of this package, which are identifiers.
        function = eval(source if names else "lambda *_: ()")  # noqa: S307
        function.__name__ = function.__qualname__ = name
        return cast("Callable[..., tuple[Any, ...]]", function)


def _helpers(
    needed: Sequence[str],
    read: Callable[[str], str],
    beside: Collection[str] | None = None,
) -> dict[str, str]:
    """Return the text of helpers by path, each after those that it needs itself.

    Those that are rarely needed, *beside* others that are there, are made together: so
    they come with all that they need, however rarely.
    """
    gathered: dict[str, str] = {}

    def gather(helper: str, above: tuple[str, ...]) -> None:
        if helper in above:
            raise ConfigurationError(
                f"Lua helpers need each other: {' -> '.join((*above, helper))}"
            )
        path = f"lib/{helper}.lua"
        if path in gathered or path in (beside or ()):
            return
        text = read(path)
        rarely = [] if beside is None else _needed_rarely(text)
        for deeper in (*_needed(text), *rarely):
            gather(deeper, (*above, helper))
        gathered[path] = text

    for helper in needed:
        gather(helper, ())
    return gathered


def _needed(text: str) -> list[str]:
    return [name for line in _NEEDS.findall(text) for name in _split(line)]


def _needed_rarely(*texts: str) -> list[str]:
    lines = [line for text in texts for line in _RARELY.findall(text)]
    return [name for line in lines for name in _split(line)]


def _with_rare(
    helpers: Mapping[str, str], rarely: Collection[str], script: str, body: str
) -> dict[str, str]:
    """Put a script behind its helpers, some of which are made when first called.

    What is added stands in the first lines of files, so that lines are where they were.
    """
    if not rarely:
        return {**helpers, script: body}
    rare = {path: helpers[path] for path in rarely}
    parts = {path: text for path, text in helpers.items() if path not in rarely}
    names = "|".join(_FUNCTION.findall("\n".join(rare.values())))
    call = re.compile(rf"(?<![\w.])({names})(?=\()")
    called = sorted({n for text in (*parts.values(), body) for n in call.findall(text)})
    parts = {path: call.sub(r"rarely.\1", text) for path, text in parts.items()}
    opening = "setmetatable(rarely, {__index = function(_, name) "
    fields = "".join(f"rarely.{name} = {name} " for name in called)
    closing = f"{fields}return rawget(rarely, name) end}}) "
    parts |= _with_prefix(rare, opening)
    parts[script] = closing + call.sub(r"rarely.\1", body)
    return _with_prefix(parts, "local rarely = {} ")


def _with_prefix(parts: Mapping[str, str], prefix: str) -> dict[str, str]:
    first, *_ = parts
    return {**parts, first: prefix + parts[first]}


def _with_declared(text: str, values: Mapping[str, str]) -> str:
    """Put a local in the place of each declaration whose name the script mentions."""
    mentioned = set(_WORD.findall(_COMMENT.sub("", text)))

    def local(line: re.Match[str]) -> str:
        name = f"{line[3]}_at" if line[2] else line[3]
        return _local([name], values) if name in mentioned else line[0]

    return _DECLARED.sub(local, text)


def _with_used(text: str, values: Mapping[str, str], helper: str) -> str:
    """Put locals in the place of the lines that say which names are used."""

    def local(line: re.Match[str]) -> str:
        names = _split(line[2])
        missing = ", ".join(name for name in names if name not in values)
        if missing:
            raise ConfigurationError(f"{helper} uses {missing}: declare it")
        return line[1] + _local(names, values)

    return _USES.sub(local, text)


def _local(names: Sequence[str], values: Mapping[str, str]) -> str:
    return f"local {', '.join(names)} = {', '.join(values[name] for name in names)}"


def _split(line: str) -> list[str]:
    return [part.strip() for part in line.split(",")]
