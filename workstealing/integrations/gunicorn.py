"""gunicorn hooks: requests enlist after their response, whatever the application is.

In `gunicorn.conf.py`:

    hooks = GunicornEnlistHooks(recruiter)
    pre_request, post_request = hooks.pre_request, hooks.post_request

gunicorn calls `post_request` after the body is closed. A request that raises, or whose
client disconnects before the end of the body, does not enlist. A slice occupies the
worker until it is done. For workers that run WSGI (sync, gthread, gevent): with ASGI
workers there is no such hook, or it would block the event loop; use
`workstealing.integrations.asgi` there.

A view decides for itself by setting `environ["workstealing.enlist"]` to True or False.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

from workstealing.integrations.conditions import (
    ALWAYS,
    ENLIST_KEY,
    When,
    checked_recruiter,
    checked_when,
    enlist_after_request,
)
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("GunicornEnlistHooks",)

_BEGAN_AT = "workstealing_began_at"


class GunicornEnlistHooks:
    """The two hooks of a configuration file.

    Args:
        recruiter: what to enlist with after requests.
        when: after which requests.
    """

    def __init__(self, recruiter: Recruiter, when: When = ALWAYS) -> None:
        self._recruiter = checked_recruiter(recruiter, Recruiter, "a gunicorn worker")
        self._when = checked_when(when)

    # gunicorn counts the parameters of its hooks, so these are exactly its own.
    def pre_request(self, worker: Any, req: Any) -> None:  # noqa: ARG002
        """Remember when the request began."""
        setattr(req, _BEGAN_AT, perf_counter())

    def post_request(self, worker: Any, req: Any, environ: Any, resp: Any) -> None:  # noqa: ARG002
        """Enlist, if `When` allows it."""
        # While an exception propagates, the error response is still to be sent.
        status = getattr(resp, "status_code", None)
        error = sys.exc_info()[1]
        if status is None or (error is not None and not _only_closes(error)):
            return
        now = perf_counter()
        took = now - getattr(req, _BEGAN_AT, now)
        if self._when.allows(status, took, environ.get(ENLIST_KEY)):
            enlist_after_request(self._recruiter, took)


def _only_closes(error: BaseException) -> bool:
    """Return whether gunicorn raised it after a whole response, to hang up.

    Its gevent and eventlet workers leave a request so if the connection is to be
    closed, and also after an error in the middle of a body, which is the context then.
    One of the application's own has passed through more frames than gunicorn's.
    """
    trace = error.__traceback__
    is_of_gunicorn = trace is None or trace.tb_next is None
    is_after_an_error = error.__context__ is not None
    return isinstance(error, StopIteration) and is_of_gunicorn and not is_after_an_error
