"""Performs steps and flows on an asyncio redis-py client: the twin of `sync`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError

from workstealing.drivers.checking import first_look
from workstealing.drivers.ears_aio import AsyncEars
from workstealing.drivers.packing import is_plain
from workstealing.drivers.target import target_of
from workstealing.drivers.translate import CLIENT_ERRORS, translated
from workstealing.drivers.volleys import send_all_async
from workstealing.errors import RedisUnavailable, ServerTooOld
from workstealing.queue.call import (
    SINGLE,
    Call,
    Command,
    Consult,
    Expect,
    Expected,
    Flow,
    Hear,
    Listen,
    Nap,
    Nodes,
    Step,
    Volley,
)

__all__ = ("AsyncClient", "AsyncDriver")

T = TypeVar("T")

_RAW = {NEVER_DECODE: True}
AsyncClient = Redis | RedisCluster


class AsyncDriver:
    """Drives calls and flows over one asyncio client."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client
        self._is_plain = is_plain(client)
        self._ears = AsyncEars(client)
        self._looked = False
        self._refusal: str | None = None

    async def call(self, call: Call[T] | Command[T]) -> T:
        """Perform one step and return its answer."""
        return cast("T", await self._perform(call))

    async def run(self, flow: Flow[T]) -> T:
        """Perform each step of a flow; a failure is thrown into it."""
        try:
            step = next(flow)
            while True:
                try:
                    answer = await self._perform(step)
                except Exception as error:  # noqa: BLE001 - the flow decides
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            flow.close()

    async def close(self) -> None:
        """Let go of what was opened to listen; the client itself stays open."""
        await self._ears.close()

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Consult):
            answer = step.function(*step.arguments)
            return await answer if inspect.isawaitable(answer) else answer
        if isinstance(step, Nap):
            await asyncio.sleep(step.seconds)
            return None
        if self._refusal is not None:
            raise ServerTooOld(self._refusal)
        try:
            if isinstance(step, Listen):
                return await self._ears.listen(step.prefix)
            if isinstance(step, Expect):
                return self._ears.expect(step.prefix, step.task_id)
            if isinstance(step, Expected):
                return self._ears.is_expected(step.prefix, step.task_id)
            if isinstance(step, Hear):
                return await self._ears.hear(step.prefix, step.task_id, step.seconds)
            if isinstance(step, Volley):
                answer = await self._send_all(step.calls)
            else:
                answer = step.parse(await self._send(step))
        except CLIENT_ERRORS as error:
            raise translated(error) from error
        if not self._looked and not isinstance(step, Nodes):
            # Only now, when the server is known to answer: a slice must not fail,
            # nor wait twice, because of a look around.
            self._looked = True
            self._refusal = await self.run(first_look(target_of(self.client)))
        return answer

    async def _send_all(self, calls: Iterable[Call[Any]]) -> list[Any]:
        if self._is_plain:
            return await send_all_async(self.client, calls)
        return [call.parse(await self._send(call)) for call in calls]

    async def _send(self, step: Call[Any] | Command[Any] | Nodes) -> Any:
        client: Any = self.client
        if isinstance(step, Call):
            script, keys, arguments = step.script, step.keys, step.arguments
            rest = (len(keys), *keys, *arguments)
            options = _RAW if step.is_raw else {}
            try:
                return await client.execute_command(
                    "EVALSHA", script.sha, *rest, **options
                )
            except NoScriptError:
                return await client.execute_command(
                    "EVAL", script.text, *rest, **options
                )
        clustered = isinstance(self.client, RedisCluster)
        if isinstance(step, Command):
            if step.node is None or not clustered:
                return await client.execute_command(*step.parts)
            node = client.get_node(node_name=step.node)
            if node is None:
                raise RedisUnavailable(f"{step.node} is no longer in the Cluster")
            return await client.execute_command(*step.parts, target_nodes=node)
        if clustered:
            await client.initialize()
            return sorted(node.name for node in client.get_primaries())
        return SINGLE
