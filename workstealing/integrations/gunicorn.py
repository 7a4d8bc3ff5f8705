"""gunicorn hooks: a request enlists after its response, whatever the application is.

In `gunicorn.conf.py`:

    hooks = EnlistHooks(recruiter)
    pre_request, post_request = hooks.pre_request, hooks.post_request

`post_request` comes after the body is closed. A request that raises, or whose client
went away in mid-body, enlists nobody. The worker is held by a slice until it is done.
For workers that run WSGI (sync, gthread, gevent): under ASGI workers there is no such
hook, or it would hold up the event loop; use `workstealing.integrations.asgi` there.

A view speaks for itself by `environ["workstealing.enlist"] = True`, or False.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

from workstealing.integrations.moments import ALWAYS, When, checked_when, offer
from workstealing.integrations.wsgi import ENLIST, checked_recruiter
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("EnlistHooks",)

_BEGAN_AT = "workstealing_began_at"


class EnlistHooks:
    """The two hooks of a configuration file.

    Args:
        recruiter: who is offered the moments after requests.
        when: after which requests.
    """

    def __init__(self, recruiter: Recruiter, when: When = ALWAYS) -> None:
        self._recruiter = checked_recruiter(recruiter)
        self._when = checked_when(when)

    # gunicorn counts the parameters of its hooks, so these are as it wants them.
    def pre_request(self, worker: Any, req: Any) -> None:  # noqa: ARG002
        """Note when the request began."""
        setattr(req, _BEGAN_AT, perf_counter())

    def post_request(self, worker: Any, req: Any, environ: Any, resp: Any) -> None:  # noqa: ARG002
        """Enlist."""
        # While an error is on its way, its response or its end is still to come.
        status = getattr(resp, "status_code", None)
        if status is None or sys.exc_info()[0] is not None:
            return
        now = perf_counter()
        took = now - getattr(req, _BEGAN_AT, now)
        if self._when.allows(status, took, environ.get(ENLIST)):
            offer(self._recruiter, took)
