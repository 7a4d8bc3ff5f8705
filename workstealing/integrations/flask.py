"""Flask extension: requests enlist after their response.

`Enlist(app, recruiter=recruiter)`, or `enlist.init_app(app)` in a factory. What holds
for `workstealing.integrations.wsgi` holds here: the response stays as it is.

A view speaks for itself by `g.enlist = True`, or False. The configuration may say when:
`WORKSTEALING_WHEN` is a `When`, or None to enlist nobody, as in tests.
"""

from __future__ import annotations

from typing import Any

from workstealing.errors import ConfigurationError, MissingExtra
from workstealing.integrations.moments import When, checked_when
from workstealing.integrations.wsgi import (
    ENLIST,
    EnlistMiddleware,
    checked_recruiter,
)
from workstealing.recruiting.recruiter import Recruiter

try:
    from flask import Flask, has_request_context, request
except ImportError as error:
    raise MissingExtra("Flask", "flask") from error

__all__ = ("Enlist",)

_WHEN = "WORKSTEALING_WHEN"
_NAME = "workstealing"


class Enlist:
    """Lets the requests of one or more applications enlist.

    Args:
        app: the application, or None to name it later by `init_app`.
        recruiter: who is offered the moments after requests.
        when: after which requests, unless the configuration says so.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        recruiter: Recruiter,
        when: When | None = None,
    ) -> None:
        self._recruiter = checked_recruiter(recruiter)
        self._when = When.always() if when is None else checked_when(when)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Let the requests of an application enlist.

        Raises:
            ConfigurationError: it was done already, or `WORKSTEALING_WHEN` is wrong.
        """
        if _NAME in app.extensions:
            raise ConfigurationError(
                f"Flask application {app.name!r} has an Enlist already: two would"
                " enlist twice"
            )
        when = app.config.setdefault(_WHEN, self._when)
        app.extensions[_NAME] = self._recruiter
        if when is None:
            return
        wrapped = EnlistMiddleware(app.wsgi_app, self._recruiter, checked_when(when))
        app.wsgi_app = wrapped  # type: ignore[method-assign]
        app.app_ctx_globals_class = _hearing(app.app_ctx_globals_class)


def _hearing(globals_class: type[Any]) -> type[Any]:
    """Make a `g` that tells the middleware what the view said, for `g` ends before it.

    An `after_request` function would do, but would cost every request more than all
    the rest of this package.
    """

    class Globals(globals_class):  # type: ignore[misc]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "enlist" and has_request_context():
                request.environ[ENLIST] = value

    return Globals
