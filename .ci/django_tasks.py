"""Runs Django's own tests of `django.tasks` on our backend.

`python .ci/django_tasks.py` needs Django 6 or newer. It brings the source of the same
release, which carries the tests, into `.servers/`, and runs `tests/tasks` with our
backend in the place of `DummyBackend`, and in that of `ImmediateBackend` with a worker
that runs each task at once. The tests that fail must be those that
`docs/integrations/django.md` lists, no more and no fewer.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import django

FOLDER = Path(".servers").resolve()
PAGE = Path("docs/integrations/django.md")
SETTINGS = '''
from test_sqlite import *

from django.tasks.backends import dummy, immediate
from workstealing import Worker
from workstealing.integrations.django import TaskBackend, get_queue

# The queues of the tests that name some.
WORKSTEALING = {"QUEUES": {"default": {}, "queue-1": {}}}


class InPlaceOfDummy(TaskBackend):
    def clear(self):
        """The tests call it before each; Redis need not forget anything."""


class InPlaceOfImmediate(TaskBackend):
    def enqueue(self, task, args, kwargs):
        given = super().enqueue(task, args, kwargs)
        queue = get_queue(task.queue_name)
        try:
            Worker(queue).run(until_empty=True)
        except KeyboardInterrupt:
            # It has gone back to its queue, and would interrupt the next test.
            queue.handle(given.id).cancel()
            raise
        return self.get_result(given.id)


dummy.DummyBackend = InPlaceOfDummy
immediate.ImmediateBackend = InPlaceOfImmediate
'''
# Such as "FAIL: test_a (tasks.test_b.C.test_a)", and perhaps a subtest.
FAILURE = re.compile(r"^(?:FAIL|ERROR): \w+ \((tasks\.[\w.]+)\)", re.MULTILINE)
RAN = re.compile(r"^Ran (\d+) tests", re.MULTILINE)
LISTED = re.compile(r"^\| `(\w+\.test_\w+)` \|", re.MULTILINE)


def main() -> int:
    """Compare; 1 if the page does not say what is the case."""
    said = run(bring())
    ran = RAN.search(said)
    if ran is None:
        print(said)
        return 1
    failed = {path.split(".", 2)[2] for path in FAILURE.findall(said)}
    listed = set(LISTED.findall(PAGE.read_text()))
    # The page names the release and the number, too.
    release = ".".join(django.get_version().split(".")[:2])
    claim = f"`tests/tasks` of {release}"
    count = f"{len(failed)} of {ran[1]}"
    missing = [text for text in (claim, count) if text not in PAGE.read_text()]
    if failed == listed and not missing:
        print(f"Django {django.get_version()}: {count} fail, as {PAGE} says")
        return 0
    print(said)
    for verdict, names in (
        ("fail, and are not listed", failed - listed),
        ("are listed, and pass", listed - failed),
        ("are to be said on the page", missing),
    ):
        print(f"These {verdict}:", *sorted(names), sep="\n  ")
    return 1


def run(source: Path) -> str:
    """Run the tests of the tasks; return what they say."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "on_workstealing.py").write_text(SETTINGS)
        paths = [folder, str(Path.cwd())]
        done = subprocess.run(
            [sys.executable, "runtests.py", "tasks", "--parallel", "1"],
            cwd=source / "tests",
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "on_workstealing",
                "PYTHONPATH": os.pathsep.join(paths),
                "WORKSTEALING_EMBEDDED": "allow",
                "WORKSTEALING_URL": "",
                "REDIS_URL": "",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.stdout


def bring() -> Path:
    """Return the source of the installed Django, after bringing it if need be."""
    version = django.get_version()
    source = FOLDER / f"django-{version}"
    if not source.exists():
        FOLDER.mkdir(exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        wanted = ["--no-binary", "django", "-d", str(FOLDER), f"django=={version}"]
        subprocess.check_call([*pip, *wanted])
        with tarfile.open(FOLDER / f"{source.name}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    return source


if __name__ == "__main__":
    sys.exit(main())
