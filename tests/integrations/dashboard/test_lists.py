"""Lists of tasks: filtered, paged, changed in bulk, grouped by error, and audited."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from workstealing import AsyncTaskQueue, Limit
from workstealing.inspecting import AsyncInspector, TaskFilter
from workstealing.tasks.attempt import Report
from workstealing.tasks.outcome import ErrorReport, TaskOutcome

from .test_pages import EVIL, Mill, _words


@pytest.fixture
async def mill(queue: AsyncTaskQueue) -> Mill:
    mill = Mill(queue)
    await mill.join()
    return mill


async def fail_many(mill: Mill, number: int, kind: str = "ValueError") -> None:
    """Make dead letters, named by their kind."""
    for n in range(number):
        await mill.echo.options(id=f"{kind}-{n}").submit()
    place = 'Traceback …\n  File "/app/shop.py", line 64, in work\n    x()\n'
    error = ErrorReport(kind, "no", f"{place}{kind}: no")
    outcome = TaskOutcome(state="failed", error=error, worker="mill.0").encode()
    reports = [
        Report(task.id, task.token, "dead", outcome) for task in await mill.take(number)
    ]
    await mill.take(0, *reports)


async def test_pages_of_a_list_meet_each_task_once_while_others_come_and_go(
    mill: Mill,
) -> None:
    inspector = AsyncInspector(mill.queue)
    await fail_many(mill, 90)
    met: list[str] = []
    after = ""
    while True:
        page = await inspector.search(TaskFilter("dead"), after, 20)
        met += (row.id for row in page.rows)
        after = page.after
        if not after:
            break
        # One that was met goes, or the last, behind which the next page begins.
        await mill.queue.replay(met[0] if len(met) == 20 else met[-1])
        await fail_many(mill, 1, f"Late{len(met)}")

    old = [one for one in met if one.startswith("ValueError")]
    assert sorted(old) == sorted(f"ValueError-{n}" for n in range(90))


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        (TaskFilter("dead", error="osERR"), 5),
        (TaskFilter("dead", id="OSError-1"), 1),
        (TaskFilter("dead", task="echo"), 12),
        (TaskFilter("dead", task="echo@1", worker="mill.0"), 12),
        (TaskFilter("dead", worker="mill.1"), 0),
        (TaskFilter("dead", older_ms=3_600_000), 0),
    ],
)
async def test_a_list_is_filtered(mill: Mill, wanted: TaskFilter, number: int) -> None:
    await fail_many(mill, 7)
    await fail_many(mill, 5, "OSError")

    page = await AsyncInspector(mill.queue).search(wanted)

    assert (len(page.rows), page.total, page.after) == (number, 12, "")


async def test_a_filter_that_nothing_matches_looks_at_five_hundred_and_says_so(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await mill.echo.submit_many([()] * 2500)

    page = (await browser.get(mill.path("/tasks", task="nobody"))).text

    assert "0 match, of 500 looked at; 2,500 waiting tasks in all" in _words(page)
    assert "None of these 500 match." in page
    assert "look at the next ones" in page


async def test_tasks_that_limits_hold_back_are_counted_once(
    queue: AsyncTaskQueue, browser: httpx.AsyncClient
) -> None:
    @queue.task(name="charge", limit=Limit(concurrency=1, name="bank"))
    def charge(number: int) -> None: ...

    await charge.submit_many([(n,) for n in range(5)])
    mill = Mill(queue)
    await mill.join()
    await mill.take(1)

    page = _words((await browser.get(mill.path("/tasks"))).text)

    found = re.search(r"waiting ([0-9,]+) assigned", page)
    listed = re.search(r"of ([0-9,]+) waiting tasks", page)
    assert found
    assert listed
    assert found[1] == listed[1]


async def test_all_workers_of_a_queue_are_found_page_by_page(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    for n in range(60):
        await mill.join(f"w{n:02}.0")

    page = (await browser.get(mill.path("/queue"))).text
    assert "These have the longest deques. All 61 workers" in _words(page)
    every = (await browser.get("/workers")).text
    assert "All 61 workers" in every
    path, met, pages = mill.path("/workers"), [], 0
    while path:
        page = (await browser.get(path)).text
        met += re.findall(r'<tr data-key="([^"]+)"', page)
        found = re.search(r'href="([^"]+)">next page', page)
        path = found[1].replace("&amp;", "&") if found else ""
        pages += 1

    assert met == ["mill.0", *(f"w{n:02}.0" for n in range(60))]
    assert (pages, "61 workers alive" in _words(page)) == (3, True)


async def test_the_links_of_a_list_lead_through_all_of_it(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await mill.echo.submit_many([()] * 120)
    path, seen, pages = mill.path("/tasks"), set(), 0
    while path:
        page = (await browser.get(path)).text
        seen |= set(re.findall(r'data-key="([0-9A-Za-z_-]{12})"', page))
        found = re.search(r'href="([^"]+)">next page', page)
        path = found[1].replace("&amp;", "&") if found else ""
        pages += 1

    assert (len(seen), pages) == (120, 3)


async def test_dead_letters_are_grouped_by_error_and_line_and_replayed_by_group(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await fail_many(mill, 4)
    await fail_many(mill, 2, "OSError")

    page = (await browser.get(mill.path("/tasks", state="dead"))).text
    assert "4 × ValueError shop.py:64 in work" in _words(page)
    (group,) = set(re.findall(r'data-key="([0-9a-f]{12})"><div><b>2 × OSError', page))
    form = {"queue": mill.queue.name, "run": "default", "state": "dead"}
    form |= {"group": group, "action": "replay-all"}

    asked = await browser.post("/bulk", data=form)
    assert "Replay 2 dead tasks?" in _words(asked.text)
    assert (await mill.queue.counts()).dead == 6
    sure = await browser.post(
        "/bulk", data={**form, "confirmed": "yes"}, follow_redirects=True
    )

    assert "2 of 2 tasks replayed." in _words(sure.text)
    assert (await mill.queue.counts()).dead == 4
    assert (await mill.queue.handle("OSError-1").state()).state == "waiting"


async def test_ticked_tasks_are_changed_and_no_others(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await fail_many(mill, 3)
    form = {"queue": mill.queue.name, "run": "default", "state": "dead"}
    ticked = {**form, "action": "delete", "id": ["ValueError-0", "ValueError-2"]}

    asked = await browser.post("/bulk", data=ticked)
    assert "Delete 2 ticked tasks?" in _words(asked.text)
    assert (await mill.queue.counts()).dead == 3
    done = await browser.post(
        "/bulk", data={**ticked, "confirmed": "yes"}, follow_redirects=True
    )
    none = await browser.post(
        "/bulk", data={**form, "action": "replay"}, follow_redirects=True
    )

    assert "2 of 2 tasks deleted." in _words(done.text)
    assert "No task was ticked" in none.text
    assert (await mill.queue.counts()).dead == 1
    wrong = await browser.post("/bulk", data={**form, "action": "cancel-all"})
    assert wrong.status_code == 400


async def test_acts_are_remembered_with_what_came_of_them(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await mill.echo.options(id=f"a{EVIL}").submit()
    await browser.post("/act", data=mill.form("cancel", f"a{EVIL}"))
    await browser.post("/act", data=mill.form("end-input", ""))

    words = _words((await browser.get("/acts")).text)

    where = f"{mill.queue.name}/default"
    assert f"cancel {where} a{EVIL} cancelled" in words
    assert f"end-input {where} input ended" in words


async def test_a_task_is_found_by_its_id_in_whatever_queue_it_is(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await mill.echo.options(id="find me?".replace(" ", "-")).submit()

    answer = await browser.get("/search", params={"id": "find-me?"})

    assert answer.status_code == 303
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert query["queue"] == [mill.queue.name]
    missing = await browser.get("/search", params={"id": "nobody"})
    assert "No queue shown here has a task with this id" in missing.text


async def test_a_worker_has_a_page_with_what_it_runs(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await mill.echo.options(id="one").submit()
    await mill.take(1)

    words = _words((await browser.get(mill.path("/worker", name="mill.0"))).text)

    assert f"4711 on {EVIL}" in words
    assert "one echo@1 running mill.0" in words
    assert "mill.0" in _words((await browser.get("/workers")).text)


async def test_many_waiting_and_no_worker_is_an_alarm(
    queue: AsyncTaskQueue, browser: httpx.AsyncClient
) -> None:
    mill = Mill(queue)
    await mill.echo.submit_many([()] * 1234)

    home = _words((await browser.get("/")).text)
    page = _words((await browser.get(mill.path("/queue"))).text)

    alarm = "1,234 tasks wait and no worker is alive."
    assert f"{queue.name}/default: {alarm}" in home
    assert alarm in page
    await mill.join()
    assert alarm not in _words((await browser.get("/")).text)


async def test_a_task_that_is_done_has_a_name_and_says_that_arguments_are_gone(
    mill: Mill, browser: httpx.AsyncClient
) -> None:
    await mill.echo.options(id="one").submit("hi")
    (task,) = await mill.take(1)
    outcome = TaskOutcome(task="echo@1", ended=1_800_000_000_000, took=5)
    await mill.take(0, Report(task.id, task.token, "done", outcome.encode()))

    page = (await browser.get(mill.path("/task", id="one"))).text

    assert "<h1>echo@1</h1>" in page
    assert "are not kept" in page
    assert "1800000000000 (2027-01-15 08:00:00Z)" in page
