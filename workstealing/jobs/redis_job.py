"""What all ready-made jobs share: their driver, their scripts, and hooks of users.

Each job has its logic once, in a private class of steps (`_VolatileHashSteps`) that
builds calls and flows and does no I/O. The sync and the asyncio class of the job run
these steps by their driver, one line per method, so that the two cannot drift apart.

An error of a hook is attributed to the hook. A sink whose database is down raises a
connection error of its own, which must not look like an error of the Redis server that
all other jobs of that server depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from workstealing.drivers.address import target_of
from workstealing.drivers.async_driver import AsyncClient, AsyncDriver
from workstealing.drivers.connect import async_driver_source, driver
from workstealing.drivers.sync_driver import Client, Driver, is_ours
from workstealing.errors import Conflict, HookFailed
from workstealing.queue.scripts import load_script
from workstealing.queue.steps import Call, Flow, Invoke
from workstealing.recruiting.job import Duty

__all__ = (
    "AsyncRedisJob",
    "RedisJob",
    "call_for_each",
    "call_hook",
    "call_script",
    "duty_of",
    "hook_errors",
)

Arguments: TypeAlias = tuple[Any, ...]


class RedisJob:
    """A job that uses a redis-py client, a URL, or (None) the configured server."""

    def __init__(self, redis: Client | str | None = None) -> None:
        self._driver: Driver = driver(redis)
        self._is_client_ours = is_ours(redis)

    @property
    def target(self) -> str:
        """The name of the server; jobs of one server share a breaker."""
        return target_of(self._driver.client)

    def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that was given stays open.
        """
        self._driver.close()
        if self._is_client_ours:
            self._driver.client.close()


class AsyncRedisJob:
    """`RedisJob` for asyncio; with a URL, each event loop has its own client."""

    def __init__(self, redis: AsyncClient | str | None = None) -> None:
        self._source = async_driver_source(redis)
        # Now, so that what cannot be a client is refused here.
        self._target = target_of(self._driver.client)

    @property
    def target(self) -> str:
        """The name of the server; jobs of one server share a breaker."""
        return self._target

    @property
    def _driver(self) -> AsyncDriver:
        return self._source.driver

    async def close(self) -> None:
        """Release its connections; it connects again if it is used afterwards.

        A client that was given stays open. Those of another loop that still runs are
        left to that loop.
        """
        await self._source.close()


def duty_of(done: int, *, more: bool) -> Duty:
    """Return the duty of a slice by what it did, and whether there is more to do."""
    if more:
        return Duty.MORE
    return Duty.RECRUITED if done else Duty.DISMISSED


def call_script(
    name: str,
    keys: Mapping[str, Any],
    parse: Callable[[Any], Any],
    /,
    *,
    is_raw: bool = False,
    **arguments: Any,
) -> Call[Any]:
    """Return a call of `lua/<name>.lua`.

    *keys* are those of the job, by the names in the headers of its scripts; a script
    gets the ones that it declares.
    """
    script = load_script(__package__, name)
    declared = {each: keys[each] for each in script.declared_keys.names}
    return Call(
        script, script.keys(**declared), script.arguments(**arguments), parse, is_raw
    )


def call_hook(
    hook: Callable[..., Any], *arguments: Any, read: Callable[[Any], Any] | None = None
) -> Flow[Any]:
    """Call a hook; *read* converts its result, whose errors are the hook's too."""
    with hook_errors(hook):
        result = yield Invoke(hook, arguments)
        return result if read is None else read(result)


def call_for_each(
    hook: Callable[..., Any], calls: Iterable[Arguments]
) -> Flow[tuple[list[Arguments], Exception | None]]:
    """Call a hook for each; return the calls that succeeded, and the first error."""
    succeeded: list[Arguments] = []
    first: Exception | None = None
    for arguments in calls:
        try:
            yield from call_hook(hook, *arguments)
        except Exception as error:  # noqa: BLE001 - raised by the caller
            first = first or error
        else:
            succeeded.append(arguments)
    return succeeded, first


@contextmanager
def hook_errors(hook: Callable[..., Any]) -> Iterator[None]:
    """Raise what a hook raises as `HookFailed`, except for `Conflict`."""
    try:
        yield
    except Conflict:
        raise
    except Exception as error:
        name = getattr(hook, "__qualname__", type(hook).__qualname__)
        raise HookFailed(f"{name} raised {type(error).__name__}: {error}") from error
