"""The dashboard in a Django site: its URLs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import re_path
from django.views.decorators.csrf import csrf_exempt

from workstealing.dashboard.mounting import DashboardThread
from workstealing.dashboard.site_guard import checked_access

__all__ = ("django_dashboard", "is_staff")


def is_staff(request: HttpRequest) -> bool:
    """Return whether a request comes from somebody who may use the admin site."""
    user = request.user
    return bool(user.is_active and user.is_staff)


def django_dashboard(
    url: str | None = None,
    *,
    allow: Callable[[HttpRequest], bool | str | None] = is_staff,
    queues: Iterable[str] = (),
) -> tuple[list[Any], str]:
    """Return URLs: `path("queues/", include(django_dashboard()))`.

    Args:
        url: the Redis server; by default the configured one.
        allow: says of a request what it may do: True (or "full"), "read-only", or
            False. By default staff may do everything, and nobody else anything.
        queues: names of queues, `name` or `name/run`, that are shown first.

    Who has not signed in is sent to the login of the site.
    """
    thread = DashboardThread(url, tuple(queues))

    def dashboard(request: HttpRequest, path: str) -> HttpResponse:
        access = checked_access(allow(request))
        user = getattr(request, "user", None)
        if access is None and user is not None and not user.is_authenticated:
            back = urlencode({"next": request.get_full_path()})
            return HttpResponseRedirect(f"{resolve_url(settings.LOGIN_URL)}?{back}")
        root = request.path.removesuffix(path).rstrip("/")
        environ = {**request.META, "wsgi.input": request}
        environ.setdefault("REQUEST_METHOD", request.method)
        page = thread.page(environ, root, f"{root}/{path}", access)
        response = HttpResponse(page.body, status=page.status)
        del response["Content-Type"]
        for name, value in page.headers:
            response[name] = value
        return response

    # Django wants its own field in forms; the Origin is checked instead.
    view = csrf_exempt(dashboard)
    return [re_path(r"^(?P<path>.*)$", view, name="dashboard")], "workstealing"
