"""Checks every number and name that a user gives, when it is given.

Each function returns the checked value, in the type that the code works with, or raises
a `ConfigurationError` that names the argument, what it must be and what it is. None is
for the caller to handle, except by `checked_timeout`, where it means "no limit".

Standard library only, and light: `import workstealing` pays for this module.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from numbers import Real
from threading import TIMEOUT_MAX
from typing import Any

from workstealing.errors import ConfigurationError, InvalidName, InvalidRate

__all__ = (
    "LARGEST",
    "LONGEST_NAME",
    "LONGEST_ROLE",
    "MOST_ROLES",
    "SHORTEST_SECRET",
    "checked_batch",
    "checked_client_name",
    "checked_id",
    "checked_job_name",
    "checked_name",
    "checked_number",
    "checked_printable",
    "checked_queue_name",
    "checked_rate",
    "checked_role",
    "checked_roles",
    "checked_seconds",
    "checked_secret",
    "checked_share",
    "checked_task_name",
    "checked_text",
    "checked_time",
    "checked_timeout",
    "checked_whole",
    "did_you_mean",
    "is_text",
    "milliseconds",
    "threads_are_greenlets",
)

LARGEST = 2**31 - 1
"""The largest count or version: every language and every Lua can hold it."""

LONGEST_NAME = 200
"""Characters in the name of a task, a queue or a worker, and in the id of a task."""

LONGEST_ROLE = 100
"""Characters of a role or a permission."""

MOST_ROLES = 64
"""Roles of one request."""

SHORTEST_SECRET = 16
"""Bytes. `openssl rand -hex 32` makes a good one."""


def checked_whole(number: Any, what: str, least: int, most: int = LARGEST) -> int:
    """Return a whole number from *least* to *most*."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise ConfigurationError(f"{what} must be a whole number, not {number!r}")
    if not least <= number <= most:
        bounds = (
            f"{least} or more" if most == LARGEST > number else f"{least} to {most}"
        )
        raise ConfigurationError(f"{what} must be {bounds}, not {_shown(number)}")
    return int(number)


def checked_batch(batch: Any) -> int:
    """Return how many items one script call handles: 1 to 1000."""
    return checked_whole(batch, "batch", 1, 1000)


def checked_number(
    number: Any,
    what: str,
    *,
    zero: bool = False,
    most: float = math.inf,
    unit: str = "",
) -> float:
    """Return a finite number above 0, or of at least 0 if *zero* is allowed."""
    exact = _as_float(number)
    if exact is None:
        raise ConfigurationError(f"{what} must be a number, not {number!r}")
    if not _is_within(exact, zero, most):
        bound = f"0{unit} or more" if zero else f"above 0{unit}"
        raise ConfigurationError(
            f"{what} must be {bound}{_limit(most, exact)}, not {_shown(number)}"
        )
    return exact


def checked_share(share: Any, what: str) -> float:
    """Return a number above 0.0, up to 1.0."""
    exact = _as_float(share)
    if exact is None or not 0.0 < exact <= 1.0:
        raise ConfigurationError(
            f"{what} must be a number above 0.0, up to 1.0, not {_shown(share)}"
        )
    return exact


def checked_rate(rate: Any) -> float:
    """Return a share of calls, from 0.0 to 1.0.

    Raises:
        InvalidRate: it is something else.
    """
    exact = _as_float(rate)
    if exact is None or not 0.0 <= exact <= 1.0:
        raise InvalidRate(
            f"a rate must be a number from 0.0 to 1.0, not {_shown(rate)}"
        )
    return exact


def checked_seconds(
    duration: Any,
    what: str,
    *,
    zero: bool = False,
    most: float = math.inf,
    error: type[ConfigurationError] = ConfigurationError,
    kinds: str = "seconds",
) -> float:
    """Return a finite duration, a number or a timedelta, in seconds.

    Args:
        duration: what the user gave.
        what: the name of the argument.
        zero: 0 makes sense, too.
        most: the longest that makes sense.
        error: the class to raise.
        kinds: what it may be, in words.
    """
    exact = _as_float(
        duration.total_seconds() if isinstance(duration, timedelta) else duration
    )
    if exact is None:
        raise error(f"{what} must be {kinds}, not {duration!r}")
    if not _is_within(exact, zero, most):
        bound = "0 seconds or more" if zero else "above 0 seconds"
        raise error(
            f"{what} must be {bound}{_limit(most, exact)}, not {_shown(duration)}"
        )
    return exact


def checked_timeout(timeout: Any, what: str = "timeout") -> float | None:
    """Return how many seconds a thread may wait; None waits without a limit."""
    if timeout is None:
        return None
    return checked_seconds(timeout, what, zero=True, most=TIMEOUT_MAX)


def milliseconds(duration: float | timedelta, what: str = "ttl") -> int:
    """Return a positive duration in whole milliseconds, at least one."""
    return max(1, round(checked_seconds(duration, what) * 1000))


def checked_time(moment: Any, what: str) -> datetime:
    """Return a datetime that has a time zone."""
    if not isinstance(moment, datetime):
        raise ConfigurationError(
            f"{what} must be a datetime with a time zone, such as"
            f" datetime.now(timezone.utc), not {moment!r}"
        )
    if moment.utcoffset() is None:
        raise ConfigurationError(
            f"{what} needs a time zone: datetime.now(timezone.utc) has one"
        )
    return moment


