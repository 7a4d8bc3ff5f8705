"""Everything this library raises.

WorkStealingError
├── ConfigurationError      wrong arguments; fix the code
│   ├── InvalidRate         not a number, NaN, below 0.0 or above 1.0
│   ├── InvalidInterval     `every=` is not a positive number of seconds
│   ├── RateExceeded        installed rates add up to more than 1.0
│   ├── AmbiguousPace       both or none of `rate=` and `every=`
│   ├── DuplicateJob        the name is taken
│   ├── UnknownJob          no job of that name
│   ├── NotAJob             neither a callable nor an object with `recruited()`
│   ├── CoroutineJob        a coroutine job on a recruiter that cannot await it
│   └── MissingExtra        names the extra to install
├── Conflict                another recruit is at it; nothing is wrong
├── InvalidDuty             a job returned something that is not a Duty
└── RedisError              what a server said, or did not say; the cause is kept
    ├── RedisUnavailable    not reached, or no reply; safe to try again
    ├── RedisReadOnly       a replica, or too few replicas to write
    ├── RedisOutOfMemory    `maxmemory` is reached and nothing may be evicted
    ├── WrongType           the key holds something else
    └── ServerTooOld        the server lacks a command that is needed
"""

from __future__ import annotations

__all__ = (
    "AmbiguousPace",
    "ConfigurationError",
    "Conflict",
    "CoroutineJob",
    "DuplicateJob",
    "InvalidDuty",
    "InvalidInterval",
    "InvalidRate",
    "MissingExtra",
    "NotAJob",
    "RateExceeded",
    "RedisError",
    "RedisOutOfMemory",
    "RedisReadOnly",
    "RedisUnavailable",
    "ServerTooOld",
    "UnknownJob",
    "WorkStealingError",
    "WrongType",
)


class WorkStealingError(Exception):
    """The root of all errors of this library."""


class ConfigurationError(WorkStealingError):
    """Wrong arguments: the code that passed them must change."""


class InvalidRate(ConfigurationError):
    """A rate is not a number from 0.0 to 1.0."""


class InvalidInterval(ConfigurationError):
    """An interval is not a positive, finite number of seconds."""


class RateExceeded(ConfigurationError):
    """The installed rates add up to more than 1.0."""


class AmbiguousPace(ConfigurationError):
    """A job needs exactly one of `rate=` and `every=`."""


class DuplicateJob(ConfigurationError):
    """The recruiter has a job of that name already."""


class UnknownJob(ConfigurationError):
    """The recruiter has no job of that name."""


class NotAJob(ConfigurationError):
    """The object is neither callable nor has a `recruited()` method."""


class CoroutineJob(ConfigurationError):
    """A coroutine job was given to a recruiter that cannot await it."""


class MissingExtra(ConfigurationError):
    """A feature needs a package that is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed: run  pip install 'workstealing[{extra}]'"
        )
        self.package = package
        self.extra = extra


class Conflict(WorkStealingError):
    """Raised by a job that finds another recruit at the same work.

    The slice ends and is counted as a conflict, not as an error.
    """


class InvalidDuty(WorkStealingError):
    """A job returned something that is neither a `Duty` nor None."""


class RedisError(WorkStealingError):
    """A Redis server refused or failed; `__cause__` is the client's error."""


class RedisUnavailable(RedisError):
    """The server was not reached or did not answer in time."""


class RedisReadOnly(RedisError):
    """The server takes no writes: a replica, or too few replicas are in reach."""


class RedisOutOfMemory(RedisError):
    """The server reached `maxmemory` and may not evict anything."""


class WrongType(RedisError):
    """A key holds another type than the one that is needed."""


class ServerTooOld(RedisError):
    """The server lacks a command that is needed."""
