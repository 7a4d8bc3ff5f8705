"""Decides whether a task may run: it must be genuine, known and permitted.

This is checked when a task is submitted and again when a worker takes it. Each refusal
is an error of its own that reaches the caller: `BadSignature`, `UnknownTask`,
`NotPermitted`; then `PayloadInvalid`. A task that is too large becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from workstealing.errors import BadSignature, ConfigurationError, PayloadTooLarge
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.policy import AccessPolicy
from workstealing.tasks.registry import Registry
from workstealing.tasks.signing import Signer

__all__ = ("Admission", "Caller")


class Caller(Protocol):
    """Who calls a task: the context of a call, or the envelope that it became."""

    @property
    def principal(self) -> str:
        """On whose behalf the task is called."""

    @property
    def roles(self) -> Iterable[str]:
        """The roles of the principal."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Which tasks a queue knows, who may call them, and what proves their origin."""

    registry: Registry
    policy: AccessPolicy | None = None
    """None refuses nobody."""
    signer: Signer | None = None
    """None accepts what anybody has written to Redis."""
    max_payload: int | None = None
    """Bytes of one payload; None where only this process submits."""

    def __post_init__(self) -> None:
        if not isinstance(self.registry, Registry):
            raise ConfigurationError(
                f"registry must be a Registry, not {self.registry!r}"
            )
        if self.policy is not None and not isinstance(self.policy, AccessPolicy):
            raise ConfigurationError(
                f"policy must be an AccessPolicy, not {self.policy!r}"
            )

    def verified_envelope(self, task_id: str, envelope: bytes, now_ms: int) -> Envelope:
        """Read an envelope from Redis; refuse it if it is not genuine, or too large."""
        if self.signer is None:
            read = Envelope.read(envelope)
        else:
            read = self._genuine_envelope(self.signer, task_id, envelope, now_ms)
        # The payload is a part of it, so most envelopes need no closer look.
        if self.max_payload is not None and len(envelope) > self.max_payload:
            size = memoryview(read.payload).nbytes
            if size > self.max_payload:
                raise PayloadTooLarge(read.name, size, self.max_payload)
        return read

    @staticmethod
    def _genuine_envelope(
        signer: Signer, task_id: str, envelope: bytes, now_ms: int
    ) -> Envelope:
        sig = signer.verify(task_id, envelope)
        read = Envelope.read(envelope)
        if read.sig != sig:
            raise BadSignature(task_id, "the envelope has two signatures")
        if read.expires is None:
            raise BadSignature(task_id, "a signed envelope must say when it expires")
        if read.expires < now_ms:
            raise BadSignature(task_id, "the envelope has expired")
        return read

    def permit(self, task: TaskInterface, caller: Caller) -> None:
        """Refuse a caller that may not call a task."""
        if self.policy is not None:
            principal, roles = caller.principal, caller.roles
            self.policy.check(task.name, task.permission, principal, roles)
