"""Keeps strangers out of the dashboard, and foreign pages from acting in one's name.

- Who shows no token sees nothing. A browser shows it once, for a cookie that scripts
  cannot read and other sites cannot send; a program sends `Authorization: Bearer`.
- A request is answered only under an IP address, `localhost`, or a name that was
  allowed: a foreign name that was made to point here (DNS rebinding) is none of them.
- What changes something must come from a page of ours, as its `Origin` says.
- A page may load nothing but our own style and scripts, and be framed by nobody.

Tokens are compared in constant time, and never logged.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workstealing.errors import ConfigurationError

__all__ = ("Guard", "Guarded")

_COOKIE = "workstealing_web"
_SESSION_SECONDS = 12 * 3600
_SHORTEST_TOKEN = 16
_OPEN = ("/login", "/healthz")
_ASSETS = "/assets/"
_FOR_PROGRAMS = ("/api/", "/metrics")
_HARMLESS = ("GET", "HEAD")
# A name or an address, and perhaps a port; not what a URL could have around them.
_HOST = re.compile(r"(?:\[([^][/?#\\@\s]+)\]|([^][/?#\\@\s:]+))(?::[0-9]*)?")

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';"
        " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser would send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Knows the token, and who may come in.

    Args:
        token: at least 16 characters.
        names: host names, besides `localhost`, under which the dashboard is reached.
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
                f"the token needs {_SHORTEST_TOKEN} characters or more; make one with"
                "  python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        self._token = token.encode()
        self._names = frozenset(("localhost", *(name.lower() for name in names)))
        self._now = now

    def refusal(self, request: Request) -> Response | None:
        """Return what to answer to a request that is not allowed; None if it is."""
        if not self._is_our_name(request):
            return PlainTextResponse(
                "This is not one of my names. Use an IP address or localhost, or start"
                " me with --allow-host NAME.\n",
                status_code=421,
            )
        path: str = request.scope["path"]
        if path.startswith(_ASSETS) and request.method in _HARMLESS:
            return None
        has_token = self._bears_token(request)
        # A browser sends its cookie whoever wrote the form; so ask who did.
        is_safe = request.method in _HARMLESS or has_token
        if not is_safe and not _is_from_us(request):
            return PlainTextResponse(
                "This did not come from a page of mine.\n", status_code=403
            )
        if has_token or path in _OPEN or self._has_session(request):
            return None
        if path.startswith(_FOR_PROGRAMS):
            return PlainTextResponse(
                "Send the token: Authorization: Bearer …\n",
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        return RedirectResponse("/login", status_code=303)

    def admits(self, token: str) -> bool:
        """Tell whether it is the token."""
        return hmac.compare_digest(self._token, token.strip().encode())

    def open_session(self, request: Request, response: Response) -> None:
        """Let a browser in, for twelve hours."""
        end = str(int(self._now()) + _SESSION_SECONDS)
        self._set_cookie(request, response, f"{end}.{self._signed(end)}")

    def end_session(self, request: Request, response: Response) -> None:
        """Forget a browser."""
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
            # Behind a proxy that speaks TLS only the browser knows that it is spoken.
            secure=request.headers.get("origin", "").startswith("https:"),
        )

    def _is_our_name(self, request: Request) -> bool:
        given = request.headers.getlist("host")
        found = _HOST.fullmatch(given[0].lower()) if len(given) == 1 else None
        if found is None:
            return False
        address, name = found.groups()
        return name in self._names or _is_address(address or name)

    def _bears_token(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.admits(token)

    def _has_session(self, request: Request) -> bool:
        end, _, signature = request.cookies.get(_COOKIE, "").partition(".")
        if not hmac.compare_digest(self._signed(end).encode(), signature.encode()):
            return False
        return int(end) > self._now()

    def _signed(self, end: str) -> str:
        told = f"workstealing web session until {end}".encode()
        return hmac.new(self._token, told, hashlib.sha256).hexdigest()


class Guarded:
    """An application behind a guard; its answers tell browsers to be careful."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the application answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: list[Any] = list(message.get("headers", ()))
                headers += [
                    (name.lower().encode(), value.encode())
                    for name, value in _HEADERS.items()
                ]
                message = {**message, "headers": headers}
            await send(message)

        answer = self._guard.refusal(Request(scope)) or self._app
        await answer(scope, receive, careful)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_from_us(request: Request) -> bool:
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site") == "same-origin"
    scheme, _, host = origin.partition("://")
    return (
        scheme in ("http", "https")
        and host.lower() == request.headers.get("host", "").lower()
    )
