"""Measures how large and how scattered the package is: `make measure`.

What a stranger has to open, learn and tell apart: files and lines; files that one task
and one recruited `enlist()` pass through; names that are used twice; checks that are
written twice. `docs/architecture.md` shows the figures, and `test_measures.py` holds
the package to its targets.

    python tests/architecture/measure.py [a checkout] [its Python]

How it measures:

- Lines of logic are lines with a token of code: no blank lines, no comments, no
  docstrings (of attributes neither), no imports and no `__all__`.
- A file is passed if one of its functions is entered while a task or a call is under
  way, in whatever thread: sys.setprofile sees it. Imports are not counted: all is warm,
  the same has been done before. Methods that dataclasses generate belong to no file.
- A task is taken by a `Worker` in a thread that has joined and waits, on a real server.
  Counted are files that each of a dozen tasks passed between the call of `submit()` and
  the return of `result()`; so a heartbeat that happens to fall in between is not.
  "With its worker" adds all that the worker does from its first line to its last:
  connect, join, exchange, leave.
- An `enlist()` is one that is recruited, of a job with a rate. "Observed" adds a job
  with `every=` and an observer that logs.
- Names taken twice are those of modules (`__init__` and `__main__` aside) and of
  classes, nested and private ones too. Django finds its commands by the class name
  `Command` and an app's parts by their module's names: these are excepted.
- A check of a number ("positive seconds" and the like) is a function that raises an
  error and is careful about what a number is: it takes `bool` apart from numbers, or
  asks whether one is finite. One file is enough for all of them.
"""

from __future__ import annotations

import ast
import io
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

__all__ = (
    "Passed",
    "Sizes",
    "Twins",
    "lines_of_logic",
    "measure",
    "number_checks",
    "passed",
    "sizes",
    "twins",
)

ROOT = Path(__file__).parents[2]

_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
_NO_NAMES = {"__init__", "__main__"}
# Django finds them by these names.
_DJANGO_CLASSES = {"Command"}
_TASKS = 12
_SETTLE = 0.1


@dataclass(frozen=True)
class Sizes:
    """How much there is to read."""

    files: int
    median_lines: int
    lines: int
    lines_of_logic: int


@dataclass(frozen=True)
class Twins:
    """Names that stand for more than one thing, and where."""

    modules: dict[str, list[str]]
    classes: dict[str, list[str]]


@dataclass(frozen=True)
class Passed:
    """Files of the package that were passed through, by what was done."""

    task: list[str]
    task_with_its_worker: list[str]
    enlist: list[str]
    enlist_observed: list[str]


def sizes(root: Path = ROOT) -> Sizes:
    """Count the Python files of the package, and their lines."""
    lines = {path: _read(path).count("\n") for path in _modules(root)}
    return Sizes(
        len(lines),
        round(statistics.median(lines.values())),
        sum(lines.values()),
        sum(len(lines_of_logic(_read(path))) for path in lines),
    )


def twins(root: Path = ROOT) -> Twins:
    """Find names of modules and classes that are taken twice."""
    modules: dict[str, list[str]] = {}
    classes: dict[str, list[str]] = {}
    for path in _modules(root):
        place = path.relative_to(root).as_posix()
        if path.stem not in _NO_NAMES:
            modules.setdefault(path.stem, []).append(place)
        for node in ast.walk(ast.parse(_read(path))):
            if isinstance(node, ast.ClassDef) and node.name not in _DJANGO_CLASSES:
                classes.setdefault(node.name, []).append(f"{place}:{node.lineno}")
    return Twins(_taken_twice(modules), _taken_twice(classes))


def number_checks(root: Path = ROOT) -> list[str]:
    """Find the functions that check whether a user gave a proper number."""
    return [
        f"{path.relative_to(root).as_posix()}:{node.lineno} {node.name}"
        for path in _modules(root)
        for node in ast.walk(ast.parse(_read(path)))
        if isinstance(node, ast.FunctionDef) and _checks_a_number(node)
    ]


