"""The checks on the way in: is it genuine, is it known, is it permitted, does it fit.

They run when a request enters the queue and again when a worker takes it, in this
order, and each has an error of its own that reaches the caller: `BadSignature`,
`UnknownTask`, `NotPermitted`, `PayloadInvalid`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workstealing.errors import BadSignature, ConfigurationError
from workstealing.tasks.calling import Callee
from workstealing.tasks.envelope import Envelope
from workstealing.tasks.permission import Policy
from workstealing.tasks.registry import Registry
from workstealing.tasks.signing import Seal

__all__ = ("Admission",)


@dataclass(frozen=True, slots=True)
class Admission:
    """What a queue knows, whom it lets in, and what proves where a task is from."""

    registry: Registry
    policy: Policy | None = None
    """None: nobody is refused."""
    seal: Seal | None = None
    """None: anybody who can write to Redis is believed."""

    def __post_init__(self) -> None:
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise ConfigurationError(f"policy must be a Policy, not {self.policy!r}")

    def opened(self, task_id: str, envelope: bytes, now_ms: int) -> Envelope:
        """Read an envelope that was found in Redis, if it is genuine."""
        if self.seal is None:
            return Envelope.read(envelope)
        sig = self.seal.verify(task_id, envelope)
        opened = Envelope.read(envelope)
        if opened.sig != sig:
            raise BadSignature(task_id, "the envelope has two signatures")
        if opened.expires is None:
            raise BadSignature(task_id, "a signed envelope must say when it expires")
        if opened.expires < now_ms:
            raise BadSignature(task_id, "the envelope has expired")
        return opened

    def permit(self, callee: Callee, principal: str, roles: Iterable[str]) -> None:
        """Refuse a principal that may not call a task."""
        if self.policy is not None:
            self.policy.check(callee.name, callee.permission, principal, roles)
