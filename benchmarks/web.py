"""What a site with side work keeps of its throughput and its latency.

One process serves the same page with and without us. Very many very short rounds of
load alternate between the two, each is compared with its neighbour, and the mean is
that of the middle half of the ratios: the machine's speed changes by half within
seconds, and a slice in a round is much less than that.
"""

from __future__ import annotations

from contextlib import closing

from benchmarks.measuring import Budget
from benchmarks.web_load import CONNECTIONS, Load, Round, middle_mean, p99, served
from workstealing.testing import Server

__all__ = ("GUNICORN", "GUNICORN_THREADS", "PATHS", "UVICORN", "measure")

_ROUNDS = 2000
PATHS = ("/none", "/with")
GUNICORN = (
    *("-m", "gunicorn", "--bind", "fd://{fd}", "--no-control-socket"),
    "benchmarks.web_sites:flask_site()",
)
GUNICORN_THREADS = (*GUNICORN, "--threads", str(CONNECTIONS))
_UVICORN = """
import socket, uvicorn
config = uvicorn.Config("benchmarks.web_sites:asgi_site", factory=True,
                        log_level="critical", access_log=False, lifespan="off")
uvicorn.Server(config).run(sockets=[socket.socket(fileno={fd})])
"""
UVICORN = ("-c", _UVICORN)


def measure() -> list[Budget]:
    """Measure a Flask site under gunicorn and an ASGI site under uvicorn."""
    return [
        *_compare("Flask, gunicorn", GUNICORN_THREADS),
        *_compare("ASGI, uvicorn", UVICORN),
    ]


def _compare(host: str, command: tuple[str, ...]) -> list[Budget]:
    rounds: tuple[list[Round], list[Round]] = [], []
    with (
        Server() as redis,
        served(
            command, SITE_REDIS=redis.url, SITE_JOB="sessions", SITE_SHARE="0.01"
        ) as port,
        closing(Load(port)) as load,
    ):
        for path in PATHS:
            load.round(path)
        for number in range(_ROUNDS):
            # Who is first may find the machine in another state than who is second.
            for side in (0, 1) if number % 2 else (1, 0):
                rounds[side].append(load.round(PATHS[side]))
    without, with_us = rounds
    ratios = [a.took / b.took for a, b in zip(without, with_us, strict=True)]
    return [
        Budget(
            f"{host}: throughput with / without",
            middle_mean(ratios),
            0.99,
            at_least=True,
        ),
        Budget(f"{host}: p99 with / without", p99(with_us) / p99(without), 1.05),
    ]
