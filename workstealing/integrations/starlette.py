"""Starlette and FastAPI: a middleware, a lifespan, and a dependency.

`Middleware(StarletteEnlistMiddleware, recruiter=recruiter)` enlists after the last
byte; see `workstealing.integrations.asgi` for what it promises. A view decides for
itself by setting `request.state.enlist` to True or False.

`lifespan(recruiter, …)` runs the recruiter's setup functions before the first request,
and closes the resources it was given after the last one.
`enlist_after_response(recruiter)` returns a FastAPI dependency, to let single routes
enlist without a middleware.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from time import perf_counter
from typing import Any

from workstealing.errors import MissingExtra
from workstealing.integrations.asgi import AsgiEnlist, Receive, Scope, Send
from workstealing.integrations.conditions import checked_recruiter, note_request_time
from workstealing.recruiting.async_recruiter import AsyncRecruiter

try:
    # At module level, where FastAPI looks for the annotations of a dependency.
    from starlette.background import BackgroundTasks
except ImportError as error:
    raise MissingExtra("Starlette", "starlette") from error

__all__ = ("StarletteEnlistMiddleware", "enlist_after_response", "lifespan")


class StarletteEnlistMiddleware(AsgiEnlist):
    """Wraps an application; see `AsgiEnlist` for the arguments."""

    # Not a coroutine function: awaiting one more would be most of its cost.
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Any]:
        """Answer a request."""
        return self.answer(scope, receive, send)


# Servers look at this to distinguish an ASGI 3 application from an ASGI 2 one.
if sys.version_info >= (3, 12):
    inspect.markcoroutinefunction(StarletteEnlistMiddleware.__call__)
else:
    _mark = "_is_coroutine"
    setattr(
        StarletteEnlistMiddleware.__call__, _mark, getattr(asyncio.coroutines, _mark)
    )


def lifespan(
    recruiter: AsyncRecruiter, *resources: AbstractAsyncContextManager[Any]
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return a lifespan for an application.

    It enters the resources, such as a Redis client or `recruiter.ticker()`, in order,
    and runs the setup functions; when the application stops, it exits the resources.
    In your own lifespan, write `async with lifespan(recruiter, redis)(app): yield`.
    """
    checked_recruiter(recruiter, AsyncRecruiter, "an ASGI server")

    @asynccontextmanager
    async def entered(_: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for resource in resources:
                await stack.enter_async_context(resource)
            # The first enlist() runs the setup functions, so that no request has to.
            await recruiter.enlist()
            yield

    return entered


def enlist_after_response(
    recruiter: AsyncRecruiter,
) -> Callable[..., Awaitable[None]]:
    """Return a FastAPI dependency: routes that have it enlist after their response.

    `@app.get("/", dependencies=[Depends(enlist_after_response(recruiter))])`. It adds a
    background task to the response. A view that raises does not enlist, nor does one
    that returns a response with a background task of its own.
    """
    checked_recruiter(recruiter, AsyncRecruiter, "an ASGI server")

    async def enlist(background: BackgroundTasks) -> None:
        began_at = perf_counter()

        async def after_the_response() -> None:
            note_request_time(perf_counter() - began_at)
            await recruiter.enlist()

        background.add_task(after_the_response)

    return enlist
