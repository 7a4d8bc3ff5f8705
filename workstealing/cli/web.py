"""`workstealing web`: the queues of a server, in a browser."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from workstealing.cli.choosing import imported_queue
from workstealing.cli.refusing import BadInput, refusing
from workstealing.client.queue import AsyncTaskQueue
from workstealing.drivers.connect import connect_async
from workstealing.errors import MissingExtra

if TYPE_CHECKING:
    from workstealing.dashboard.board import Board

__all__ = ("web_command",)

_VARIABLE = "WORKSTEALING_WEB_TOKEN"


@click.command("web")
@click.argument("app_queue", required=False, metavar="[APP:QUEUE]")
@click.option("--queue", "names", multiple=True, help="Shown first; NAME or NAME/RUN.")
@click.option("--redis", "url", help="The server; else as for all commands.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen there.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="0 takes a free one.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Holds the token; else {_VARIABLE}, else one is drawn and printed.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A host name under which browsers reach it, such as that of a proxy.",
)
@refusing()
def web_command(
    app_queue: str | None,
    names: tuple[str, ...],
    url: str | None,
    host: str,
    port: int,
    token_file: Path | None,
    hosts: tuple[str, ...],
) -> None:
    """Show the queues of a server in a browser, until Ctrl-C or SIGTERM.

    All queues that are found there are shown; dead letters can be replayed or deleted,
    tasks cancelled. Who opens it needs the token, which is printed.

    It listens on this machine only. For another address give a token of your own, and
    put a proxy that speaks TLS before it.
    """
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra(package, "dashboard")
    token = _given_token(token_file)
    if token is None and not _is_loopback(host):
        raise BadInput(
            f"{host} can be reached by others: give a token by --token-file or"
            f" {_VARIABLE}, or listen on 127.0.0.1"
        )
    _serve(_board(app_queue, names, url), host, port, token, hosts)


def _serve(
    board: Board, host: str, port: int, token: str | None, hosts: tuple[str, ...]
) -> None:
    import uvicorn

    from workstealing.dashboard.app import create_app
    from workstealing.dashboard.guarding import Guard

    secret = secrets.token_urlsafe(32) if token is None else token
    app = create_app(board, Guard(secret, hosts))
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
    )
    server = uvicorn.Server(config)
    # Who knows where it listens may end it, even if it has not begun to serve.
    with _listening(host, port) as listener, _signals_for(server.handle_exit):
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        # One that was given is known to who gave it, and is not ours to print.
        click.echo(f"{address}login#{secret}" if token is None else address)
        server.run(sockets=[listener])


@contextmanager
def _signals_for(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM be a request, also when uvicorn raises them once more."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _board(app_queue: str | None, names: tuple[str, ...], url: str | None) -> Board:
    from workstealing.dashboard.board import Board

    if app_queue is None:
        client = connect_async(url, profile="tasks")
        return Board(client, [_named(name, client) for name in names])
    if url is not None:
        raise BadInput("--redis goes without APP:QUEUE, which has its own")
    queue = imported_queue(app_queue)
    if queue.redis is not None and not isinstance(queue.redis, str):
        raise BadInput(
            f"{app_queue} has a client of its own: give it a URL, or name the server by"
            " --redis URL and the queue by --queue NAME"
        )
    client = connect_async(queue.redis, profile="tasks")
    settings = queue.settings
    own = AsyncTaskQueue(
        queue.name,
        client,
        run=queue.run,
        retention=settings.retention_ms / 1000,
        outcomes=settings.outcomes,
        lease=settings.lease_ms / 1000,
    )
    return Board(client, [own, *(_named(name, client) for name in names)])


def _named(name: str, client: Any) -> AsyncTaskQueue:
    queue, _, run = name.partition("/")
    return AsyncTaskQueue(queue, client, run=run or "default")


def _given_token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(_VARIABLE) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read: {error}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInput(f"cannot listen on {host}, port {port}: {error}") from error
