"""Protects the dashboard: tokens, sessions, host names, and forged requests.

- Without a token nothing is shown. A second token, if there is one, is read-only. A
  browser sends a token once, for a cookie that scripts cannot read and other sites
  cannot send; a program sends `Authorization: Bearer`. Signing out makes all copies of
  the cookie worthless, as long as this process runs.
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
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workstealing.dashboard.markup import MOUNTED_AT, address
from workstealing.errors import ConfigurationError

__all__ = (
    "MAY_ACT",
    "AccessGuard",
    "Guard",
    "GuardedApp",
    "is_same_origin",
    "own_path",
)

MAY_ACT = "workstealing.may_act"
"""In the scope of a request that was let in: whether it may change something."""

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
        read_only_token: allows to look, but not to change anything; none by default.
    """

    def __init__(
        self,
        token: str,
        names: Iterable[str] = (),
        now: Callable[[], float] = time.time,
        *,
        read_only_token: str | None = None,
    ) -> None:
        self._tokens = {"full": _checked_token(token)}
        if read_only_token is not None:
            self._tokens["read-only"] = _checked_token(read_only_token)
            if self._tokens["full"] == self._tokens["read-only"]:
                raise ConfigurationError(
                    "the read-only token must not be the same as the full one"
                )
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
        path = own_path(request.scope)
        if path.startswith(_ASSETS) and request.method in _READ_ONLY:
            return None
        has_token = self._role_of_token(_sent_token(request)) is not None
        # A browser sends its cookie with any form, so check where the form comes from.
        is_safe = request.method in _READ_ONLY or has_token
        if not is_safe and not is_same_origin(request):
            return PlainTextResponse(
                "This request did not come from a page of the dashboard.\n",
                status_code=403,
            )
        role = self._role(request)
        if role is not None and not self.may_act(request) and not _only_looks(request):
            return PlainTextResponse(
                "This token is read-only: sign in with the one that may act.\n",
                status_code=403,
            )
        if role is not None or path in _PUBLIC:
            return None
        if path.startswith(_FOR_PROGRAMS):
            return PlainTextResponse(
                "Send the token: Authorization: Bearer …\n",
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        return RedirectResponse(address("/login"), status_code=303)

    def admits(self, token: str) -> bool:
        """Return whether it is a token of this dashboard."""
        return self._role_of_token(token) is not None

    def may_act(self, request: Request) -> bool:
        """Return whether a request may change something."""
        return self._role(request) == "full"

    def open_session(self, request: Request, response: Response, token: str) -> None:
        """Start a session of twelve hours for a browser that sent a token."""
        end = int(self._now()) + _SESSION_SECONDS
        session = f"{end}.{secrets.token_hex(8)}"
        signature = self._signed(session, self._role_of_token(token) or "")
        self._set_cookie(request, response, f"{session}.{signature}")

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
            path=address("/"),
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

    def _role(self, request: Request) -> str | None:
        """Return as whom a request comes: by its token, or by its session."""
        role = self._role_of_token(_sent_token(request))
        if role is not None:
            return role
        session = self._session(request)
        if session is None or session in self._ended:
            return None
        return (
            self._role_of_session(request) if _end_of(session) > self._now() else None
        )

    def _role_of_token(self, token: str) -> str | None:
        given, found = token.strip().encode(), None
        for role, known in self._tokens.items():
            if hmac.compare_digest(known, given):
                found = role
        return found

    def _session(self, request: Request) -> str | None:
        """Return the session that a cookie names, if we have signed it."""
        if self._role_of_session(request) is None:
            return None
        return request.cookies.get(_COOKIE, "").rpartition(".")[0]

    def _role_of_session(self, request: Request) -> str | None:
        session, _, signature = request.cookies.get(_COOKIE, "").rpartition(".")
        found = None
        for role in self._tokens:
            ours = self._signed(session, role).encode()
            if hmac.compare_digest(ours, signature.encode()):
                found = role
        return found

    def _signed(self, session: str, role: str) -> str:
        text = f"workstealing web session until {session}".encode()
        return hmac.new(self._tokens[role], text, hashlib.sha256).hexdigest()


class Guard(Protocol):
    """Decides which requests are allowed, and what they may do."""

    def refusal(self, request: Request) -> Response | None:
        """Return the response to a request that is not allowed; None if it is."""

    def may_act(self, request: Request) -> bool:
        """Return whether a request may change something."""


class GuardedApp:
    """An application behind a guard; adds security headers to its responses."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
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

        mounted = MOUNTED_AT.set(scope.get("root_path", "").rstrip("/"))
        try:
            request = Request(scope)
            scope[MAY_ACT] = self._guard.may_act(request)
            answer = self._guard.refusal(request) or self._app
            await answer(scope, receive, with_headers)
        finally:
            MOUNTED_AT.reset(mounted)


def own_path(scope: Scope) -> str:
    """Return the path of a request below the place where the dashboard is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        return path[len(root) :]
    return path


def _checked_token(token: str) -> bytes:
    # As of one that is sent: a variable or a file may end with a newline.
    token = token.strip()
    if len(token) < _SHORTEST_TOKEN:
        raise ConfigurationError(
            f"the token must have at least {_SHORTEST_TOKEN} characters; create one"
            " with  python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    return token.encode()


def _sent_token(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token if scheme.lower() == "bearer" else ""


def _only_looks(request: Request) -> bool:
    path = own_path(request.scope)
    return request.method in _READ_ONLY or path in ("/login", "/logout")


def _end_of(session: str) -> int:
    return int(session.partition(".")[0])


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_same_origin(request: Request) -> bool:
    """Return whether a form comes from a page of the host that it is sent to."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site") == "same-origin"
    scheme, _, host = origin.partition("://")
    return (
        scheme in ("http", "https")
        and host.lower() == request.headers.get("host", "").lower()
    )
