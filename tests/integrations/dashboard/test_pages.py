"""What the dashboard shows, and what its buttons do."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from workstealing import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.dashboard.access_guard import AccessGuard
from workstealing.dashboard.app import create_app
from workstealing.dashboard.dashboard_data import DashboardData
from workstealing.queue.minute_calls import RUN_NUMBERS
from workstealing.queue.worker_calls import exchange, join, record_minute
from workstealing.tasks.attempt import Report
from workstealing.tasks.outcome import ErrorReport, TaskOutcome

from .conftest import ORIGIN, TOKEN

EVIL = "<script>alert(1)</script>"


class Mill:
    """A queue with a worker that is played by hand."""

    def __init__(self, queue: AsyncTaskQueue) -> None:
        self.queue = queue

        @queue.task(name="echo")
        def echo(text: str = "") -> str:
            raise NotImplementedError

        self.echo = echo

    async def join(self, worker: str = "mill.0") -> None:
        description = {"abilities": ["echo@1"], "host": EVIL, "pid": 4711}
        call = join(
            internals_of(self.queue).keys,
            internals_of(self.queue).settings,
            worker,
            "1",
            description,
        )
        await internals_of(self.queue).driver.call(call)

    async def take(self, want: int, *reports: Report) -> Any:
        call = exchange(
            internals_of(self.queue).keys,
            internals_of(self.queue).settings,
            "mill.0",
            "1",
            want=want,
            keep=0,
            reports=reports,
        )
        taken = await internals_of(self.queue).driver.call(call)
        assert taken is not None
        return taken.tasks

    async def fail(self, task_id: str, message: str = "not today") -> None:
        await self.echo.options(id=task_id).submit()
        (task,) = await self.take(1)
        error = ErrorReport("ValueError", message, f"Traceback …\n  {message}")
        outcome = TaskOutcome(state="failed", error=error, worker="mill.0", ended=1)
        await self.take(0, Report(task.id, task.token, "dead", outcome.encode()))

    def path(self, page: str, **more: str) -> str:
        where = {"queue": self.queue.name, "run": "default", **more}
        return str(httpx.URL(page, params=where))

    def form(self, action: str, task_id: str) -> dict[str, str]:
        where = {"queue": self.queue.name, "run": "default"}
        return {**where, "id": task_id, "action": action}


@pytest.fixture
async def mill(queue: AsyncTaskQueue) -> Mill:
    return Mill(queue)


class _Scripts(HTMLParser):
    """Notes what would be run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        if tag == "script":
            self.found.append(str(told.get("src")))
        self.found += [name for name in told if name.startswith("on")]
        self.found += ["style"] if "style" in told else []


def _scripts(page: str) -> list[str]:
    parser = _Scripts()
    parser.feed(page)
    return parser.found


