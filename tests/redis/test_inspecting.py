"""Inspecting a queue: where its tasks are, its workers, and why a task is not running.

Workers are played by hand, call by call, so that each state can be looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from redis import Redis

from workstealing import AsyncTaskQueue, BriefTasks, TaskQueue, Worker, WorkStealer
from workstealing.client.queue_internals import internals_of
from workstealing.errors import ConfigurationError, TaskNotFound
from workstealing.inspecting import AsyncInspector, Inspector, TaskFilter, TreeNode
from workstealing.queue.brief_calls import brief_exchange
from workstealing.queue.worker_calls import exchange, join, park, steal
from workstealing.tasks.attempt import Delivery, Report
from workstealing.tasks.outcome import State
from workstealing.testing import Server, wait_until

DESCRIPTION = {"abilities": ["echo@1"], "host": "mill", "pid": 4711, "since": 5}


class Stage:
    """A queue with one task, and workers that are played by hand."""

    def __init__(self, client: Redis, name: str) -> None:
        self.client = client
        self.queue = TaskQueue(name, client)
        self.inspector = Inspector(self.queue)

        @self.queue.task(name="echo")
        def echo(text: str = "") -> str:
            if text == "bad":
                raise ValueError("not today")
            return text

        self.echo = echo

    def ids(self, number: int, first: str = "t") -> list[str]:
        names = [f"{first}{n}" for n in range(number)]
        self.echo.submit_many([()] * number, ids=names)
        return names

    def join(self, worker: str, lease: int = 15_000, **told: Any) -> None:
        settings = replace(internals_of(self.queue).settings, lease_ms=lease)
        description = {**DESCRIPTION, **told}
        call = join(internals_of(self.queue).keys, settings, worker, "1", description)
        internals_of(self.queue).driver.call(call)

    def take(self, worker: str, want: int, *reports: Report, keep: int = 0) -> Any:
        exchanged = internals_of(self.queue).driver.call(
            exchange(
                internals_of(self.queue).keys,
                internals_of(self.queue).settings,
                worker,
                "1",
                want=want,
                keep=keep,
                reports=reports,
            )
        )
        assert exchanged is not None
        return exchanged.tasks

    def steal(self, victim: str, thief: str) -> int:
        return internals_of(self.queue).driver.call(
            steal(internals_of(self.queue).keys, victim, thief)
        )

    def park(self, worker: str, task: Delivery, ability: str) -> None:
        internals_of(self.queue).driver.call(
            park(internals_of(self.queue).keys, worker, task, ability)
        )

    def drain(self) -> None:
        Worker(self.queue, pool="pool").run(until_empty=True)

    def why(self, task_id: str) -> str:
        return str(self.inspector.why(task_id))


@pytest.fixture
def modern_client(redis_server: Server) -> Iterator[Redis]:
    with Redis.from_url(redis_server.url, protocol=3) as client:
        yield client


@pytest.fixture(params=["redis_client", "modern_client", "fake_redis"])
def stage(request: pytest.FixtureRequest, key_prefix: str) -> Stage:
    return Stage(request.getfixturevalue(request.param), key_prefix)


@pytest.fixture
def real(redis_client: Redis, key_prefix: str) -> Stage:
    return Stage(redis_client, key_prefix)


def test_stat_counts_the_tasks_in_each_place(stage: Stage) -> None:
    stage.ids(4)
    stage.echo.options(priority=0).submit()
    stage.echo.options(priority=2).submit()
    stage.echo.submit_in(60)
    stage.join("pool.0")
    stage.join("pool.1")
    stage.take("pool.0", 2, keep=2)

    seen = stage.inspector.stat()

    assert (seen.queue, seen.run) == (stage.queue.name, "default")
    assert (seen.running, seen.assigned, seen.waiting) == (2, 2, 2)
    assert seen.inbox == (0, 1, 1)
    assert (seen.delayed, seen.parked, seen.dead, seen.outcomes) == (1, 0, 0, 0)
    assert (seen.unfinished, seen.backlog, seen.living) == (7, 6, 2)
    assert seen.backlog_per_worker == 3.0
    assert not seen.input_ended


def test_a_glance_counts_as_stat_does_and_describes_some_workers(stage: Stage) -> None:
    for n in range(9):
        stage.join(f"w{n}.0")
    stage.join("gone.0", lease=1)
    stage.ids(40)
    for n in range(9):
        stage.take(f"w{n}.0", 1, keep=n % 3)
    wait_until(lambda: stage.inspector.stat().living == 9, 5, "the end of a lease")

    seen, whole = stage.inspector.glance(2), stage.inspector.stat()
    page = stage.inspector.glance(3, "w5.0")

    fields = ("waiting", "assigned", "running", "living", "unfinished", "is_known")
    for name in fields:
        assert getattr(seen, name) == getattr(whole, name), name
    assert [one.name for one in seen.workers] == ["w2.0", "w5.0", "gone.0"]
    assert [one.waiting for one in seen.workers] == [2, 2, 0]
    assert [one.name for one in page.workers] == ["w5.0", "w6.0", "w7.0", "gone.0"]
    assert seen.bytes is None
    assert [one.name for one in stage.inspector.glance(0).workers] == ["gone.0"]


def test_a_glance_knows_a_queue_by_its_schedules(stage: Stage) -> None:
    assert not stage.inspector.glance().is_known
    stage.queue.schedule(stage.echo, every=3600, name="hourly")
    assert stage.inspector.glance().is_known


def test_browsing_is_a_glance_and_a_search_in_one(stage: Stage) -> None:
    stage.ids(7)

    seen, page = stage.inspector.browse(TaskFilter("waiting"), limit=5)

    assert (seen.waiting, seen.workers, page.total) == (7, (), 7)
    rows = stage.inspector.search(TaskFilter("waiting"), limit=5).rows
    assert page.rows == rows


@pytest.mark.parametrize("state", ["assigned", "running"])
@pytest.mark.parametrize("limit", [7, 50])
def test_what_many_workers_hold_is_listed_once_page_by_page(
    stage: Stage, state: str, limit: int
) -> None:
    stage.ids(200)
    taken: list[str] = []
    for n in range(45):
        stage.join(f"w{n}.0")
        taken += (task.id for task in stage.take(f"w{n}.0", 1, keep=1))
    held = [row.id for n in range(45) for row in stage.inspector.ls(f"queues/w{n}.0")]
    expected = held if state == "assigned" else taken
    met: list[str] = []
    after, pages = "", 0
    while pages == 0 or after:
        page = stage.inspector.search(TaskFilter(state), after, limit)
        assert page.total == len(expected) > 40
        met += (row.id for row in page.rows)
        after, pages = page.after, pages + 1

    assert sorted(met) == sorted(expected)
    assert pages > 2
    (mine,) = stage.inspector.search(TaskFilter(state, worker="w44.0")).rows
    assert mine.worker == "w44.0"
    assert stage.inspector.search(TaskFilter(state, worker="nobody")).rows == ()


def test_stat_of_a_queue_that_nobody_used_is_all_zeros(stage: Stage) -> None:
    seen = stage.inspector.stat()

    assert not seen.is_known
    assert (seen.unfinished, seen.living, seen.workers) == (0, 0, ())
    assert seen.totals.submitted == 0
    assert seen.upkeep.done_at_ms == {}


def test_a_queue_is_known_from_its_first_task_to_long_after_its_last(
    stage: Stage,
) -> None:
    stage.ids(1)
    assert stage.inspector.stat().is_known

    stage.drain()
    assert stage.inspector.stat().is_known


def test_a_queue_is_known_by_a_worker_or_by_an_ended_input(stage: Stage) -> None:
    ended = TaskQueue(f"{stage.queue.name}-ended", stage.client)
    stage.join("pool.0")
    ended.end_input()

    assert stage.inspector.stat().is_known
    assert Inspector(ended).stat().is_known


def test_stat_says_since_when_the_oldest_task_has_been_waiting(stage: Stage) -> None:
    assert stage.inspector.stat().oldest_at_ms is None
    envelope = '{"v":1,"name":"echo","version":1,"at":%d,"payload":{}}'
    keys = internals_of(stage.queue).keys
    for inbox, at_ms in zip(keys.inboxes, (3_000, 1_000, 2_000), strict=True):
        stage.client.hset(keys.task, f"t{at_ms}", envelope % at_ms)
        stage.client.rpush(inbox, "a-cancelled-one", f"t{at_ms}")

    assert stage.inspector.stat().oldest_at_ms == 1_000


def test_the_queues_of_a_server_are_named_with_their_runs(stage: Stage) -> None:
    stage.ids(1)
    nightly = TaskQueue(stage.queue.name, stage.client, run="nightly")
    nightly.end_input()
    stage.client.set(f"{stage.queue.name}:ws:{{a/b}}:c", "no queue")
    stage.client.set(f"ws:{{{stage.queue.name}/a b}}:c", "no queue")

    found = stage.inspector.queues()

    own = [run for queue, run in found.names if queue == stage.queue.name]
    assert own == ["default", "nightly"]
    assert ("a", "b") not in found.names
    assert found.is_all


def test_an_autoscaler_sees_a_backlog_where_no_worker_is_alive(stage: Stage) -> None:
    stage.ids(5)
    stage.echo.submit_in(3600)

    assert stage.inspector.stat().backlog_per_worker == 5.0


def test_stat_says_of_each_worker_what_it_holds_and_where_it_runs(
    stage: Stage,
) -> None:
    stage.join("pool.0")
    stage.join("pool.1")
    stage.ids(8)
    stage.take("pool.0", 1, keep=4)
    stage.steal("pool.0", "pool.1")

    one, other = sorted(stage.inspector.stat().workers, key=lambda w: w.name)

    assert (one.name, one.waiting, one.running, one.stolen) == ("pool.0", 2, 1, 0)
    assert (other.name, other.waiting, other.running, other.stolen) == (
        *("pool.1", 2, 0),
        2,
    )
    assert (one.host, one.pid, one.since_ms) == ("mill", 4711, 5)
    assert one.is_alive
    assert one.lease_age_ms + one.lease_left_ms == 15_000


def test_the_age_of_a_lease_follows_the_workers_own_lease(stage: Stage) -> None:
    stage.join("pool.0", lease=90_000, lease_ms=90_000)

    (worker,) = stage.inspector.stat().workers

    assert worker.lease_age_ms + worker.lease_left_ms == 90_000


def test_a_worker_whose_lease_is_over_is_not_counted_as_alive(
    stage: Stage,
) -> None:
    stage.join("pool.0", lease=1)
    wait_until(lambda: stage.inspector.stat().living == 0, 10, "the lease to end")

    (worker,) = stage.inspector.stat().workers

    assert not worker.is_alive
    assert worker.lease_left_ms <= 0


def test_parked_tasks_are_counted_by_ability_with_the_reason(stage: Stage) -> None:
    stage.ids(2)
    stage.join("pool.0")
    for task in stage.take("pool.0", 2):
        stage.park("pool.0", task, "paint@2")

    (parked,) = stage.inspector.stat().parked_abilities
    assert (parked.ability, parked.tasks) == ("paint@2", 2)
    assert parked.reason == "no worker can run it"

    stage.join("pool.1", abilities=["paint@2"])
    (parked,) = stage.inspector.stat().parked_abilities
    assert "a worker can run it now" in parked.reason


def test_stat_sums_up_what_was_done_and_who_did_the_upkeep(stage: Stage) -> None:
    stage.ids(3)
    stage.echo.options(id="bad").submit("bad")
    stage.drain()
    stage.queue.end_input()
    WorkStealer(stage.queue, by="page").recruited()

    seen = stage.inspector.stat()

    assert (seen.totals.submitted, seen.totals.done, seen.totals.dead) == (4, 3, 1)
    assert (seen.dead, seen.outcomes) == (1, 3)
    assert seen.input_ended
    assert seen.upkeep.slices["worker"] >= 1
    assert seen.upkeep.done_at_ms["expire"] > 0
    assert "claimed" not in seen.upkeep.done_at_ms


def test_stat_says_how_much_memory_the_keys_use(real: Stage) -> None:
    real.ids(100)
    real.join("pool.0")
    real.take("pool.0", 2)

    sizes = real.inspector.stat().bytes

    assert sizes is not None
    assert sizes["task"] > 1000
    assert sizes["queues"] > 0
    assert "later" not in sizes


def test_where_memory_usage_is_forbidden_stat_returns_the_rest(
    real: Stage, redis_server: Server
) -> None:
    real.ids(1)
    real.client.execute_command(
        *("ACL", "SETUSER", "modest", "on", "nopass", "~*", "&*", "+@all", "-memory")
    )
    try:
        with Redis.from_url(
            redis_server.url, username="modest", password="x"
        ) as client:
            seen = Inspector(TaskQueue(real.queue.name, client)).stat()
    finally:
        real.client.execute_command("ACL", "DELUSER", "modest")

    assert seen.bytes is None
    assert seen.waiting == 1


def test_ls_shows_the_inbox_in_the_order_in_which_it_is_taken(stage: Stage) -> None:
    stage.ids(3)
    stage.echo.options(priority=0, id="urgent").submit()
    stage.queue.handle("t1").cancel()

    entries = stage.inspector.ls()

    assert [entry.id for entry in entries] == ["urgent", "t0", "t2"]
    assert {entry.task for entry in entries} == {"echo@1"}
    assert {entry.state for entry in entries} == {State.WAITING}
    assert entries[0].at_ms > 0


def test_ls_shows_no_more_than_it_was_asked_for(stage: Stage) -> None:
    stage.ids(30)

    assert len(stage.inspector.ls("inbox", limit=7)) == 7


def test_ls_shows_what_is_due_later_the_next_first(stage: Stage) -> None:
    stage.echo.options(id="b").submit_in(100)
    stage.echo.options(id="a").submit_in(50)

    first, second = stage.inspector.ls("later")

    assert (first.id, second.id) == ("a", "b")
    assert second.at_ms - first.at_ms == pytest.approx(50_000, abs=30_000)


def test_ls_shows_what_runs_where_and_what_waits_in_a_deque(stage: Stage) -> None:
    stage.join("pool.0")
    stage.join("pool.1")
    stage.ids(4)
    stage.take("pool.0", 1, keep=2)

    (running,) = stage.inspector.ls("running")
    deque = stage.inspector.ls("queues/pool.0")

    assert (running.id, running.worker, running.state) == (
        *("t0", "pool.0"),
        State.RUNNING,
    )
    assert [entry.id for entry in deque] == ["t1", "t2"]
    assert stage.inspector.ls("queues/pool.0/inbox") == deque
    assert {entry.state for entry in deque} == {State.ASSIGNED}


def test_ls_shows_what_ended_and_what_was_given_up(stage: Stage) -> None:
    stage.ids(2)
    stage.echo.options(id="bad").submit("bad")
    stage.drain()

    ended = stage.inspector.ls("done")
    (dead,) = stage.inspector.ls("dead")

    assert {entry.id for entry in ended} == {"t0", "t1"}
    assert {entry.worker for entry in ended} == {"pool.0"}
    assert (dead.id, dead.note) == ("bad", "ValueError: not today")


def test_ls_shows_what_is_parked_and_for_what(stage: Stage) -> None:
    stage.ids(2)
    stage.join("pool.0")
    for task in stage.take("pool.0", 2):
        stage.park("pool.0", task, "paint@2")
    stage.queue.handle("t0").cancel()

    (parked,) = stage.inspector.ls("parked")

    assert parked.id == "t1"
    assert "paint@2" in parked.note


def test_ls_of_a_place_that_does_not_exist_names_those_that_do(stage: Stage) -> None:
    with pytest.raises(ConfigurationError, match="inbox, later, running, done"):
        stage.inspector.ls("cellar")


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_list_has_a_sensible_limit(stage: Stage, limit: int) -> None:
    with pytest.raises(ConfigurationError, match="limit must be 1 to 1000"):
        stage.inspector.ls("inbox", limit)
    with pytest.raises(ConfigurationError, match="limit must be 1 to 1000"):
        stage.inspector.tree(limit)


@pytest.mark.parametrize("shift", range(4))
def test_a_long_payload_is_not_fetched_for_a_list_whatever_its_characters(
    stage: Stage, shift: int
) -> None:
    stage.client.connection_pool.connection_kwargs["decode_responses"] = True
    stage.echo.options(id="long").submit("x" * shift + "€" * 100_000)

    (entry,) = stage.inspector.ls()

    assert entry.task == "echo@1"
    assert entry.size > 300_000


def test_cat_shows_envelope_outcome_and_traceback(stage: Stage) -> None:
    stage.echo.options(id="good").submit("hello")
    stage.echo.options(id="bad").submit("bad")
    waiting = stage.inspector.cat("good")
    stage.drain()

    done, failed = stage.inspector.cat("good"), stage.inspector.cat("bad")

    assert waiting.state is State.WAITING
    assert waiting.envelope["payload"] == {"text": "hello"}
    assert waiting.outcome is None
    assert (done.state, done.result, done.envelope) == (State.DONE, "hello", None)
    assert done.outcome["worker"] == "pool.0"
    assert failed.outcome["error"] == {"type": "ValueError", "message": "not today"}
    assert failed.envelope["name"] == "echo"
    assert 'raise ValueError("not today")' in failed.traceback


def test_cat_shows_an_envelope_that_is_not_json_as_text(stage: Stage) -> None:
    stage.client.hset(internals_of(stage.queue).keys.task, "odd", b"\xffnot json")
    stage.client.rpush(internals_of(stage.queue).keys.inboxes[1], "odd")

    assert "not json" in stage.inspector.cat("odd").envelope
    assert stage.inspector.ls()[0].task == "?"


def test_cat_of_a_task_that_is_not_there_says_so(stage: Stage) -> None:
    with pytest.raises(TaskNotFound, match="there is no task nobody"):
        stage.inspector.cat("nobody")


def test_why_an_unknown_task_is_not_running(stage: Stage) -> None:
    told = stage.inspector.why("nobody")

    assert told.state is State.UNKNOWN
    assert "Nothing is known of nobody." in str(told)


def test_why_a_task_waits_where_no_worker_is_alive(stage: Stage) -> None:
    stage.ids(3)

    told = stage.why("t2")

    assert "It is waiting in the inbox of priority 1; no worker has it yet." in told
    assert "2 of 3 tasks are ahead of it." in told
    assert "It is not running because no worker is alive." in told
    assert "It is next." in stage.why("t0")


def test_why_a_task_waits_although_workers_are_alive(stage: Stage) -> None:
    stage.ids(1)
    stage.join("pool.0", abilities=["paint@2"])
    assert "1 worker is alive, but none can run echo@1" in stage.why("t0")

    stage.join("pool.1")
    assert "2 workers are alive; the next free one will run it." in stage.why("t0")


def test_why_a_task_is_assigned_but_not_started(stage: Stage) -> None:
    stage.join("pool.0")
    stage.join("pool.1")
    stage.ids(8)
    stage.take("pool.0", 1, keep=4)
    stage.steal("pool.0", "pool.1")

    told = stage.inspector.why("t4")

    assert told.state is State.ASSIGNED
    assert "It is in the deque of pool.1 and has not started." in told.sentences
    assert "1 of 2 tasks is ahead of it." in told.sentences
    assert "pool.1 is process 4711 on mill." in told.sentences
    assert "It was stolen 1 time." in told.sentences
    assert "The worker renewed its lease" in str(told)


def test_why_a_task_runs_and_since_when(stage: Stage) -> None:
    stage.join("pool.0")
    stage.ids(1)
    (task,) = stage.take("pool.0", 1)
    stage.queue.handle("t0").cancel()

    told = stage.why("t0")

    assert "pool.0 picked it up" in told
    assert f"Its lock is pool.0#{task.token}." in told
    assert "It was asked to stop and has not stopped yet." in told


def test_why_a_task_of_a_dead_worker_is_not_running(stage: Stage) -> None:
    stage.join("pool.0")
    stage.ids(1)
    stage.take("pool.0", 1)
    stage.client.zadd(internals_of(stage.queue).keys.workers, {"pool.0": 1})

    assert "so it counts as dead" in stage.why("t0")

    stage.client.zrem(internals_of(stage.queue).keys.workers, "pool.0")
    assert "That worker is not registered" in stage.why("t0")


def test_why_a_task_that_saw_a_worker_die_waits_again(stage: Stage) -> None:
    stage.join("pool.0")
    stage.ids(1)
    stage.take("pool.0", 1)
    stage.client.zadd(internals_of(stage.queue).keys.workers, {"pool.0": 1})
    WorkStealer(stage.queue).recruited()

    assert "1 worker died while running it, or was silent" in stage.why("t0")


def test_why_a_delayed_task_is_not_running(stage: Stage) -> None:
    stage.echo.options(id="later").submit_in(100)
    stage.join("pool.0")
    stage.ids(1)
    (task,) = stage.take("pool.0", 1)
    stage.take("pool.0", 0, Report("t0", task.token, "retry", delay_ms=50_000))

    assert "It is due in " in stage.why("later")
    assert "It will be retried in " in stage.why("t0")
    assert "It has failed 1 time before." in stage.why("t0")

    stage.client.zadd(internals_of(stage.queue).keys.later, {"later": 1})
    assert "It was due " in stage.why("later")


def test_why_a_parked_task_is_not_running(stage: Stage) -> None:
    stage.join("pool.0")
    stage.ids(1)
    (task,) = stage.take("pool.0", 1)
    stage.park("pool.0", task, "paint@2")
    assert "It is parked: no worker could run paint@2." in stage.why("t0")
    assert "when a worker joins that can" in stage.why("t0")

    stage.join("pool.1", abilities=["paint@2"])
    assert "Now 1 worker can" in stage.why("t0")


def test_why_an_ended_task_ended(stage: Stage) -> None:
    stage.ids(2)
    stage.echo.options(id="bad").submit("bad")
    stage.queue.handle("t1").cancel()
    stage.drain()

    assert stage.why("t0").startswith("It is done. It ended ")
    assert "Its outcome is kept for another " in stage.why("t0")
    assert stage.why("t1").startswith("It was cancelled: by its caller.")
    assert stage.why("bad").startswith("It failed: ValueError: not today.")
    assert "It is a dead letter; you can replay or drop it." in stage.why("bad")


def test_why_says_that_the_reason_of_a_dead_letter_without_outcome_is_gone(
    stage: Stage,
) -> None:
    stage.echo.options(id="bad").submit("bad")
    stage.drain()
    stage.client.hdel(internals_of(stage.queue).keys.done, "bad")

    assert stage.inspector.why("bad").state is State.DEAD
    assert "held the reason, is no longer kept" in stage.why("bad")


def test_the_tree_is_that_of_the_folders_with_locks_and_done_marks(
    stage: Stage,
) -> None:
    stage.ids(2, "done")
    stage.drain()
    stage.join("pool.0")
    stage.join("pool.1")
    stage.ids(4)
    taken = stage.take("pool.0", 1, keep=2)
    lock = f"pool.0#{taken[0].token}"

    root = stage.inspector.tree()

    assert (root.name, [run.name for run in root.children]) == (
        stage.queue.name,
        ["default"],
    )
    assert folder(root, "default") == ["inbox", "outbox", "queues"]
    inbox = folder(root, "default/inbox")
    assert inbox[:7] == ["t3", "t0", "t0.lock", "t1", "t1.lock", "t2", "t2.lock"]
    assert sorted(inbox[7:]) == ["done0", "done0.done", "done1", "done1.done"]
    assert node(root, "default/inbox/t0.lock").note == lock
    assert sorted(folder(root, "default/outbox")) == ["done0", "done1"]
    assert sorted(folder(root, "default/queues")) == ["pool.0", "pool.1"]
    assert folder(root, "default/queues/pool.0/inbox") == ["t1", "t2"]
    assert folder(root, "default/queues/pool.0/running") == ["t0"]
    assert sorted(folder(root, "default/queues/pool.0/outbox")) == ["done0", "done1"]
    assert folder(root, "default/queues/pool.1") == ["inbox", "outbox"]


def test_each_folder_of_a_tree_says_how_many_more_tasks_there_are(stage: Stage) -> None:
    stage.ids(1300)
    stage.join("pool.0")
    stage.join("pool.1")
    stage.take("pool.0", 20, keep=30)
    stage.ids(5, "z")
    for n in range(4):
        stage.echo.submit_in(100 + n)

    root = stage.inspector.tree(limit=3)

    assert "… 1,252 more unassigned" in folder(root, "default/inbox")
    assert "… 47 more with a .lock" in folder(root, "default/inbox")
    assert "… 1 more" in folder(root, "default/later")
    assert folder(root, "default/queues/pool.0/inbox")[3:] == ["… 27 more"]
    assert folder(root, "default/queues/pool.0/running")[3:] == ["… 17 more"]


def test_a_tree_shows_dead_letters_parked_ones_and_workers_that_left(
    stage: Stage,
) -> None:
    stage.echo.options(id="bad").submit("bad")
    stage.echo.options(id="good").submit()
    stage.drain()
    stage.ids(1)
    stage.join("other.0")
    (task,) = stage.take("other.0", 1)
    stage.park("other.0", task, "paint@2")

    root = stage.inspector.tree()

    assert folder(root, "default/dead") == ["bad"]
    assert folder(root, "default/parked/paint@2") == ["t0"]
    assert node(root, "default/queues/pool.0").note == "left"
    assert "lease valid for" in node(root, "default/queues/other.0").note


def test_inspecting_changes_nothing(stage: Stage) -> None:
    stage.ids(20)
    stage.echo.options(id="bad").submit("bad")
    stage.echo.submit_in(100)
    stage.join("pool.0")
    stage.take("pool.0", 2, keep=3)
    before = everything(stage)

    for place in ("inbox", "later", "running", "done", "dead", "parked"):
        stage.inspector.ls(place)
    for task_id in ("t0", "t5", "bad", "nobody"):
        stage.inspector.why(task_id)
    stage.inspector.cat("t0")
    stage.inspector.stat()
    stage.inspector.tree()

    assert everything(stage) == before


class CountingRedis(Redis):
    """A client that counts what it sends."""

    sent = 0

    def execute_command(self, *args: Any, **options: Any) -> Any:
        self.sent += 1
        return super().execute_command(*args, **options)


@pytest.mark.parametrize("look", [Inspector.stat, Inspector.tree, Inspector.ls])
def test_inspecting_a_long_queue_takes_no_more_round_trips_than_a_short_one(
    redis_server: Server, key_prefix: str, look: Callable[[Inspector], object]
) -> None:
    with CountingRedis.from_url(redis_server.url) as client:
        stage = Stage(client, key_prefix)
        stage.ids(10)
        stage.join("pool.0")
        stage.take("pool.0", 2)
        look(stage.inspector)
        costs = []
        for more in ("a", "b"):
            client.sent = 0
            look(stage.inspector)
            costs.append(client.sent)
            stage.ids(5000, more)

    assert 0 < costs[1] <= costs[0] < 20


async def test_the_asyncio_inspector_sees_the_same(
    real: Stage, async_redis_client: Any
) -> None:
    real.ids(3)
    real.join("pool.0")
    real.take("pool.0", 1)
    inspector = AsyncInspector(AsyncTaskQueue(real.queue.name, async_redis_client))

    assert await inspector.ls() == real.inspector.ls()
    assert (await inspector.cat("t0")).envelope == real.inspector.cat("t0").envelope
    assert (await inspector.why("t1")).state is State.WAITING
    assert (await inspector.stat()).totals == real.inspector.stat().totals
    assert folder(await inspector.tree(), "default/inbox") == folder(
        real.inspector.tree(), "default/inbox"
    )


def node(root: TreeNode, path: str) -> TreeNode:
    for name in path.split("/"):
        (root,) = (child for child in root.children if child.name == name)
    return root


def folder(root: TreeNode, path: str) -> list[str]:
    return [child.name for child in node(root, path).children]


def everything(stage: Stage) -> dict[bytes, object]:
    # No dump of it: Redis 8 moves the fields of a hash while they are read.
    client: Any = stage.client
    readers: dict[bytes, Callable[[bytes], object]] = {
        b"hash": client.hgetall,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"set": client.smembers,
        b"stream": client.xrange,
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
    }
    keys = client.scan_iter(match=f"*{stage.queue.name}*")
    return {key: readers[client.type(key)](key) for key in sorted(keys)}


SPARE = "It is brief: a process with a spare moment may run it."
TOO_SHORT = "A slice was too short for it, so only workers run it for now."
NOBODY = "It is not running because no worker is alive."


def test_why_a_brief_task_waits_where_the_site_runs_its_own(stage: Stage) -> None:
    @stage.queue.task(name="visit", brief=True, fair_key="page")
    def visit(page: str) -> None: ...

    handles = [stage.queue.task(name="ping", brief=True)(lambda: None).submit()]
    handles += [visit.submit("/cats") for _ in range(2)]
    unaware = Inspector(TaskQueue(stage.queue.name, stage.client))

    for handle in handles:
        told = stage.inspector.why(handle.id).sentences
        assert SPARE in told
        assert NOBODY not in told
        assert NOBODY in unaware.why(handle.id).sentences
        assert SPARE not in unaware.why(handle.id).sentences
    assert stage.inspector.cat(handles[0].id).state is State.WAITING
    (plain,) = stage.ids(1)
    assert NOBODY in stage.inspector.why(plain).sentences

    stage.join("pool.0", abilities=["ping@1", "visit@1"])
    told = stage.inspector.why(handles[0].id).sentences
    assert "1 worker is alive; the next free one will run it." in told
    assert SPARE in told


def test_why_a_brief_task_waits_for_which_a_slice_was_too_short(stage: Stage) -> None:
    ping = stage.queue.task(name="ping", brief=True)(lambda: None).submit()
    parts = internals_of(stage.queue)

    def moment(**more: Any) -> Any:
        call = brief_exchange(parts.keys, parts.settings, "site", ["ping@1"], **more)
        return parts.driver.call(call)

    (taken,) = moment(want=1).tasks
    moment(reports=[Report(taken.id, taken.token, "back")], overran=taken.id)

    told = stage.inspector.why(ping.id).sentences

    assert NOBODY in told
    assert TOO_SHORT in told
    assert SPARE not in told


def test_a_stat_counts_what_spare_moments_took(stage: Stage) -> None:
    stage.queue.task(name="ping", brief=True)(lambda: None).submit()
    assert stage.inspector.stat().totals.brief == 0
    brief = BriefTasks(stage.queue)
    brief.recruited()
    brief.close()

    assert stage.inspector.stat().totals.brief == 1
