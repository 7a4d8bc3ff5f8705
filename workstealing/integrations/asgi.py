"""ASGI middleware: a request enlists after the last byte of its response was sent.

Nothing is delayed and nothing is changed: bodies that stream, clients that go away,
websockets and lifespan events pass as they are. A request that raises enlists nobody,
and where `when` asks for a status, neither does one whose response is not complete.

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
from workstealing.integrations.moments import When, tell_took
from workstealing.recruiting.aio import AsyncRecruiter

__all__ = ("ASGIApplication", "EnlistMiddleware", "checked_recruiter")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApplication = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[Any]]

_ALWAYS = When.always()


class EnlistMiddleware:
    """Wraps an application.

    Args:
        app: what answers the requests.
        recruiter: who is offered the moments after them.
        when: after which requests.
    """

    def __init__(
        self, app: ASGIApplication, recruiter: AsyncRecruiter, when: When = _ALWAYS
    ) -> None:
        self._app = app
        self._recruiter = checked_recruiter(recruiter)
        if not isinstance(when, When):
            raise ConfigurationError(f"when= takes a When, not {when!r}")
        self._when = when
        self._is_always = when == _ALWAYS

    async def __call__(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> Any:
        """Answer a request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        # Here, because an application may hand copies of the scope to its parts.
        state = scope.setdefault("state", {})
        if not self._is_always:
            return await self._answer(scope, receive, send, state)
        began_at = perf_counter()
        answer = await self._app(scope, receive, send)
        if state.get("enlist", True) and not self._recruiter.dismisses():
            tell_took(perf_counter() - began_at)
            await self._recruiter.enlist()
        return answer

    async def _answer(
        self,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
        state: MutableMapping[str, Any],
    ) -> Any:
        """Answer a request whose status matters."""
        status, is_complete = 0, False

        # A plain function: one coroutine less for every message.
        def note(message: Message) -> Awaitable[None]:
            nonlocal status, is_complete
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                is_complete = not message.get("more_body")
            return send(message)

        began_at = perf_counter()
        answer = await self._app(scope, receive, note)
        if status and is_complete:
            took = perf_counter() - began_at
            if (
                self._when.allows(status, took, state.get("enlist"))
                and not self._recruiter.dismisses()
            ):
                tell_took(took)
                await self._recruiter.enlist()
        return answer


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
