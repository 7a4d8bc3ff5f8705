"""uWSGI without mules: its workers enlist in the hook that comes after each request.

`application = EnlistMiddleware(application, recruiter)` notes what became of a request,
and registers uWSGI's `after_req_hook`, which enlists. A hook that is there already is
called first. A request whose application raises enlists nobody.

A view speaks for itself by `environ["workstealing.enlist"] = True`, or False, before it
returns: a generator is too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from threading import local
from time import perf_counter
from typing import TYPE_CHECKING, Any

from workstealing.errors import ConfigurationError
from workstealing.integrations.moments import ALWAYS, When, checked_when, offer
from workstealing.integrations.wsgi import (
    ENLIST,
    checked_recruiter,
    status_code,
)
from workstealing.recruiting.recruiter import Recruiter

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ("EnlistMiddleware",)


class EnlistMiddleware:
    """Wraps an application that uWSGI runs.

    Args:
        app: what answers the requests.
        recruiter: who is offered the moments after them.
        when: after which requests.

    Raises:
        ConfigurationError: this process is no uWSGI server.
    """

    def __init__(
        self, app: WSGIApplication, recruiter: Recruiter, when: When = ALWAYS
    ) -> None:
        self._app = app
        self._recruiter = checked_recruiter(recruiter)
        self._when = checked_when(when)
        self._notes = local()
        server = _server()
        self._earlier: Callable[[], object] | None = getattr(
            server, "after_req_hook", None
        )
        server.after_req_hook = self._after_request

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer a request."""
        if self._recruiter.dismisses():
            return self._app(environ, start_response)
        began_at = perf_counter()
        statuses: list[str] = []

        def start(status: str, headers: Any, *rest: Any, **named: Any) -> Any:
            statuses[:] = [status]
            return start_response(status, headers, *rest, **named)

        try:
            body = self._app(environ, start)
        except BaseException:
            self._recruiter.forgo()
            raise
        # Now, because uWSGI empties the environ before it calls the hook.
        self._notes.request = (began_at, statuses, environ.get(ENLIST))
        return body

    def _after_request(self) -> None:
        if self._earlier is not None:
            self._earlier()
        # None after a request that nobody was drawn for, that raised, or that uWSGI
        # answered by itself.
        request = self._notes.__dict__.pop("request", None)
        if request is None:
            return
        began_at, statuses, asked = request
        took = perf_counter() - began_at
        if statuses and self._when.allows(status_code(statuses[0]), took, asked):
            offer(self._recruiter, took)
        else:
            self._recruiter.forgo()


def _server() -> Any:
    try:
        return import_module("uwsgi")
    except ImportError as error:
        raise ConfigurationError(
            "this process is no uWSGI server: use workstealing.integrations.wsgi, which"
            " works under all servers"
        ) from error
