"""What a Cluster carries, computed from what single operations cost: a queueing model.

Each node is a server with one queue (M/G/1): Redis runs one command at a time.

Assumptions, all of which `Fleet` and `Costs` can vary:

- Commands arrive at random (Poisson), since thousands of hosts do not agree on times.
- The work of a task on its node is one part of a submission, one of an exchange that
  takes it, and one of the exchange that reports it. Hosts send as many tasks at once as
  `batch` says; a task that comes alone costs a whole exchange.
- A worker that rests looks at the queue every five seconds, and at two other shards.
- Each node that has a shard gets as many tasks as the others. The node with the most
  shards has as many more workers at rest: it decides.
- Nobody uses more than `most_busy` of a node, so that bursts and upkeep have room.
- The network, the hosts, replicas and what tasks themselves do are not part of it. A
  published outcome costs every node one message, which is counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ("Costs", "Fleet", "Forecast", "forecast")

_REST_SECONDS = 5.0
_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds of a server's CPU, as measured."""

    submit: float
    """To submit one task of many."""
    submit_alone: float
    run: float
    """To take and to report one task of a batch."""
    run_alone: float
    rest: float
    """For an exchange that finds nothing."""
    look: float
    """At another shard."""
    publish: float
    """An outcome, on a node where nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Who uses the queue, and where it is."""

    hosts: int
    workers_per_host: int
    nodes: int
    shards: int
    batched: float = 1.0
    """The share of tasks that are submitted and taken with others."""
    awaited: float = 0.0
    """The share of tasks whose results somebody waits for."""
    most_busy: float = 0.7


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is to be expected."""

    tasks_per_second: float
    """The most, in all."""
    per_task: float
    """Microseconds on the node of its shard."""
    busy_at_rest: float
    """The share of a node's time that goes into workers that rest."""
    wait: float
    """Microseconds that a command waits on the fullest node, at the most."""


def forecast(costs: Costs, fleet: Fleet) -> Forecast:
    """Compute what a fleet gets out of its nodes."""
    used = min(fleet.nodes, fleet.shards)
    # The node with the most shards has this share of all workers.
    share = math.ceil(fleet.shards / used) / fleet.shards
    together = costs.submit + costs.run
    alone = costs.submit_alone + costs.run_alone
    per_task = fleet.batched * together + (1.0 - fleet.batched) * alone
    # Its own node, and a message to each of the others.
    on_fullest = per_task / used + fleet.awaited * costs.publish
    workers = fleet.hosts * fleet.workers_per_host
    looks = _LOOKS if fleet.shards > 1 else 0
    rest = workers * share * (costs.rest + looks * costs.look) / _REST_SECONDS
    busy_at_rest = rest / 1e6
    left = max(0.0, fleet.most_busy - busy_at_rest)
    rate = left * 1e6 / on_fullest
    busy = min(0.999, busy_at_rest + rate * on_fullest / 1e6)
    # Pollaczek and Khinchine; services as uneven as exponential ones.
    wait = busy / (1.0 - busy) * max(costs.run_alone, costs.submit_alone)
    return Forecast(rate, per_task, busy_at_rest, wait)
