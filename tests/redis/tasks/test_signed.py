"""With signatures, whoever can write to Redis still cannot act as somebody else."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import workstealing
from workstealing import (
    AccessPolicy,
    AsyncTaskQueue,
    ClientContext,
    Keyring,
    TaskClient,
    TaskQueue,
    Worker,
)
from workstealing.client.queue_internals import internals_of
from workstealing.errors import BadSignature
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until

ROOT = Path(workstealing.__file__).parents[1]
SECRET = "a secret that nobody knows"
OTHER = "another secret, even longer"
ANN = ClientContext("ann", {"clerk"})
POLICY = AccessPolicy({"clerk": {"pay"}})
MUTATIONS = 10_000

Make = Callable[..., TaskQueue]


class Shop:
    """A queue that wants signatures, and what its one task did."""

    def __init__(self, make_queue: Make, **options: Any) -> None:
        self.queue = make_queue(**{"secret": SECRET, "policy": POLICY, **options})
        self.paid: list[int] = []

        @self.queue.task(name="pay", permission="pay")
        def pay(amount: int) -> int:
            self.paid.append(amount)
            return amount

        self.pay = pay.options(context=ANN)
        self.client: Any = internals_of(self.queue).driver.client

    def signed(self, amount: int = 7) -> tuple[str, bytes]:
        """Take a genuine task out of the queue again: its id and its envelope."""
        handle = self.pay.submit(amount)
        envelope = self.client.hget(internals_of(self.queue).keys.task, handle.id)
        self.client.hdel(internals_of(self.queue).keys.task, handle.id)
        self.client.lrem(internals_of(self.queue).keys.inboxes[1], 0, handle.id)
        return handle.id, envelope

    def put(self, task_id: str, envelope: bytes) -> Any:
        """Write a task as whoever has access to Redis can."""
        self.client.hset(internals_of(self.queue).keys.task, task_id, envelope)
        self.client.rpush(internals_of(self.queue).keys.inboxes[1], task_id)
        return self.queue.handle(task_id)

    def drain(self) -> None:
        Worker(self.queue).run(until_empty="all")


@pytest.fixture
def shop(make_queue: Make) -> Shop:
    return Shop(make_queue)


def test_what_was_signed_is_run(shop: Shop) -> None:
    handles = [shop.pay.submit(1), *shop.pay.submit_many([(2,), (3,)])]
    handles.append(shop.pay.submit_in(0.01, 4))
    shop.drain()

    assert [handle.result(5) for handle in handles] == [1, 2, 3, 4]
    assert shop.queue.counts().stats.get("forged", 0) == 0


async def test_the_asyncio_face_signs_too(
    shop: Shop, redis_server: Server, key_prefix: str
) -> None:
    queue = AsyncTaskQueue(key_prefix, redis_server.url, secret=SECRET)

    @queue.task(name="pay")
    async def pay(amount: int) -> int: ...

    handle = await pay.options(context=ANN).submit(7)
    shop.drain()

    assert await handle.result(5) == 7
    await queue.close()


def test_a_signed_task_says_when_it_expires_and_who_calls(shop: Shop) -> None:
    _, envelope = shop.signed()

    read = Envelope.read(envelope)

    assert read.expires == read.at + 7 * 86_400_000
    assert (read.principal, read.roles) == ("ann", ("clerk",))


def test_a_delayed_task_expires_a_week_after_it_is_due(shop: Shop) -> None:
    handle = shop.pay.submit_in(86_400, 7)

    read = Envelope.read(
        shop.client.hget(internals_of(shop.queue).keys.task, handle.id)
    )

    assert read.expires == read.at + 8 * 86_400_000


def test_the_same_bytes_under_another_id_are_refused(shop: Shop) -> None:
    task_id, envelope = shop.signed()
    genuine, replayed = shop.put(task_id, envelope), shop.put("17", envelope)
    shop.drain()

    assert genuine.result(5) == 7
    with pytest.raises(BadSignature, match="another id or queue"):
        replayed.result(5)
    assert shop.paid == [7]


def test_the_same_bytes_in_another_run_are_refused(
    shop: Shop, make_queue: Make
) -> None:
    task_id, envelope = shop.signed()
    elsewhere = Shop(make_queue, run="other")
    handle = elsewhere.put(task_id, envelope)
    elsewhere.drain()

    with pytest.raises(BadSignature):
        handle.result(5)
    assert elsewhere.paid == []


def _as_somebody_else(envelope: bytes) -> bytes:
    assert b'"principal":"ann"' in envelope
    return envelope.replace(b'"principal":"ann"', b'"principal":"bob"')


def _unsigned(envelope: bytes) -> bytes:
    return b"{" + envelope[envelope.index(b",") + 1 :]


def _more(envelope: bytes) -> bytes:
    return envelope.replace(b'"amount":7', b'"amount":700')


def _longer(envelope: bytes) -> bytes:
    head, _, rest = envelope.partition(b'"expires":')
    return head + b'"expires":9' + rest


@pytest.mark.parametrize("forge", [_as_somebody_else, _unsigned, _more, _longer])
def test_a_forged_task_is_refused_counted_and_logged_without_its_payload(
    shop: Shop,
    forge: Callable[[bytes], bytes],
    caplog: pytest.LogCaptureFixture,
) -> None:
    task_id, envelope = shop.signed()
    assert forge(envelope) != envelope
    handle, good = shop.put(task_id, forge(envelope)), shop.pay.submit(8)

    with caplog.at_level(logging.DEBUG):
        shop.drain()

    assert good.result(5) == 8
    with pytest.raises(BadSignature):
        handle.result(5)
    assert shop.paid == [8]
    assert handle.state().state is State.DEAD
    assert shop.queue.counts().stats["forged"] == 1
    assert shop.queue.counts().dead == 1
    assert task_id in caplog.text
    for hidden in ("amount", "ann", "bob", SECRET):
        assert hidden not in caplog.text


def test_an_expired_task_is_refused(shop: Shop) -> None:
    signer = Keyring(SECRET).signer(shop.queue.name, shop.queue.run)
    old = (
        b'{"v":1,"name":"pay","version":1,"expires":1000,"principal":"ann",'
        b'"roles":["clerk"],"payload":{"amount":7}}'
    )
    handle = shop.put("17", signer.sign("17", old))
    shop.drain()

    with pytest.raises(BadSignature, match="expired"):
        handle.result(5)
    assert shop.paid == []


def test_a_key_holder_may_not_call_what_its_roles_do_not_allow(shop: Shop) -> None:
    signer = Keyring(SECRET).signer(shop.queue.name, shop.queue.run)
    told = (
        b'{"v":1,"name":"pay","version":1,"expires":9000000000000,"principal":"bob",'
        b'"roles":["guest"],"payload":{"amount":7}}'
    )
    handle = shop.put("17", signer.sign("17", told))
    shop.drain()

    assert "'bob' may not call it" in handle.state().reason
    assert shop.paid == []


def test_a_refused_task_stays_refused_when_it_is_replayed(shop: Shop) -> None:
    task_id, envelope = shop.signed()
    shop.put(task_id, _more(envelope))
    shop.drain()

    assert shop.queue.replay(task_id)
    shop.drain()

    assert shop.paid == []
    assert shop.queue.counts().stats["forged"] == 2


def test_a_secret_is_changed_without_a_pause(make_queue: Make) -> None:
    old = Shop(make_queue, secret=OTHER)
    before = old.pay.submit(1)
    both = Shop(make_queue, secret=None, keyring=Keyring(SECRET, OTHER))
    after = both.pay.submit(2)
    both.drain()

    assert [before.result(5), after.result(5)] == [1, 2]
    stale = old.pay.submit(3)
    Shop(make_queue, secret=SECRET).drain()
    with pytest.raises(BadSignature, match="which is not in the keyring"):
        stale.result(5)


def test_clients_sign_before_workers_ask_for_it(make_queue: Make) -> None:
    signing, lenient = Shop(make_queue), Shop(make_queue, secret=None)
    handle = signing.pay.submit(7)
    lenient.drain()

    assert handle.result(5) == 7


WORKER = """
    import signal, sys
    from workstealing import AccessPolicy, TaskQueue, Worker
    from redis import Redis

    name, url, secret = sys.argv[1:]
    queue = TaskQueue(name, url, secret=secret, policy=AccessPolicy({"clerk": {"pay"}}))
    notes = Redis.from_url(url)

    @queue.task(name="pay", permission="pay")
    def pay(amount: int) -> int:
        notes.rpush(f"{name}:paid", amount)
        return amount

    worker = Worker(queue)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()
