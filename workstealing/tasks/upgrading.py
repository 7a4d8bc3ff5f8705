"""Payloads of older versions, made into payloads of the version that runs.

An upgrade takes the payload of one version as a dict and returns that of the next
version that is accepted; the last one returns that of the task itself. So each is
written once, when its version becomes old, and never touched again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from workstealing.errors import ConfigurationError, PayloadInvalid
from workstealing.tasks.checking import checked_whole
from workstealing.tasks.values import Json, encode_value

__all__ = ("Upgrade", "checked_upgrades", "upgraded")

Upgrade: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


def checked_upgrades(accepts: Any, version: int) -> Mapping[int, Upgrade]:
    """Return the upgrades of a task, the oldest version first."""
    if not isinstance(accepts, Mapping):
        raise ConfigurationError(
            f"accepts must be a dict, version to function, not {accepts!r}"
        )
    for old, upgrade in accepts.items():
        checked_whole(old, "an accepted version", 1)
        if old >= version:
            raise ConfigurationError(
                f"accepts has version {old}, which is not older than version {version}"
            )
        if not callable(upgrade):
            raise ConfigurationError(
                f"what upgrades version {old} must be a function, not {upgrade!r}"
            )
    return MappingProxyType(dict(sorted(accepts.items())))


def upgraded(
    task: str, accepts: Mapping[int, Upgrade], version: int, payload: Json
) -> bytes:
    """Return the payload as one of the newest version."""
    values = _DECODE(payload)
    for old, upgrade in accepts.items():
        if old >= version:
            try:
                values = upgrade(values)
                if not isinstance(values, dict):
                    raise TypeError(f"it returned {type(values).__qualname__}")
            except Exception as error:
                raise PayloadInvalid(
                    task,
                    "",
                    f"cannot be upgraded from version {old}:"
                    f" {type(error).__qualname__}: {error}",
                ) from error
    return encode_value(values)


_DECODE = msgspec.json.Decoder(dict[str, Any]).decode
