"""A site without a framework, on ASGI."""

from __future__ import annotations

from typing import Any

import diary

PLAIN = [(b"content-type", b"text/plain")]


async def app(scope: Any, receive: Any, send: Any) -> Any:
    if scope["type"] == "lifespan":
        return await live(receive, send)
    if scope["type"] == "websocket":
        return await echo(receive, send)
    return await PAGES[scope["path"]](scope, send)


async def live(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        diary.write(message["type"])
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def echo(receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def start(send: Any, status: int, *headers: tuple[bytes, bytes]) -> None:
    message = {"type": "http.response.start", "status": status}
    await send({**message, "headers": [*PLAIN, *headers]})


async def finish(send: Any, body: bytes = b"") -> None:
    await send({"type": "http.response.body", "body": body})


async def add(send: Any, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def page(scope: Any, send: Any) -> None:
    await start(send, 200, (b"content-length", b"4"))
    await finish(send, b"page")


async def stream(scope: Any, send: Any) -> None:
    await start(send, 200)
    for number in range(5):
        await add(send, b"%d\n" % number)
    await finish(send)


async def missing(scope: Any, send: Any) -> None:
    await start(send, 404, (b"content-length", b"4"))
    await finish(send, b"gone")


async def unchanged(scope: Any, send: Any) -> None:
    await start(send, 304)
    await finish(send)


async def nothing(scope: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await finish(send)


async def fail(scope: Any, send: Any) -> None:
    raise ValueError("a view that raises")


async def fail_late(scope: Any, send: Any) -> None:
    await start(send, 200)
    await add(send, b"so far")
    raise ValueError("a body that raises")


async def fail_after(scope: Any, send: Any) -> None:
    await page(scope, send)
    raise ValueError("an application that raises after its response")


async def unfinished(scope: Any, send: Any) -> None:
    await start(send, 200)
    await add(send, b"so far")


async def silent(scope: Any, send: Any) -> None:
    return None


async def answering(scope: Any, send: Any) -> str:
    await page(scope, send)
    return "an application must not return anything"


async def asks(scope: Any, send: Any) -> None:
    scope["state"]["enlist"] = True
    await page(scope, send)


async def declines(scope: Any, send: Any) -> None:
    scope["state"]["enlist"] = False
    await page(scope, send)


async def long(scope: Any, send: Any) -> None:
    await start(send, 200)
    for _ in range(1000):
        await add(send, b"x" * 65536)
    await finish(send)
    diary.write("closed")


PAGES: Any = {
    "/page": page,
    "/stream": stream,
    "/missing": missing,
    "/unchanged": unchanged,
    "/nothing": nothing,
    "/fail": fail,
    "/fail-late": fail_late,
    "/fail-after": fail_after,
    "/unfinished": unfinished,
    "/silent": silent,
    "/answering": answering,
    "/asks": asks,
    "/declines": declines,
    "/long": long,
}
if diary.IS_OURS:
    from workstealing.integrations.asgi import AsgiEnlistMiddleware

    app = AsgiEnlistMiddleware(app, diary.async_recruiter(), diary.WHEN)
