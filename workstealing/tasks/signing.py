"""Signatures: a program that can write to Redis cannot act as somebody else.

A signed envelope is the envelope with one more field, which stands first:

    {"sig":"<key id>:<64 hexadecimal digits>","v":1,"name":…}

The digits are the HMAC-SHA256 of the words `envelope`, the queue, the run and the id of
the task, each as a netstring (`8:envelope,`), and then of the bytes of the envelope as
it was without the field. So the bytes are checked as they stand: nothing is read before
it is verified, and nothing is written anew to verify it. `docs/envelope.md` has an
example for other languages.

It does not hide anything, and it does not prevent anybody from putting the same task
back under the same id before it expires.
"""

from __future__ import annotations

import hmac
import re
from pathlib import Path
from typing import NoReturn

from workstealing._checks import checked_secret
from workstealing.errors import BadSignature, ConfigurationError

__all__ = ("LIFETIME_MS", "Keyring", "Signer")

LIFETIME_MS = 7 * 86_400_000
"""How long after it is due a signed envelope may be begun."""


class Keyring:
    """Secrets: the first one signs, and all of them verify.

    To change a secret without a pause: first add the new one behind the old one,
    everywhere. Then put it first, everywhere. When what the old one signed has been
    done or has expired, remove it.
    """

    __slots__ = ("_first", "_keys")

    def __init__(
        self, signing_secret: str | bytes, *other_secrets: str | bytes
    ) -> None:
        given = (signing_secret, *other_secrets)
        secrets = [checked_secret(secret) for secret in given]
        self._keys = {_key_id(secret): secret for secret in secrets}
        self._first = _key_id(secrets[0])
        if len(self._keys) < len(secrets):
            raise ConfigurationError("the same secret is given twice")

    @classmethod
    def from_file(cls, path: str | Path) -> Keyring:
        """Read one secret per line; empty lines and those with # in front are none."""
        lines = [line.strip() for line in Path(path).read_bytes().splitlines()]
        secrets = [line for line in lines if line and not line.startswith(b"#")]
        if not secrets:
            raise ConfigurationError(f"there is no secret in {path}: put one on a line")
        return cls(*secrets)

    @property
    def key_ids(self) -> tuple[str, ...]:
        """Return the public names of the secrets; the first is the one that signs."""
        return (self._first, *(name for name in self._keys if name != self._first))

    def signer(self, queue: str, run: str) -> Signer:
        """Return what signs and verifies the envelopes of one run of a queue."""
        return Signer(self, queue, run)

    def sign(self, message: bytes) -> str:
        """Return the id of the first secret and what it makes of a message."""
        return f"{self._first}:{_mac(self._keys[self._first], message)}"

    def verifies(self, key_id: str, mac: str, message: bytes) -> bool | None:
        """Return whether a secret made this of a message; None if it is unknown."""
        secret = self._keys.get(key_id)
        if secret is None:
            return None
        return hmac.compare_digest(_mac(secret, message), mac)

    def __repr__(self) -> str:
        return f"<Keyring {' '.join(self.key_ids)}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Keyring is not pickled: it would write its secrets down")


class Signer:
    """Signs and verifies the envelopes of one run of a queue."""

    __slots__ = ("_keyring", "_place")

    def __init__(self, keyring: Keyring, queue: str, run: str) -> None:
        self._keyring = keyring
        self._place = b"".join(map(_netstring, ("envelope", queue, run)))

    def sign(self, task_id: str, envelope: bytes) -> bytes:
        """Return the envelope with its signature in front."""
        sig = self._keyring.sign(self._place + _netstring(task_id) + envelope)
        return b'{"sig":"%b",%b' % (sig.encode(), envelope[1:])

    def verify(self, task_id: str, envelope: bytes) -> str:
        """Return the signature of an envelope that it holds for, or refuse it."""
        found = _SIGNED.match(envelope)
        if found is None:
            raise BadSignature(
                task_id, "the envelope is not signed, or its signature is malformed"
            )
        key_id, mac = found[1].decode(), found[2].decode()
        rest = b"{" + envelope[found.end() :]
        message = self._place + _netstring(task_id) + rest
        holds = self._keyring.verifies(key_id, mac, message)
        if holds is None:
            raise BadSignature(
                task_id, f"it is signed with key {key_id}, which is not in the keyring"
            )
        if not holds:
            raise BadSignature(
                task_id, "the envelope was changed, or signed for another id or queue"
            )
        return f"{key_id}:{mac}"

    def __repr__(self) -> str:
        return f"<Signer {self._place.decode()} {self._keyring!r}>"


_SIGNED = re.compile(rb'\{"sig":"([0-9a-f]{8}):([0-9a-f]{64})",')


def _key_id(secret: bytes) -> str:
    return _mac(secret, b"workstealing key id")[:8]


def _mac(secret: bytes, message: bytes) -> str:
    return hmac.digest(secret, message, "sha256").hex()


def _netstring(text: str) -> bytes:
    octets = text.encode()
    return b"%d:%b," % (len(octets), octets)
