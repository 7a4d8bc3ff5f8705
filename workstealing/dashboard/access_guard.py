"""Protects the dashboard: tokens, sessions, host names, and forged requests.

- Without the token nothing is shown. A browser sends it once, for a cookie that scripts
  cannot read and other sites cannot send; a program sends `Authorization: Bearer`.
  Signing out ends the session for whoever has its cookie, while this process runs.
- A request is answered only under an IP address, `localhost`, or an allowed name: a
  foreign name that was made to point here (DNS rebinding) is refused.
- A request that changes something must come from a page of the dashboard, as its
  `Origin` says.
- A page may load only the dashboard's own style and scripts, and may not be framed.

Tokens are compared in constant time, and never logged.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workstealing.errors import ConfigurationError

__all__ = ("AccessGuard", "GuardedApp")

_COOKIE = "workstealing_web"
_SESSION_SECONDS = 12 * 3600
_SHORTEST_TOKEN = 16
_PUBLIC = ("/login", "/healthz")
_ASSETS = "/assets/"
_FOR_PROGRAMS = ("/api/", "/metrics")
_READ_ONLY = ("GET", "HEAD")
# A name or an address, perhaps with a port, and nothing else.
_HOST = re.compile(r"(?:\[([^][/?#\\@\s]+)\]|([^][/?#\\@\s:]+))(?::[0-9]*)?")

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser would send `Origin: null` with its own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class AccessGuard:
    """Decides which requests are allowed.

    Args:
        token: at least 16 characters.
        names: host names, besides `localhost`, that browsers use for the dashboard.
        now: seconds since 1970.
    """

    def __init__(
        self,
        token: str,
        names: Iterable[str] = (),
        now: Callable[[], float] = time.time,
    ) -> None:
        if len(token) < _SHORTEST_TOKEN:
            raise ConfigurationError(
                f"the token must have at least {_SHORTEST_TOKEN} characters; create one"
                " with  python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        self._token = token.encode()
        self._names = frozenset(("localhost", *(name.lower() for name in names)))
        self._now = now
        self._ended: dict[str, int] = {}

    def refusal(self, request: Request) -> Response | None:
        """Return the response to a request that is not allowed; None if it is."""
        if not self._has_allowed_host(request):
            return PlainTextResponse(
                "The dashboard does not serve this host name. Use an IP address"
                " or localhost, or start it with --allow-host NAME.\n",
                status_code=421,
            )
        path: str = request.scope["path"]
        if path.startswith(_ASSETS) and request.method in _READ_ONLY:
            return None
        has_token = self._has_token(request)
        # A browser sends its cookie with any form, so check where the form comes from.
        is_safe = request.method in _READ_ONLY or has_token
        if not is_safe and not _is_same_origin(request):
            return PlainTextResponse(
                "This request did not come from a page of the dashboard.\n",
                status_code=403,
            )
        if has_token or path in _PUBLIC or self._has_session(request):
            return None
        if path.startswith(_FOR_PROGRAMS):
            return PlainTextResponse(
                "Send the token: Authorization: Bearer …\n",
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        return RedirectResponse("/login", status_code=303)

    def admits(self, token: str) -> bool:
        """Return whether it is the token."""
        return hmac.compare_digest(self._token, token.strip().encode())

    def open_session(self, request: Request, response: Response) -> None:
        """Start a session of twelve hours for a browser."""
        end = int(self._now()) + _SESSION_SECONDS
        session = f"{end}.{secrets.token_hex(8)}"
        self._set_cookie(request, response, f"{session}.{self._signed(session)}")

    def end_session(self, request: Request, response: Response) -> None:
        """End the session of a browser; its cookie is worth nothing from then on."""
        now, session = self._now(), self._session(request)
        self._ended = {name: end for name, end in self._ended.items() if end > now}
        if session is not None:
            self._ended[session] = _end_of(session)
        self._set_cookie(request, response, "", max_age=0)

    def _set_cookie(
        self,
        request: Request,
        response: Response,
        value: str,
        max_age: int = _SESSION_SECONDS,
    ) -> None:
        response.set_cookie(
            _COOKIE,
            value,
            max_age=max_age,
            httponly=True,
            samesite="strict",
            # Behind a proxy with TLS, only the browser knows that there is TLS.
            secure=request.headers.get("origin", "").startswith("https:"),
        )

    def _has_allowed_host(self, request: Request) -> bool:
        given = request.headers.getlist("host")
        found = _HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
        if found is None:
            return False
        address, name = found.groups()
        return name in self._names or _is_address(address or name)

    def _has_token(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.admits(token)

    def _has_session(self, request: Request) -> bool:
        session = self._session(request)
        if session is None or session in self._ended:
            return False
        return _end_of(session) > self._now()

    def _session(self, request: Request) -> str | None:
        """Return the session that a cookie names, if we have signed it."""
        session, _, signature = request.cookies.get(_COOKIE, "").rpartition(".")
        is_ours = hmac.compare_digest(
            self._signed(session).encode(), signature.encode()
        )
        return session if is_ours else None

    def _signed(self, session: str) -> str:
        text = f"workstealing web session until {session}".encode()
        return hmac.new(self._token, text, hashlib.sha256).hexdigest()


class GuardedApp:
    """An application behind a guard; adds security headers to its responses."""

    def __init__(self, app: ASGIApp, guard: AccessGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it to the application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: list[Any] = list(message.get("headers", ()))
                headers += [
                    (name.lower().encode(), value.encode())
                    for name, value in _HEADERS.items()
                ]
                message = {**message, "headers": headers}
            await send(message)

        answer = self._guard.refusal(Request(scope)) or self._app
        await answer(scope, receive, with_headers)


def _end_of(session: str) -> int:
    return int(session.partition(".")[0])


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_same_origin(request: Request) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site") == "same-origin"
    scheme, _, host = origin.partition("://")
    return (
        scheme in ("http", "https")
        and host.lower() == request.headers.get("host", "").lower()
    )
