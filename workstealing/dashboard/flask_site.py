"""The dashboard in a Flask site: a blueprint."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flask import Blueprint, Response, request

from workstealing.dashboard.mounting import DashboardThread
from workstealing.dashboard.site_guard import checked_access
from workstealing.errors import ConfigurationError

__all__ = ("flask_dashboard",)


def flask_dashboard(
    url: str | None = None,
    *,
    allow: Callable[[], bool | str | None],
    queues: Iterable[str] = (),
) -> Blueprint:
    """Return a blueprint: `app.register_blueprint(…, url_prefix="/queues")`.

    Args:
        url: the Redis server; by default the configured one.
        allow: is called within the request, so it has Flask's `session` and
            `current_user`; returns True (or "full"), "read-only", or False. It may
            `abort()`, for instance with a redirect to the login.
        queues: names of queues, `name` or `name/run`, that are shown first.
    """
    if not callable(allow):
        raise ConfigurationError(
            "allow must be a function that says what the current request may do: True,"
            f" 'read-only' or False; got {allow!r}"
        )
    thread = DashboardThread(url, tuple(queues))
    blueprint = Blueprint("workstealing_dashboard", __name__)

    @blueprint.route("/", defaults={"path": ""}, methods=["GET", "POST"])
    @blueprint.route("/<path:path>", methods=["GET", "POST"])
    def dashboard(path: str) -> Response:
        access = checked_access(allow())
        whole = request.script_root + request.path
        root = whole.removesuffix(path).rstrip("/")
        page = thread.page(request.environ, root, f"{root}/{path}", access)
        return Response(page.body, page.status, page.headers)

    # An extension against forged forms wants its own field in them; the Origin is
    # checked instead.
    dashboard.csrf_exempt = True  # type: ignore[attr-defined]
    return blueprint
