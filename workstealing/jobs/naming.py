"""Names the keys that a job keeps beside the user's key, in the same hash slot."""

from __future__ import annotations

from workstealing.errors import ConfigurationError
from workstealing.jobs.wording import is_text

__all__ = ("beside", "checked_key", "checked_name")


def checked_key(key: str) -> str:
    """Refuse a key that no second key could share a Cluster slot with."""
    if not isinstance(key, str) or not key or not is_text(key):
        raise ConfigurationError(f"a key must be a non-empty string, not {key!r}")
    if _tag(key) is None and "}" in key:
        raise ConfigurationError(
            f"{key!r} has a '}}' but no hash tag: write it as '{{name}}…' so that its"
            " index can live in the same Cluster slot"
        )
    return key


def checked_name(name: str) -> str:
    """Refuse what is no text: a slice could not tell its key from its name."""
    if not isinstance(name, str) or not is_text(name):
        raise ConfigurationError(f"a name must be a string of text, not {name!r}")
    return name


def beside(key: str, suffix: str) -> str:
    """Return a key for *suffix* that lives in the slot of *key*."""
    return f"{key}:{suffix}" if _tag(key) else f"{{{key}}}:{suffix}"


def _tag(key: str) -> str | None:
    start = key.find("{")
    end = key.find("}", start + 1)
    return key[start + 1 : end] or None if 0 <= start < end else None