def _words(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


async def test_the_first_page_lists_the_queues_of_the_server(
    browser: httpx.AsyncClient, mill: Mill, async_redis_client: Redis
) -> None:
    other = AsyncTaskQueue(mill.queue.name, async_redis_client, run="nightly")
    await other.end_input()
    await mill.echo.submit_many([()] * 1234)

    page = (await browser.get("/")).text

    assert f"{mill.queue.name}/default 1,234 0 0 0 0 0" in _words(page)
    assert f"{mill.queue.name}/nightly 0 0 0 0 0 0" in _words(page)
    assert 'id="live"' in page


async def test_a_queue_shows_how_long_tasks_of_a_name_took_and_waited(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    parts = internals_of(mill.queue)
    numbers = [10, 0, 120, *([0] * 18), 15_000, *([0] * 24)]
    numbers[3 + 4] = 10  # took 12 ms
    numbers[RUN_NUMBERS + 1 + 11] = 10  # waited for 1.5 s
    call = record_minute(parts.keys, int(time.time() // 60), {"resize@1": numbers})
    await parts.driver.call(call)

    words = _words((await browser.get(mill.path("/queue"))).text)

    assert "resize@1 10 0 % ≈ 12 ms ≈ 16 ms ≈ 1.5 s ≈ 1.9 s" in words


async def test_a_queue_shows_counts_workers_and_upkeep(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.join()
    await mill.echo.submit_many([()] * 3)
    await mill.take(1)

    words = _words((await browser.get(mill.path("/queue"))).text)

    assert "2 waiting oldest" in words
    assert "0 assigned 1 running 0 delayed 0 parked 0 paused" in words
    assert "0 paused 0 held back 0 dead" in words
    assert "mill.0 running 0 1 0" in words
    assert "submitted 3" in words
    assert "Upkeep" in words


async def test_rates_are_told_as_soon_as_there_are_two_looks(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    first = (await browser.get(mill.path("/api/stat"))).json()
    await mill.echo.submit_many([()] * 10)
    for _ in range(1000):
        later = (await browser.get(mill.path("/api/stat"))).json()
        # Two looks within the same millisecond tell nothing yet.
        if later["rates"] is not None:
            break

    passed = (later["now_ms"] - first["now_ms"]) / 1000
    assert first["rates"] is None
    assert later["rates"]["submitted"] == pytest.approx(10 / passed)
    assert later["rates"]["done"] == 0.0


async def test_a_queue_that_is_not_there_is_told_and_is_not_made(
    browser: httpx.AsyncClient, queue: AsyncTaskQueue, async_redis_client: Redis
) -> None:
    name = f"{queue.name}-typo"

    page = await browser.get("/queue", params={"queue": name})

    assert "no such queue, or not used yet" in page.text
    assert not await async_redis_client.keys(f"*{name}*")


@pytest.mark.parametrize(
    "state",
    ["waiting", "assigned", "running", "delayed", "parked", "paused", "done", "dead"],
)
async def test_each_state_lists_its_tasks(
    browser: httpx.AsyncClient, mill: Mill, state: str
) -> None:
    await mill.echo.options(id="one").submit()
    await mill.echo.options(id="two", delay=60).submit()

    words = _words((await browser.get(mill.path("/tasks", state=state))).text)

    told = {"waiting": "one echo@1 waiting", "delayed": "two echo@1 delayed in"}
    assert told.get(state, f"No {state} tasks.") in words


async def test_dead_letters_are_grouped_by_error_with_a_traceback(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.join()
    await mill.fail("bad")

    page = (await browser.get(mill.path("/tasks", state="dead"))).text

    assert "1 × ValueError" in _words(page)
    assert "bad echo@1 failed mill.0" in _words(page)
    assert "<summary>ValueError: not today</summary>" in page
    assert "Traceback …\n  not today" in page


async def test_a_task_shows_all_that_is_known_of_it(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.echo.options(id="a/b?c=d#e%").submit("hi")

    page = await browser.get(mill.path("/task", id="a/b?c=d#e%"))

    words = _words(page.text)
    assert page.status_code == 200
    assert "echo@1 waiting" in words
    assert "a/b?c=d#e% · submitted" in words
    assert "It is not running because no worker is alive." in words
    assert 'text "hi"' in words
    assert '"text": "hi"' in words
    assert "Cancel" in words
    assert "Replay" not in words


async def test_of_a_long_result_only_the_beginning_is_shown(
    browser: httpx.AsyncClient, queue: AsyncTaskQueue, async_redis_client: Redis
) -> None:
    result = json.dumps(["beginning", "x" * 2_000_000, "the end"])
    keys = internals_of(queue).keys
    outcome = f'{{"result":{result}}}'
    await async_redis_client.hset(keys.done, "long", outcome)  # type: ignore[misc]

    where = {"queue": queue.name, "run": "default", "id": "long"}
    page = (await browser.get("/task", params=where)).text

    assert "beginning" in page
    assert f"{len(result):,} bytes; the first 65,536 are shown" in page
    assert "the end" not in page
    assert len(page) < 100_000


async def test_cancel_cancels_and_says_so(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    handle = await mill.echo.options(id="one").submit()

    answer = await browser.post(
        "/act", data=mill.form("cancel", "one"), follow_redirects=True
    )

    assert "Cancelled." in answer.text
    assert (await handle.state()).state == "cancelled"


@pytest.mark.parametrize("task", ["", "echo"])
async def test_a_queue_or_a_name_is_paused_and_resumed_by_a_button(
    browser: httpx.AsyncClient, mill: Mill, task: str
) -> None:
    await mill.join()
    await mill.echo.options(id="one").submit()
    page = (await browser.get(mill.path("/queue"))).text
    assert "Pause the queue" in page
    assert "Pause echo" in page
    what = f"{'Task echo' if task else 'The queue'} has been paused"

    form = {**mill.form("pause", ""), "task": task}
    answer = await browser.post("/act", data=form, follow_redirects=True)

    assert "Paused: nothing new starts." in answer.text
    for path in (
        mill.path("/queue"),
        mill.path("/tasks", state="waiting"),
        mill.path("/task", id="one"),
    ):
        assert what in (await browser.get(path)).text
    reason = "task echo is paused" if task else "the queue is paused"
    assert reason in (await browser.get("/")).text
    form = {**mill.form("resume", ""), "task": task}
    answer = await browser.post("/act", data=form, follow_redirects=True)
    assert "Resumed." in answer.text
    assert what not in answer.text


async def test_a_running_task_is_asked_to_stop(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.join()
    await mill.echo.options(id="one").submit()
    await mill.take(1)

    answer = await browser.post(
        "/act", data=mill.form("cancel", "one"), follow_redirects=True
    )

    assert "its worker was asked to stop it" in answer.text


async def test_replay_puts_a_dead_letter_back(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.join()
    await mill.fail("bad")
    page = (await browser.get(mill.path("/task", id="bad"))).text
    assert "Replay" in page
    assert "Delete …" in page

    answer = await browser.post(
        "/act", data=mill.form("replay", "bad"), follow_redirects=True
    )

    assert "back in the inbox" in answer.text
    assert (await mill.queue.handle("bad").state()).state == "waiting"
    again = await browser.post(
        "/act", data=mill.form("replay", "bad"), follow_redirects=True
    )
    assert "no longer a dead letter" in again.text


async def test_delete_forgets_a_dead_letter(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.join()
    await mill.fail("bad")

    answer = await browser.post(
        "/act", data=mill.form("delete", "bad"), follow_redirects=True
    )

    assert "Deleted." in answer.text
    assert "No dead tasks." in answer.text
    assert (await mill.queue.counts()).dead == 0


async def test_what_a_notice_says_is_ours(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.echo.options(id="one").submit()

    page = await browser.get(mill.path("/task", id="one", notice=EVIL))

    assert "alert(1)" not in page.text


async def test_nothing_that_a_task_or_worker_says_becomes_markup(
    browser: httpx.AsyncClient, mill: Mill, async_redis_client: Redis
) -> None:
    await mill.join()
    await mill.fail("bad", EVIL)
    keys = internals_of(mill.queue).keys
    envelope = {"v": 1, "name": EVIL, "version": 1, "payload": {EVIL: EVIL}}
    for name in ("<img/onerror=alert(1)>", "'onclick='alert(1)'"):
        await async_redis_client.hset(keys.task, name, json.dumps(envelope))
        await async_redis_client.rpush(keys.inboxes[1], name)

    for path in (
        "/",
        mill.path("/queue"),
        mill.path("/tasks", state="dead"),
        mill.path("/tasks", state="waiting"),
        mill.path("/tasks", state="done"),
        mill.path("/tasks", state=EVIL),
        mill.path("/tasks", state="dead", group=EVIL, after=""),
        mill.path("/tasks", state="dead", error=EVIL, task=EVIL, prefix=EVIL),
        mill.path("/worker", name="mill.0"),
        mill.path("/worker", name=EVIL),
        mill.path("/schedules"),
        f"/?filter={EVIL}",
        f"/search?id={EVIL}",
        "/workers",
        "/acts",
        mill.path("/task", id="bad"),
        mill.path("/task", id="<img/onerror=alert(1)>"),
        mill.path("/task", id="'onclick='alert(1)'"),
        f"/queue?queue={EVIL}",
    ):
        page = (await browser.get(path)).text
        assert _scripts(page) == ["/assets/live.js"], path
        assert "<img" not in page, path


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("/queue", 400, "the name of a queue must be"),
        ("/queue?queue=a%20b", 400, "the name of a queue must be"),
        ("/queue?queue=q&run={}", 400, "the name of a run must be"),
        ("/tasks?queue=q&state=cellar", 400, "state must be one of waiting"),
        ("/tasks?queue=q&older=soon", 400, "older must be whole seconds"),
        ("/tasks?queue=q&after=[1]", 400, "after must be what the page before"),
        ("/worker?queue=q&name=nobody", 404, "there is no worker nobody"),
        ("/task?queue=q&id=nobody", 404, "there is no task nobody"),
        ("/task?queue=q", 400, "the id of a task must be"),
        ("/nowhere", 404, "Not Found"),
    ],
)
async def test_bad_input_gets_a_clear_page(
    browser: httpx.AsyncClient, path: str, code: int, told: str
) -> None:
    answer = await browser.get(path)

    assert answer.status_code == code
    assert told in _words(answer.text)


async def test_the_answer_to_a_form_does_not_refresh_itself(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.join()
    await mill.fail("bad")
    refused = await browser.post("/act", data=mill.form("unknown", "bad"))
    where = {"queue": mill.queue.name, "run": "default", "state": "dead"}
    asked = await browser.post("/bulk", data={**where, "action": "delete-all"})

    # A GET of that address is an error, which would replace what the page says.
    assert (refused.status_code, asked.status_code) == (400, 200)
    assert 'data-every="0"' in refused.text
    assert 'data-every="0"' in asked.text
    assert 'data-every="2000"' in (await browser.get("/queue?queue=a b")).text


async def test_an_unknown_action_does_nothing(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    handle = await mill.echo.options(id="one").submit()

    answer = await browser.post("/act", data=mill.form("explode", "one"))

    assert answer.status_code == 400
    assert (await handle.state()).state == "waiting"


async def test_the_api_tells_the_numbers_of_one_queue_or_of_all(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    await mill.echo.submit_many([()] * 5)

    one = (await browser.get(mill.path("/api/stat"))).json()
    all_of_them = (await browser.get("/api/stat")).json()["queues"]

    assert (one["waiting"], one["backlog_per_worker"]) == (5, 5.0)
    assert mill.queue.name in [each["queue"] for each in all_of_them]
    bad = await browser.get("/api/stat?queue=a%20b")
    assert (bad.status_code, list(bad.json())) == (400, ["error"])


async def test_metrics_are_text_that_prometheus_reads(
    browser: httpx.AsyncClient, mill: Mill
) -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    await mill.echo.submit_many([()] * 5)

    answer = await browser.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain")
    families = list(parser.text_string_to_metric_families(answer.text))
    told = {
        (
            sample.name,
            sample.labels.get("place") or sample.labels.get("what"),
        ): sample.value
        for family in families
        for sample in family.samples
        if sample.labels.get("queue") == mill.queue.name
    }
    assert told["workstealing_queue_backlog", None] == 5
    assert told["workstealing_queue_backlog_per_worker", None] == 5.0
    assert told["workstealing_queue_tasks", "waiting"] == 5.0
    assert told["workstealing_queue_events_total", "submitted"] == 5.0


async def test_a_server_that_is_away_is_told_and_the_dashboard_goes_on() -> None:
    data = DashboardData(Redis.from_url("unix:///nowhere/socket"))
    transport = httpx.ASGITransport(create_app(data, AccessGuard(TOKEN)))
    headers = {"Authorization": f"Bearer {TOKEN}"}

    async with httpx.AsyncClient(
        transport=transport, base_url=ORIGIN, headers=headers
    ) as client:
        page = await client.get("/")
        api = await client.get("/api/stat?queue=q")
        health = await client.get("/healthz")

    assert page.status_code == 503
    assert "Redis is unavailable" in page.text
    assert (api.status_code, list(api.json())) == (503, ["error"])
    assert health.status_code == 200


async def test_a_crash_tells_nothing_and_browsers_are_careful_all_the_same(
    browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crash(self: DashboardData) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(DashboardData, "overview", crash)

    answer = await browser.get("/")

    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


STATES = ("waiting", "delayed", "running", "assigned", "done", "dead", "parked")


async def _spoil_stats(redis: Redis, queue: AsyncTaskQueue) -> None:
    await redis.hset(
        internals_of(queue).keys.stats, mapping={"done": "abc", b"\xff": EVIL}
    )


async def _spoil_upkeep(redis: Redis, queue: AsyncTaskQueue) -> None:
    await redis.hset(
        internals_of(queue).keys.upkeep, mapping={"expire": "nan", "promote": "inf"}
    )


async def _spoil_ids(redis: Redis, queue: AsyncTaskQueue) -> None:
    for key in (internals_of(queue).keys.dead, internals_of(queue).keys.later):
        await redis.zadd(key, {b"\xff\xfe": 1e12})
    await redis.rpush(
        internals_of(queue).keys.outcome_times, b"\xff\xfe", b"\xff\xfe 1e12"
    )
    await redis.hset(internals_of(queue).keys.task, b"\xff\xfe", b"\xff")
    await redis.rpush(internals_of(queue).keys.inboxes[0], b"\xff\xfe")


async def _spoil_times(redis: Redis, queue: AsyncTaskQueue) -> None:
    for key in (internals_of(queue).keys.dead, internals_of(queue).keys.later):
        await redis.zadd(key, {"odd": float("inf")})
    await redis.hset(
        internals_of(queue).keys.task, "odd", b'{"at":-1%s}' % (b"0" * 400)
    )
    await redis.rpush(internals_of(queue).keys.inboxes[0], "odd")


async def _spoil_history(redis: Redis, queue: AsyncTaskQueue) -> None:
    await redis.hset(internals_of(queue).keys.task, "odd", b"{}")
    await redis.zadd(internals_of(queue).keys.dead, {"odd": 1e12})
    await redis.hset(internals_of(queue).keys.history, "odd", "a:b")
    await redis.hset(internals_of(queue).keys.lock, "odd", b"\xff#1")


async def _spoil_workers(redis: Redis, queue: AsyncTaskQueue) -> None:
    told = {"host": "\ud800", "pid": "x", "since": None, "lease_ms": [1]}
    await redis.hset(internals_of(queue).keys.members, "odd.0", "1|" + json.dumps(told))
    await redis.hset(internals_of(queue).keys.members, "odd.1", "1|" + "[" * 100_000)
    for name in (b"odd.0", b"odd.1", b"\xff"):
        await redis.zadd(internals_of(queue).keys.workers, {name: 9e15})
    await redis.hset(internals_of(queue).keys.task, "odd", b"{}")
    await redis.hset(internals_of(queue).keys.lock, "odd", "odd.0#1")
    await redis.hset(internals_of(queue).keys.running("odd.0"), "odd", "soon")


@pytest.mark.parametrize(
    "spoil",
    [
        _spoil_stats,
        _spoil_upkeep,
        _spoil_ids,
        _spoil_times,
        _spoil_history,
        _spoil_workers,
    ],
)
async def test_an_odd_value_in_a_key_hides_nothing_else(
    browser: httpx.AsyncClient, mill: Mill, async_redis_client: Redis, spoil: Any
) -> None:
    await mill.echo.submit()

    await spoil(async_redis_client, mill.queue)

    paths = ["/", "/metrics", "/api/stat", mill.path("/task", id="odd")]
    paths += [mill.path("/tasks", state=state) for state in STATES]
    paths += [mill.path("/queue"), mill.path("/worker", name="odd.0"), "/workers"]
    seen = [(await browser.get(path)) for path in paths]
    assert [answer.url for answer in seen if answer.status_code >= 500] == []
    assert "cannot be read" not in seen[0].text
    assert f'queue="{mill.queue.name}"' in seen[1].text


async def test_a_dead_letter_with_an_id_that_is_not_utf8_is_shown(
    browser: httpx.AsyncClient, mill: Mill, async_redis_client: Redis
) -> None:
    await _spoil_ids(async_redis_client, mill.queue)

    page = (await browser.get(mill.path("/tasks", state="dead"))).text

    assert "\N{REPLACEMENT CHARACTER}" * 2 in page
    assert "its id is not UTF-8" in page


async def test_a_task_that_is_due_never_is_delayed(
    browser: httpx.AsyncClient, mill: Mill, async_redis_client: Redis
) -> None:
    await async_redis_client.hset(internals_of(mill.queue).keys.task, "odd", b"{}")
    await async_redis_client.zadd(
        internals_of(mill.queue).keys.later, {"odd": float("inf")}
    )

    page = (await browser.get(mill.path("/task", id="odd"))).text

    assert "? delayed" in _words(page)


async def test_a_queue_that_cannot_be_read_does_not_hide_the_others(
    browser: httpx.AsyncClient, mill: Mill, async_redis_client: Redis
) -> None:
    other = AsyncTaskQueue(mill.queue.name, async_redis_client, run="spoilt")
    await async_redis_client.set(internals_of(other).keys.stats, "no hash")
    await mill.echo.submit()

    page = (await browser.get("/")).text
    told = (await browser.get("/api/stat")).json()
    metrics = (await browser.get("/metrics")).text

    assert f"{mill.queue.name}/default 1 0 0 0 0 0" in _words(page)
    assert f"{mill.queue.name}/spoilt cannot be read" in _words(page)
    (unreadable,) = (
        one for one in told["unreadable"] if one["queue"] == mill.queue.name
    )
    assert unreadable["run"] == "spoilt"
    assert "WRONGTYPE" in unreadable["problem"]
    assert f'queue="{mill.queue.name}",run="default"' in metrics


async def test_schedules_are_shown_and_steered(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    empty = await browser.get(mill.path("/schedules"))
    assert "No schedules." in empty.text
    await mill.queue.schedule(mill.echo, every="0 3 * * *", name=f"x{EVIL[:8]}y")
    handle = await mill.queue.schedule(mill.echo, every=3600, name="hourly")

    page = await browser.get(mill.path("/schedules"))
    assert "hourly" in page.text
    assert "0 3 * * *" in page.text
    assert EVIL[:8] not in page.text

    async def steer(action: str, name: str = "hourly") -> httpx.Response:
        form = {"queue": mill.queue.name, "run": "default", "name": name}
        return await browser.post(
            "/steer", data={**form, "action": action}, follow_redirects=True
        )

    assert "The schedule is paused" in (await steer("pause")).text
    assert (await handle.state()).paused
    assert "resumes with its next tick" in (await steer("resume")).text
    ran = await steer("run")
    assert "hourly@" in ran.text
    await mill.queue.end_input()
    assert (await steer("run")).status_code == 409
    assert "was removed" in (await steer("remove")).text
    assert "no such schedule" in (await steer("remove")).text
    assert (await steer("pause")).status_code == 404
    assert (await steer("explode")).status_code == 400


async def test_each_button_of_a_schedule_does_what_it_says(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    handle = await mill.queue.schedule(mill.echo, every=3600, name="hourly")

    async def press(label: str) -> httpx.Response:
        forms = _Forms()
        forms.feed((await browser.get(mill.path("/schedules"))).text)
        (form,) = (form for form in forms.found if form.label.startswith(label))
        return await browser.post(form.path, data=form.fields, follow_redirects=True)

    assert "The schedule is paused" in (await press("Pause")).text
    assert (await handle.state()).paused
    assert not await mill.queue.paused()
    assert "resumes with its next tick" in (await press("Resume")).text
    assert not (await handle.state()).paused
    assert "hourly@" in (await press("Run")).text
    assert "was removed" in (await press("Remove")).text
    assert await mill.queue.schedules() == ()


async def test_a_field_that_belongs_to_another_form_is_refused(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    form = {"queue": mill.queue.name, "run": "default", "action": "pause"}

    acted = await browser.post("/act", data={**form, "name": "hourly"})
    steered = await browser.post("/steer", data={**form, "task": "echo"})

    assert acted.status_code == steered.status_code == 400
    assert "unknown field 'name'" in unescape(acted.text)
    assert not await mill.queue.paused()


@dataclass
class _Form:
    path: str
    fields: dict[str, str] = field(default_factory=dict)
    label: str = ""


class _Forms(HTMLParser):
    """The forms of a page, as a browser sends them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.found.append(_Form(given["action"]))
        elif tag == "input":
            self.found[-1].fields[given["name"]] = given.get("value", "")

    def handle_data(self, data: str) -> None:
        if self.found:
            self.found[-1].label += data
