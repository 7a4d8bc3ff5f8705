"""Performs steps and flows on a redis-py client, in the calling thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, TypeVar, cast

from redis import Redis
from redis.client import NEVER_DECODE
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError

from workstealing._forking import reset_in_children
from workstealing.drivers.address import target_of
from workstealing.drivers.cluster_client import knows_nodes, owners_of
from workstealing.drivers.connection import (
    DedicatedConnection,
    answered,
    command_of,
    confirmed,
    fence,
    is_plain,
    send_one,
)
from workstealing.drivers.pipelining import send_all
from workstealing.drivers.reconnecting import hang_up
from workstealing.drivers.server_check import first_look
from workstealing.drivers.subscriptions import OutcomeSubscriptions
from workstealing.drivers.translate import CLIENT_ERRORS, is_wrong_server, translated
from workstealing.errors import RedisUnavailable, ServerTooOld
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

__all__ = ("Client", "DedicatedDriver", "Driver", "DriverSource", "is_ours")

T = TypeVar("T")

_RAW = {NEVER_DECODE: True}
Client = Redis | RedisCluster


class Driver:
    """Drives calls and flows over one client."""

    def __init__(self, client: Client, own: DedicatedConnection | None = None) -> None:
        self.client = client
        self._own = own
        self.sends_once = is_plain(client)
        """Whether the client never repeats a command by itself."""
        self._subscriptions = OutcomeSubscriptions(client)
        self._looked = False
        self._refusal: str | None = None

    def call(self, call: Call[T] | RedisCommand[T]) -> T:
        """Perform one step and return its answer."""
        return cast("T", self._perform(call))

    def run(self, flow: Flow[T]) -> T:
        """Perform each step of a flow; a failure is thrown into it."""
        return self._drive(flow, self._perform)

    def close(self) -> None:
        """Close what this driver opened for itself; the client stays open."""
        self._subscriptions.close()
        if self._own is not None:
            self._own.close()

    def _drive(self, flow: Flow[T], perform: Callable[[Step], Any]) -> T:
        try:
            step = next(flow)
            while True:
                try:
                    answer = perform(step)
                except Exception as error:  # noqa: BLE001 - the flow decides
                    step = flow.throw(error)
                else:
                    step = flow.send(answer)
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            flow.close()

    def _perform(self, step: Step) -> Any:
        if isinstance(step, Invoke):
            return step.function(*step.arguments)
        if isinstance(step, Sleep):
            time.sleep(step.seconds)
            return None
        if not self._looked and not isinstance(step, Nodes):
            self._look()
        if self._refusal is not None:
            raise ServerTooOld(self._refusal)
        return self._send_step(step)

    def _send_step(self, step: Any, *, is_repeated: bool = False) -> Any:
        generation = self._subscriptions.generation
        try:
            if isinstance(step, Subscribe):
                if step.is_guess:
                    return self._subscriptions.expect(step.prefix, step.task_id)
                return self._subscriptions.subscribe(step.prefix, step.task_id)
            if isinstance(step, AwaitOutcome):
                return self._subscriptions.wait(step.prefix, step.task_id, step.seconds)
            if isinstance(step, Pipeline):
                answer: Any = self._send_all(step.calls)
            elif isinstance(step, Call) and step.replicas:
                answer = confirmed(step, self._send_fenced(step))
            else:
                answer = step.parse(self._send(step))
        except CLIENT_ERRORS as error:
            if is_wrong_server(error):
                self._hang_up(generation)
                # A pipeline may be half done, and its calls are used up.
                if not is_repeated and isinstance(step, (Call, RedisCommand)):
                    return self._send_step(step, is_repeated=True)
            script = step.script if isinstance(step, Call) else None
            is_subscribing = isinstance(step, (Subscribe, AwaitOutcome))
            failure = translated(error, script, is_subscribing=is_subscribing)
            raise failure from error
        return answer

    def _look(self) -> None:
        """Look at the server before it is sent anything: it may be too old.

        Callers that come meanwhile look, too, rather than wait for the first one.
        """
        look = first_look(target_of(self.client))
        try:
            self._refusal = self._drive(look, self._send_step)
        except RedisUnavailable:
            # In a Cluster, another node may answer. A single server would not, nor a
            # Cluster whose nodes are unknown: the caller must not wait for them twice.
            if not knows_nodes(self.client):
                raise
        self._looked = True

    def _hang_up(self, generation: int) -> None:
        """Reconnect for what is sent next: another server may have the address now."""
        if self._own is not None:
            self._own.close()
        hang_up(self.client)
        self._subscriptions.hang_up(generation)

    def _send_all(self, calls: Iterable[Call[Any]]) -> list[Any]:
        if self.sends_once:
            return send_all(self.client, calls)
        return [call.parse(self._send(call)) for call in calls]

    def _send_fenced(self, call: Call[Any]) -> list[Any]:
        """Run a script; return its reply, and last how many replicas have it."""
        client: Any = self.client
        behind = fence(client, call)
        if self._own is not None:
            return self._own.call_and(behind, call)
        if call.after is not None:
            client.execute_command(*call.after.parts)
        options = _RAW if call.is_raw else {}
        for in_full in (False, True):
            # All on one connection.
            with client.pipeline(transaction=False) as pipeline:
                pipeline.execute_command(*command_of(call, in_full=in_full), **options)
                for parts in behind:
                    pipeline.execute_command(*parts)
                replies = pipeline.execute(raise_on_error=False)
            if not isinstance(replies[0], NoScriptError):
                break
        return answered(replies)

    def _send(self, step: Call[Any] | RedisCommand[Any] | Nodes | Owners) -> Any:
        client: Any = self.client
        if self._own is not None:
            if isinstance(step, Call):
                return self._own.call(step)
            if isinstance(step, RedisCommand) and step.is_blocking:
                return self._own.ask(step.parts)
        if isinstance(step, Call):
            if step.after is not None:
                client.execute_command(*step.after.parts)
            if self.sends_once:
                return send_one(client, step)
            options = _RAW if step.is_raw else {}
            try:
                return client.execute_command(*command_of(step), **options)
            except NoScriptError:
                in_full = command_of(step, in_full=True)
                return client.execute_command(*in_full, **options)
        clustered = isinstance(self.client, RedisCluster)
        if isinstance(step, RedisCommand):
            if step.node is None or not clustered:
                return client.execute_command(*step.parts)
            node = client.get_node(node_name=step.node)
            if node is None:
                raise RedisUnavailable(f"{step.node} is no longer in the Cluster")
            return client.execute_command(*step.parts, target_nodes=node)
        if isinstance(step, Owners):
            return (
                owners_of(client, step.keys) if clustered else SINGLE * len(step.keys)
            )
        if clustered:
            return sorted(node.name for node in client.get_primaries())
        return SINGLE


class DedicatedDriver(Driver):
    """A driver for one thread, whose wait another thread may end."""

    @property
    def can_send_ahead(self) -> bool:
        """Whether it has its own connection, so that a reply can be read later."""
        return self._own is not None

    def send(self, call: Call[Any]) -> None:
        """Send a call now; pass it to `call()` later to read its answer.

        Send nothing else through this driver in between.
        """
        assert self._own is not None, "see can_send_ahead"
        behind = fence(self.client, call) if call.replicas else []
        try:
            self._own.send(behind, call)
        except CLIENT_ERRORS as error:
            raise translated(error, call.script) from error

    def interrupt(self) -> None:
        """End a wait on the server, from another thread, if it has its own connection.

        The thread that waits gets `RedisUnavailable`.
        """
        if self._own is not None:
            self._own.interrupt()


class DriverSource:
    """Makes the one driver of all threads of this process when it is first used.

    After `close()`, it makes another. A client that the user brought is never closed.
    """

    def __init__(
        self,
        redis: Client | str | None,
        connect: Callable[[Client | str | None], Driver],
    ) -> None:
        self.redis = redis
        """What the user gave: a client, a URL, or nothing."""
        self._connect = connect
        self._driver: Driver | None = None
        self._forget_other_threads()
        reset_in_children(self, DriverSource._forget_other_threads)

    def _forget_other_threads(self) -> None:
        # One that was connecting when the parent forked does not exist in the child.
        self._lock = Lock()

    @property
    def driver(self) -> Driver:
        """Return the driver; connect if there is none."""
        return self._driver or self._connected()

    def close(self) -> None:
        """Release all connections but those of a client that the user brought."""
        with self._lock:
            made, self._driver = self._driver, None
        if made is not None:
            made.close()
            if is_ours(self.redis):
                made.client.close()

    def _connected(self) -> Driver:
        with self._lock:
            if self._driver is None:
                self._driver = self._connect(self.redis)
            return self._driver


def is_ours(redis: Any) -> bool:
    """Return whether a client is made here, from what the user gave."""
    return redis is None or isinstance(redis, str)
