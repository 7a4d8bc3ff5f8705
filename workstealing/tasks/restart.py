"""Whether a task is run again, and after what.

- `always`: tried again as its retries say when it raised, and after its worker died.
- `on-crash`: run again only if its worker died or handed it back, never because it
  raised.
- `never`: never run twice. If its worker dies or is stopped while it runs, nobody can
  tell what it did: it is a dead letter, "outcome unknown". What was taken but not
  begun is not concerned: that goes to another worker as ever.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast, get_args

from workstealing.errors import ConfigurationError

__all__ = ("OUTCOME_UNKNOWN", "Restart", "checked_restart", "stricter")

Restart: TypeAlias = Literal["always", "on-crash", "never"]

OUTCOME_UNKNOWN = "outcome unknown"
"""How the reason begins for which a task that is never run twice was given up."""

_KINDS = get_args(Restart)


def checked_restart(restart: Any, idempotent: bool, retries: int) -> Restart:
    """Return what `restart=` and `idempotent=` mean together."""
    if restart is None:
        restart = "always" if idempotent else "never"
    if restart not in _KINDS:
        raise ConfigurationError(
            f"restart must be one of {', '.join(_KINDS)}, not {restart!r}"
        )
    if not idempotent and restart != "never":
        raise ConfigurationError(
            f'a task that is not idempotent must not have restart="{restart}"'
        )
    if restart != "always" and retries:
        said = f'restart="{restart}"' if idempotent else "idempotent=False"
        raise ConfigurationError(
            f"a task with {retries} retries is tried again when it raised, which"
            f" {said} forbids: leave one of the two out"
        )
    return cast("Restart", restart)


def stricter(one: Restart, other: Restart) -> Restart:
    """Return the one that repeats less: neither side can loosen what the other says."""
    return max(one, other, key=_KINDS.index)
