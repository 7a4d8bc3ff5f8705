"""`workstealing node` at the end of a real pipe, alone and with another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from redis import Redis

import workstealing
from workstealing.node.shared_state import QUEUE
from workstealing.testing import Server

ROOT = Path(workstealing.__file__).parents[1]
START = "from workstealing.cli.entry import main; main()"
WORKERS = [f"w{n}" for n in range(6)]
JOBS = [f"mine{n}" for n in range(20)]

# It would hide that a node does not flush.
_UNBUFFERED = "PYTHONUNBUFFERED"

BALANCES = """\
{"src":"client","dest":"cluster","body":{"type":"init","msg_id":1,"workers":["w1","w2","w3"],"jobs_to_distribute":6}}
{"src":"client","dest":"cluster","body":{"type":"run_simulation","msg_id":2,"duration_ms":1000}}
"""
STEALS = """\
{
  "src": "client",
  "dest": "cluster",
  "body": {
    "type": "steal_job",
    "msg_id": 1,
    "thief_worker": "w3",
    "busy_workers": [
      "w1",
      "w2"
    ]
  }
}
"""
BALANCED = '{"src": "cluster", "dest": "client", "body": {"type": "init_ok", "in_reply_to": 1}}'  # noqa: E501
STOLEN = '{"src": "cluster", "dest": "client", "body": {"type": "job_stolen", "in_reply_to": 1, "thief": "w3", "victim": "w1", "job_id": "job2", "victim_queue_size": 2}}'  # noqa: E501


class Talk:
    """A node in a process of its own."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "node", *options],
            cwd=ROOT,
            env={key: os.environ[key] for key in os.environ if key != _UNBUFFERED},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def say(self, message: bytes) -> dict[str, Any]:
        """Send a line and wait for its answer, which must not wait for another."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(message + b"\n")
        self.process.stdin.flush()
        reply: dict[str, Any] = json.loads(self.process.stdout.readline())
        return reply

    def ask(self, kind: str, **more: Any) -> dict[str, Any]:
        return self.say(json.dumps({"type": kind, **more}).encode())

    def end(self) -> tuple[int, bytes]:
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


Begin = Callable[..., Talk]


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Start nodes; what still runs at the end is killed."""
    begun: list[Talk] = []

    def begin(*options: str) -> Talk:
        begun.append(Talk(*options))
        return begun[-1]

    yield begin
    for talk in begun:
        if talk.process.poll() is None:
            talk.process.kill()
        talk.process.communicate()


@pytest.fixture
def shared(redis_server: Server, redis_client: Redis) -> Iterator[str]:
    """The URL of a server on which there was no node before."""
    yield redis_server.url
    for key in redis_client.scan_iter(match=f"ws:{{{QUEUE}/*", count=1000):
        redis_client.unlink(key)


def piped(text: str, *options: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", START, "node", *options],
        cwd=ROOT,
        input=text,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("where", ["memory", "redis"])
@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (BALANCES, BALANCED),
        (STEALS, STOLEN),
        (json.dumps(json.loads(STEALS)), STOLEN),
    ],
    ids=["balances", "steals", "steals, in one line"],
)
def test_a_sample_of_the_seed_gets_exactly_its_first_line(
    sample: str, expected: str, where: str, shared: str
) -> None:
    options = ("--redis", shared) if where == "redis" else ()

    assert piped(sample, *options)[0] == expected


def test_a_second_of_simulated_time_is_answered_at_once(shared: str) -> None:
    told = [json.loads(line)["body"] for line in piped(BALANCES)]

    assert told[1]["type"] == "simulation_ok"
    assert told[1]["jobs_completed"] == 6
    assert piped(BALANCES, "--redis", shared) == piped(BALANCES)


def test_another_seed_may_draw_another_victim() -> None:
    victims = {
        json.loads(piped(STEALS, "--seed", str(seed))[0])["body"]["victim"]
        for seed in range(4)
    }

    assert victims == {"w1", "w2"}


