"""Computes when a schedule ticks, and which of its ticks are fired; without I/O.

A *tick* is a moment at which a schedule fires, in milliseconds since 1970. Ticks follow
from the schedule alone, never from who looks or when: so all processes agree on them,
and the id of the task, `<schedule>@<tick>`, makes one firing of each. An interval ticks
at the whole multiples of itself since 1970, in UTC; a cron expression in its time zone,
with the changes of the clocks handled as Debian's cron does (`cronsim` says how).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from workstealing._checks import checked_name, checked_seconds
from workstealing.clock import EPOCH
from workstealing.errors import ConfigurationError

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

__all__ = (
    "LATE_MS",
    "MOST_MISSED",
    "PROMPT_MS",
    "DueTicks",
    "Missed",
    "Timing",
    "checked_schedule_name",
    "checked_timing",
    "due_ticks",
    "jitter_of",
    "tick_id",
    "tick_text",
)

Missed = Literal["skip", "once", "all"]
"""What becomes of ticks that nobody was there to fire."""

PROMPT_MS = 5000
"""A tick that is not later than this was not missed: somebody fires all such ticks."""
LATE_MS = 300_000
"""With `missed="skip"`, a tick that is later than this was missed."""
MOST_MISSED = 100
"""With `missed="all"`, the newest so many are made up for."""

# So many ticks are counted one by one; of more than that, only the newest are found.
_MOST_COUNTED = 1000
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_SHORTEST_MS = 1000
_LONGEST_MS = 366 * 86_400_000
# With `@` and the tick behind it, it must still be the id of a task.
_LONGEST_SCHEDULE = 160
_NOT_IN_SCHEDULES = frozenset("{}@")


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule ticks; made by `checked_timing`."""

    every_ms: int = 0
    """An interval; or 0, and then there is a cron expression."""
    cron: str = ""
    timezone: str = "UTC"

    def after(self, moment_ms: int) -> int:
        """Return the first tick after a moment."""
        for tick in self.ticks_after(moment_ms):
            return tick
        raise ConfigurationError(f"{self} does not come again within fifty years")

    def ticks_after(self, moment_ms: int) -> Iterator[int]:
        """Yield the ticks after a moment, one after the other."""
        if self.every_ms:
            tick = moment_ms // self.every_ms * self.every_ms
            while True:
                tick += self.every_ms
                yield tick
        last_ms = moment_ms
        for found in _cron_ticks(self.cron, moment_ms, self.timezone):
            tick = int(found.timestamp()) * 1000
            # An hour that comes twice can lead back.
            if tick > last_ms:
                last_ms = tick
                yield tick

    def before(self, moment_ms: int, earliest_ms: int) -> int | None:
        """Return the last tick before a moment, if one is after the earliest."""
        if self.every_ms:
            tick = (moment_ms - 1) // self.every_ms * self.every_ms
            return tick if tick > earliest_ms else None
        # Ever further back until there is a tick, and then ever closer to the last.
        step_ms = 1000
        start_ms = max(earliest_ms, moment_ms - step_ms)
        while self.after(start_ms) >= moment_ms:
            if start_ms <= earliest_ms:
                return None
            step_ms *= 2
            start_ms = max(earliest_ms, moment_ms - step_ms)
        tick, end_ms = self.after(start_ms), moment_ms
        while end_ms - tick > 1000:
            middle_ms = (tick + end_ms) // 2
            later = self.after(middle_ms)
            if later < moment_ms:
                tick = later
            else:
                end_ms = middle_ms
        later = self.after(tick)
        return later if later < moment_ms else tick

    def __str__(self) -> str:
        if self.every_ms:
            return f"every {timedelta(milliseconds=self.every_ms)}"
        return f"{self.cron} ({self.timezone})"


@dataclass(frozen=True, slots=True)
class DueTicks:
    """What to do about a schedule whose tick has come."""

    fire: tuple[int, ...]
    """Ticks to fire, the oldest first."""
    following: int
    """The first tick that is not due yet."""
    missed: int
    """Ticks that are not fired; beyond a thousand they are no longer counted."""


def due_ticks(timing: Timing, missed: Missed, tick: int, now_ms: int) -> DueTicks:
    """Decide which ticks are fired, from the one that is due to the latest."""
    ticks, following = [tick], 0
    for later in timing.ticks_after(tick):
        if later > now_ms:
            following = later
            break
        ticks.append(later)
        if len(ticks) >= _MOST_COUNTED:
            break
    if not following:
        ticks += _newest(timing, ticks[-1], now_ms)
        following = timing.after(now_ms)
    if missed == "all" or now_ms - tick <= PROMPT_MS:
        fire = ticks[-MOST_MISSED:]
    elif missed == "skip" and now_ms - ticks[-1] > LATE_MS:
        fire = []
    else:
        fire = ticks[-1:]
    return DueTicks(tuple(fire), following, len(ticks) - len(fire))


def _newest(timing: Timing, earliest_ms: int, now_ms: int) -> list[int]:
    """Return the newest ticks, without counting those before them."""
    found: list[int] = []
    before = timing.before(now_ms + 1, earliest_ms)
    while before is not None and len(found) < MOST_MISSED:
        found.append(before)
        before = timing.before(before, earliest_ms)
    return found[::-1]


