"""Whatever a browser sends, and whatever stands in Redis, no page breaks."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from workstealing import AsyncTaskQueue
from workstealing.client.queue_internals import internals_of

PAGES = ["/", "/queue", "/tasks", "/task", "/schedules", "/workers", "/worker"]
PAGES += ["/search", "/acts", "/api/stat", "/metrics", "/assets/x", "/nowhere"]
FORMS = ["/bulk", "/steer", "/act", "/login", "/logout"]
FIELDS = ["queue", "run", "id", "ids", "task", "state", "worker", "error", "after"]
FIELDS += ["older_than", "q", "action", "name", "limit", "token", "all", "sort"]
TEXT = st.text(max_size=30)
WORDS = st.sampled_from(["0", "-1", "1e999", "dead", "waiting", "default", "x" * 5000])
QUERIES = st.lists(
    st.tuples(st.sampled_from(FIELDS) | TEXT, WORDS | TEXT), max_size=6
).map(lambda pairs: urlencode(pairs, errors="surrogatepass"))
RAW = st.binary(max_size=40).map(quote)
FOREIGN = settings.get_profile("foreign")


@pytest.mark.foreign
@FOREIGN
@given(st.sampled_from(PAGES), QUERIES | RAW)
async def test_any_query_gets_an_answer(
    browser: httpx.AsyncClient, queue: AsyncTaskQueue, page: str, query: str
) -> None:
    for named in (query, f"queue={queue.name}&{query}"):
        answer = await browser.get(f"{page}?{named}")

        assert answer.status_code < 500, (page, named, answer.text)


@pytest.mark.foreign
@FOREIGN
@given(st.sampled_from(FORMS), QUERIES | st.binary(max_size=60), st.booleans())
async def test_any_form_gets_an_answer(
    app: Any,
    browser: httpx.AsyncClient,
    queue: AsyncTaskQueue,
    form: str,
    body: str | bytes,
    is_named: bool,
) -> None:
    sent = body if isinstance(body, bytes) else body.encode()
    if is_named:
        sent = f"queue={queue.name}&".encode() + sent
    kept = httpx.Cookies(browser.cookies)

    answer = await browser.post(
        form,
        content=sent,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )

    assert answer.status_code < 500, (form, sent, answer.text)
    browser.cookies = kept


@pytest.mark.foreign
@FOREIGN
@given(st.sampled_from(PAGES[:10]), st.binary(max_size=60))
async def test_any_cookie_gets_an_answer_and_no_page(
    stranger: httpx.AsyncClient, page: str, cookie: bytes
) -> None:
    printable = bytes(one for one in cookie if one >= 32 and one != 127)
    for value in (printable, b"session=" + printable):
        answer = await stranger.get(page, headers=[(b"Cookie", value)])

        assert answer.status_code in (303, 401), answer.text


@pytest.mark.foreign
@settings(FOREIGN, max_examples=FOREIGN.max_examples // 2)
@given(st.binary(max_size=60) | TEXT.map(lambda text: text.encode("utf-8", "replace")))
async def test_any_envelope_and_outcome_is_shown(
    browser: httpx.AsyncClient,
    async_redis_client: Redis,
    queue: AsyncTaskQueue,
    stored: bytes,
) -> None:
    keys = internals_of(queue).keys
    await async_redis_client.hset(keys.task, "odd", stored)
    await async_redis_client.delete(keys.inboxes[1])
    await async_redis_client.rpush(keys.inboxes[1], "odd")
    await async_redis_client.hset(keys.done, "over", stored)
    await async_redis_client.delete(keys.outcome_times)
    await async_redis_client.rpush(keys.outcome_times, "over 1000000000000000")
    await async_redis_client.hset(keys.done, "odd", stored)
    await async_redis_client.zadd(keys.dead, {"odd": 1.8e12})
    where = f"queue={queue.name}"
    pages = ["/", f"/queue?{where}", f"/tasks?{where}", f"/tasks?{where}&state=dead"]
    pages += [
        f"/task?{where}&id=odd",
        f"/task?{where}&id=over",
        f"/tasks?{where}&state=done",
    ]

    for page in pages:
        answer = await browser.get(page)
        assert answer.status_code < 500, (page, answer.text)
