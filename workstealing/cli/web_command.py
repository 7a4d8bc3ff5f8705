"""`workstealing web`: shows the queues of a server in a browser."""

from __future__ import annotations

import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from workstealing.cli.entry import require_extra
from workstealing.cli.options import (
    BadInput,
    clear_errors,
    imported_queue,
    redis_option,
)
from workstealing.client.async_task_queue import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.drivers.connect import connect_async

if TYPE_CHECKING:
    from workstealing.dashboard.access_guard import AccessGuard
    from workstealing.dashboard.dashboard_data import DashboardData

__all__ = ("web_command",)

_VARIABLE = "WORKSTEALING_WEB_TOKEN"
_READ_ONLY_VARIABLE = "WORKSTEALING_WEB_READ_ONLY_TOKEN"


@click.command("web")
@click.argument("app_queue", required=False, metavar="[APP:QUEUE]")
@click.option(
    "--queue",
    "names",
    multiple=True,
    metavar="NAME[/RUN]",
    help="Show this queue first; may be repeated.",
)
@redis_option("Server.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8765,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"File with the token.  [default: {_VARIABLE}, or a new one is printed]",
)
@click.option(
    "--read-only-token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with a second, read-only token."
    f"  [default: {_READ_ONLY_VARIABLE}, or none]",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Host name that browsers may use, such as that of a proxy.",
)
@clear_errors()
def web_command(
    app_queue: str | None,
    names: tuple[str, ...],
    url: str | None,
    host: str,
    port: int,
    token_file: Path | None,
    read_only_token_file: Path | None,
    hosts: tuple[str, ...],
) -> None:
    """Show the queues of a server in a browser.

    The queues that are found on the server are shown, at most 50. Dead letters can be
    replayed or deleted, tasks cancelled, and queues paused. Sign in with the token
    that is printed.

    By default it listens on this machine only. For another address, give your own
    token, and put a proxy with TLS in front of it.
    """
    require_extra("dashboard", "starlette", "uvicorn")
    token = _given_token(token_file, _VARIABLE)
    read_only = _given_token(read_only_token_file, _READ_ONLY_VARIABLE)
    if token is None and not _is_loopback(host):
        raise BadInput(
            f"{host} can be reached by others: give a token with --token-file or"
            f" {_VARIABLE}, or listen on 127.0.0.1"
        )
    secret = secrets.token_urlsafe(32) if token is None else token
    from workstealing.dashboard.access_guard import AccessGuard

    guard = AccessGuard(secret, hosts, read_only_token=read_only)
    # A token that was given is known, and must not appear in a log.
    fragment = f"login#{secret}" if token is None else ""
    _serve(_dashboard_data(app_queue, names, url), host, port, guard, fragment)


def _serve(
    data: DashboardData, host: str, port: int, guard: AccessGuard, fragment: str
) -> None:
    import uvicorn

    from workstealing.dashboard.app import create_app
    from workstealing.dashboard.impatient_server import ImpatientProtocol

    app = create_app(data, guard)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=ImpatientProtocol,
        ws="none",
    )
    server = uvicorn.Server(config)
    # A signal must end it from the moment the address is printed.
    with _listening(host, port) as listener, _signals_for(server.handle_exit):
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        click.echo(f"{address}{fragment}")
        server.run(sockets=[listener])


@contextmanager
def _signals_for(handle: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Stop cleanly on Ctrl-C and SIGTERM, even when uvicorn raises them again."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dashboard_data(
    app_queue: str | None, names: tuple[str, ...], url: str | None
) -> DashboardData:
    from workstealing.dashboard.dashboard_data import DashboardData, named_queue

    if app_queue is None:
        client = connect_async(url, profile="tasks")
        return DashboardData(client, [named_queue(name, client) for name in names])
    if url is not None:
        raise BadInput(
            "give --redis or APP:QUEUE, not both: APP:QUEUE has its own server"
        )
    queue = imported_queue(app_queue)
    parts = internals_of(queue)
    if parts.source.redis is not None and not isinstance(parts.source.redis, str):
        raise BadInput(
            f"{app_queue} was created with its own client: create it with a URL, or use"
            " --redis URL and --queue NAME"
        )
    client = connect_async(parts.source.redis, profile="tasks")
    settings = parts.settings
    own = AsyncTaskQueue(
        queue.name,
        client,
        run=queue.run,
        retention=settings.retention_ms / 1000,
        max_outcomes=settings.outcomes,
        lease=settings.lease_ms / 1000,
    )
    return DashboardData(client, [own, *(named_queue(name, client) for name in names)])


def _given_token(file: Path | None, variable: str) -> str | None:
    if file is None:
        return os.environ.get(variable) or None
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {file}: {error}") from error


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
