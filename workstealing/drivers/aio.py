"""Performs steps and flows on an asyncio redis-py client: the twin of `sync`."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, cast

from redis.asyncio import Redis
from redis.asyncio.cluster import RedisCluster
from redis.exceptions import NoScriptError
from redis.exceptions import RedisError as ClientError

from workstealing.drivers.translate import translated
from workstealing.queue.call import Call, Command, Consult, Flow, Step

__all__ = ("AsyncClient", "AsyncDriver")

T = TypeVar("T")
AsyncClient = Redis | RedisCluster


class AsyncDriver:
    """Drives calls and flows over one asyncio client."""

    def __init__(self, client: AsyncClient) -> None:
        self.client = client

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

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, Consult):
            answer = step.function(*step.arguments)
            return await answer if inspect.isawaitable(answer) else answer
        try:
            return step.parse(await self._send(step))
        except (ClientError, OSError) as error:
            raise translated(error) from error

    async def _send(self, step: Step) -> Any:
        if isinstance(step, Call):
            script, keys, arguments = step.script, step.keys, step.arguments
            rest = (len(keys), *keys, *arguments)
            try:
                return await self.client.execute_command("EVALSHA", script.sha, *rest)
            except NoScriptError:
                return await self.client.execute_command("EVAL", script.text, *rest)
        if isinstance(step, Command):
            if step.node is None or not isinstance(self.client, RedisCluster):
                return await self.client.execute_command(*step.parts)
            node = self.client.get_node(node_name=step.node)
            return await self.client.execute_command(*step.parts, target_nodes=node)
        if isinstance(self.client, RedisCluster):
            await self.client.initialize()
            return sorted(node.name for node in self.client.get_primaries())
        return ("single",)
