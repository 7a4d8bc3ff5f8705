"""Django middleware: requests enlist after their response, under WSGI and ASGI.

They do so when the server closes the response: by then its body, streamed or not, was
sent. Under ASGI Django closes responses in a thread, so a slice does not block the
event loop. The response stays the same. A view that raises has a response too, with
status 500. A request does not enlist if its body raises, or if its client disconnects
(under ASGI it may).

Make it the first middleware. Behind Django's cache middleware it would never see a
cached page.

A view decides for itself by setting `request.enlist` to True or False.
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
from workstealing.integrations.conditions import When, enlist_after_request
from workstealing.integrations.django.site import (
    get_recruiter,
    get_settings,
    may_block,
)
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("DjangoEnlistMiddleware",)

_APP = "workstealing.integrations.django"


class DjangoEnlistMiddleware:
    """Lets requests enlist when the setting `WHEN` allows it."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        if not apps.is_installed(_APP):
            raise ConfigurationError(
                f'DjangoEnlistMiddleware needs its app: add "{_APP}" to INSTALLED_APPS'
            )
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
        """Answer a request; under ASGI, return a coroutine that does."""
        if self._recruiter.would_dismiss():
            return self._get_response(request)
        if self._is_async:
            return self._await(request)
        began_at = perf_counter()
        try:
            response = self._get_response(request)
        except BaseException:
            self._recruiter.skip()
            raise
        return self._followed(request, response, began_at)

    async def _await(self, request: Any) -> Any:
        began_at = perf_counter()
        try:
            response = await self._get_response(request)
        except BaseException:
            # Django cancels it when the client disconnects.
            self._recruiter.skip()
            raise
        return self._followed(request, response, began_at)

    def _followed(self, request: Any, response: Any, began_at: float) -> Any:
        status = response.status_code
        after = _EnlistOnClose(self._recruiter, self._when, request, status, began_at)
        # Not by replacing close(): the response may be pickled into a cache.
        response._resource_closers.append(after)  # noqa: SLF001
        return response


class _EnlistOnClose:
    """Enlists when Django calls it, which it does when the response is closed."""

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
            # The body raised, or could not be sent: let the server handle that first.
            self._recruiter.skip()
            return
        took = perf_counter() - self._began_at
        asked = getattr(self._request, "enlist", None)
        if self._when.allows(self._status, took, asked) and may_block():
            enlist_after_request(self._recruiter, took)
        else:
            self._recruiter.skip()

    def __reduce__(self) -> tuple[Any, ...]:
        # A cache middleware around ours pickles the response: leave this out of it.
        return partial, (int,)
