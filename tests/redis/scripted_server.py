"""A server that says what a test wants, where no real one can be brought to say it."""

from __future__ import annotations

import socketserver
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread

Answer = Callable[[bytes, int], bytes]
"""Returns the reply to a command, given its name and the number of the connection."""


def info(version: str) -> bytes:
    """Return the reply to `INFO` of a server."""
    text = f"redis_version:{version}\r\n"
    return f"${len(text)}\r\n{text}\r\n".encode()


class ScriptedServer:
    """Answers each command, and keeps what it was asked."""

    def __init__(
        self, answer: Answer, tell: Callable[[], bytes] = lambda: info("7.2.0")
    ) -> None:
        self._answer = answer
        self._tell = tell
        self._lock = Lock()
        self.url = ""
        self.connections = 0
        self.asked: list[bytes] = []
        """The names of all commands, but for what a client says of itself."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        served = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with served._lock:
                    served.connections += 1
                    number = served.connections
                while count := self.rfile.readline():
                    words = [self._word() for _ in range(int(count[1:]))]
                    self.wfile.write(served._reply(words[0].upper(), number))

            def _word(self) -> bytes:
                length = int(self.rfile.readline()[1:])
                return self.rfile.read(length + 2)[:-2]

        with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            thread = Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            self.url = f"redis://127.0.0.1:{server.server_address[1]}/0"
            try:
                yield
            finally:
                server.shutdown()
                thread.join()

    def _reply(self, name: bytes, connection: int) -> bytes:
        if name in (b"CLIENT", b"SELECT", b"ECHO"):
            return b"+OK\r\n"
        if name == b"INFO":
            return self._tell()
        with self._lock:
            self.asked.append(name)
        return self._answer(name, connection)
