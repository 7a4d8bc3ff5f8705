"""What a node answers, from the first message on; its state is in memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

import pytest

from workstealing.node.cluster import Cluster
from workstealing.node.cluster_state import MemoryState
from workstealing.node.messages import ErrorCode
from workstealing.node.node import LONGEST, Node

Ask = Callable[..., dict[str, Any]]
BUSY, IDLE = "busy", "idle"


@pytest.fixture
def node() -> Node:
    return Node(Cluster(MemoryState()))


@pytest.fixture
def ask(node: Node) -> Ask:
    def ask(kind: str, **more: Any) -> dict[str, Any]:
        body = {"type": kind, "msg_id": 7, **more}
        reply: dict[str, Any] = json.loads(node.answer(json.dumps(body).encode()))
        assert reply.pop("in_reply_to") == 7
        return reply

    return ask


def code(node: Node, message: str | bytes) -> int:
    """Return the code of an error, and check that the node goes on."""
    told = message.encode() if isinstance(message, str) else message
    reply = json.loads(node.answer(told))
    reply = reply.get("body", reply)
    assert reply["type"] == "error"
    assert reply["text"]
    state = json.loads(node.answer(b'{"type": "check_cluster_state"}'))
    assert state["type"] == "cluster_state_ok"
    number: int = reply["code"]
    return number


def sizes(ask: Ask) -> dict[str, int]:
    workers = ask("check_cluster_state")["workers"]
    return {name: worker["queue_size"] for name, worker in workers.items()}


def test_init_spreads_its_jobs_evenly(ask: Ask) -> None:
    assert ask("init", workers=["w1", "w2", "w3"], jobs_to_distribute=8) == {
        "type": "init_ok"
    }

    assert sizes(ask) == {"w1": 3, "w2": 3, "w3": 2}


def test_a_second_init_adds_and_takes_nothing_away(ask: Ask) -> None:
    ask("init", workers=["w1"], jobs_to_distribute=2)
    ask("init", workers=["w1", "w2"], jobs_to_distribute=2)

    assert sizes(ask) == {"w1": 3, "w2": 1}


def test_the_owner_takes_at_the_front_and_the_thief_at_the_back(ask: Ask) -> None:
    ask("init", workers=["w1", "w2"])
    for job in ("x", "y", "z"):
        ask("submit_job", job_id=job, worker="w1")

    stolen = ask("steal_job", thief_worker="w2", busy_workers=["w1"])
    taken = ask("take_job", worker="w1")

    assert (stolen["job_id"], stolen["victim_queue_size"]) == ("z", 2)
    assert (taken["job_id"], taken["queue_size"]) == ("x", 1)


def test_victims_are_drawn_from_all_that_are_busy(ask: Ask) -> None:
    ask("init", workers=["w1", "w2", "w3", "w4"], jobs_to_distribute=80)

    busy = ["w1", "w2", "w3"]
    robbed = {
        ask("steal_job", thief_worker="w4", busy_workers=busy)["victim"]
        for _ in range(40)
    }

    assert robbed == set(busy)


def test_all_are_idle_when_no_job_waits_and_none_is_in_flight(ask: Ask) -> None:
    ask("init", workers=["w1", "w2"])
    assert ask("check_cluster_state")["all_idle"]

    ask("submit_job", job_id="x", worker="w1")
    ask("steal_job", thief_worker="w2", busy_workers=["w1"])
    state = ask("check_cluster_state")
    assert not state["all_idle"]
    assert state["workers"] == {
        "w1": {"queue_size": 0, "state": IDLE},
        "w2": {"queue_size": 0, "state": BUSY},
    }

    ask("complete_job", worker="w2", job_id="x")
    assert ask("check_cluster_state")["all_idle"]


def test_the_jobs_of_a_removed_worker_go_to_others_also_one_in_flight(ask: Ask) -> None:
    ask("init", workers=["w1", "w2", "w3"])
    for _ in range(5):
        ask("submit_job", worker="w1")
    ask("take_job", worker="w1")

    assert ask("remove_worker", worker="w1")["jobs_moved"] == 5

    assert sum(sizes(ask).values()) == 5
    assert set(sizes(ask)) == {"w2", "w3"}


def test_without_workers_a_job_waits_for_the_first_that_comes(ask: Ask) -> None:
    assert ask("submit_job", job_id="x")["worker"] is None
    assert not ask("check_cluster_state")["all_idle"]

    ask("add_worker", worker="w1")

    assert ask("take_job", worker="w1")["job_id"] == "x"


def test_jobs_without_a_name_get_one_that_nobody_has(ask: Ask) -> None:
    ask("init", workers=["w1"])
    ask("submit_job", job_id="job0", worker="w1")

    assert ask("submit_job")["job_id"] == "job1"


def test_a_node_that_was_never_initialised_believes_who_is_busy(ask: Ask) -> None:
    ask("steal_job", thief_worker="w3", busy_workers=["w1", "w2"])
    assert sizes(ask) == {"w1": 2, "w2": 3, "w3": 0}

    ask("steal_job", thief_worker="w3", busy_workers=["w4"])
    assert sizes(ask) == {"w1": 2, "w2": 3, "w3": 0, "w4": 2}


def test_a_simulation_completes_what_there_is_time_for(ask: Ask) -> None:
    ask("init", workers=["w1", "w2"], jobs_to_distribute=100)

    told = ask("run_simulation", duration_ms=1000)

    done = told["jobs_completed"]
    assert 0 < done < 100
    assert sum(w["jobs_completed"] for w in told["workers"].values()) == done
    assert sum(sizes(ask).values()) == 100 - done
    assert told["idle_ms"] == 0


def test_in_a_simulation_idle_workers_steal(ask: Ask) -> None:
    ask("init", workers=["w1", "w2"])
    for _ in range(10):
        ask("submit_job", worker="w1")

    told = ask("run_simulation", duration_ms=100_000)

    assert told["jobs_completed"] == 10
    assert told["jobs_stolen"] == told["workers"]["w2"]["jobs_stolen"] > 0
    assert ask("check_cluster_state")["all_idle"]


def test_a_simulation_leaves_alone_what_a_client_has_in_flight(ask: Ask) -> None:
    ask("init", workers=["w1", "w2"])
    for _ in range(3):
        ask("submit_job", worker="w1")
    held = ask("take_job", worker="w1")["job_id"]

    told = ask("run_simulation", duration_ms=100_000)

    assert told["workers"]["w1"] == {
        "jobs_completed": 0,
        "jobs_stolen": 0,
        "idle_ms": 0,
    }
    assert told["workers"]["w2"]["jobs_stolen"] == 2
    assert not ask("check_cluster_state")["all_idle"]
    assert ask("complete_job", worker="w1", job_id=held)["type"] == "complete_job_ok"


def test_the_same_seed_gives_the_same_answers() -> None:
    def story(seed: int) -> list[str]:
        node = Node(Cluster(MemoryState(), seed))
        steal = b'{"type":"steal_job","thief_worker":"w9","busy_workers":["w1","w2"]}'
        simulate = b'{"type":"run_simulation","duration_ms":300}'
        return [node.answer(message) for message in (*[steal] * 4, simulate)]

    assert story(3) == story(3)
    assert story(3) != story(4)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("{", 12),
        ("[]", 12),
        ("nonsense", 12),
        (b"\xff\xfe{}", 12),
        (b'{"type": "\xff"}', 12),
        ("[" * 100_000, 12),
        ('{"a":' * 100_000, 12),
        ('{"type": "init", "workers": ' + "[" * 3000 + "]" * 3000 + "}", 12),
        ("{}", 12),
        ('{"type": null}', 12),
        ('{"type": "dance"}', 10),
        ('{"body": []}', 12),
        ('{"src": "a", "dest": "b"}', 12),
        ('{"src": 1, "dest": "b", "body": {"type": "check_cluster_state"}}', 12),
        ('{"type": "check_cluster_state", "msg_id": {}}', 12),
        ('{"type": "check_cluster_state", "msg_id": true}', 12),
        ('{"type": "init"}', 12),
        ('{"type": "init", "workers": []}', 12),
        ('{"type": "init", "workers": "w1"}', 12),
        ('{"type": "init", "workers": ["a b"]}', 12),
        ('{"type": "init", "workers": ["a/b"]}', 12),
        ('{"type": "init", "workers": ["{a}"]}', 12),
        ('{"type": "init", "workers": [""]}', 12),
        ('{"type": "init", "workers": ["w1"], "jobs_to_distribute": -1}', 12),
        ('{"type": "init", "workers": ["w1"], "jobs_to_distribute": 1e9}', 12),
        ('{"type": "init", "workers": ["w1"], "jobs_to_distribute": 1.5}', 12),
        ('{"type": "run_simulation"}', 12),
        ('{"type": "run_simulation", "duration_ms": -1}', 12),
        ('{"type": "run_simulation", "duration_ms": NaN}', 12),
        ('{"type": "run_simulation", "duration_ms": 1e999}', 12),
        ('{"type": "run_simulation", "duration_ms": "1"}', 12),
        ('{"type": "take_job", "worker": "nobody"}', 20),
        ('{"type": "remove_worker", "worker": "nobody"}', 20),
        ('{"type": "submit_job", "worker": "nobody"}', 20),
        ('{"type": "complete_job", "worker": "nobody", "job_id": "x"}', 20),
        ('{"type": "complete_job", "worker": "w1", "job_id": "x"}', 20),
        ('{"type": "add_worker", "worker": "w1"}', 21),
        ('{"type": "submit_job", "job_id": "mine"}', 21),
        ('{"type": "take_job", "worker": "w2"}', 22),
        ('{"type": "steal_job", "thief_worker": "w1", "busy_workers": ["w2"]}', 22),
        ('{"type": "steal_job", "thief_worker": "w1", "busy_workers": ["w1"]}', 22),
        ('{"type": "steal_job", "thief_worker": "w1", "busy_workers": ["no"]}', 20),
        ('{"type": "steal_job", "thief_worker": "no", "busy_workers": ["w1"]}', 20),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_cannot_be_done_is_an_error_in_the_reply(
    node: Node, ask: Ask, message: str | bytes, expected: int
) -> None:
    ask("init", workers=["w1", "w2"])
    ask("submit_job", job_id="mine", worker="w1")

    assert code(node, message) == expected
    assert sizes(ask) == {"w1": 1, "w2": 0}


def test_a_cluster_has_no_more_workers_than_it_says(node: Node, ask: Ask) -> None:
    ask("init", workers=[f"w{n}" for n in range(1000)])

    assert code(node, '{"type": "add_worker", "worker": "late"}') == 11


def test_every_code_is_in_the_table_of_the_enumeration() -> None:
    assert sorted(map(int, ErrorCode)) == [0, 10, 11, 12, 20, 21, 22]


def test_an_error_goes_back_to_whom_it_concerns(node: Node) -> None:
    message = b'{"src": "c", "dest": "n", "body": {"type": "dance", "msg_id": "a"}}'

    reply = json.loads(node.answer(message))

    assert (reply["src"], reply["dest"]) == ("n", "c")
    assert reply["body"]["in_reply_to"] == "a"


def serve(text: bytes) -> list[dict[str, Any]]:
    sink = BytesIO()
    Node(Cluster(MemoryState())).serve(BytesIO(text), sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


CHECK = b'{"type": "check_cluster_state", "msg_id": 1}'
INDENTED = b'{\n  "type": "check_cluster_state",\n  "msg_id": 2\n}\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n  \n", []),
        (CHECK, [1]),
        (CHECK + b"\r\n" + CHECK, [1, 1]),
        (INDENTED, [2]),
        (INDENTED.replace(b"\n", b"\r\n") + CHECK, [2, 1]),
        (INDENTED[:-2] + CHECK, [None, 1]),
        (b"{\n" + CHECK, [None, 1]),
        (b"{\n" + INDENTED, [None, 2]),
        (b"{", [None]),
        (b"}\n" + CHECK, [None, 1]),
        (b"x" * (LONGEST + 1) + b"\n" + CHECK, [None, 1]),
        (b"x" * (5 * LONGEST), [None]),
        (b"{\n" + b'  "x": "' + b"y" * (3 * LONGEST) + b'"\n}\n' + CHECK, [None, 1]),
        (b"{\n" + b' "x": 1,\n' * 200_000 + b"}\n" + CHECK, [None, 1]),
        (b" " * (LONGEST - len(CHECK)) + CHECK, [1]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_each_message_is_answered_however_it_is_written(
    text: bytes, expected: list[int | None]
) -> None:
    assert [reply["in_reply_to"] for reply in serve(text)] == expected


@pytest.mark.parametrize("duration", ["1e308", "1e10", "1e999", "1000000001"])
def test_a_simulation_without_end_is_malformed(node: Node, duration: str) -> None:
    node.answer(b'{"type": "init", "workers": ["w1", "w2"]}')
    request = f'{{"type": "run_simulation", "duration_ms": {duration}}}'

    assert code(node, request) == ErrorCode.MALFORMED_REQUEST


def test_the_longest_simulation_is_answered_in_json(node: Node) -> None:
    workers = json.dumps([f"w{number}" for number in range(1000)])
    node.answer(f'{{"type": "init", "workers": {workers}}}'.encode())

    reply = node.answer(b'{"type": "run_simulation", "duration_ms": 1e9}')

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(reply, parse_constant=refuse)["idle_ms"] == 1e12
