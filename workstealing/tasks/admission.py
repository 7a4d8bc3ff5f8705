"""Whether a task may be run: it must be genuine, known and permitted.

It is asked when a request enters the queue and again when a worker takes it. Each
refusal is an error of its own that reaches the caller: `BadSignature`, `UnknownTask`,
`NotPermitted`; then `PayloadInvalid`. One that is too large is a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workstealing.errors import BadSignature, ConfigurationError, PayloadTooLarge
from workstealing.tasks.contract import TaskInterface
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.policy import AccessPolicy
from workstealing.tasks.registry import Registry
from workstealing.tasks.signing import Signer

__all__ = ("Admission",)


@dataclass(frozen=True, slots=True)
class Admission:
    """What a queue knows, whom it lets in, and what proves where a task is from."""

    registry: Registry
    policy: AccessPolicy | None = None
    """None: nobody is refused."""
    signer: Signer | None = None
    """None: anybody who can write to Redis is believed."""
    max_payload: int | None = None
    """Bytes of one payload; None: those who submit have looked already."""

    def __post_init__(self) -> None:
        if self.policy is not None and not isinstance(self.policy, AccessPolicy):
            raise ConfigurationError(
                f"policy must be an AccessPolicy, not {self.policy!r}"
            )

    def verified_envelope(self, task_id: str, envelope: bytes, now_ms: int) -> Envelope:
        """Read an envelope that was found in Redis.

        Refuse it if it is not genuine, or larger than a producer of ours would write.
        """
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

    def permit(self, task: TaskInterface, principal: str, roles: Iterable[str]) -> None:
        """Refuse a principal that may not call a task."""
        if self.policy is not None:
            self.policy.check(task.name, task.permission, principal, roles)
