"""A metrics endpoint of a few lines: what this process counts, and what is in Redis.

A program that has a web server mounts the same two texts there instead.
"""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from prometheus_client import CollectorRegistry, generate_latest

from workstealing import TaskQueue
from workstealing.dashboard import gauges
from workstealing.inspecting import Inspector

__all__ = ("Endpoint",)


class Endpoint(ThreadingHTTPServer):
    """Serves /metrics on localhost, in a thread; port 0 picks a free port."""

    daemon_threads = True

    def __init__(self, port: int, registry: CollectorRegistry, queue: TaskQueue):
        super().__init__(("127.0.0.1", port), _Handler)
        self._registry = registry
        self._inspector = Inspector(queue)
        self.url = f"http://127.0.0.1:{self.server_port}/metrics"
        Thread(target=self.serve_forever, daemon=True).start()

    def text(self) -> bytes:
        """Return the text that Prometheus reads."""
        seen = gauges([self._inspector.stat()])
        return generate_latest(self._registry) + seen.encode()


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_GET(self) -> None:
        """Answer any path with the metrics."""
        text = self.server.text()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Do not log requests."""