def checked_name(
    name: Any,
    what: str,
    banned: frozenset[str] = frozenset(),
    longest: int = LONGEST_NAME,
) -> str:
    """Return a name that fits in a Redis key and on a line of a terminal.

    Raises:
        InvalidName: it is empty, too long, or has spaces or *banned* characters.
    """
    if (
        isinstance(name, str)
        and 0 < len(name) <= longest
        and name.isprintable()
        and " " not in name
        and banned.isdisjoint(name)
    ):
        return name
    but = f" and without {' '.join(sorted(banned))}" if banned else ""
    raise InvalidName(
        f"{what} must be 1 to {longest} printable characters without spaces{but};"
        f" this is {_shown_name(name)}"
    )


def checked_task_name(name: Any) -> str:
    """Return the name of a task; `@` stands before its version, so not in it."""
    return checked_name(name, "the name of a task", _NOT_IN_TASKS)


def checked_queue_name(name: Any, what: str = "the name of a queue") -> str:
    """Return the name of a queue or of a run; `/` stands between the two."""
    return checked_name(name, what, _NOT_IN_QUEUES)


def checked_id(name: Any, what: str = "the id of a task") -> str:
    """Return the id of a task, or the key of a shard, as its submitter chose it."""
    return checked_name(name, what, _NOT_IN_IDS)


def checked_role(name: Any, what: str = "a role") -> str:
    """Return the name of a role or of a permission; there are no wildcards."""
    return checked_name(name, what, _NOT_IN_ROLES, LONGEST_ROLE)


def checked_roles(
    names: Any, what: str, each: str = "a role", most: int = LARGEST
) -> tuple[str, ...]:
    """Return a collection of roles or of permissions; a set in alphabetical order."""
    # A string is a collection too, of letters.
    if isinstance(names, (str, bytes)) or not isinstance(names, Collection):
        raise ConfigurationError(f"{what} must be a collection of names, not {names!r}")
    if len(names) > most:
        raise ConfigurationError(f"{what} must be {most} at most, not {len(names)}")
    checked = [checked_role(name, each) for name in names]
    return tuple(sorted(checked) if isinstance(names, (set, frozenset)) else checked)


def checked_job_name(name: Any) -> str:
    """Return a job's name, which logs and metrics can carry as it is.

    Raises:
        InvalidName: it is something else.
    """
    if isinstance(name, str) and _JOB_NAME.fullmatch(name):
        return name
    raise InvalidName(
        "a job's name must be 1 to 100 letters, digits and _ . : / -, and begin with a"
        f" letter, a digit or _; this is {_shown_name(name)}"
    )


def checked_client_name(name: Any) -> str:
    """Return a name that `CLIENT SETNAME` takes."""
    if isinstance(name, str) and name and all("!" <= letter <= "~" for letter in name):
        return name
    raise ConfigurationError(
        f"name must be printable ASCII without spaces, not {name!r}"
    )


def checked_secret(secret: Any) -> bytes:
    """Return a secret that is long enough; an error does not show it."""
    if not isinstance(secret, (str, bytes)):
        raise ConfigurationError(
            f"a secret must be text or bytes, not a {type(secret).__name__}"
        )
    octets = secret.encode() if isinstance(secret, str) else bytes(secret)
    if len(octets) < SHORTEST_SECRET:
        raise ConfigurationError(
            f"a secret must have at least {SHORTEST_SECRET} bytes, and this one has"
            f" {len(octets)}: `openssl rand -hex 32` makes a good one"
        )
    return octets


def checked_printable(text: Any, what: str, longest: int) -> str:
    """Return a string without control characters, for one line; it may be empty."""
    if isinstance(text, str) and len(text) <= longest and text.isprintable():
        return text
    raise ConfigurationError(
        f"{what} must be up to {longest} printable characters; this is"
        f" {_shown_name(text)}"
    )


def checked_text(text: Any, what: str = "a name") -> str:
    """Return a string that UTF-8 can encode; it may be empty."""
    if isinstance(text, str) and is_text(text):
        return text
    raise ConfigurationError(f"{what} must be a string of text, not {text!r}")


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that an unknown one resembles, if any; case aside."""
    # Costly to import, and only an error needs it.
    from difflib import get_close_matches

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, 1)
    return by_lower[near[0]] if near else None


def is_text(text: str) -> bool:
    """Tell whether UTF-8 can encode a string, which it cannot with lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def threads_are_greenlets() -> bool:
    """Return whether gevent has replaced threads: while one computes, no other runs."""
    # A process that has not imported it is not patched.
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


# Braces choose the slot of a key in a Cluster.
_NOT_IN_IDS = frozenset("{}")
_NOT_IN_TASKS = frozenset("{}@")
_NOT_IN_QUEUES = frozenset("{}/")
_NOT_IN_ROLES = frozenset(",*")
_JOB_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,99}")
# Python refuses to write whole numbers of thousands of digits.
_MOST_BITS = 256


def _as_float(number: Any) -> float | None:
    """Return a real number as a float, infinite if it is too large; or else None."""
    if isinstance(number, bool) or not isinstance(number, (int, float, Real)):
        return None
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _is_within(number: float, zero: bool, most: float) -> bool:
    is_enough = number > 0 or (zero and number == 0)
    return is_enough and number <= most and number < math.inf


def _limit(most: float, given: float) -> str:
    if most < math.inf:
        return f", and at most {most:.0f}"
    return "" if math.isfinite(given) else " and finite"


def _shown(number: Any) -> str:
    if isinstance(number, int) and number.bit_length() > _MOST_BITS:
        return f"a number of {number.bit_length()} bits"
    return repr(number)


def _shown_name(name: Any) -> str:
    text = ascii(name)
    return text if len(text) <= 80 else f"{text[:80]}… ({len(text)} characters)"
