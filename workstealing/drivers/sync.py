"""Performs steps and flows on a redis-py client, in the calling thread."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from redis import Redis
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError
from redis.exceptions import RedisError as ClientError

from workstealing.drivers.translate import translated
from workstealing.queue.call import Call, Command, Consult, Flow, Step

__all__ = ("Client", "Driver")

T = TypeVar("T")
Client = Redis | RedisCluster


class Driver:
    """Drives calls and flows over one client."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def call(self, call: Call[T] | Command[T]) -> T:
        """Perform one step and return its answer."""
        return cast("T", self._perform(call))

    def run(self, flow: Flow[T]) -> T:
        """Perform each step of a flow; a failure is thrown into it."""
        try:
            step = next(flow)
            while True:
                try:
                    answer = self._perform(step)
                except Exception as error:  # noqa: BLE001 - the flow decides
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            flow.close()

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Consult):
            return step.function(*step.arguments)
        try:
            return step.parse(self._send(step))
        except (ClientError, OSError) as error:
            raise translated(error) from error

    def _send(self, step: Step) -> Any:
        if isinstance(step, Call):
            script, keys, arguments = step.script, step.keys, step.arguments
            rest = (len(keys), *keys, *arguments)
            try:
                return self.client.execute_command("EVALSHA", script.sha, *rest)
            except NoScriptError:
                return self.client.execute_command("EVAL", script.text, *rest)
        if isinstance(step, Command):
            if step.node is None or not isinstance(self.client, RedisCluster):
                return self.client.execute_command(*step.parts)
            node = self.client.get_node(node_name=step.node)
            return self.client.execute_command(*step.parts, target_nodes=node)
        if isinstance(self.client, RedisCluster):
            return sorted(node.name for node in self.client.get_primaries())
        return ("single",)
