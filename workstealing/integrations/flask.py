"""Flask extension: requests enlist after their response.

`FlaskEnlist(app, recruiter=recruiter)`, or `enlist.init_app(app)` in a factory. The
promises of `workstealing.integrations.wsgi` hold: the response stays the same.

A view decides for itself by setting `g.enlist` to True or False. The configuration can
override `when`: `WORKSTEALING_WHEN` is a `When`, or None so that no request enlists, as
in tests.
"""

from __future__ import annotations

from typing import Any

from workstealing.errors import ConfigurationError, MissingExtra
from workstealing.integrations.conditions import (
    ALWAYS,
    ENLIST_KEY,
    When,
    checked_recruiter,
    checked_when,
)
from workstealing.integrations.wsgi import WsgiEnlistMiddleware
from workstealing.recruiting.recruiter import Recruiter

try:
    from flask import Flask, has_request_context, request
except ImportError as error:
    raise MissingExtra("Flask", "flask") from error

__all__ = ("FlaskEnlist",)

_WHEN = "WORKSTEALING_WHEN"
_NAME = "workstealing"


class FlaskEnlist:
    """Lets the requests of one or more applications enlist.

    Args:
        app: the application, or None to pass it to `init_app` later.
        recruiter: what to enlist with after requests.
        when: after which requests, unless the configuration overrides it.
    """

    def __init__(
        self,
        app: Flask | None = None,
        *,
        recruiter: Recruiter,
        when: When = ALWAYS,
    ) -> None:
        self._recruiter = checked_recruiter(recruiter, Recruiter, "a Flask application")
        self._when = checked_when(when)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Let the requests of an application enlist.

        Raises:
            ConfigurationError: it enlists already, or `WORKSTEALING_WHEN` is wrong.
        """
        if _NAME in app.extensions:
            raise ConfigurationError(
                f"Flask application {app.name!r} already has a FlaskEnlist: with two,"
                " each request would enlist twice"
            )
        when = app.config.setdefault(_WHEN, self._when)
        app.extensions[_NAME] = self._recruiter
        if when is None:
            return
        wrapped = WsgiEnlistMiddleware(
            app.wsgi_app, self._recruiter, checked_when(when)
        )
        app.wsgi_app = wrapped  # type: ignore[method-assign]
        app.app_ctx_globals_class = _forwarding_globals(app.app_ctx_globals_class)


def _forwarding_globals(globals_class: type[Any]) -> type[Any]:
    """Make a `g` that passes `g.enlist` to the middleware, which outlives `g`.

    An `after_request` function could do it too, but would cost every request more than
    the rest of this package.
    """

    class EnlistGlobals(globals_class):  # type: ignore[misc]
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "enlist" and has_request_context():
                request.environ[ENLIST_KEY] = value

    return EnlistGlobals
