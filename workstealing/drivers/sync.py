"""Performs steps and flows on a redis-py client, in the calling thread."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from redis import Redis
from redis.client import NEVER_DECODE
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError

from workstealing.drivers.checking import first_look
from workstealing.drivers.ears import Ears
from workstealing.drivers.line import Line
from workstealing.drivers.packing import is_plain
from workstealing.drivers.target import target_of
from workstealing.drivers.translate import CLIENT_ERRORS, translated
from workstealing.drivers.volleys import send_all
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

__all__ = ("Client", "Driver")

T = TypeVar("T")

_RAW = {NEVER_DECODE: True}
Client = Redis | RedisCluster


class Driver:
    """Drives calls and flows over one client."""

    def __init__(self, client: Client, line: Line | None = None) -> None:
        self.client = client
        self._line = line
        self._is_plain = is_plain(client)
        self._ears = Ears(client)
        self._looked = False
        self._refusal: str | None = None

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

    def close(self) -> None:
        """Let go of what was opened for itself; the client stays open."""
        self._ears.close()
        if self._line is not None:
            self._line.close()

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Consult):
            return step.function(*step.arguments)
        if isinstance(step, Nap):
            time.sleep(step.seconds)
            return None
        if self._refusal is not None:
            raise ServerTooOld(self._refusal)
        try:
            if isinstance(step, Listen):
                return self._ears.listen(step.prefix)
            if isinstance(step, Expect):
                return self._ears.expect(step.prefix, step.task_id)
            if isinstance(step, Expected):
                return self._ears.is_expected(step.prefix, step.task_id)
            if isinstance(step, Hear):
                return self._ears.hear(step.prefix, step.task_id, step.seconds)
            if isinstance(step, Volley):
                answer: Any = self._send_all(step.calls)
            else:
                answer = step.parse(self._send(step))
        except CLIENT_ERRORS as error:
            raise translated(error) from error
        if not self._looked and not isinstance(step, Nodes):
            # Only now, when the server is known to answer: a slice must not fail,
            # nor wait twice, because of a look around.
            self._looked = True
            self._refusal = self.run(first_look(target_of(self.client)))
        return answer

    def _send_all(self, calls: Iterable[Call[Any]]) -> list[Any]:
        if self._is_plain:
            return send_all(self.client, calls)
        return [call.parse(self._send(call)) for call in calls]

    def _send(self, step: Call[Any] | Command[Any] | Nodes) -> Any:
        client: Any = self.client
        if self._line is not None:
            if isinstance(step, Call):
                return self._line.call(step)
            # Its reply needs nothing of what redis-py does to those of others.
            if isinstance(step, Command) and step.parts[0] == "BLPOP":
                return self._line.ask(step.parts)
        if isinstance(step, Call):
            script, keys, arguments = step.script, step.keys, step.arguments
            rest = (len(keys), *keys, *arguments)
            options = _RAW if step.is_raw else {}
            try:
                return client.execute_command("EVALSHA", script.sha, *rest, **options)
            except NoScriptError:
                return client.execute_command("EVAL", script.text, *rest, **options)
        clustered = isinstance(self.client, RedisCluster)
        if isinstance(step, Command):
            if step.node is None or not clustered:
                return client.execute_command(*step.parts)
            node = client.get_node(node_name=step.node)
            if node is None:
                raise RedisUnavailable(f"{step.node} is no longer in the Cluster")
            return client.execute_command(*step.parts, target_nodes=node)
        if clustered:
            return sorted(node.name for node in client.get_primaries())
        return SINGLE
