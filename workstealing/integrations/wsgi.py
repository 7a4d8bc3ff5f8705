"""WSGI middleware: a request that got its response enlists, after `close()`.

The response is what it was without it, byte for byte. One that raises, in the
application, in its body or in its `close()`, and one whose client went away in
mid-body, enlist nobody. The worker is held by a slice until it is done, so give the
jobs clients with short timeouts.

A view speaks for itself by `environ["workstealing.enlist"] = True`, or False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from workstealing.errors import ConfigurationError
from workstealing.integrations.moments import ALWAYS, When, checked_when, offer
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = (
    "ENLIST",
    "EnlistMiddleware",
    "checked_recruiter",
    "status_code",
)

ENLIST = "workstealing.enlist"
"""The key of the environ by which a view asks for it, or against it."""


class EnlistMiddleware:
    """Wraps an application.

    Args:
        app: what answers the requests.
        recruiter: who is offered the moments after them.
        when: after which requests.
    """

    def __init__(
        self, app: WSGIApplication, recruiter: Recruiter, when: When = ALWAYS
    ) -> None:
        self._app = app
        self._recruiter = checked_recruiter(recruiter)
        self._when = checked_when(when)

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer a request."""
        if self._recruiter.dismisses():
            return self._app(environ, start_response)
        response = _Response(self._recruiter, self._when, environ, start_response)
        try:
            body = response.body = self._app(environ, response.start)
        except BaseException:
            self._recruiter.forgo()
            raise
        if _is_file(body, environ):
            if not _hook(body, response):
                self._recruiter.forgo()
            return body
        return _SizedResponse(response) if hasattr(body, "__len__") else response


def checked_recruiter(recruiter: object) -> Recruiter:
    """Return it if it can be asked without awaiting.

    Raises:
        ConfigurationError: it is something else.
    """
    if not isinstance(recruiter, Recruiter):
        raise ConfigurationError(
            f"a WSGI application needs a Recruiter to enlist with, not {recruiter!r}"
        )
    return recruiter


@lru_cache(maxsize=64)
def status_code(status: str) -> int:
    """Return 200 for "200 OK", and 0 for what is no status at all."""
    code = status[:3]
    return int(code) if code.isdecimal() else 0


class _Response:
    """A response in the making; enlists when it was read to its end and closed."""

    def __init__(
        self,
        recruiter: Recruiter,
        when: When,
        environ: WSGIEnvironment,
        start_response: StartResponse,
    ) -> None:
        self._recruiter = recruiter
        self._when = when
        self._environ = environ
        self._start_response = start_response
        self._status = ""
        self._is_read = False
        self.body: Iterable[bytes] = ()
        self._began_at = perf_counter()

    def start(self, status: str, headers: Any, *rest: Any, **named: Any) -> Any:
        """Note the status, and pass everything on."""
        self._status = status
        return self._start_response(status, headers, *rest, **named)

    def __iter__(self) -> Iterator[bytes]:
        # Not `yield from`: a server that gives up would close the body a first time.
        for chunk in self.body:  # noqa: UP028
            yield chunk
        self._is_read = True

    def close(self) -> None:
        """Close the body; enlist if nothing is left to be sent."""
        is_read, self._is_read = self._is_read, False
        self.end(getattr(self.body, "close", None), is_sent=is_read)

    def end(self, close: Callable[[], object] | None, *, is_sent: bool) -> None:
        """Close the body, and enlist if this is the moment for it."""
        try:
            if close is not None:
                close()
        except BaseException:
            self._recruiter.forgo()
            raise
        took = perf_counter() - self._began_at
        asked = self._environ.get(ENLIST)
        if is_sent and self._when.allows(status_code(self._status), took, asked):
            offer(self._recruiter, took)
        else:
            self._recruiter.forgo()


class _SizedResponse:
    """One whose length a server may ask for, to know the length of the response."""

    __slots__ = ("_response",)

    def __init__(self, response: _Response) -> None:
        self._response = response

    def __len__(self) -> int:
        return len(cast("Sized", self._response.body))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._response)

    def close(self) -> None:
        self._response.close()


def _is_file(body: object, environ: WSGIEnvironment) -> bool:
    """Tell whether the server knows the body by its type, and sends it as a file."""
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(wrapper, type) and isinstance(body, wrapper)


def _hook(body: Any, response: _Response) -> bool:
    """Follow a file to its end; False where it is written in C and cannot be."""
    close = getattr(body, "close", None)
    try:
        body.close = partial(response.end, close, is_sent=True)
    except AttributeError:
        return False
    return True
