"""A real Django project, under real servers and its own `manage.py`."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from workstealing.testing.plugin import missing

PROJECT = Path(__file__).parent / "project"
ROOT = Path(__file__).parents[3]
_UVICORN = """
import socket, uvicorn
config = uvicorn.Config("bazaar.asgi:app", log_level="critical", lifespan="off")
uvicorn.Server(config).run(sockets=[socket.socket(fileno={fd})])
"""

Serve = Callable[..., Any]
Manage = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def serve(start_site: Callable[..., Any]) -> Serve:
    """Serve the project until the test ends."""
    return _serving(start_site)


@pytest.fixture(scope="module")
def serve_plain(start_lasting_site: Callable[..., Any]) -> Serve:
    """Serve the project without us; the next test that asks for it gets the same."""
    serve = _serving(start_lasting_site)
    return functools.cache(lambda server: serve(server, OURS="no"))


def _serving(start_site: Callable[..., Any]) -> Serve:
    def serve(server: str, **settings: str) -> Any:
        return start_site(
            lambda fd: _commands(fd)[server],
            folder=PROJECT,
            # One worker of gunicorn is enough for most, and each imports the site.
            environment=_environment(**{"WEB_CONCURRENCY": "1", **settings}),
            varying=("date", "expires", "age"),
        )

    return serve


@pytest.fixture
def manage(tmp_path: Path) -> Manage:
    """Run `manage.py`, or a program after `-c`, in the project."""
    (tmp_path / "diary").touch()

    def manage(*words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        program = words if words[0] == "-c" else ("manage.py", *words)
        return subprocess.run(
            [sys.executable, *program],
            cwd=PROJECT,
            env=_environment(DIARY=str(tmp_path / "diary"), **settings),
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

    return manage


@pytest.fixture(autouse=True, scope="session")
def _frameworks() -> None:
    for name in ("django", "django_redis", "gunicorn", "uvicorn"):
        if find_spec(name) is None:
            missing(f"{name} is not installed: run  pip install --group frameworks")


def _commands(fd: int) -> dict[str, list[str]]:
    options = f"-b fd://{fd} --no-control-socket"
    gunicorn = [sys.executable, "-m", "gunicorn", *options.split(), "bazaar.wsgi:app"]
    return {
        "gunicorn": gunicorn,
        "gunicorn-preload": [*gunicorn, "--preload"],
        "uvicorn": [sys.executable, "-c", _UVICORN.format(fd=fd)],
    }


def _environment(**settings: str) -> dict[str, str]:
    unwanted = ("WORKSTEALING_URL", "REDIS_URL")
    kept = {name: v for name, v in os.environ.items() if name not in unwanted}
    here = {"DJANGO_SETTINGS_MODULE": "bazaar.settings", "PYTHONPATH": str(ROOT)}
    return {**kept, **here, **settings}
