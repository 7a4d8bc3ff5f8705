"""The lifespan of a worker: opens resources before its first task, closes them after.

Resources of `def` functions are opened once per worker process, by the thread that
starts the worker. Those of `async def` functions are opened in each event loop that
runs tasks: one in an asyncio pool, one in a plain worker and in each child process, and
one for each thread of a pool of threads. They are opened in the order of definition and
closed in reverse, within an asyncio task of their own, as ASGI servers do it.

What raises while it is opened is `ResourceFailed`, and the worker does not start. What
raises while it is closed is logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from threading import Event, Lock, get_ident
from typing import Any

from workstealing._logs import BackgroundLogger
from workstealing._printing import on_one_line
from workstealing.errors import ResourceFailed
from workstealing.tasks.resource import ResourceDefinition

__all__ = ("Lifespan", "LoopLifespan")

logger = BackgroundLogger(__name__)

_CLOSE_SECONDS = 5.0


class Lifespan:
    """The resources of one worker.

    Args:
        worker: the name that logs give to it.
        definitions: what to open, in this order.
    """

    def __init__(self, worker: str, definitions: Iterable[ResourceDefinition]) -> None:
        self.worker = worker
        definitions = tuple(definitions)
        self.awaited = tuple(one for one in definitions if one.is_async)
        """Those that belong to an event loop."""
        self._shared = tuple(one for one in definitions if not one.is_async)
        self._values: dict[Any, Any] = {}
        self._open: list[tuple[str, AbstractContextManager[Any]]] = []
        self._closing = Lock()
        self._loops: dict[int, LoopLifespan] = {}

    def open(self) -> None:
        """Open what the threads of this process share."""
        for one in self._shared:
            manager: AbstractContextManager[Any] = contextmanager(one.function)()
            try:
                self._values[one.type] = manager.__enter__()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self.close()
                raise _failure(one, error) from error
            self._open.append((one.name, manager))

    def close(self) -> None:
        """Close it, the last first; whatever one raises, the others are closed too."""
        with self._closing:
            while self._open:
                name, manager = self._open.pop()
                try:
                    manager.__exit__(None, None, None)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # noqa: BLE001 - the others are left
                    self.log_failure(name, error)

    def close_all_at_once(self) -> None:
        """Close what can be closed while a task still runs; from another thread."""
        loops = tuple(self._loops.values())
        told = [life for life in loops if life.close_soon()]
        for life in told:
            life.ended.wait(_CLOSE_SECONDS)
        self.close()

    def given(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the resources for parameters, by name; called where tasks run."""
        own, shared = self._loops.get(get_ident()), self._values
        if own is None:
            return {name: shared[kind] for name, kind in wanted.items()}
        return {
            name: own.values[kind] if kind in own.values else shared[kind]
            for name, kind in wanted.items()
        }

    def log_failure(self, name: str, error: BaseException) -> None:
        """Log what a resource raised while it was closed."""
        logger.error(
            "resource %s of worker %s raised while it was closed",
            name,
            self.worker,
            error=error,
        )

    def began(self, life: LoopLifespan) -> None:
        """Let tasks of this thread have what its event loop has opened."""
        self._loops[get_ident()] = life

    def ended(self, life: LoopLifespan) -> None:
        """Forget what an event loop had opened."""
        if self._loops.get(get_ident()) is life:
            del self._loops[get_ident()]


class LoopLifespan:
    """The resources of one event loop; its methods are called in that loop's thread."""

    def __init__(self, lifespan: Lifespan) -> None:
        self.values: dict[Any, Any] = {}
        self.ended = Event()
        """Everything is closed."""
        self._lifespan = lifespan
        self._loop: asyncio.AbstractEventLoop
        self._closing: asyncio.Event
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open everything; `ResourceFailed` if that is not possible."""
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        opened: asyncio.Future[None] = self._loop.create_future()
        self._task = asyncio.ensure_future(self._live(opened))
        await opened

    async def close(self) -> None:
        """Close everything, if it was opened; do not wait for it for ever."""
        if self._task is None:
            return
        self._closing.set()
        _, late = await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        if late:
            logger.error(
                "resources of worker %s did not close within %g s, and are left open",
                self._lifespan.worker,
                _CLOSE_SECONDS,
            )

    def close_soon(self) -> bool:
        """Begin to close, from another thread; False if the loop does not run."""
        if self._task is None or not self._loop.is_running():
            return False
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._closing.set)
            return True
        return False

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The asyncio task that must not be cancelled."""
        return self._task

    async def _live(self, opened: asyncio.Future[None]) -> None:
        entered: list[tuple[str, AbstractAsyncContextManager[Any]]] = []
        try:
            for one in self._lifespan.awaited:
                manager: AbstractAsyncContextManager[Any]
                manager = asynccontextmanager(one.function)()
                try:
                    self.values[one.type] = await manager.__aenter__()
                except BaseException as error:  # noqa: BLE001 - raised by `open`
                    _set_failure(opened, _failure(one, error), error)
                    return
                entered.append((one.name, manager))
            self._lifespan.began(self)
            opened.set_result(None)
            # Whoever ends the event loop cancels it: then it is time to close, too.
            with suppress(asyncio.CancelledError):
                await self._closing.wait()
        finally:
            self._lifespan.ended(self)
            while entered:
                name, manager = entered.pop()
                try:
                    await manager.__aexit__(None, None, None)
                except BaseException as error:  # noqa: BLE001 - the others are left
                    self._lifespan.log_failure(name, error)
            self.ended.set()


def _failure(resource: ResourceDefinition, error: BaseException) -> ResourceFailed:
    text = on_one_line(str(error))
    kind = type(error).__qualname__
    return ResourceFailed(resource.name, f"{kind}: {text}" if text else kind)


def _set_failure(
    opened: asyncio.Future[None], failure: ResourceFailed, cause: BaseException
) -> None:
    failure.__cause__ = cause
    if not opened.done():
        opened.set_exception(failure)
