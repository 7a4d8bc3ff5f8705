"""Nearly all requests are dismissed before they begin, and none is counted twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from random import Random
from typing import Any

import pytest
import uvicorn

from workstealing import AsyncRecruiter, Recruiter
from workstealing.integrations import When, asgi, starlette, wsgi

ASGI = pytest.mark.parametrize(
    "middleware", [asgi.AsgiEnlistMiddleware, starlette.StarletteEnlistMiddleware]
)
RATE, REQUESTS = 0.1, 4_000
# Half of the requests are fine, and six standard deviations are 81.
AS_OFTEN_AS_IT_SHOULD = range(120, 281)


def test_a_dismissed_response_is_the_very_one_of_the_application() -> None:
    body = [b"page"]
    started: list[Any] = []
    recruiter = Recruiter()
    recruiter.install(lambda: None, "job", rate=0.0)
    recruiter.enlist()

    def plain(_: Any, start_response: Any) -> Any:
        start_response("200 OK", [])
        return body

    app: Any = wsgi.WsgiEnlistMiddleware(plain, recruiter)

    assert app({}, lambda *given: started.append(given)) is body
    assert started == [("200 OK", [])]


@ASGI
async def test_a_dismissed_request_has_the_send_of_the_server(
    middleware: Callable[..., Any],
) -> None:
    given: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        given.extend((scope, receive, send))

    recruiter = AsyncRecruiter()
    recruiter.install(lambda: None, "job", rate=0.0)
    await recruiter.enlist()
    scope: Any = {"type": "http"}
    receive, send = object(), object()

    await middleware(app, recruiter)(scope, receive, send)

    assert given == [scope, receive, send]


class Breaking:
    """A body that breaks where it is told to."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __iter__(self) -> Iterator[bytes]:
        yield b"page"
        if self._where == "body":
            raise OSError(self._where)

    def close(self) -> None:
        if self._where == "close":
            raise OSError(self._where)


@pytest.mark.parametrize("where", ["status", "application", "body", "close"])
def test_what_is_no_moment_takes_no_slice_from_what_is(where: str) -> None:
    slices: list[int] = []
    recruiter = Recruiter(share=None, chance=Random(1))
    recruiter.install(lambda: slices.append(1), "job", rate=RATE)

    def plain(environ: Any, start_response: Any) -> Any:
        wrong = environ["wrong"]
        if wrong == "application":
            raise OSError(wrong)
        start_response("404 Not Found" if wrong == "status" else "200 OK", [])
        return Breaking(wrong)

    app: Any = wsgi.WsgiEnlistMiddleware(plain, recruiter, When.fine())
    for wrong in ["", where] * (REQUESTS // 2):
        with suppress(OSError), closing(app({"wrong": wrong}, lambda *_: None)) as body:
            list(body)

    assert len(slices) in AS_OFTEN_AS_IT_SHOULD


@pytest.mark.parametrize("where", ["status", "application", "body"])
@ASGI
async def test_what_is_no_moment_takes_no_slice_from_what_is_under_asyncio(
    middleware: Callable[..., Any], where: str
) -> None:
    slices: list[int] = []
    recruiter = AsyncRecruiter(share=None, chance=Random(1))

    @recruiter.job(rate=RATE)
    async def job() -> None:
        slices.append(1)

    async def plain(scope: Any, _: Any, send: Any) -> None:
        wrong = scope["wrong"]
        if wrong == "application":
            raise OSError(wrong)
        status = 404 if wrong == "status" else 200
        await send({"type": "http.response.start", "status": status})
        await send({"type": "http.response.body", "more_body": wrong == "body"})

    app = middleware(plain, recruiter, When.fine())
    for wrong in ["", where] * (REQUESTS // 2):
        with suppress(OSError):
            await app({"type": "http", "wrong": wrong}, None, _send)

    assert len(slices) in AS_OFTEN_AS_IT_SHOULD


@ASGI
async def test_requests_that_run_at_once_are_counted_once_each(
    middleware: Callable[..., Any],
) -> None:
    recruiter = AsyncRecruiter(share=None, chance=Random(1))
    recruiter.install(lambda: None, "job", rate=0.2)
    may_end = asyncio.Event()

    async def plain(_: Any, __: Any, send: Any) -> None:
        await may_end.wait()
        await send({"type": "http.response.start", "status": 200})
        await send({"type": "http.response.body"})

    app = middleware(plain, recruiter)
    requests = [
        asyncio.ensure_future(app({"type": "http"}, None, _send)) for _ in range(200)
    ]
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(*requests)

    assert recruiter.stats().calls == 200


@ASGI
def test_servers_take_it_for_an_application(middleware: Callable[..., Any]) -> None:
    async def plain(*_: Any) -> None: ...

    config = uvicorn.Config(middleware(plain, AsyncRecruiter()))
    config.load()

    assert config.interface == "asgi3"


async def _send(_: Any) -> None: ...
