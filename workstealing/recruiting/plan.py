"""Which rate do I need? `plan()` answers, and forecasts what it means for the host.

It is the smallest rate that keeps gaps short and the backlog bounded in the quietest
hours. A plan calculates with means and does not know the other jobs of the recruiter:
rates and shares of wall time add up.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from workstealing.errors import ConfigurationError
from workstealing.recruiting.plan_formulas import (
    DAY,
    HIGHEST_FILL,
    Backlog,
    Drain,
    check_positive,
    drain,
    gap_kept,
    interval_for_slices,
    longest_gap,
    overlap,
    share_of_wall_time,
    slices_for_gap,
    slices_for_throughput,
    slices_of_interval,
    steady_backlog,
    tick_lateness,
    untouched_quantile,
)

__all__ = ("Forecast", "Plan", "plan")

_SMALLEST, _LARGEST = 1e-30, 1e30


@dataclass(frozen=True, slots=True)
class Forecast:
    """What to expect of a pace at a number of *calls* of the fleet per second."""

    calls: float
    slices: float
    """Slices per second, over the whole fleet."""
    backlog: Backlog
    late: float
    """The share of items that get older than *stale* seconds."""
    longest_gap: float
    """The longest time without a slice in one horizon, on average."""
    tick_late: float
    """Within so many seconds 99 % of the ticks of schedules are fired, by recruits."""
    drain: Drain
    share: float
    """Side work's share of the wall time of each process."""
    untouched: float
    """Latency quantiles below this one show nothing of side work."""
    overlap: float
    """The probability that a slice overlaps with another one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The pace to install, per call or per time, and what to expect of it."""

    rate: float
    rate_for_gap: float
    rate_for_throughput: float
    day: Forecast
    night: Forecast
    every: float | None
    """The `every=` that does the same; None if each quiet call is needed."""
    every_day: Forecast | None
    every_night: Forecast | None


def plan(
    *,
    calls_day: float,
    calls_night: float,
    processes: int,
    garbage: float,
    batch: int,
    stale: float,
    failure: float = 0.01,
    horizon: float = DAY,
    slice_seconds: float = 0.005,
    burst: float = 10_000.0,
    calls_per_request: float = 1.0,
) -> Plan:
    """Return the smallest rate that is enough, and what to expect of it.

    Args:
        calls_day: enlist calls per second of the whole fleet, by day.
        calls_night: the same in the quietest hours.
        processes: how many processes make those calls.
        garbage: new items per second.
        batch: items that one slice can take.
        stale: how many seconds without a slice are too many.
        failure: tolerated probability of such a gap in one *horizon*.
        horizon: seconds.
        slice_seconds: how long a slice lasts.
        burst: items that come at once; the forecast has how long they take.
        calls_per_request: enlist calls of one request of the host.

    Raises:
        ConfigurationError: a number makes no sense, or no rate up to 1.0 is enough.
    """
    _within_reason(calls_day=calls_day, calls_night=calls_night)
    host = _PlannedHost(
        processes=processes,
        garbage=garbage,
        batch=batch,
        stale=stale,
        horizon=horizon,
        slice_seconds=slice_seconds,
        burst=burst,
        calls_per_request=calls_per_request,
    )
    quiet = min(calls_day, calls_night)
    for_gap = slices_for_gap(stale, horizon, failure)
    for_throughput = slices_for_throughput(garbage, batch)
    needed = max(for_gap, for_throughput)
    if for_throughput > quiet:
        why = f"work off {garbage:g} items of garbage per second"
        least = math.ceil(garbage / quiet / HIGHEST_FILL)
        raise _out_of_reach(quiet, for_throughput, why, f"Raise batch to {least}")
    if for_gap > quiet:
        why = f"keep gaps below {stale:g} s"
        shortest = _rounded(gap_kept(quiet, horizon, failure), ROUND_CEILING)
        raise _out_of_reach(quiet, for_gap, why, f"Raise stale to {shortest:g} s")
    rate = min(1.0, _rounded(needed / quiet, ROUND_CEILING))
    every = _rounded(interval_for_slices(needed, quiet, processes), ROUND_FLOOR)
    return Plan(
        rate=rate,
        rate_for_gap=for_gap / quiet,
        rate_for_throughput=for_throughput / quiet,
        day=host.forecast(calls_day, calls_day * rate),
        night=host.forecast(calls_night, calls_night * rate),
        every=every or None,
        every_day=host.forecast_by_time(calls_day, every),
        every_night=host.forecast_by_time(calls_night, every),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlannedHost:
    """What a forecast depends on besides the pace; see `plan()` for the fields."""

    processes: int
    garbage: float
    batch: int
    stale: float
    horizon: float
    slice_seconds: float
    burst: float
    calls_per_request: float

    def __post_init__(self) -> None:
        _within_reason(**asdict(self))

    def forecast(self, calls: float, slices: float) -> Forecast:
        """Return what to expect of *slices* among *calls*, both per second."""
        backlog = steady_backlog(slices, self.garbage, self.batch)
        share_of_calls = min(1.0, slices / calls)
        return Forecast(
            calls=calls,
            slices=slices,
            backlog=backlog,
            late=backlog.late(self.stale),
            longest_gap=longest_gap(slices, self.horizon),
            tick_late=tick_lateness(slices),
            drain=drain(self.burst, slices, self.garbage, self.batch),
            share=share_of_wall_time(slices, self.processes, self.slice_seconds),
            untouched=untouched_quantile(share_of_calls, self.calls_per_request),
            overlap=overlap(slices, self.slice_seconds),
        )

    def forecast_by_time(self, calls: float, every: float) -> Forecast | None:
        """Return what to expect of `every=`; None if it is 0, which no job takes."""
        if not every:
            return None
        return self.forecast(calls, slices_of_interval(every, calls, self.processes))


def _out_of_reach(
    quiet: float, needed: float, why: str, remedy: str
) -> ConfigurationError:
    return ConfigurationError(
        f"calls_night is too low: {quiet:g} calls per second cannot give the"
        f" {needed:.3g} slices per second that {why}, even at rate 1.0. {remedy} or"
        " more, or add slices that need no traffic: recruiter.ticker(every=…)"
    )


def _within_reason(**fields: float) -> None:
    """Refuse numbers with which the formulas would leave the range of a float."""
    check_positive(**fields)
    for name, value in fields.items():
        if value and not _SMALLEST <= value <= _LARGEST:
            raise ConfigurationError(
                f"{name} must be from {_SMALLEST:g} to {_LARGEST:g}, not {value!r}"
            )


def _rounded(value: float, direction: str) -> float:
    """Round to three digits, so that the rate can be copied as it is shown."""
    context = Context(prec=3, rounding=direction)
    return float(context.create_decimal_from_float(value))
