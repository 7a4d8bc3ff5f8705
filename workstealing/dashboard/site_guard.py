"""Protects a dashboard inside a site that has its own login.

The site says what each request may do: everything, only read, or nothing. Forged forms
are refused here all the same: a request that changes something must come from a page of
this site.
"""

from __future__ import annotations

from typing import Literal

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from workstealing.dashboard.access_guard import is_same_origin, own_path
from workstealing.dashboard.markup import address
from workstealing.errors import ConfigurationError

__all__ = ("SITE_ACCESS", "Access", "SiteGuard", "checked_access")

Access = Literal["full", "read-only"]

SITE_ACCESS = "workstealing.site_access"
"""In the scope of a request: what the site lets it do."""

_READ_ONLY = ("GET", "HEAD")


class SiteGuard:
    """Goes by what the site says of a request."""

    def refusal(self, request: Request) -> Response | None:
        """Return the response to a request that is not allowed; None if it is."""
        access = request.scope.get(SITE_ACCESS)
        looks = request.method in _READ_ONLY
        if access is None:
            words = "This site does not let you see its dashboard: sign in there.\n"
            return PlainTextResponse(words, status_code=403)
        if not looks and not _is_from_here(request):
            words = "This request did not come from a page of this site.\n"
            return PlainTextResponse(words, status_code=403)
        if not looks and access != "full":
            words = "You have read-only access here.\n"
            return PlainTextResponse(words, status_code=403)
        if not own_path(request.scope):
            return RedirectResponse(address("/"), status_code=307)
        return None

    def may_act(self, request: Request) -> bool:
        """Return whether a request may change something."""
        return request.scope.get(SITE_ACCESS) == "full"


def checked_access(answer: object) -> Access | None:
    """Return what a site lets a request do; refuse an answer that says neither."""
    if not answer:
        return None
    if answer is True or answer == "full":
        return "full"
    if answer == "read-only":
        return "read-only"
    raise ConfigurationError(
        "allow() must return True or 'full', 'read-only', or False, not"
        f" {type(answer).__name__}"
    )


def _is_from_here(request: Request) -> bool:
    # Behind a proxy that changes the host, only the browser knows where it is.
    return request.headers.get("sec-fetch-site") == "same-origin" or is_same_origin(
        request
    )
