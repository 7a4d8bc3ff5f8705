"""The libraries that are compared, and how each is set up.

Each uses what its documentation offers for speed; `page` describes those settings.
Where it names no number, such as how many threads or slots, the number is our choice.
Results are kept by all. The versions are fixed: they are those of the features in
docs/comparison.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ("LIBRARIES", "OURS", "RAW", "FaultSetup", "Library", "names_of")

Settings = Mapping[str, Any]

RAW = "raw"
OURS = "workstealing"
_PATIENCE = 100.0
_FAULT_TASKS = 2_000


@dataclass(frozen=True, slots=True)
class FaultSetup:
    """How a library is set up while its workers are killed.

    `patience` is how many seconds after the last kill it may take to run all tasks.
    """

    words: str
    settings: Settings
    patience: float = _PATIENCE
    tasks: int = _FAULT_TASKS


@dataclass(frozen=True, slots=True)
class Library:
    """One library: what to install, and its settings by workload.

    Args:
        name: the name of its module in `libraries`.
        requirements: for pip; the version of the first is shown.
        settings: of one worker process.
        tasks: how many it drains in a few seconds.
        bulk: how it submits many at once; None if it cannot.
        waiting: more settings where somebody waits for results.
        threads: settings of one process with four threads; None if it has none.
        slots: settings of one process with two slots; None if it has only one.
        faults: the setups in which workers are killed, by name.
        command: starts a worker, with settings in braces; without one, `work()` does.
        variables: the environment of that command, likewise.
    """

    name: str
    title: str
    requirements: tuple[str, ...]
    page: str
    words: str
    settings: Settings
    tasks: int
    bulk: str | None
    waiting: Settings = field(default_factory=dict)
    threads: Settings | None = None
    slots: Settings | None = None
    faults: Mapping[str, FaultSetup] = field(default_factory=dict)
    command: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of what is installed, without versions and extras."""
        names = (re.split(r"[=<>\[;]", one)[0] for one in self.requirements)
        return tuple(name for name in names if name != ".")


def names_of(libraries: Iterable[Library]) -> tuple[str, ...]:
    """Return the names, in order."""
    return tuple(library.name for library in libraries)


