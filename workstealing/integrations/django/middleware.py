"""Django middleware: a request enlists after its response, under WSGI and ASGI.

The moment is when the server closes the response: its body, streamed or not, is out by
then. Under ASGI Django closes responses in a thread, so a slice does not hold up the
event loop. The response stays as it is. A view that raises has a response too, of
status 500. A body that raises, and a client that goes away, enlist nobody; under ASGI
the latter may.

Make it the first middleware. Behind Django's cache middleware it would never see a
cached page.

A view speaks for itself by `request.enlist = True`, or False.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.apps import apps
from django.core.exceptions import MiddlewareNotUsed

from workstealing.errors import ConfigurationError
from workstealing.integrations.django.shared import (
    get_recruiter,
    get_settings,
    may_block,
)
from workstealing.integrations.moments import When, offer
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("EnlistMiddleware",)

_APP = "workstealing.integrations.django"


class EnlistMiddleware:
    """Lets requests enlist when the setting `WHEN` allows it."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        if not apps.is_installed(_APP):
            raise ConfigurationError(f'add "{_APP}" to INSTALLED_APPS')
        when = get_settings().when
        if when is None:
            raise MiddlewareNotUsed('WORKSTEALING["WHEN"] is None')
        self._when = when
        self._recruiter = get_recruiter()
        self._get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: Any) -> Any:
        """Answer a request; return a coroutine that does so where that is wanted."""
        if self._recruiter.dismisses():
            return self._get_response(request)
        if self._is_async:
            return self._await(request)
        began_at = perf_counter()
        try:
            response = self._get_response(request)
        except BaseException:
            self._recruiter.forgo()
            raise
        return self._followed(request, response, began_at)

    async def _await(self, request: Any) -> Any:
        began_at = perf_counter()
        try:
            response = await self._get_response(request)
        except BaseException:
            # Django cancels it when the client goes away.
            self._recruiter.forgo()
            raise
        return self._followed(request, response, began_at)

    def _followed(self, request: Any, response: Any, began_at: float) -> Any:
        status = response.status_code
        after = _After(self._recruiter, self._when, request, status, began_at)
        # Not by replacing close(): a response may be put into a cache, as it is.
        response._resource_closers.append(after)  # noqa: SLF001
        return response


class _After:
    """Is called when a response is closed."""

    __slots__ = ("_began_at", "_recruiter", "_request", "_status", "_when")

    def __init__(
        self,
        recruiter: Recruiter,
        when: When,
        request: Any,
        status: int,
        began_at: float,
    ) -> None:
        self._recruiter = recruiter
        self._when = when
        self._request = request
        self._status = status
        self._began_at = began_at

    def __call__(self) -> None:
        if sys.exc_info()[0] is not None:
            # The body raised, or could not be sent: what the server does comes first.
            self._recruiter.forgo()
            return
        took = perf_counter() - self._began_at
        asked = getattr(self._request, "enlist", None)
        if self._when.allows(self._status, took, asked) and may_block():
            offer(self._recruiter, took)
        else:
            self._recruiter.forgo()

    def __reduce__(self) -> tuple[Any, ...]:
        # A cache middleware around ours stores the response: without this moment.
        return partial, (int,)