def passed(root: Path = ROOT, python: str = sys.executable) -> Passed:
    """Run a task and a recruited call in a process of their own, and trace them."""
    traced = subprocess.run(
        [python, __file__, "--trace"],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if traced.returncode:
        raise RuntimeError(f"the traced run failed:\n{traced.stderr}")
    return Passed(**json.loads(traced.stdout))


def measure(root: Path = ROOT, python: str = sys.executable) -> Iterator[str]:
    """Measure everything, and write it as lines to read."""
    for name, size in asdict(sizes(root)).items():
        yield f"{name.replace('_', ' ')}: {size:,}"
    for name, files in asdict(passed(root, python)).items():
        yield f"files passed, {name.replace('_', ' ')}: {len(files)}"
        yield from (f"    {file}" for file in files)
    for name, taken in asdict(twins(root)).items():
        yield f"{name} of the same name: {len(taken)}"
        yield from (f"    {twin}: {', '.join(at)}" for twin, at in taken.items())
    found = number_checks(root)
    places = {check.partition(":")[0] for check in found}
    yield f"checks of numbers: {len(found)}, in {len(places)} files"
    yield from (f"    {check}" for check in found)


def _modules(root: Path) -> list[Path]:
    return sorted((root / "workstealing").rglob("*.py"))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _taken_twice(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: at for name, at in sorted(places.items()) if len(at) > 1}


def lines_of_logic(text: str) -> set[int]:
    """Return the lines that have code on them, by their numbers."""
    aside = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt) and _is_no_logic(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    code = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NOT_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return code - aside


def _is_no_logic(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        text = node.value
        return isinstance(text, ast.Constant) and isinstance(text.value, str)
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    return isinstance(node, ast.Import | ast.ImportFrom)


def _checks_a_number(function: ast.FunctionDef) -> bool:
    inside = list(ast.walk(function))
    asked = {name for node in inside for name in _types_asked_for(node)}
    is_careful = "bool" in asked or any(
        isinstance(node, ast.Attribute) and node.attr == "isfinite" for node in inside
    )
    return (
        is_careful
        and bool(asked & {"int", "float", "Real", "isfinite"})
        and any(isinstance(node, ast.Raise) for node in inside)
    )


def _types_asked_for(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and node.attr == "isfinite":
        yield "isfinite"
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
        names = (part for part in ast.walk(node.args[1]) if isinstance(part, ast.Name))
        yield from (name.id for name in names)


class _Tracer:
    """Collects the files of the package in which a function is entered."""

    def __init__(self, package: Path) -> None:
        self._package = f"{package}{os.sep}"
        self._files: set[str] | None = None

    def watch(self, act: Callable[[], object]) -> set[str]:
        """Do it, and return the files that were passed meanwhile, in all threads."""
        files: set[str] = set()
        self._files = files
        sys.setprofile(self.see)
        try:
            act()
        finally:
            sys.setprofile(None)
            self._files = None
        return files

    def see(self, frame: FrameType, event: str, _: object) -> None:
        """Note the file of a function that is entered."""
        code, files = frame.f_code, self._files
        if event != "call" or files is None or code.co_name == "<module>":
            return
        if code.co_filename.startswith(self._package):
            files.add(code.co_filename.removeprefix(self._package).replace(os.sep, "/"))


def _trace() -> Passed:
    import workstealing
    from workstealing.testing import Server

    tracer = _Tracer(Path(workstealing.__file__).parent)
    threading.setprofile(tracer.see)
    with Server() as server:
        alone, with_worker = _trace_a_task(tracer, server.url)
    return Passed(alone, with_worker, *_trace_a_call(tracer))


def _trace_a_task(tracer: _Tracer, url: str) -> tuple[list[str], list[str]]:
    from workstealing import TaskQueue, Worker

    queue = TaskQueue("measured", url)

    @queue.task
    def noop(number: int) -> int:
        return number

    def call() -> None:
        assert noop.submit(1).result(timeout=10) == 1

    def call_with_worker() -> None:
        handle = noop.submit(1)
        Worker(queue).run(until_empty=True)
        assert handle.result(timeout=10) == 1

    call_with_worker()
    with_worker = tracer.watch(call_with_worker)
    worker = Worker(queue)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        seen = Counter[str]()
        call()
        for _ in range(_TASKS):
            time.sleep(_SETTLE)  # until the worker waits again
            seen.update(tracer.watch(call))
    finally:
        worker.stop()
        thread.join()
    alone = [file for file, times in seen.items() if times == _TASKS]
    return sorted(alone), sorted(with_worker)


def _trace_a_call(tracer: _Tracer) -> tuple[list[str], list[str]]:
    from workstealing import Duty, Recruiter
    from workstealing.telemetry import LoggingObserver

    def work() -> Duty:
        return Duty.DISMISSED

    def enlist_often() -> None:
        for _ in range(1000):
            observed.enlist()

    plain = Recruiter(share=None)
    plain.install(work, "work", rate=1.0)
    observed = Recruiter(share=None, observers=[LoggingObserver()])
    observed.install(work, "work", rate=0.5)
    observed.install(work, "more", every=1e-6)
    plain.enlist()
    enlist_often()
    return sorted(tracer.watch(plain.enlist)), sorted(tracer.watch(enlist_often))


if __name__ == "__main__":
    if sys.argv[1:] == ["--trace"]:
        print(json.dumps(asdict(_trace())))
    else:
        folder = Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT
        for line in measure(folder, *sys.argv[2:]):
            print(line)
