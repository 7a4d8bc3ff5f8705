"""A site without a framework, with all that WSGI allows."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import diary

# Copied for each response: a server may add headers to the list that it gets.
PLAIN = [("Content-Type", "text/plain")]


def app(environ: Any, start_response: Any) -> Iterable[bytes]:
    return PAGES[environ["PATH_INFO"]](environ, start_response)


def page(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [*PLAIN, ("Content-Length", "4")])
    return [b"page"]


def unsized(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [*PLAIN])
    return [b"page"]


def stream(environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [*PLAIN])
    for number in range(5):
        yield b"%d\n" % number


def write(environ: Any, start_response: Any) -> list[bytes]:
    send = start_response("200 OK", [*PLAIN])
    send(b"first ")
    send(b"second ")
    return [b"third"]


def file(environ: Any, start_response: Any) -> Any:
    start_response("200 OK", [*PLAIN, ("Content-Length", str(len(PROGRAM)))])
    return wrapper_of(environ)(open(__file__, "rb"))


def memory_file(environ: Any, start_response: Any) -> Any:
    start_response("200 OK", [*PLAIN])
    return wrapper_of(environ)(io.BytesIO(b"x" * 100_000))


def large_file(environ: Any, start_response: Any) -> Any:
    # More than a socket takes at once, so that waitress sends it in another thread.
    start_response("200 OK", [*PLAIN])
    return wrapper_of(environ)(io.BytesIO(b"x" * 20_000_000))


def wrapper_of(environ: Any) -> Any:
    # WSGI lets a server have none.
    return environ.get("wsgi.file_wrapper", iter)


def missing(environ: Any, start_response: Any) -> list[bytes]:
    start_response("404 Not Found", [*PLAIN, ("Content-Length", "4")])
    return [b"gone"]


def unchanged(environ: Any, start_response: Any) -> tuple[bytes, ...]:
    start_response("304 Not Modified", [("ETag", '"1"')])
    return ()


def nothing(environ: Any, start_response: Any) -> tuple[bytes, ...]:
    start_response("204 No Content", [])
    return ()


def second_thoughts(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [*PLAIN])
    try:
        raise ValueError("too late for 200")
    except ValueError:
        start_response("503 Service Unavailable", [*PLAIN], sys.exc_info())
    return [b"sorry"]


def fail(environ: Any, start_response: Any) -> list[bytes]:
    raise ValueError("a view that raises")


def fail_late(environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [*PLAIN])
    yield b"so far"
    raise ValueError("a body that raises")


def asks(environ: Any, start_response: Any) -> list[bytes]:
    environ["workstealing.enlist"] = True
    return page(environ, start_response)


def declines(environ: Any, start_response: Any) -> list[bytes]:
    environ["workstealing.enlist"] = False
    return page(environ, start_response)


class Endless:
    def __init__(self, start_response: Any) -> None:
        start_response("200 OK", [*PLAIN])

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield b"x" * 65536

    def close(self) -> None:
        diary.write("closed")


def endless(environ: Any, start_response: Any) -> Endless:
    return Endless(start_response)


with open(__file__, "rb") as source:
    PROGRAM = source.read()
PAGES: Any = {
    "/page": page,
    "/unsized": unsized,
    "/stream": stream,
    "/write": write,
    "/file": file,
    "/memory-file": memory_file,
    "/large-file": large_file,
    "/missing": missing,
    "/unchanged": unchanged,
    "/nothing": nothing,
    "/second-thoughts": second_thoughts,
    "/fail": fail,
    "/fail-late": fail_late,
    "/asks": asks,
    "/declines": declines,
    "/endless": endless,
}
if diary.IS_OURS:
    if os.environ.get("BY") == "uwsgi":
        from workstealing.integrations.uwsgi import UwsgiEnlistMiddleware as Middleware
    else:
        from workstealing.integrations.wsgi import WsgiEnlistMiddleware as Middleware
    app = Middleware(app, diary.recruiter(), diary.WHEN)
