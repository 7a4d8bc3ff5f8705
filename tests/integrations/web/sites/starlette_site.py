"""A Starlette site, with a lifespan and a websocket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import diary
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from workstealing.integrations.starlette import StarletteEnlistMiddleware, lifespan


async def page(request: Request) -> Response:
    return PlainTextResponse("page")


async def stream(request: Request) -> Response:
    async def body() -> AsyncIterator[str]:
        for number in range(5):
            yield f"{number}\n"

    return StreamingResponse(body(), media_type="text/plain")


async def file(request: Request) -> Response:
    return FileResponse(__file__)


async def nothing(request: Request) -> Response:
    return Response(status_code=204)


async def fail(request: Request) -> Response:
    raise ValueError("a view that raises")


async def fail_late(request: Request) -> Response:
    async def body() -> AsyncIterator[str]:
        yield "so far"
        raise ValueError("a body that raises")

    return StreamingResponse(body(), media_type="text/plain")


async def asks(request: Request) -> Response:
    request.state.enlist = True
    return PlainTextResponse("page")


async def declines(request: Request) -> Response:
    request.state.enlist = False
    return PlainTextResponse("page")


async def endless(request: Request) -> Response:
    async def body() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 65536
                await asyncio.sleep(0)
        finally:
            diary.write("closed")

    return StreamingResponse(body(), media_type="text/plain")


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


@asynccontextmanager
async def resource() -> AsyncIterator[None]:
    diary.write("opened")
    yield
    diary.write("left")


recruiter = diary.async_recruiter()


@recruiter.setup
async def set_up(_: object) -> None:
    diary.write("set-up")


routes = [
    Route("/page", page),
    Route("/stream", stream),
    Route("/file", file),
    Route("/nothing", nothing),
    Route("/fail", fail),
    Route("/fail-late", fail_late),
    Route("/asks", asks),
    Route("/declines", declines),
    Route("/endless", endless),
    WebSocketRoute("/echo", echo),
]
if diary.IS_OURS:
    ours = [Middleware(StarletteEnlistMiddleware, recruiter=recruiter, when=diary.WHEN)]
    # It enlists once itself, which most tests would not expect.
    living = lifespan(recruiter, resource()) if "LIFESPAN" in os.environ else None
    app = Starlette(routes=routes, middleware=ours, lifespan=living)
else:
    app = Starlette(routes=routes)
