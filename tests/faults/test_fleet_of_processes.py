"""Real processes that share one job, and a real Redis that goes away and comes back.

A hundred of them, for longer: `python -m benchmarks fleet`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.fleet import RealFleet
from workstealing.testing import Server

EVERY = 0.3
"""Seconds; short, so that there are enough slices to count."""
SLICES = 12


def _hang(server: Server) -> Callable[[], None]:
    server.pause()
    return server.resume


def _die(server: Server) -> Callable[[], None]:
    server.kill()
    return server.restart


@pytest.mark.parametrize(("processes", "go_away"), [(1, _hang), (8, _hang), (8, _die)])
def test_a_job_has_its_turns_none_while_redis_is_away_and_no_rush_afterwards(
    processes: int, go_away: Callable[[Server], Callable[[], None]]
) -> None:
    with Server(tcp=True) as server, RealFleet(server.url, processes, EVERY) as fleet:
        assert _pace(fleet.some_slices(SLICES)) <= 1.15

        come_back = go_away(server)
        fleet.all_found_it_away()
        last = len(fleet.slices)
        fleet.all_found_it_away()
        assert len(fleet.slices) == last, "without an answer nobody has a turn"
        come_back()

        assert _pace(fleet.some_slices(SLICES)) <= 1.15


def _pace(slices: list[float]) -> float:
    """Return how many slices there were, of those asked for.

    On a machine under load there may be fewer, and that proves nothing.
    """
    return (len(slices) - 1) * EVERY / (slices[-1] - slices[0])
