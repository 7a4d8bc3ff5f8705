"""What a task costs the server, with many clients, shards and tasks.

Clients are simulated: one process plays all workers in turn and sends what they would
send. So what is measured is the server, by its own account (`INFO`): microseconds of
CPU and commands per task. Neighbours on the machine hardly matter to these.

`python -m benchmarks scale` is short. `python -m benchmarks.scale` does more, prints
tables, and draws the pictures of docs/scaling.md; `--full` goes up to 10,000,000 tasks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from redis import Redis, RedisCluster

from benchmarks.capacity import Costs, Fleet, forecast
from benchmarks.measuring import Budget
from benchmarks.peers.bar_chart import DARK, LIGHT, Bar, bar_chart
from workstealing.drivers.cluster_client import owners_of
from workstealing.drivers.sync_driver import Driver
from workstealing.queue.keys import QueueKeys
from workstealing.queue.placement import by_node, shard_of_turn
from workstealing.queue.producer_calls import submit
from workstealing.queue.settings import QueueSettings
from workstealing.queue.shard_calls import shard_status
from workstealing.queue.steps import SINGLE
from workstealing.queue.worker_calls import exchange, join
from workstealing.tasks.attempt import Report
from workstealing.testing import ClusterOfThree, Server

__all__ = ("measure",)

_PICTURES = Path(__file__).parents[1] / "docs" / "images"
_SETTINGS = QueueSettings(outcomes=10_000)
_ENVELOPE = b'{"v":1,"name":"add","version":1,"at":1,"payload":{"a":1,"b":2}}'
_OUTCOME = b'{"state":"done","result":3,"task":"add@1","ended":1}'
_BATCH = 50
_ROUNDS = 2_000
_TRIES = 5
_DRAINS = 3
_ON_CLUSTER = 36_000


@dataclass(frozen=True, slots=True)
class Cost:
    """What one task, or one call, cost the server."""

    micros: float
    commands: float


def measure() -> list[Budget]:
    """Compare the cost of a task in large settings with that in small ones."""
    with _server() as client:
        plain = _drain(client, clients=1, shards=1, tasks=10_000)
        clients = _drain(client, clients=1000, shards=1, tasks=10_000)
        shards = _drain(client, clients=16, shards=16, tasks=10_000)
        many = _drain(client, clients=1, shards=1, tasks=50_000)
    return [
        Budget("server CPU per task, 1,000 clients / 1", _ratio(clients, plain), 3.0),
        Budget("server CPU per task, 16 shards / 1", _ratio(shards, plain), 1.5),
        Budget("server CPU per task, 50,000 tasks / 10,000", _ratio(many, plain), 1.5),
        Budget("commands per task, those in scripts too", plain.commands, 2.0, ""),
    ]


def main() -> None:
    """Measure more of it, print tables, and draw pictures."""
    most = 10_000_000 if "--full" in sys.argv else 1_000_000
    with _server() as client:
        by_clients = {
            number: _least_drain(client, clients=number, shards=1, tasks=50_000)
            for number in (1, 10, 100, 1000)
        }
        _show("clients", by_clients)
        by_shards = {
            number: _least_drain(client, clients=16, shards=number, tasks=50_000)
            for number in (1, 2, 4, 8, 16)
        }
        _show("shards", by_shards)
        by_tasks: dict[int, Cost] = {}
        tasks = 1000
        while tasks <= most:
            tries = _DRAINS if tasks < 1_000_000 else 1
            by_tasks[tasks] = _least_drain(
                client, clients=4, shards=4, tasks=tasks, tries=tries
            )
            tasks *= 10
        _show("tasks", by_tasks)
        # As many workers on one node as a thousand hosts have on ten.
        costs = _costs(client, by_clients[1000])
    print(f"\n{costs}")
    _show_cluster()
    for batched, awaited in ((1.0, 0.0), (0.0, 0.0), (0.0, 1.0)):
        for shards in (1, 10, 40):
            fleet = Fleet(1000, 8, 10, shards, batched, awaited)
            print(f"{shards:>3} shards, {batched=}, {awaited=}: ", end="")
            print(forecast(costs, fleet))
    _draw("clients", by_clients, "Server CPU per task, by clients")
    _draw("shards", by_shards, "Server CPU per task, by shards")
    _draw("tasks", by_tasks, "Server CPU per task, by tasks in the queue")


@contextmanager
def _server() -> Iterator[Any]:
    with Server() as server, Redis.from_url(server.url) as client:
        yield client


def _least_drain(
    client: Any, *, clients: int, shards: int, tasks: int, tries: int = _DRAINS
) -> Cost:
    """Return what the drain cost that neighbours disturbed least."""
    drains = [
        _drain(client, clients=clients, shards=shards, tasks=tasks)
        for _ in range(tries)
    ]
    return min(drains, key=lambda cost: cost.micros)


def _drain(client: Any, *, clients: int, shards: int, tasks: int) -> Cost:
    """Submit tasks, and have simulated workers take and report them."""
    client.flushall()
    all_keys = [QueueKeys("scale", "run", shard) for shard in range(shards)]
    do = Driver(client).call
    is_cluster = isinstance(client, RedisCluster)
    names = [keys.control for keys in all_keys]
    nodes = by_node(owners_of(client, names) if is_cluster else SINGLE * shards)
    workers = [(f"w.{n}", all_keys[n % shards]) for n in range(clients)]
    for name, keys in workers:
        do(join(keys, _SETTINGS, name, "i", {"abilities": ["add@1"]}))

    def work() -> None:
        for start in range(0, tasks, 1000):
            keys = all_keys[shard_of_turn(start // 1000, nodes)]
            number = min(1000, tasks - start)
            batch = [(f"{start + n:012}", _ENVELOPE) for n in range(number)]
            do(submit(keys, _SETTINGS, batch, priority=1, is_new=True))
        held: dict[str, list[Report]] = {}
        done, turn = 0, 0
        while done < tasks:
            name, keys = workers[turn % clients]
            turn += 1
            reports = held.pop(name, [])
            call = exchange(
                keys,
                _SETTINGS,
                name,
                "i",
                want=_BATCH,
                keep=_BATCH,
                reports=reports,
                renews=turn % 16 == 0,
            )
            seen = do(call)
            assert seen is not None, "a lease was lost"
            done += len(reports)
            if seen.tasks:
                held[name] = [
                    Report(one.id, one.token, "done", _OUTCOME) for one in seen.tasks
                ]

    if is_cluster:
        # Its nodes keep accounts of their own.
        work()
        return Cost(0.0, 0.0)
    return _cost(client, work, tasks)


def _show_cluster() -> None:
    """Compare one shard with several on three nodes: what the fullest has to do."""
    with ClusterOfThree() as cluster:
        nodes = [Redis.from_url(node.url) for node in cluster.nodes]
        client: Any = RedisCluster.from_url(cluster.nodes[0].url)
        for shards in (1, 8, 9, 16):
            before = [_account(node)[0] for node in nodes]
            _drain(client, clients=shards, shards=shards, tasks=_ON_CLUSTER)
            micros = [
                (_account(node)[0] - earlier) / _ON_CLUSTER
                for node, earlier in zip(nodes, before, strict=True)
            ]
            print(
                f"{shards:>3} shards on three nodes: µs of CPU per task"
                f" {', '.join(f'{one:.1f}' for one in micros)};"
                f" all / the fullest = {sum(micros) / max(micros):.2f}"
            )


def _costs(client: Any, many: Cost) -> Costs:
    """Measure single operations."""
    client.flushdb()
    keys, do, numbers = QueueKeys("scale", "run"), Driver(client).call, count()
    do(join(keys, _SETTINGS, "w.0", "i", {"abilities": ["add@1"]}))

    def submit_many() -> None:
        for start in range(0, 100 * _ROUNDS, 1000):
            batch = [(f"{start + n:012}", _ENVELOPE) for n in range(1000)]
            do(submit(keys, _SETTINGS, batch, priority=1, is_new=True))

    together = _least(client, submit_many, 100 * _ROUNDS)
    client.delete(keys.inboxes[1], keys.task)

    def submit_alone() -> None:
        for _ in range(_ROUNDS):
            task = [(f"{next(numbers):012}", _ENVELOPE)]
            do(submit(keys, _SETTINGS, task, priority=1, is_new=True))

    alone = _least(client, submit_alone, _ROUNDS)

    def run_alone() -> None:
        reports: list[Report] = []
        for _ in range(_ROUNDS):
            call = exchange(
                *(keys, _SETTINGS, "w.0", "i"), want=1, keep=0, reports=reports
            )
            seen = do(call)
            assert seen is not None, "a lease was lost"
            reports = [
                Report(one.id, one.token, "done", _OUTCOME) for one in seen.tasks
            ]
        do(exchange(keys, _SETTINGS, "w.0", "i", want=0, keep=0, reports=reports))

    run = _least(client, run_alone, _ROUNDS)

    def rest() -> None:
        for _ in range(_ROUNDS):
            do(exchange(keys, _SETTINGS, "w.0", "i", want=1, keep=0))

    def look() -> None:
        for _ in range(_ROUNDS):
            do(shard_status(keys, _SETTINGS))

    def publish() -> None:
        for _ in range(_ROUNDS):
            client.publish("scale", _OUTCOME)

    return Costs(
        submit=round(together, 2),
        submit_alone=round(alone, 2),
        run=round(many.micros - together, 2),
        run_alone=round(run, 2),
        rest=round(_least(client, rest, _ROUNDS), 2),
        look=round(_least(client, look, _ROUNDS), 2),
        publish=round(_least(client, publish, _ROUNDS), 2),
    )


def _least(client: Any, work: Callable[[], None], number: int) -> float:
    """Return the microseconds of the round that neighbours disturbed least."""
    return min(_cost(client, work, number).micros for _ in range(_TRIES))


def _cost(client: Any, work: Callable[[], None], number: int) -> Cost:
    before = _account(client)
    work()
    after = _account(client)
    micros, commands = (now - then for now, then in zip(after, before, strict=True))
    return Cost(micros / number, commands / number)


def _account(client: Any) -> tuple[float, int]:
    cpu, stats = client.info("cpu"), client.info("commandstats")
    names = ("used_cpu_user", "used_cpu_sys")
    micros = sum(float(cpu[name]) * 1e6 for name in names)
    return micros, sum(one["calls"] for one in stats.values())


def _ratio(one: Cost, other: Cost) -> float:
    return one.micros / other.micros


def _show(what: str, costs: dict[int, Cost]) -> None:
    print(f"\n{what:>12}  µs of CPU per task  commands per task")
    for number, cost in costs.items():
        print(f"{number:>12,}  {cost.micros:>18.1f}  {cost.commands:>17.2f}")


def _draw(what: str, costs: dict[int, Cost], title: str) -> None:
    bars = [
        Bar(f"{number:,}", (cost.micros,), (f"{cost.micros:.1f} µs",), is_ours=True)
        for number, cost in costs.items()
    ]
    for theme in (LIGHT, DARK):
        picture = bar_chart(title, "Microseconds of the server's CPU", bars, theme)
        (_PICTURES / f"scale-{what}-{theme.name}.svg").write_text(picture)


if __name__ == "__main__":
    main()
