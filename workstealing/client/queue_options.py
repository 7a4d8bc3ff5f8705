"""The options of a queue, as the user gave them.

Both queues take them as keywords, and `AsyncTaskQueue.sync()` passes them to its twin.
Every field is required, so a keyword that a queue forgets to pass on is an error.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from workstealing._checks import checked_queue_name, checked_seconds, checked_whole
from workstealing.clock import Clock
from workstealing.errors import ConfigurationError
from workstealing.queue.placement import MOST_SHARDS
from workstealing.queue.settings import QueueSettings
from workstealing.tasks.admission import Admission
from workstealing.tasks.envelope import LATEST_MS
from workstealing.tasks.hooks import MiddlewareStack
from workstealing.tasks.policy import AccessPolicy
from workstealing.tasks.registry import Registry
from workstealing.tasks.signing import Keyring
from workstealing.telemetry.observers import Observer

__all__ = ("DEFAULTS", "QueueOptions", "Seconds", "one_keyring")

Seconds: TypeAlias = float | timedelta
DEFAULTS = QueueSettings()


@dataclass(frozen=True)
class QueueOptions:
    """The options of a queue, by the names of their keywords."""

    run: str
    lease: Seconds
    retention: Seconds
    max_outcomes: int
    max_dead: int
    dead_retention: Seconds
    max_length: int | None
    max_payload: int
    max_result: int
    replicas: int
    shards: int
    registry: Registry
    policy: AccessPolicy | None
    keyring: Keyring | None
    release: int
    middleware: MiddlewareStack
    carry: tuple[ContextVar[Any], ...]
    clock: Clock
    observers: tuple[Observer, ...]

    def __post_init__(self) -> None:
        checked_queue_name(self.run, "the name of a run")
        checked_whole(self.release, "release", 0, LATEST_MS)
        checked_whole(self.shards, "shards", 1, MOST_SHARDS)

    def keywords(self) -> dict[str, Any]:
        """Return the keywords for another queue with the same options."""
        return dict(vars(self))

    def settings(self) -> QueueSettings:
        """Return the numbers that scripts need."""
        keep_ms = round(checked_seconds(self.retention, "retention", zero=True) * 1000)
        dead_seconds = checked_seconds(self.dead_retention, "dead_retention", zero=True)
        max_length = self.max_length
        if max_length is not None:
            checked_whole(max_length, "max_length", 1)
        return QueueSettings(
            retention_ms=keep_ms if self.max_outcomes else 0,
            outcomes=checked_whole(self.max_outcomes, "max_outcomes", 0),
            dead_retention_ms=round(dead_seconds * 1000),
            dead_letters=checked_whole(self.max_dead, "max_dead", 0),
            max_length=max_length or 0,
            max_payload=checked_whole(self.max_payload, "max_payload", 1),
            max_result=checked_whole(self.max_result, "max_result", 1),
            replicas=checked_whole(self.replicas, "replicas", 0),
            lease_ms=max(1, round(checked_seconds(self.lease, "lease") * 1000)),
        )

    def admission(self, queue: str) -> Admission:
        """Return the checks of tasks, and the signer, of a queue of this name."""
        keyring = self.keyring
        signer = None if keyring is None else keyring.signer(queue, self.run)
        return Admission(self.registry, self.policy, signer, self.max_payload)


def one_keyring(secret: str | bytes | None, keyring: Any) -> Keyring | None:
    """Return the keyring of `secret=` or `keyring=`; refuse both together."""
    if secret is not None:
        if keyring is not None:
            raise ConfigurationError("give secret= or keyring=, not both")
        return Keyring(secret)
    if keyring is None or isinstance(keyring, Keyring):
        return keyring
    raise ConfigurationError(
        f"keyring must be a Keyring, not a {type(keyring).__name__}: give one secret as"
        " secret="
    )
