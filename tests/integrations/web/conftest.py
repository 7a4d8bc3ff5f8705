"""The sites of `sites/`, each served with or without us."""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from workstealing.testing.plugin import missing

SITES = Path(__file__).parent / "sites"
UWSGI = Path(sys.executable).parent / "uwsgi"
_UVICORN = """
import socket, uvicorn
config = uvicorn.Config("{site}:app", log_level="critical", ws="websockets-sansio")
uvicorn.Server(config).run(sockets=[socket.socket(fileno={fd})])
"""

_WAITRESS = """
import signal, socket, waitress
from {site} import app
signal.signal(signal.SIGTERM, signal.default_int_handler)
waitress.serve(app, sockets=[socket.socket(fileno={fd})])
"""
_CHEROOT = """
import os, signal
from cheroot.wsgi import Server
from {site} import app
signal.signal(signal.SIGTERM, signal.default_int_handler)
os.dup2({fd}, 3)
os.environ["LISTEN_PID"] = "socket activation"
Server(("127.0.0.1", 0), app).safe_start()
"""
_WSGIREF = """
import os, signal, socket
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer
from {site} import app
class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
server = Server(("", 0), WSGIRequestHandler, bind_and_activate=False)
server.socket = socket.socket(fileno={fd})
server.server_name, server.server_port = "127.0.0.1", server.socket.getsockname()[1]
server.setup_environ()
server.set_app(app)
server.serve_forever()
"""
# What a server needs that not every checkout has.
NEEDED = {
    "gunicorn-gevent": "gevent",
    "gunicorn-gevent-hooks": "gevent",
    "waitress": "waitress",
    "cheroot": "cheroot",
    "daphne": "daphne",
    "hypercorn": "hypercorn",
    "granian-wsgi": "granian",
    "granian-asgi": "granian",
}

# `make test` has one server of each kind; `make slow` and `make web-servers` have all.
MORE = ("gevent", "granian", "hypercorn", "daphne", "uwsgi", "wsgiref", "cheroot")

Serve = Callable[..., Any]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Call tests slow that repeat on one more server what others say on the first."""
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            host = str(item.callspec.params.get("host", ""))
            if SITES.parent in item.path.parents and host.endswith(MORE):
                item.add_marker(pytest.mark.slow)


@pytest.fixture
def serve(start_site: Callable[..., Any]) -> Serve:
    """Serve sites until the test ends."""
    return _serving(start_site)


@pytest.fixture(scope="module")
def serve_plain(start_lasting_site: Callable[..., Any]) -> Serve:
    """Serve sites without us; the next test that asks for one gets the same."""
    return functools.cache(_serving(start_lasting_site))


def _serving(start_site: Callable[..., Any]) -> Serve:
    def serve(server: str, site: str, **settings: str) -> Any:
        if server == "uwsgi" and not UWSGI.exists():
            pytest.skip("uWSGI is not installed: run  pip install uwsgi")
        if server in NEEDED:
            pytest.importorskip(NEEDED[server])
        return start_site(
            lambda fd: _commands(site, fd)[server],
            folder=SITES,
            # One worker of gunicorn is enough for most, and each imports the site.
            environment={**os.environ, "WEB_CONCURRENCY": "1", **settings},
            # A uWSGI worker that is asked to end gracefully may stay for ever.
            end=signal.SIGINT if server == "uwsgi" else signal.SIGTERM,
        )

    return serve


@pytest.fixture(autouse=True, scope="session")
def _frameworks() -> None:
    for name in ("flask", "gunicorn", "starlette", "fastapi", "uvicorn", "websockets"):
        if find_spec(name) is None:
            missing(f"{name} is not installed: run  pip install --group frameworks")


def _commands(site: str, fd: int) -> dict[str, list[str]]:
    options = f"--graceful-timeout 5 -b fd://{fd} --no-control-socket"
    gunicorn = [sys.executable, "-m", "gunicorn", *options.split(), f"{site}:app"]
    socket = f"--http-socket fd://{fd} --module {site}:app"
    workers = "--master --no-orphans --worker-reload-mercy 5 --processes 2"
    paths = ["--pythonpath", str(SITES), "-H", sys.prefix]
    hooks = ["-c", f"{SITES}/gunicorn_hooks.py"]
    gevent = ["-k", "gevent"]
    granian = [sys.executable, f"{SITES}/granian_server.py", str(fd)]
    return {
        "daphne": [sys.executable, "-m", "daphne", "--fd", str(fd), f"{site}:app"],
        "hypercorn": [
            *(sys.executable, "-m", "hypercorn", "--bind", f"fd://{fd}"),
            *("--graceful-timeout", "5", f"{site}:app"),
        ],
        "cheroot": [sys.executable, "-c", _CHEROOT.format(site=site, fd=fd)],
        "gunicorn": gunicorn,
        "gunicorn-gevent": [*gunicorn, *gevent],
        "gunicorn-gevent-hooks": [*gunicorn, *gevent, *hooks],
        "gunicorn-hooks": [*gunicorn, *hooks],
        "gunicorn-preload": [*gunicorn, "--preload"],
        "gunicorn-threads": [*gunicorn, "--threads", "2"],
        "granian-asgi": [*granian, "asgi", site],
        "granian-wsgi": [*granian, "wsgi", site],
        "wsgiref": [sys.executable, "-c", _WSGIREF.format(site=site, fd=fd)],
        "uvicorn": [sys.executable, "-c", _UVICORN.format(site=site, fd=fd)],
        "uvicorn-workers": [
            *(sys.executable, "-m", "uvicorn", "--fd", str(fd)),
            *("--workers", "2", "--log-level", "critical", f"{site}:app"),
        ],
        "waitress": [sys.executable, "-c", _WAITRESS.format(site=site, fd=fd)],
        "uwsgi": [str(UWSGI), *socket.split(), *workers.split(), *paths],
    }
