"""WSGI middleware: a request that got its response enlists, after `close()`.

The response is what it was without it, byte for byte. One that raises, in the
application, in its body or in its `close()`, and one whose client went away in
mid-body, enlist nobody. The worker is held by a slice until it is done, so give the
jobs clients with short timeouts.

A view speaks for itself by `environ["workstealing.enlist"] = True`, or False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import suppress
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from workstealing.errors import ConfigurationError
from workstealing.integrations.moments import When, offer
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = (
    "ENLIST",
    "EnlistMiddleware",
    "checked_recruiter",
    "checked_when",
    "status_code",
)

ENLIST = "workstealing.enlist"
"""The key of the environ by which a view asks for it, or against it."""

_ALWAYS = When.always()


class EnlistMiddleware:
    """Wraps an application.

    Args:
        app: what answers the requests.
        recruiter: who is offered the moments after them.
        when: after which requests.
    """

    def __init__(
        self, app: WSGIApplication, recruiter: Recruiter, when: When = _ALWAYS
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
            _hook(body, response)
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


def checked_when(when: object) -> When:
    """Return it if it is a `When`.

    Raises:
        ConfigurationError: it is something else.
    """
    if not isinstance(when, When):
        raise ConfigurationError(f"when= takes a When, not {when!r}")
    return when


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
        close: Callable[[], object] | None = getattr(self.body, "close", None)
        if close is not None:
            close()
        if self._is_read:
            self._is_read = False
            self.end()
        else:
            self._recruiter.forgo()

    def end(self) -> None:
        """Enlist, if this is the moment for it."""
        took = perf_counter() - self._began_at
        asked = self._environ.get(ENLIST)
        if self._when.allows(status_code(self._status), took, asked):
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


def _hook(body: Any, response: _Response) -> None:
    close: Callable[[], object] | None = getattr(body, "close", None)

    def close_and_end() -> None:
        if close is not None:
            close()
        response.end()

    # Where it is written in C it stays as it is, and enlists nobody.
    with suppress(AttributeError):
        body.close = close_and_end
