"""Performs steps and flows on an asyncio redis-py client; twin of `sync_driver`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from threading import Lock
from typing import Any, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError

from workstealing._forking import reset_in_children
from workstealing.drivers.address import target_of
from workstealing.drivers.async_subscriptions import AsyncOutcomeSubscriptions
from workstealing.drivers.cluster_client import knows_nodes, owners_of
from workstealing.drivers.connection import (
    answered,
    command_of,
    confirmed,
    fence,
    is_plain,
    send_one_async,
)
from workstealing.drivers.pipelining import send_all_async
from workstealing.drivers.reconnecting import hang_up_async
from workstealing.drivers.server_check import first_look
from workstealing.drivers.sync_driver import is_ours
from workstealing.drivers.translate import CLIENT_ERRORS, is_wrong_server, translated
from workstealing.errors import ConfigurationError, RedisUnavailable, ServerTooOld
from workstealing.queue.steps import (
    SINGLE,
    AwaitOutcome,
    Call,
    Flow,
    Invoke,
    Nodes,
    Owners,
    Pipeline,
    RedisCommand,
    Sleep,
    Step,
    Subscribe,
)

__all__ = ("AsyncClient", "AsyncDriver", "AsyncDriverSource")

T = TypeVar("T")

_RAW = {NEVER_DECODE: True}
AsyncClient = Redis | RedisCluster


class AsyncDriver:
    """Drives calls and flows over one asyncio client."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self.sends_once = is_plain(client)
        """Whether the client never repeats a command by itself."""
        self._subscriptions = AsyncOutcomeSubscriptions(client)
        self._looked = False
        self._refusal: str | None = None

    async def call(self, call: Call[T] | RedisCommand[T]) -> T:
        """Perform one step and return its answer."""
        return cast("T", await self._perform(call))

    async def run(self, flow: Flow[T]) -> T:
        """Perform each step of a flow; a failure is thrown into it."""
        return await self._drive(flow, self._perform)

    async def close(self) -> None:
        """Close what this driver opened for itself; the client stays open."""
        await self._subscriptions.close()

    async def _drive(
        self, flow: Flow[T], perform: Callable[[Step], Awaitable[Any]]
    ) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    answer = await perform(step)
                except Exception as error:  # noqa: BLE001 - the flow decides
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            flow.close()

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Invoke):
            answer = step.function(*step.arguments)
            return await answer if inspect.isawaitable(answer) else answer
        if isinstance(step, Sleep):
            await asyncio.sleep(step.seconds)
            return None
        if not self._looked and not isinstance(step, Nodes):
            await self._look()
        if self._refusal is not None:
            raise ServerTooOld(self._refusal)
        return await self._send_step(step)

    async def _send_step(self, step: Any, *, is_repeated: bool = False) -> Any:
        generation = self._subscriptions.generation
        try:
            if isinstance(step, Subscribe):
                if step.is_guess:
                    return self._subscriptions.expect(step.prefix, step.task_id)
                return await self._subscriptions.subscribe(step.prefix, step.task_id)
            if isinstance(step, AwaitOutcome):
                return await self._subscriptions.wait(
                    step.prefix, step.task_id, step.seconds
                )
            if isinstance(step, Pipeline):
                answer = await self._send_all(step.calls)
            elif isinstance(step, Call) and step.replicas:
                answer = confirmed(step, await self._send_fenced(step))
            else:
                answer = step.parse(await self._send(step))
        except CLIENT_ERRORS as error:
            if is_wrong_server(error):
                await self._hang_up(generation)
                # A pipeline may be half done, and its calls are used up.
                if not is_repeated and isinstance(step, (Call, RedisCommand)):
                    return await self._send_step(step, is_repeated=True)
            script = step.script if isinstance(step, Call) else None
            is_subscribing = isinstance(step, (Subscribe, AwaitOutcome))
            failure = translated(error, script, is_subscribing=is_subscribing)
            raise failure from error
        except RuntimeError as error:
            if not _is_of_another_loop(error):
                raise
            raise ConfigurationError(
                f"the asyncio client of {target_of(self.client)} has connections that"
                " belong to another event loop: give a URL in its place, so that each"
                " loop gets a client of its own, or close the client before its loop"
                " ends"
            ) from error
        return answer

    async def _look(self) -> None:
        """Look at the server before it is sent anything: it may be too old.

        Callers that come meanwhile look, too, rather than wait for the first one.
        """
        look = first_look(target_of(self.client))
        try:
            self._refusal = await self._drive(look, self._send_step)
        except RedisUnavailable:
            # In a Cluster, another node may answer. A single server would not, nor a
            # Cluster whose nodes are unknown: the caller must not wait for them twice.
            if not knows_nodes(self.client):
                raise
        self._looked = True

    async def _hang_up(self, generation: int) -> None:
        """Reconnect for what is sent next: another server may have the address now."""
        await hang_up_async(self.client)
        self._subscriptions.hang_up(generation)

    async def _send_all(self, calls: Iterable[Call[Any]]) -> list[Any]:
        if self.sends_once:
            return await send_all_async(self.client, calls)
        return [call.parse(await self._send(call)) for call in calls]

    async def _send_fenced(self, call: Call[Any]) -> list[Any]:
        """Run a script; return its reply, and last how many replicas have it."""
        client: Any = self.client
        behind = fence(client, call)
        options = _RAW if call.is_raw else {}
        for in_full in (False, True):
            # All on one connection.
            async with client.pipeline(transaction=False) as pipeline:
                pipeline.execute_command(*command_of(call, in_full=in_full), **options)
                for parts in behind:
                    pipeline.execute_command(*parts)
                replies = await pipeline.execute(raise_on_error=False)
            if not isinstance(replies[0], NoScriptError):
                break
        return answered(replies)

    async def _send(self, step: Call[Any] | RedisCommand[Any] | Nodes | Owners) -> Any:
        client: Any = self.client
        if isinstance(step, Call):
            if self.sends_once:
                return await send_one_async(client, step)
            options = _RAW if step.is_raw else {}
            try:
                return await client.execute_command(*command_of(step), **options)
            except NoScriptError:
                in_full = command_of(step, in_full=True)
                return await client.execute_command(*in_full, **options)
        clustered = isinstance(self.client, RedisCluster)
        if isinstance(step, RedisCommand):
            if step.node is None or not clustered:
                return await client.execute_command(*step.parts)
            node = client.get_node(node_name=step.node)
            if node is None:
                raise RedisUnavailable(f"{step.node} is no longer in the Cluster")
            return await client.execute_command(*step.parts, target_nodes=node)
        if clustered:
            await client.initialize()
        if isinstance(step, Owners):
            return (
                owners_of(client, step.keys) if clustered else SINGLE * len(step.keys)
            )
        if clustered:
            return sorted(node.name for node in client.get_primaries())
        return SINGLE