"""


@pytest.fixture
def start_worker(
    tmp_path: Path, redis_server: Server, key_prefix: str
) -> Iterator[Callable[[], None]]:
    """Start a worker process when the test is ready for one."""
    (tmp_path / "worker.py").write_text(dedent(WORKER))
    started: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        process = subprocess.Popen(
            [sys.executable, "worker.py", key_prefix, redis_server.url, SECRET],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.DEVNULL,
        )
        started.append(process)

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def mutated(envelope: bytes, other: bytes, chance: random.Random) -> bytes:
    """Change an envelope somehow, as chance or somebody clever would."""
    at, until = sorted(chance.randrange(len(envelope)) for _ in range(2))
    kind = chance.randrange(10)
    if kind == 0:
        return envelope[:at] + bytes([chance.randrange(256)]) + envelope[at + 1 :]
    if kind == 1:
        return envelope[:at] + envelope[until:]
    if kind == 2:
        return envelope[:until] + envelope[at:until] + envelope[until:]
    if kind == 3:
        return envelope[:at] + other[at:]
    if kind == 4:
        flipped = envelope[at] ^ (1 << chance.randrange(8))
        return envelope[:at] + bytes([flipped]) + envelope[at + 1 :]
    if kind == 5:
        return _unsigned(envelope)
    if kind == 6:
        return envelope[: envelope.index(b",") + 1] + other[other.index(b",") + 1 :]
    if kind == 7:
        return envelope[:-1] + b',"payload":{"amount":%d}}' % chance.randrange(10**6)
    if kind == 8:
        return envelope[:-1] + b',"roles":["clerk","admin"]}'
    return envelope.replace(b'"v":1', b'"sig":"","v":1', 1)


def test_of_ten_thousand_mutated_envelopes_none_is_executed(
    shop: Shop, start_worker: Callable[[], None], key_prefix: str
) -> None:
    chance = random.Random(20)
    genuine = dict(shop.signed(number) for number in range(1_000_000, 1_000_100))
    whole = list(genuine.items())
    forged: dict[str, bytes] = {}
    for number in range(MUTATIONS):
        task_id, envelope = whole[number % len(whole)]
        changed = mutated(envelope, chance.choice(whole)[1], chance)
        if changed == envelope or number % 20 == 0:
            # As it is, but under another id.
            changed = envelope
        forged[f"{task_id}-{number}"] = changed
    # Some under the very id that they were signed for.
    for task_id, envelope in whole[:50]:
        forged[task_id] = _more(envelope.replace(b'"amount":1', b'"amount":7'))
        del genuine[task_id]

    keys = internals_of(shop.queue).keys
    with shop.client.pipeline(transaction=False) as pipeline:
        for task_id, envelope in (*forged.items(), *genuine.items()):
            pipeline.hset(keys.task, task_id, envelope)
            pipeline.rpush(keys.inboxes[1], task_id)
        pipeline.execute()
    start_worker()
    wait_until(lambda: shop.queue.counts().unfinished == 0, 50, "all to be judged")

    counts = shop.queue.counts()
    paid = {int(amount) for amount in shop.client.lrange(f"{key_prefix}:paid", 0, -1)}
    assert paid == set(range(1_000_050, 1_000_100))
    assert counts.stats["forged"] == len(forged)
    assert counts.stats["done"] == len(genuine)


def test_a_caller_is_told_by_a_worker_of_its_own_that_keys_differ(
    start_worker: Callable[[], None], make_queue: Make
) -> None:
    start_worker()
    good, bad = make_queue(secret=SECRET), make_queue(secret=OTHER)
    for queue in (good, bad):
        queue.registry.contract("pay", _pay)

    with pytest.raises(BadSignature, match="which is not in the keyring"):
        TaskClient(bad).call(ANN, "pay", {"amount": 7}, int, 20)
    assert TaskClient(good).call(ANN, "pay", {"amount": 7}, int, 20) == 7


def _pay(amount: int) -> int: ...
