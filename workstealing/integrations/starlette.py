"""Starlette and FastAPI: a middleware, a lifespan, and a dependency.

`Middleware(EnlistMiddleware, recruiter=recruiter)` enlists after the last byte; see
`workstealing.integrations.asgi` for what it promises. A view speaks for itself by
`request.state.enlist = True`, or False.

`lifespan(recruiter, …)` runs the recruiter's setups before the first request, and
closes what it was given after the last one. `enlists(recruiter)` makes a FastAPI
dependency, for those who want single routes to enlist and no middleware.
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
from workstealing.integrations.asgi import (
    Enlisting,
    Receive,
    Scope,
    Send,
    checked_recruiter,
)
from workstealing.integrations.moments import tell_took
from workstealing.recruiting.aio import AsyncRecruiter

try:
    # FastAPI looks for it here, to know what the dependency wants.
    from starlette.background import BackgroundTasks
except ImportError as error:
    raise MissingExtra("Starlette", "starlette") from error

__all__ = ("EnlistMiddleware", "enlists", "lifespan")


class EnlistMiddleware(Enlisting):
    """Wraps an application; see `Enlisting` for the arguments."""

    # Not a coroutine of its own: that would be most of what it costs.
    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Any]:
        """Answer a request."""
        return self.answer(scope, receive, send)


# Servers ask, to tell an application from one of an older standard.
if sys.version_info >= (3, 12):
    inspect.markcoroutinefunction(EnlistMiddleware.__call__)
else:
    _mark = "_is_coroutine"
    setattr(EnlistMiddleware.__call__, _mark, getattr(asyncio.coroutines, _mark))


def lifespan(
    recruiter: AsyncRecruiter, *resources: AbstractAsyncContextManager[Any]
) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return a lifespan for an application.

    It enters the resources, such as a Redis client or `recruiter.patrol()`, in their
    order and runs the setups; when the application stops, it leaves the resources. In
    a lifespan of your own, write `async with lifespan(recruiter, redis)(app): yield`.
    """
    checked_recruiter(recruiter)

    @asynccontextmanager
    async def living(_: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for resource in resources:
                await stack.enter_async_context(resource)
            # The first to enlist runs the setups: no request needs to.
            await recruiter.enlist()
            yield

    return living


def enlists(recruiter: AsyncRecruiter) -> Callable[..., Awaitable[None]]:
    """Return a FastAPI dependency: routes that have it enlist after their response.

    `@app.get("/", dependencies=[Depends(enlists(recruiter))])`. It is a background
    task of the response: a view that raises has none, and one that returns a response
    with a background task of its own keeps that instead.
    """
    checked_recruiter(recruiter)

    async def enlist(background: BackgroundTasks) -> None:
        began_at = perf_counter()

        async def after_the_response() -> None:
            tell_took(perf_counter() - began_at)
            await recruiter.enlist()

        background.add_task(after_the_response)

    return enlist
