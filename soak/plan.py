"""What is to happen when: the same for the same seed.

Three things go on beside each other: something happens to processes, to the network,
and to servers. The plan says when, what, for how long, and draws a number for whom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

__all__ = ("Fault", "make_plan")

_PROCESSES = {"kill": 4, "kill_child": 2, "freeze": 3, "terminate": 3}
_NETWORK = {
    "cut_requests": 3,
    "cut_replies": 3,
    "delay": 2,
    "half_open": 2,
    "black_hole": 2,
    "cut_all": 2,
}
_ANY_SERVER = {"forget_scripts": 1, "kill_clients": 1}
_SERVERS = {
    "single": _ANY_SERVER
    | {"restart": 2, "crash": 2, "hang": 2, "fill": 1, "turn_read_only": 1},
    "sentinel": _ANY_SERVER | {"lose_primary": 2, "fail_over": 2, "hang": 1},
    "cluster": _ANY_SERVER | {"lose_primary": 2, "fail_over": 2, "hang": 1},
}
# The shortest and the longest pause between two faults, and how long they last.
_PAUSES = {"processes": (0.5, 5.0), "network": (2.0, 10.0), "servers": (10.0, 30.0)}
_LONGEST = {"processes": 7.0, "network": 5.0, "servers": 3.0}


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that happens."""

    at: float
    """Seconds after the beginning."""
    track: str
    name: str
    seconds: float
    draw: float
    """A number from 0 to 1, for whom."""

    def __str__(self) -> str:
        return f"{self.at:7.1f} s  {self.name} for {self.seconds:.1f} s"


def make_plan(seed: int, server: str, seconds: float) -> list[Fault]:
    """Draw what happens within some seconds."""
    tracks = {"processes": _PROCESSES, "network": _NETWORK, "servers": _SERVERS[server]}
    plan = [
        fault
        for track, names in tracks.items()
        for fault in _draw_track(Random(f"{seed} {track}"), track, names, seconds)
    ]
    return sorted(plan, key=lambda fault: fault.at)


def _draw_track(
    chance: Random, track: str, names: Mapping[str, int], seconds: float
) -> list[Fault]:
    faults: list[Fault] = []
    at = chance.uniform(*_PAUSES[track])
    while True:
        (name,) = chance.choices(list(names), list(names.values()))
        lasts = chance.uniform(0.2, _LONGEST[track])
        if at + lasts > seconds:
            return faults
        faults.append(Fault(at, track, name, lasts, chance.random()))
        at += lasts + chance.uniform(*_PAUSES[track])
