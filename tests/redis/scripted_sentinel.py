"""A Sentinel that names and announces what a test wants, when it wants it."""

from __future__ import annotations

import socket
import socketserver
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from workstealing.testing import Server

HOST = "127.0.0.1"
SERVICE = "main"


def address(server: Server) -> str:
    """Return an address as Sentinels write it."""
    return f"{HOST} {server.port}"


def as_replica(new: Server, old: Server, service: str = SERVICE) -> str:
    """Return how a Sentinel announces the steps of a replica."""
    return f"slave {HOST}:{new.port} {address(new)} @ {service} {address(old)}"


class ScriptedSentinel:
    """Names one server as the primary, whatever it announces."""

    def __init__(self, named: Server, *, may_subscribe: bool = True) -> None:
        self.named = named
        self.may_subscribe = may_subscribe
        self.is_silent = False
        self.connections = self.asked = 0
        self.port = 0
        self._lock = Lock()
        self._open: set[Any] = set()
        self._subscribed: set[Any] = set()
        self.start()

    def start(self) -> None:
        """Listen; at the same port as before, if it was stopped."""
        sentinel = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                sentinel._begin(self)
                with suppress(OSError):
                    while count := self.rfile.readline():
                        sentinel._reply(
                            self, [self._word() for _ in range(int(count[1:]))]
                        )
                sentinel._end(self)

            def finish(self) -> None:
                with suppress(OSError):
                    super().finish()

            def _word(self) -> bytes:
                length = int(self.rfile.readline()[1:])
                return self.rfile.read(length + 2)[:-2]

        class Listening(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Listening((HOST, self.port), Handler)
        self.port = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        """Close all connections, and listen no longer."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        with self._lock:
            for one in tuple(self._open):
                with suppress(OSError):
                    one.connection.shutdown(socket.SHUT_RDWR)

    def subscribers(self) -> int:
        """Return how many listen to announcements."""
        return len(self._subscribed)

    def announce(self, channel: str, text: str) -> None:
        """Publish to all subscribers."""
        with self._lock:
            for one in self._subscribed:
                one.wfile.write(_packed([b"message", channel.encode(), text.encode()]))

    def _begin(self, handler: Any) -> None:
        with self._lock:
            self.connections += 1
            self._open.add(handler)

    def _end(self, handler: Any) -> None:
        with self._lock:
            self._open.discard(handler)
            self._subscribed.discard(handler)

    def _reply(self, handler: Any, words: list[bytes]) -> None:
        if self.is_silent:
            return
        with self._lock:
            handler.wfile.write(self._answer(handler, words))

    def _answer(self, handler: Any, words: list[bytes]) -> bytes:
        name, *rest = words
        port = b"%d" % self.named.port
        match name.upper(), rest:
            case b"SENTINEL", [b"GET-MASTER-ADDR-BY-NAME", _]:
                self.asked += 1
                return _packed([HOST.encode(), port])
            case b"SENTINEL", [b"MASTERS"]:
                facts = {
                    b"name": SERVICE.encode(),
                    b"ip": HOST.encode(),
                    b"port": port,
                    b"flags": b"master",
                    b"num-other-sentinels": b"0",
                }
                return _packed([[part for fact in facts.items() for part in fact]])
            case b"SUBSCRIBE", _ if not self.may_subscribe:
                return b"-NOPERM this user has no permissions to subscribe\r\n"
            case b"SUBSCRIBE", channels:
                self._subscribed.add(handler)
                return b"".join(_packed([b"subscribe", one, 1]) for one in channels)
            case b"UNSUBSCRIBE", _:
                self._subscribed.discard(handler)
                return _packed([b"unsubscribe", None, 0])
        return b"+OK\r\n"


def _packed(value: Any) -> bytes:
    if value is None:
        return b"$-1\r\n"
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, bytes):
        return b"$%d\r\n%s\r\n" % (len(value), value)
    return b"*%d\r\n" % len(value) + b"".join(map(_packed, value))
