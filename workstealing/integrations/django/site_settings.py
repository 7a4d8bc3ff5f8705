"""The setting `WORKSTEALING`: read and checked once, when the site starts.

An error names the key and what to write. Nothing is connected, and no module of
the site is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from workstealing._checks import did_you_mean
from workstealing.errors import ConfigurationError
from workstealing.integrations.conditions import When
from workstealing.recruiting.job import Every, pace
from workstealing.recruiting.recruiter import Recruiter

__all__ = ("JobPlan", "QueuePlan", "SiteSettings", "read_settings")

_UPKEEP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job of the settings: where it is, and how often it runs."""

    path: str
    """The dotted path of a function, or of an object with `recruited()`."""
    options: Mapping[str, Any]
    """`rate` or `every`, and `target`."""


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """A task queue of the settings."""

    options: Mapping[str, Any]
    """Arguments of `TaskQueue`."""
    upkeep: Every | None = _UPKEEP_SECONDS
    """Seconds between two slices of upkeep per process; None leaves it to workers."""


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """The whole setting `WORKSTEALING`."""

    redis: str | None = None
    """A URL; None means the one of the environment, or the embedded server."""
    recruiter: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `Recruiter`."""
    when: When | None = field(default_factory=When.always)
    """After which requests to enlist; None means none."""
    jobs: Mapping[str, JobPlan] = field(default_factory=dict)
    queues: Mapping[str, QueuePlan] = field(default_factory=dict)


def read_settings(raw: object) -> SiteSettings:
    """Check the setting of a site.

    Raises:
        ConfigurationError: names the key that is wrong, and what to write.
    """
    given = _mapping(raw, "WORKSTEALING", _KEYS)
    redis = given.get("REDIS")
    if redis is not None:
        _check_url(redis)
    return SiteSettings(
        redis=redis,
        recruiter=_recruiter(given.get("RECRUITER", {})),
        when=_when(given.get("WHEN", "always")),
        jobs=_jobs(given),
        queues=_named(given, "QUEUES", _queue),
    )


def _check_url(redis: object) -> None:
    # Imports redis-py, which a site without a URL does not need.
    from workstealing.drivers.address import parse_address

    with _naming_key("REDIS"):
        if not isinstance(redis, str):
            raise ConfigurationError(
                "write a URL such as redis://localhost:6379/0, or None for"
                f" $WORKSTEALING_URL, $REDIS_URL or the embedded server, not a"
                f" {type(redis).__name__}"
            )
        parse_address(redis)


def _recruiter(raw: object) -> Mapping[str, Any]:
    options = _mapping(raw, _key("RECRUITER"), _RECRUITER)
    for name, value in options.items():
        if name == "observers":
            continue
        with _naming_key("RECRUITER", name):
            Recruiter(**{name: value})
    observers = options.get("observers", ())
    if not isinstance(observers, list | tuple):
        raise ConfigurationError(
            f"{_key('RECRUITER', 'observers')}: write a list of observers, or of their"
            f" dotted paths, not {observers!r}"
        )
    return options


def _when(raw: object) -> When | None:
    if raw is None or isinstance(raw, When):
        return raw
    if isinstance(raw, str) and raw in _WHEN:
        return _WHEN[raw]()
    names = ", ".join(map(repr, _WHEN))
    raise ConfigurationError(
        f"{_key('WHEN')}: write {names}, a When such as When.quick(0.1), or None to"
        f" enlist after no request, not {raw!r}"
    )


def _jobs(given: Mapping[str, Any]) -> Mapping[str, JobPlan]:
    plans: Mapping[str, JobPlan] = _named(given, "JOBS", _job)
    trial = Recruiter()
    for name, plan in plans.items():
        with _naming_key("JOBS", name):
            trial.install(trial.hook, name, **plan.options)
    return plans


def _job(name: str, raw: object) -> JobPlan:
    key = _key("JOBS", name)
    options = dict(_mapping(raw, key, _JOB))
    path = options.pop("job", None)
    if not isinstance(path, str) or "." not in path:
        raise ConfigurationError(
            f'{key}["job"]: write the dotted path of a function or of a job object,'
            f' such as "shop.jobs.sweep", not {path!r}'
        )
    return JobPlan(path, options)


def _queue(name: str, raw: object) -> QueuePlan:
    # Imports redis-py, which a site without queues does not need.
    from workstealing.client.task_queue import TaskQueue

    known = (
        one for one in signature(TaskQueue).parameters if one not in _NOT_IN_QUEUES
    )
    options = dict(_mapping(raw, _key("QUEUES", name), (*known, "upkeep")))
    upkeep = options.pop("upkeep", _UPKEEP_SECONDS)
    if upkeep is not None:
        with _naming_key("QUEUES", name, "upkeep"):
            pace(None, upkeep)
    TaskQueue(name, **options)
    return QueuePlan(options, upkeep)


def _named(
    given: Mapping[str, Any], key: str, read: Callable[[str, object], Any]
) -> Mapping[str, Any]:
    plans = {}
    for name, raw in _mapping(given.get(key, {}), _key(key)).items():
        with _naming_key(key, name):
            plans[name] = read(name, raw)
    return plans


def _mapping(
    raw: object, key: str, known: tuple[str, ...] | None = None
) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise ConfigurationError(
            f"{key}: write a dictionary, not a {type(raw).__name__}"
        )
    for name in raw:
        if not isinstance(name, str):
            raise ConfigurationError(f"{key}: keys must be strings, not {name!r}")
        if known is not None and name not in known:
            near = did_you_mean(name, known)
            hint = f"did you mean {near!r}? " if near else ""
            raise ConfigurationError(
                f"{key} has no key {name!r}: {hint}It takes {', '.join(known)}"
            )
    return raw


@contextmanager
def _naming_key(*names: str) -> Iterator[None]:
    """Prefix an error with the key that it is about."""
    key = _key(*names)
    try:
        yield
    except ConfigurationError as error:
        if str(error).startswith("WORKSTEALING"):
            raise
        raise ConfigurationError(f"{key}: {error}") from error


def _key(*names: str) -> str:
    return "WORKSTEALING" + "".join(f'["{name}"]' for name in names)


_KEYS = ("REDIS", "RECRUITER", "WHEN", "JOBS", "QUEUES")
_RECRUITER = ("deadline", "share", "breaker", "gate", "adapt", "observers")
_JOB = ("job", "rate", "every", "target")
# The name is the key; the rest is the same for all queues of a site.
_NOT_IN_QUEUES = frozenset({"name", "redis", "registry", "clock"})
_WHEN: dict[str, Callable[[], When]] = {
    "always": When.always,
    "fine": When.fine,
    "asked": When.asked,
}
