"""Serves a site by granian, which cannot be given a socket that listens already.

It listens on a Unix socket instead, and each connection to ours is passed on to it,
byte by byte: `python granian_server.py <descriptor> wsgi|asgi <site>`.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread


def main(descriptor: int, interface: str, site: str) -> int:
    listener = socket.socket(fileno=descriptor)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "socket")
        options = f"--interface {interface} --uds {path} --workers 1 --no-ws --no-log"
        # Two of a kind: a slice that hangs keeps one of them.
        options += " --blocking-threads 2" if interface == "wsgi" else ""
        command = [sys.executable, "-m", "granian", *options.split(), f"{site}:app"]
        with subprocess.Popen(command) as server:
            signal.signal(signal.SIGTERM, lambda *_: server.terminate())
            Thread(target=accept, args=(listener, path), daemon=True).start()
            return server.wait()


def accept(listener: socket.socket, path: Path) -> None:
    while True:
        near, _ = listener.accept()
        far = connected(path)
        Thread(target=relay, args=(near, far), daemon=True).start()
        Thread(target=relay, args=(far, near), daemon=True).start()


def connected(path: Path) -> socket.socket:
    while True:
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(str(path))
        except OSError:
            far.close()
            time.sleep(0.01)
        else:
            return far


def relay(source: socket.socket, sink: socket.socket) -> None:
    try:
        while chunk := source.recv(65536):
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        # One of the two has hung up: so does the other.
        for end in (source, sink):
            end.close()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:4]))
