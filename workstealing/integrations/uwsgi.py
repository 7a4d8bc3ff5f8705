"""uWSGI without mules: its workers enlist in the hook that follows each request.

`application = UwsgiEnlistMiddleware(application, recruiter)` remembers how a request
ended, and registers uWSGI's `after_req_hook`, which enlists. A hook that was registered
before is called first. A request whose application raises does not enlist.

A view decides for itself by setting `environ["workstealing.enlist"]` to True or False
before it returns: a generator is too late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from threading import local
from time import perf_counter
from typing import TYPE_CHECKING, Any

from workstealing.errors import ConfigurationError
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

__all__ = ("UwsgiEnlistMiddleware",)


class UwsgiEnlistMiddleware:
    """Wraps an application that uWSGI runs.

    Args:
        app: the application that answers the requests.
        recruiter: what to enlist with after them.
        when: after which requests.

    Raises:
        ConfigurationError: this process is not a uWSGI server.
    """

    def __init__(
        self, app: WSGIApplication, recruiter: Recruiter, when: When = ALWAYS
    ) -> None:
        self._app = app
        self._recruiter = checked_recruiter(recruiter, Recruiter, "a uWSGI server")
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
        if self._recruiter.would_dismiss():
            return self._app(environ, start_response)
        began_at = perf_counter()
        statuses: list[str] = []

        def start(status: str, headers: Any, *rest: Any, **named: Any) -> Any:
            statuses[:] = [status]
            return start_response(status, headers, *rest, **named)

        try:
            body = self._app(environ, start)
        except BaseException:
            self._recruiter.skip()
            raise
        # Now, because uWSGI clears the environ before it calls the hook.
        self._notes.request = (began_at, statuses, environ.get(ENLIST_KEY))
        return body

    def _after_request(self) -> None:
        if self._earlier is not None:
            self._earlier()
        # None after a request that no job was drawn for, that raised, or that uWSGI
        # answered without the application.
        request = self._notes.__dict__.pop("request", None)
        if request is None:
            return
        began_at, statuses, asked = request
        took = perf_counter() - began_at
        if statuses and self._when.allows(status_code(statuses[0]), took, asked):
            enlist_after_request(self._recruiter, took)
        else:
            self._recruiter.skip()


def _server() -> Any:
    try:
        return import_module("uwsgi")
    except ImportError as error:
        raise ConfigurationError(
            "this process is not a uWSGI server: use WsgiEnlistMiddleware from"
            " workstealing.integrations.wsgi, which works under all servers"
        ) from error
