"""WSGI middleware: requests enlist after their response was sent and closed.

The response stays the same, byte for byte. A request does not enlist if its
application, its body or its `close()` raises, if its client disconnects before the end
of the body, or if the server is one that would send the end of this response later. A
slice occupies the server's worker until it is done, so give jobs Redis clients with
short timeouts.

A view decides for itself by setting `environ["workstealing.enlist"]` to True or False.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from workstealing.integrations.conditions import (
    ALWAYS,
    ENLIST_KEY,
    When,
    checked_recruiter,
    checked_when,
    enlist_after_request,
    status_code,
)
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ("WsgiEnlistMiddleware",)

# A key of its environ: the name of this server can be configured.
_WAITRESS = "waitress.client_disconnected"
# The names of other servers that may close a body too early; the last is wsgiref.
_LATE = ("Cheroot", "CherryPy", "Granian", "WSGIServer")


class WsgiEnlistMiddleware:
    """Wraps an application.

    Args:
        app: the application that answers the requests.
        recruiter: what to enlist with after them.
        when: after which requests.
    """

    def __init__(
        self, app: WSGIApplication, recruiter: Recruiter, when: When = ALWAYS
    ) -> None:
        self._app = app
        self._recruiter = checked_recruiter(recruiter, Recruiter, "a WSGI server")
        self._when = checked_when(when)

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer a request."""
        if self._recruiter.would_dismiss():
            return self._app(environ, start_response)
        response = _FollowedResponse(
            self._recruiter, self._when, environ, start_response
        )
        try:
            body = response.body = self._app(environ, response.start)
        except BaseException:
            self._recruiter.skip()
            raise
        if _is_file(body, environ):
            has_late_end = not response.length and _finishes_after_close(environ)
            if has_late_end or not _hook(body, environ, response):
                self._recruiter.skip()
            return body
        if _is_joined(body, environ) and not response.length:
            self._recruiter.skip()
            return body
        return (
            _SizedFollowedResponse(response) if hasattr(body, "__len__") else response
        )


class _FollowedResponse:
    """A response that enlists once it was read to its end and closed."""

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
        self.length = ""
        self._is_read = False
        self.body: Iterable[bytes] = ()
        self._began_at = perf_counter()

    def start(self, status: str, headers: Any, *rest: Any, **named: Any) -> Any:
        """Remember the status, and pass everything on."""
        self._status = status
        self.length = _content_length(headers)
        return self._start_response(status, headers, *rest, **named)

    def __iter__(self) -> Iterator[bytes]:
        # Not `yield from`: a server that gives up would close the body a first time.
        size = 0
        for chunk in self.body:
            yield chunk
            # Only now: a chunk that is no bytes is for the server to refuse.
            size += len(chunk)
        # With its last byte a response is whole, unless the server has more to send.
        is_whole = size > 0 and self.length == str(size)
        self._is_read = is_whole or not _finishes_after_close(self._environ)

    def close(self) -> None:
        """Close the body; enlist if all of it was sent."""
        is_read, self._is_read = self._is_read, False
        self.end(getattr(self.body, "close", None), is_sent=is_read)

    def end(self, close: Callable[[], object] | None, *, is_sent: bool) -> None:
        """Close the body, and enlist if `When` allows it."""
        try:
            if close is not None:
                close()
        except BaseException:
            self._recruiter.skip()
            raise
        took = perf_counter() - self._began_at
        asked = self._environ.get(ENLIST_KEY)
        if is_sent and self._when.allows(status_code(self._status), took, asked):
            enlist_after_request(self._recruiter, took)
        else:
            self._recruiter.skip()


class _SizedFollowedResponse:
    """A response with a length, which servers use for the Content-Length."""

    __slots__ = ("_response",)

    def __init__(self, response: _FollowedResponse) -> None:
        self._response = response

    def __len__(self) -> int:
        return len(cast("Sized", self._response.body))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._response)

    def close(self) -> None:
        self._response.close()


def _is_file(body: object, environ: WSGIEnvironment) -> bool:
    """Return whether the server recognises the body by its type, and sends a file."""
    wrapper = environ.get("wsgi.file_wrapper")
    return isinstance(wrapper, type) and isinstance(body, wrapper)


def _is_joined(body: object, environ: WSGIEnvironment) -> bool:
    """Return whether it is a list for granian, which joins and measures only lists."""
    return isinstance(body, list) and _software(environ).startswith("Granian")


def _finishes_after_close(environ: WSGIEnvironment) -> bool:
    """Return whether the server may close a body before its response has left.

    These send the headers of an empty response, or the end of a chunked one, only then,
    or, as wsgiref, end a response of unknown length by closing the connection: a slice
    in `close()` would hold them up. Others finish first, as gunicorn does.
    """
    return (
        _WAITRESS in environ
        or "uwsgi.version" in environ
        or _software(environ).startswith(_LATE)
    )


def _content_length(headers: Any) -> str:
    # The server judges them, and an iterator must reach it unread.
    for header in headers if isinstance(headers, list) else ():
        if isinstance(header, tuple) and len(header) == 2:
            name, value = header
            if isinstance(name, str) and name.lower() == "content-length":
                return str(value)
    return ""


def _software(environ: WSGIEnvironment) -> str:
    return str(environ.get("SERVER_SOFTWARE", ""))


def _hook(body: Any, environ: WSGIEnvironment, response: _FollowedResponse) -> bool:
    """Follow a file to its end; return False if that cannot be.

    Some are written in C. waitress closes a file in the thread that does all its input
    and output, where a slice would stop the whole site.
    """
    if _WAITRESS in environ:
        return False
    close = getattr(body, "close", None)
    try:
        body.close = partial(response.end, close, is_sent=True)
    except AttributeError:
        return False
    return True
