"""ASGI middleware: requests enlist after the last byte of their response was sent.

Nothing is delayed and nothing is changed: streamed bodies, clients that disconnect,
websockets and lifespan events pass through untouched. A request that raises, or whose
response is incomplete, does not enlist.

It takes an `AsyncRecruiter`, whose slices are awaited: coroutines on the event loop,
plain functions in a thread, both given up at the deadline. A `Recruiter` is refused,
because its slices would block every other request of the process.

Make it the outermost middleware: whatever a middleware around this one does after the
application returned has to wait for the slice.

A view decides for itself by setting `scope["state"]["enlist"]` to True or False: in
Starlette and FastAPI that is `request.state.enlist`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any

from workstealing.integrations.conditions import (
    ALWAYS,
    When,
    checked_recruiter,
    checked_when,
    note_request_time,
)
from workstealing.recruiting.async_recruiter import AsyncRecruiter

__all__ = ("AsgiEnlist", "AsgiEnlistMiddleware")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[Any]]


class AsgiEnlist:
    """What the middlewares for ASGI share.

    Args:
        app: the application that answers the requests.
        recruiter: what to enlist with after them.
        when: after which requests.
    """

    def __init__(
        self, app: ASGIApplication, recruiter: AsyncRecruiter, when: When = ALWAYS
    ) -> None:
        self._app = app
        self._recruiter = checked_recruiter(recruiter, AsyncRecruiter, "an ASGI server")
        self._when = checked_when(when)

    def answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Any]:
        """Answer a request; follow it to its end only if a job was drawn for it."""
        if scope["type"] == "http":
            # Now, because an application may pass copies of the scope to its parts.
            state = scope.setdefault("state", {})
            if not self._recruiter.would_dismiss():
                return self._follow(scope, receive, send, state)
        return self._app(scope, receive, send)

    async def _follow(
        self, scope: Scope, receive: Receive, send: Send, state: Message
    ) -> Any:
        status, is_complete = 0, False

        async def observe(message: Message) -> None:
            nonlocal status, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                is_complete = not message.get("more_body")
            await send(message)

        began_at = perf_counter()
        try:
            answer = await self._app(scope, receive, observe)
        except BaseException:
            self._recruiter.skip()
            raise
        took = perf_counter() - began_at
        if is_complete and self._when.allows(status, took, state.get("enlist")):
            note_request_time(took)
            await self._recruiter.enlist()
        else:
            self._recruiter.skip()
        return answer


class AsgiEnlistMiddleware(AsgiEnlist):
    """Wraps an application; see `AsgiEnlist` for the arguments."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        """Answer a request."""
        return await self.answer(scope, receive, send)