class AsyncDriverSource:
    """Makes a driver for each event loop, when it is first used there.

    The connections of an asyncio client belong to the loop in which they were opened.
    A loop that has ended takes its driver with it. A driver that was asked for outside
    of any loop has no connections yet and goes to the first loop that needs one.
    """

    def __init__(
        self,
        redis: AsyncClient | str | None,
        connect: Callable[[AsyncClient | str | None], AsyncDriver],
    ) -> None:
        self.redis = redis
        """What the user gave: a client, a URL, or nothing."""
        self._connect = connect
        self._drivers: dict[asyncio.AbstractEventLoop, AsyncDriver] = {}
        self._unused: AsyncDriver | None = None
        self._forget_other_threads()
        reset_in_children(self, AsyncDriverSource._forget_other_threads)

    def _forget_other_threads(self) -> None:
        # One that was connecting when the parent forked does not exist in the child.
        self._lock = Lock()

    @property
    def driver(self) -> AsyncDriver:
        """Return the driver of the running loop; connect if there is none."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._outside_of_loops()
        made = self._drivers.get(loop)
        return self._connected(loop) if made is None else made

    async def close(self) -> None:
        """Release all connections but those of a client that the user brought.

        Those of another loop that still runs are left to that loop.
        """
        with self._lock:
            self._forget_ended_loops()
            made = self._drivers.pop(asyncio.get_running_loop(), None)
            unused, self._unused = self._unused, None
        for one in (made, unused):
            if one is not None:
                await one.close()
                if is_ours(self.redis):
                    await one.client.aclose()

    def _connected(self, loop: asyncio.AbstractEventLoop) -> AsyncDriver:
        with self._lock:
            self._forget_ended_loops()
            made, self._unused = self._unused, None
            self._drivers[loop] = made or self._connect(self.redis)
            return self._drivers[loop]

    def _outside_of_loops(self) -> AsyncDriver:
        with self._lock:
            for made in self._drivers.values():
                return made
            if self._unused is None:
                self._unused = self._connect(self.redis)
            return self._unused

    def _forget_ended_loops(self) -> None:
        for loop in [loop for loop in self._drivers if loop.is_closed()]:
            del self._drivers[loop]


def _is_of_another_loop(error: RuntimeError) -> bool:
    # asyncio says so in words only.
    text = str(error)
    return "Event loop is closed" in text or "different loop" in text
