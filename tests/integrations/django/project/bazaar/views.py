"""Pages of all kinds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from django.core.cache import cache
from django.http import (
    FileResponse,
    Http404,
    HttpResponse,
    HttpResponseNotModified,
    StreamingHttpResponse,
)
from django.views.decorators.cache import cache_page

from bazaar.diary import write


def page(request: Any) -> HttpResponse:
    return HttpResponse("page")


async def awaited(request: Any) -> HttpResponse:
    return HttpResponse("awaited")


def stream(request: Any) -> StreamingHttpResponse:
    return StreamingHttpResponse(f"{number}\n" for number in range(5))


async def awaited_stream(request: Any) -> StreamingHttpResponse:
    async def numbers() -> AsyncIterator[str]:
        for number in range(5):
            yield f"{number}\n"

    return StreamingHttpResponse(numbers())


def file(request: Any) -> FileResponse:
    return FileResponse(open(__file__, "rb"))


def gone(request: Any) -> HttpResponse:
    raise Http404("gone")


def unchanged(request: Any) -> HttpResponse:
    return HttpResponseNotModified()


def nothing(request: Any) -> HttpResponse:
    return HttpResponse(status=204)


def fail(request: Any) -> HttpResponse:
    raise ValueError("a view that raises")


def fail_late(request: Any) -> StreamingHttpResponse:
    def body() -> Iterator[str]:
        yield "so far"
        raise ValueError("a body that raises")

    return StreamingHttpResponse(body())


def asks(request: Any) -> HttpResponse:
    request.enlist = True
    return HttpResponse("asks")


def declines(request: Any) -> HttpResponse:
    request.enlist = False
    return HttpResponse("declines")


@cache_page(60)
def kept(request: Any) -> HttpResponse:
    return HttpResponse("kept")


def hit(request: Any) -> HttpResponse:
    cache.set("key", "value")
    return HttpResponse(cache.get("key"))


async def hit_on_the_loop(request: Any) -> HttpResponse:
    cache.set("key", "value")
    return HttpResponse(cache.get("key"))


async def awaited_hit(request: Any) -> HttpResponse:
    await cache.aset("key", "value")
    return HttpResponse(await cache.aget("key"))


class _Endless:
    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield b"x" * 65536

    def close(self) -> None:
        write("closed")


def endless(request: Any) -> StreamingHttpResponse:
    return StreamingHttpResponse(_Endless())