def jitter_of(name: str, tick: int, jitter_ms: int) -> int:
    """Return how much later than its tick a task is due: less than the jitter.

    It depends on the name and the tick alone, so that all processes agree.
    """
    if not jitter_ms:
        return 0
    digest = hashlib.blake2b(f"{name}@{tick}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % jitter_ms


def tick_id(name: str, tick: int) -> str:
    """Return the id of the task of a tick: `report@2026-11-17T19:00:00Z`."""
    return f"{name}@{tick_text(tick)}"


def tick_text(tick: int) -> str:
    """Write a tick in UTC; with milliseconds only if it has any."""
    moment = EPOCH + timedelta(milliseconds=tick)
    precision = "milliseconds" if tick % 1000 else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def checked_schedule_name(name: Any) -> str:
    """Return the name of a schedule; `@` stands before its ticks, so not in it."""
    return checked_name(
        name, "the name of a schedule", _NOT_IN_SCHEDULES, _LONGEST_SCHEDULE
    )


def checked_timing(every: Any, zone: Any = None) -> Timing:
    """Return when a schedule ticks: a cron expression, or an interval.

    Raises:
        ConfigurationError: it never does, or nobody can tell when.
    """
    if not isinstance(every, str):
        if zone is not None:
            raise ConfigurationError(
                "timezone= is for cron expressions: an interval is the same in every"
                " zone"
            )
        kinds = "seconds, a timedelta or a cron expression"
        every_ms = round(checked_seconds(every, "every", kinds=kinds) * 1000)
        if not _SHORTEST_MS <= every_ms <= _LONGEST_MS:
            raise ConfigurationError(
                f"every must be from 1 second to 366 days, not {every}"
            )
        return Timing(every_ms=every_ms)
    if not isinstance(zone, str | None):
        raise ConfigurationError(
            f"timezone must be a name such as 'Europe/Berlin', not {zone!r}"
        )
    return _cron_timing(every, "UTC" if zone is None else zone)


@lru_cache(maxsize=1024)
def _cron_timing(cron: str, zone: str) -> Timing:
    _zone(zone)
    timing = Timing(cron=cron, timezone=zone)
    # From a fixed day: whether it is refused must not depend on when.
    for _ in timing.ticks_after(_SOME_DAY_MS):
        return timing
    raise _never(cron)


def _cron_ticks(cron: str, moment_ms: int, zone: str) -> Iterator[datetime]:
    moment = EPOCH + timedelta(milliseconds=moment_ms)
    if zone == "UTC":
        return _cron(cron, moment)
    # As cronsim decides it. It steps by hours, which do not always begin at :00 where
    # the clocks are changed by less, as on Lord Howe Island.
    fields = cron.split()
    if len(fields) != 5 or any(field.startswith("*") for field in fields[:2]):
        return _by_real_time(cron, moment.replace(microsecond=0), _zone(zone))
    return _cron(cron, moment.astimezone(_zone(zone)))


def _by_real_time(cron: str, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield the ticks of an expression that is not moved out of skipped hours.

    Between two changes of the clocks, they are those of a clock that is never changed.
    """
    change: datetime | None = moment + _SECOND
    while change is not None:
        moment, offset = change - _SECOND, _offset(change, zone)
        change = None
        for found in _cron(cron, (moment + offset).replace(tzinfo=None)):
            tick = found.replace(tzinfo=EPOCH.tzinfo) - offset
            change = _first_change(moment, tick, zone, offset)
            if change is not None:
                break
            yield tick
            moment = tick


def _first_change(
    moment: datetime, end: datetime, zone: ZoneInfo, offset: timedelta
) -> datetime | None:
    """Return from when on the offset from UTC is another, if it is so by the end."""
    while moment < end:
        later = min(moment + _DAY, end)
        if _offset(later, zone) != offset:
            while later - moment > _SECOND:
                middle = moment + (later - moment) // 2
                middle = middle.replace(microsecond=0)
                if _offset(middle, zone) == offset:
                    moment = middle
                else:
                    later = middle
            return later
        moment = later
    return None


def _offset(moment: datetime, zone: ZoneInfo) -> timedelta:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def _cron(expression: str, start: datetime) -> Iterator[datetime]:
    # Imported late: most processes have no schedules.
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(expression, start)
    except CronSimError as error:
        if "day-of-month" in str(error):
            fields = expression.split()
            with suppress(CronSimError):
                # If other months have such a day, only its own do not.
                CronSim(" ".join([*fields[:-2], "*", *fields[-1:]]), start)
                raise _never(expression) from error
        raise ConfigurationError(
            f"{expression!r} is not a cron expression: {str(error).lower()}; five"
            " fields are minute, hour, day, month and day of the week, such as"
            " '*/5 * * * *'; names such as @daily are not supported"
        ) from error


def _never(cron: str) -> ConfigurationError:
    return ConfigurationError(
        f"the cron expression {cron!r} never happens: there is no such day"
    )


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"there is no time zone {name!r} here: give a name such as"
            " 'Europe/Berlin'. On a system without time zones, the extra 'timezones'"
            " brings them: pip install 'workstealing[timezones]'"
        ) from error


_SOME_DAY_MS = 1_767_225_600_000