@pytest.mark.parametrize(
    ("where", "number"), [("memory", 10_000), ("redis", 1_000)], ids=["memory", "redis"]
)
def test_whatever_is_sent_the_node_goes_on_and_no_job_is_lost(
    begin: Begin, where: str, number: int, shared: str
) -> None:
    talk = begin(*(("--redis", shared) if where == "redis" else ()))
    books = Books()
    chance = Random(20_261_116)
    books.enter(talk.ask("init", workers=WORKERS, jobs_to_distribute=10), 10)

    for _ in range(number):
        jobs = chance.randrange(10)
        message = random_message(chance, jobs)
        books.enter(talk.say(message), jobs)

    assert books.errors > number / 10
    assert books.ended > number / 50
    assert books.begun - books.ended == drained(talk)
    assert talk.end() == (0, b"")


class Books:
    """Counts what began and what ended, by the replies alone."""

    def __init__(self) -> None:
        self.begun = self.ended = self.errors = 0

    def enter(self, reply: dict[str, Any], jobs: int) -> None:
        body = reply.get("body", reply)
        self.errors += body["type"] == "error"
        self.begun += jobs * (body["type"] == "init_ok")
        self.begun += body["type"] == "submit_job_ok"
        self.ended += body["type"] == "complete_job_ok"
        self.ended += body.get("jobs_completed", 0)


def drained(talk: Talk) -> int:
    """Gather all jobs, also those in flight, with one worker; let it complete them."""
    talk.ask("add_worker", worker="last")
    for worker in talk.ask("check_cluster_state")["workers"]:
        if worker != "last":
            talk.ask("remove_worker", worker=worker)
    gathered = talk.ask("check_cluster_state")["workers"]["last"]["queue_size"]
    completed = talk.ask("run_simulation", duration_ms=1e9)["jobs_completed"]
    assert completed == gathered
    assert talk.ask("check_cluster_state")["all_idle"]
    return int(gathered)


def random_message(chance: Random, jobs: int) -> bytes:
    worker, other = chance.choice(WORKERS), chance.choice(WORKERS)
    name = chance.choice([*JOBS, f"job{chance.randrange(100)}"])
    body: dict[str, Any] = chance.choices(
        [
            {"type": "init", "workers": [worker, other], "jobs_to_distribute": jobs},
            {"type": "steal_job", "thief_worker": worker, "busy_workers": WORKERS[:4]},
            {"type": "check_cluster_state"},
            {"type": "run_simulation", "duration_ms": chance.choice([0, 50, 400.5])},
            {"type": "submit_job", "job_id": name},
            {"type": "submit_job", "job_id": name, "worker": worker},
            {"type": "submit_job"},
            {"type": "take_job", "worker": worker},
            {"type": "complete_job", "worker": worker, "job_id": name},
            {"type": "add_worker", "worker": worker},
            {"type": "remove_worker", "worker": worker},
        ],
        weights=[1, 6, 2, 2, 6, 6, 3, 9, 25, 2, 2],
    )[0]
    body["msg_id"] = chance.randrange(1000)
    text = json.dumps({"src": "c", "dest": "n", "body": body}).encode()
    return chance.choices([text, _spoiled(chance, body, text)], weights=[5, 1])[0]


def _spoiled(chance: Random, body: dict[str, Any], text: bytes) -> bytes:
    field = chance.choice(list(body))
    wrong = chance.choice([None, -1, {}, [[]], "", "a b", 1e300, "\ud800", [1], True])
    noise = bytes(chance.choices(range(11, 256), k=chance.randrange(1, 60)))
    return chance.choice(
        [
            # Not to a lone brace: that would begin a message of many lines.
            text[: chance.randrange(2, len(text))],
            b"x" + noise.replace(b"\r", b""),
            json.dumps({**body, field: wrong, "type": "init"}).encode(),
            json.dumps({name: body[name] for name in body if name != field}).encode(),
            json.dumps({**body, "type": "dance"}).encode(),
            b'{"type": "run_simulation", "duration_ms": NaN}',
            b'{"type": "run_simulation", "duration_ms": -1}',
            b'{"type": "take_job", "worker": "stranger"}',
            b"[" * 20_000,
        ]
    )