LIBRARIES = (
    Library(
        name=RAW,
        title="raw `LPUSH`, `BRPOP`, `SET`",
        requirements=("redis==8.1.0", "hiredis==3.5.0"),
        page="https://redis.io/docs/latest/commands/brpop/",
        words="one loop, no acknowledgement",
        settings={},
        tasks=6_000,
        bulk="pipeline of 100",
        waiting={"replies": True},
        faults={"default": FaultSetup("no acknowledgement", {}, patience=10.0)},
    ),
    Library(
        name=OURS,
        title="workstealing",
        requirements=("workstealing", "redis==8.1.0", "hiredis==3.5.0"),
        page="performance.md",
        words="plain `Worker`, nothing set",
        settings={},
        tasks=30_000,
        bulk="`submit_many`",
        threads={"threads": 4},
        slots={"threads": 2},
        faults={"default": FaultSetup("nothing set, lease of 15 s", {})},
    ),
    Library(
        name="rq",
        title="RQ",
        requirements=("rq==2.12.0", "redis==8.1.0", "hiredis==3.5.0"),
        # Names SimpleWorker for tasks of milliseconds.
        page="https://github.com/rq/rq/blob/master/docs/benchmark.md",
        words="`SimpleWorker`",
        settings={},
        tasks=1_500,
        bulk="`enqueue_many`, 1,000 a call",
        faults={
            "default": FaultSetup("`Worker`", {"forks": True}, tasks=400),
            "tuned": FaultSetup(
                "`Worker`, `Retry(max=3)`, monitoring and maintenance every 5 s,"
                " `worker_ttl` 20 s",
                {
                    "forks": True,
                    "retries": 3,
                    "job_monitoring_interval": 5,
                    "maintenance_interval": 5,
                    "worker_ttl": 20,
                },
                patience=130.0,
                tasks=400,
            ),
        },
    ),
    Library(
        name="celery",
        title="Celery",
        requirements=("celery[redis]==5.7.0", "redis==8.1.0", "hiredis==3.5.0"),
        # «Prefetch limits»: a large number for many short tasks, 1 for long ones.
        page="https://docs.celeryq.dev/en/stable/userguide/optimizing.html",
        words="`-P solo`, prefetch 64",
        command="celery -A benchmarks.peers.libraries.celery worker -l ERROR"
        " --without-gossip --without-mingle --without-heartbeat -P {pool} -c {slots}",
        settings={"pool": "solo", "slots": 1, "prefetch": 64},
        tasks=2_500,
        bulk="`group`, 500 a call; sent one by one",
        threads={"pool": "threads", "slots": 4, "prefetch": 16},
        slots={"pool": "threads", "slots": 2, "prefetch": 1},
        faults={
            "default": FaultSetup("`-P prefork -c 2`", {"pool": "prefork", "slots": 2}),
            "tuned": FaultSetup(
                "`-P prefork -c 2`, `acks_late`, `reject_on_worker_lost`, prefetch 1,"
                " visibility timeout 10 s, restored every 5 s",
                {
                    "pool": "prefork",
                    "slots": 2,
                    "prefetch": 1,
                    "acks_late": True,
                    "visibility_timeout": 10,
                },
            ),
        },
    ),
    Library(
        name="dramatiq",
        title="Dramatiq",
        requirements=("dramatiq[redis]==2.2.1", "redis==8.1.0", "hiredis==3.5.0"),
        # `dramatiq_queue_prefetch` is among its environment variables.
        page="https://dramatiq.io/reference.html",
        words="`-p 1 -t 2`, prefetch 100",
        command="dramatiq benchmarks.peers.libraries.dramatiq:broker"
        " --processes 1 --threads {threads}",
        variables={"dramatiq_queue_prefetch": "{prefetch}"},
        settings={"threads": 2, "prefetch": 100},
        tasks=5_000,
        bulk=None,
        threads={"threads": 4, "prefetch": 100},
        slots={"threads": 2, "prefetch": 2},
        faults={
            # No prefetch means two per thread.
            "default": FaultSetup("`-p 1 -t 8`", {"threads": 8, "prefetch": 0}),
            "tuned": FaultSetup(
                "`-p 1 -t 8`, heartbeat timeout 5 s, maintenance chance 5 %",
                {
                    "threads": 8,
                    "prefetch": 0,
                    "heartbeat_timeout": 5_000,
                    "maintenance_chance": 50_000,
                },
            ),
        },
    ),
    Library(
        name="huey",
        title="Huey",
        requirements=("huey==3.5.4", "redis==8.1.0", "hiredis==3.5.0"),
        # `notify_result` is in the notes of release 3.0.
        page="https://huey.readthedocs.io/en/latest/consumer.html",
        words="`-k thread -w 2`; `notify_result` for waiters",
        command="huey_consumer benchmarks.peers.libraries.huey.queue -q -n"
        " -k thread -w {threads}",
        settings={"threads": 2},
        tasks=5_000,
        bulk=None,
        waiting={"notifies": True},
        threads={"threads": 4},
        slots={"threads": 2},
        faults={
            "default": FaultSetup(
                "`-k thread -w 4`; no acknowledgement", {"threads": 4}, patience=10.0
            )
        },
    ),
    Library(
        name="arq",
        title="arq",
        requirements=("arq==0.28.0", "hiredis==3.5.0", "uvloop==0.23.0"),
        # `max_jobs`, `poll_delay` and `job_timeout` of the worker.
        page="https://arq-docs.helpmanual.io/",
        words="100 jobs, polls every 10 ms, waiters every 5 ms, uvloop",
        settings={"max_jobs": 100, "poll_delay": 0.01},
        tasks=4_000,
        bulk="50 calls at once",
        slots={"max_jobs": 2, "poll_delay": 0.01},
        faults={
            "default": FaultSetup("10 jobs, job timeout 300 s", {}),
            "tuned": FaultSetup("job timeout 5 s", {"job_timeout": 5}),
        },
    ),
    Library(
        name="saq",
        title="SAQ",
        requirements=(
            *("saq[redis,hiredis]==0.26.4", "hiredis==3.5.0", "uvloop==0.23.0"),
            # It imports this without asking for it.
            "typing_extensions",
        ),
        # Its README names hiredis, and `Job.refresh` to wait.
        page="https://saq-py.readthedocs.io/en/latest/",
        words="concurrency 50, uvloop",
        settings={"slots": 50},
        tasks=4_000,
        bulk="50 calls at once",
        slots={"slots": 2},
        faults={
            "default": FaultSetup("concurrency 10, 1 retry, timeout 10 s", {}),
            "tuned": FaultSetup(
                "3 retries, timeout 2 s, sweep every 5 s",
                {"retries": 3, "timeout": 2, "sweep": 5},
                patience=200.0,
            ),
        },
    ),
    Library(
        name="taskiq",
        title="taskiq",
        requirements=(
            *("taskiq==0.13.0", "taskiq-redis==1.2.4"),
            *("redis==8.1.0", "hiredis==3.5.0", "uvloop==0.23.0"),
        ),
        # `--no-parse` and `--max-async-tasks`; the brokers are in taskiq-redis' README.
        page="https://taskiq-python.github.io/guide/cli.html",
        words="`ListQueueBroker`, 50 tasks, `--no-parse`, uvloop, waiters every 5 ms",
        command="taskiq worker benchmarks.peers.libraries.taskiq:broker --workers 1"
        " --log-level WARNING --no-parse --max-async-tasks {slots}",
        settings={"slots": 50},
        tasks=4_000,
        bulk="50 calls at once",
        slots={"slots": 2},
        faults={
            "default": FaultSetup(
                "`ListQueueBroker`: no acknowledgement", {"slots": 100}, patience=10.0
            ),
            "tuned": FaultSetup(
                "`RedisStreamBroker`, idle timeout 5 s, lock timeout 10 s",
                {
                    "slots": 100,
                    "acknowledges": True,
                    "idle_timeout": 5_000,
                    "unacknowledged_lock_timeout": 10.0,
                },
            ),
        },
    ),
    Library(
        name="streaq",
        title="streaQ",
        requirements=("streaq==7.2.0", "coredis==6.9.0", "uvloop==0.23.0"),
        # `concurrency`; the others are described where the class is defined.
        page="https://streaq.readthedocs.io/en/latest/worker.html",
        words="concurrency 16, uvloop, silent",
        settings={},
        tasks=3_000,
        bulk="`enqueue_many`, 500 a call",
        slots={"concurrency": 2},
        faults={
            "default": FaultSetup("concurrency 16, idle timeout 60 s", {}),
            "tuned": FaultSetup("idle timeout 5 s", {"idle_timeout": 5}),
        },
    ),
    Library(
        name="bullmq",
        title="BullMQ (Python)",
        requirements=(
            *("bullmq==3.4.4", "redis==8.1.0", "hiredis==3.5.0"),
            "uvloop==0.23.0",
        ),
        # Its options are those of BullMQ's WorkerOptions, which has pages of its own.
        page="https://docs.bullmq.io/python/introduction",
        words="concurrency 10, uvloop",
        settings={"concurrency": 10},
        tasks=3_000,
        bulk="`addBulk`, 500 a call",
        slots={"concurrency": 2},
        faults={
            "default": FaultSetup(
                "concurrency 10, lock and stalled check 30 s", {"concurrency": 10}
            ),
            "tuned": FaultSetup(
                "concurrency 10, lock and stalled check 5 s",
                {"concurrency": 10, "lockDuration": 5_000, "stalledInterval": 5_000},
            ),
        },
    ),
)
