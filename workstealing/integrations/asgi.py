"""ASGI middleware: a request enlists after the last byte of its response was sent.

Nothing is delayed and nothing is changed: bodies that stream, clients that go away,
websockets and lifespan events pass as they are. A request that raises enlists nobody,
nor does one whose response is not complete.

It takes an `AsyncRecruiter`, whose slices are awaited: coroutines on the event loop,
plain functions in a thread, both given up at the deadline. A `Recruiter` is refused,
for its slices would hold up every other request of the process.

Make it the outermost middleware: what others do after the application has returned,
they do after the slice if they are around this one.

A view speaks for itself by `scope["state"]["enlist"] = True`, or False: in Starlette
and FastAPI that is `request.state.enlist`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any

from workstealing.errors import ConfigurationError
from workstealing.integrations.moments import (
    ALWAYS,
    When,
    checked_when,
    tell_took,
)
from workstealing.recruiting.aio import AsyncRecruiter

__all__ = ("ASGIApplication", "EnlistMiddleware", "Enlisting", "checked_recruiter")

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApplication = Callable[[Scope, Receive, Send], Awaitable[Any]]


class Enlisting:
    """What all who wrap an application share.

    Args:
        app: what answers the requests.
        recruiter: who is offered the moments after them.
        when: after which requests.
    """

    def __init__(
        self, app: ASGIApplication, recruiter: AsyncRecruiter, when: When = ALWAYS
    ) -> None:
        self._app = app
        self._recruiter = checked_recruiter(recruiter)
        self._when = checked_when(when)

    def answer(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[Any]:
        """Answer a request: as it is, unless somebody was drawn to follow it."""
        if scope["type"] == "http":
            # Here, because an application may hand copies of the scope to its parts.
            state = scope.setdefault("state", {})
            if not self._recruiter.dismisses():
                return self._follow(scope, receive, send, state)
        return self._app(scope, receive, send)

    async def _follow(
        self, scope: Scope, receive: Receive, send: Send, state: Message
    ) -> Any:
        status, is_complete = 0, False

        async def note(message: Message) -> None:
            nonlocal status, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                is_complete = not message.get("more_body")
            await send(message)

        began_at = perf_counter()
        try:
            answer = await self._app(scope, receive, note)
        except BaseException:
            self._recruiter.forgo()
            raise
        took = perf_counter() - began_at
        if is_complete and self._when.allows(status, took, state.get("enlist")):
            tell_took(took)
            await self._recruiter.enlist()
        else:
            self._recruiter.forgo()
        return answer


class EnlistMiddleware(Enlisting):
    """Wraps an application; see `Enlisting` for the arguments."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> Any:
        """Answer a request."""
        return await self.answer(scope, receive, send)


def checked_recruiter(recruiter: object) -> AsyncRecruiter:
    """Return it if its slices can be awaited.

    Raises:
        ConfigurationError: it is something else.
    """
    if not isinstance(recruiter, AsyncRecruiter):
        raise ConfigurationError(
            "an ASGI application needs an AsyncRecruiter to enlist with (it takes plain"
            f" functions too, and runs them in a thread), not {recruiter!r}"
        )
    return recruiter
