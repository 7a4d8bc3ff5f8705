"""A TCP proxy between clients and a server, to cut and delay what passes.

It forwards bytes. A test says what is to happen to the replies. Requests reach the
server, which is the worst case: it has done what the client does not know of; but for
those that a test lets be lost, or that fall into a black hole. `soak/` uses it too.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

__all__ = ("Proxy",)

_CHUNK = 65_536


class Proxy:
    """Listens on a port of its own and forwards to a server."""

    def __init__(self, port: int = 0) -> None:
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._mutex = threading.Lock()
        self._doom: Callable[[bytes], bool] | None = None
        self._before_cut: Callable[[], object] = bool
        self._loses: Callable[[bytes], bool] | None = None
        self._doomed: set[socket.socket] = set()
        self._hung: set[socket.socket] = set()
        self._lag = 0.0
        self._is_black_hole = False
        self.cuts = 0
        """How many replies were cut."""
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """What to give to `connect()`."""
        return f"redis://127.0.0.1:{self.port}/0"

    def cut_reply_if(
        self,
        condition: Callable[[bytes], bool] | None,
        first: Callable[[], object] = bool,
    ) -> None:
        """Cut the connection instead of the reply to requests that fulfil this.

        Do something *first*, when the server has answered and the client waits.
        """
        self._doom, self._before_cut = condition, first

    def lose_request_if(self, condition: Callable[[bytes], bool] | None) -> None:
        """Cut the connection before requests that fulfil this reach the server."""
        self._loses = condition

    def kill_at(
        self,
        condition: Callable[[bytes], bool],
        victim: subprocess.Popen[bytes],
        *,
        arrives: bool,
    ) -> None:
        """Kill who sends what fulfils this: before it arrives, or once it is done."""

        def kill() -> None:
            victim.kill()
            victim.wait()

        def loses(data: bytes) -> bool:
            if is_fatal := condition(data):
                kill()
            return is_fatal

        if arrives:
            self.cut_reply_if(condition, kill)
        else:
            self.lose_request_if(loses)

    def lead_to(self, port: int) -> None:
        """Connect new clients to another server; the others stay where they are."""
        self._server = ("127.0.0.1", port)

    def hang_all(self) -> None:
        """Let nothing pass on the connections there are; new ones are fine."""
        with self._mutex:
            self._hung.update(client for client, _ in self._pairs)

    def delay_by(self, seconds: float) -> None:
        """Let each reply come so much later."""
        self._lag = seconds

    def swallow(self, is_black_hole: bool) -> None:
        """Let nothing pass, either way, on old connections and on new ones.

        What was swallowed stays lost, so these connections are of no use afterwards.
        """
        self._is_black_hole = is_black_hole
        if is_black_hole:
            self.hang_all()

    def cut_all(self) -> None:
        """Cut all connections; new ones are welcome."""
        with self._mutex:
            pairs = list(self._pairs)
        for pair in pairs:
            self._end(*pair)

    def close(self) -> None:
        """End it all."""
        self._listener.close()
        self.cut_all()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            with self._mutex:
                self._pairs.add((client, server))
                if self._is_black_hole:
                    self._hung.add(client)
            for pump in (self._requests, self._replies):
                threading.Thread(
                    target=pump, args=(client, server), daemon=True
                ).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                loses, doom = self._loses, self._doom
                if loses is not None and loses(data):
                    break
                if self._is_black_hole:
                    continue
                if doom is not None and doom(data):
                    self._doomed.add(client)
                server.sendall(data)
        self._end(client, server)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if client in self._doomed:
                    self._doomed.discard(client)
                    self._before_cut()
                    self.cuts += 1
                    break
                if self._lag:
                    time.sleep(self._lag)
                if client not in self._hung:
                    client.sendall(data)
        self._end(client, server)

    def _end(self, client: socket.socket, server: socket.socket) -> None:
        with self._mutex:
            self._pairs.discard((client, server))
            self._hung.discard(client)
        for one in (client, server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