def test_two_nodes_on_one_server_have_one_state(begin: Begin, shared: str) -> None:
    one, other = begin("--redis", shared), begin("--redis", shared, "--seed", "5")

    one.ask("init", workers=["w1", "w2", "w3"], jobs_to_distribute=6)
    stolen = other.ask("steal_job", thief_worker="w3", busy_workers=["w1"])
    assert (stolen["type"], stolen["victim_queue_size"]) == ("job_stolen", 1)
    assert one.ask("check_cluster_state") == other.ask("check_cluster_state")
    assert one.ask("check_cluster_state")["workers"]["w1"]["queue_size"] == 1

    assert one.ask("add_worker", worker="w1")["code"] == 21
    other.ask("add_worker", worker="w4")
    assert one.ask("take_job", worker="w4")["code"] == 22
    one.ask("complete_job", worker="w3", job_id=stolen["job_id"])
    assert other.ask("complete_job", worker="w3", job_id=stolen["job_id"])["code"] == 20

    assert other.ask("run_simulation", duration_ms=10_000)["jobs_completed"] == 5
    assert one.ask("check_cluster_state")["all_idle"]


def test_two_nodes_give_no_job_to_two_workers(begin: Begin, shared: str) -> None:
    nodes = [begin("--redis", shared) for _ in range(2)]
    nodes[0].ask("init", workers=WORKERS, jobs_to_distribute=60)

    took = []
    for n in range(80):
        thief = WORKERS[n % 6]
        steal = {"thief_worker": thief, "busy_workers": WORKERS}
        kind = ("take_job", "steal_job")[n // 2 % 2]
        more = {"worker": thief} if kind == "take_job" else steal
        took.append(nodes[n % 2].ask(kind, **more).get("job_id"))

    jobs = [job for job in took if job is not None]
    assert len(jobs) == len(set(jobs)) == 60


def test_the_state_outlives_its_nodes(shared: str) -> None:
    piped('{"type": "init", "workers": ["w1"], "jobs_to_distribute": 3}', *_at(shared))

    (told,) = piped('{"type": "check_cluster_state"}', *_at(shared))
    assert json.loads(told)["workers"] == {"w1": {"queue_size": 3, "state": "busy"}}


def test_a_server_that_does_not_answer_is_an_error_in_each_reply() -> None:
    nowhere = "redis://127.0.0.1:1"

    told = piped('{"type": "check_cluster_state"}\n' * 2, *_at(nowhere))

    assert [json.loads(line)["code"] for line in told] == [0, 0]


def test_a_url_that_means_nothing_is_refused_in_one_line(begin: Begin) -> None:
    code, errors = begin(*_at("nonsense://")).end()

    assert code == 2
    assert errors.count(b"\n") == 1


def test_a_node_whose_reader_is_gone_ends_without_a_traceback(begin: Begin) -> None:
    talk = begin()
    assert talk.process.stdin is not None
    assert talk.process.stdout is not None
    talk.ask("check_cluster_state")

    talk.process.stdout.close()
    os.write(talk.process.stdin.fileno(), b'{"type": "check_cluster_state"}\n')

    talk.process.wait(timeout=30)
    assert talk.process.stderr is not None
    assert talk.process.stderr.read() == b""


def test_a_node_ends_with_its_input_and_answers_what_was_sent() -> None:
    assert len(piped('{"type": "check_cluster_state"}')) == 1
    assert piped("") == []


def _at(url: str) -> tuple[str, str]:
    return ("--redis", url)
