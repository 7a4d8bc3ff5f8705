"""`workstealing recruit`: runs side work from a cron job or a sidecar."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass

import click

from workstealing._printing import on_one_line
from workstealing.cli.options import BadInput, clear_errors, imported_object
from workstealing.recruiting.async_recruiter import AsyncRecruiter
from workstealing.recruiting.job import pace
from workstealing.recruiting.recruiter import Recruiter
from workstealing.telemetry.events import Outcome

__all__ = ("recruit_command",)


@click.command("recruit")
@click.argument("where", metavar="MODULE:RECRUITER")
@click.option("--once", is_flag=True, help="Do one round and exit; the default.")
@click.option(
    "--every",
    type=float,
    metavar="SECONDS",
    help="Do a round at this interval, until SIGTERM or SIGINT.",
)
@clear_errors()
def recruit_command(where: str, once: bool, every: float | None) -> None:
    """Do one slice of each job of a recruiter, without a lottery.

    MODULE is searched for in the current folder first. Jobs with rate 0 are left out.
    Prints how each slice ended; with --every, those that found nothing are left out.

    Exits with 1 if a job or a setup function failed, or if there is no job; with
    --every it carries on.
    """
    if once and every is not None:
        raise BadInput("give --once or --every, not both")
    if every is not None:
        pace(None, every)
    recruiter = _recruiter(where)
    # Does nothing if the application has set up logging.
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    if not asyncio.run(_recruit(recruiter, every)):
        raise SystemExit(1)


@dataclass(frozen=True, slots=True)
class _SliceReport:
    job: str
    outcome: Outcome
    seconds: float

    def __str__(self) -> str:
        return f"{self.job}: {self.outcome}, {self.seconds:.3f} s"


async def _recruit(recruiter: Recruiter | AsyncRecruiter, every: float | None) -> bool:
    """Do rounds until a signal arrives; return whether all went well."""
    stop = _stopped_by_signals()
    if every is None:
        return await _do_round(recruiter, stop, print_empty=True)
    while not stop.is_set():
        await _do_round(recruiter, stop, print_empty=False)
        try:
            await asyncio.wait_for(stop.wait(), every)
        except asyncio.TimeoutError:
            continue
    return True


async def _do_round(
    recruiter: Recruiter | AsyncRecruiter, stop: asyncio.Event, *, print_empty: bool
) -> bool:
    failures_before = recruiter.stats().setup_failures
    number, is_ok = 0, True
    async for report in _reports(recruiter, stop):
        number += 1
        is_ok = is_ok and report.outcome is not Outcome.ERROR
        if print_empty or report.outcome is not Outcome.EMPTY:
            click.echo(on_one_line(str(report)))
    if recruiter.stats().setup_failures > failures_before:
        click.echo("a setup function failed", err=True)
        return False
    if not number and not stop.is_set():
        click.echo("this recruiter has no jobs", err=True)
        return False
    return is_ok


async def _reports(
    recruiter: Recruiter | AsyncRecruiter, stop: asyncio.Event
) -> AsyncIterator[_SliceReport]:
    # Without time to spare it does no slice, but runs the setup functions.
    if isinstance(recruiter, AsyncRecruiter):
        await recruiter.enlist(spare=0.0)
    else:
        await asyncio.to_thread(recruiter.enlist, 0.0)
    for name, before in recruiter.stats().jobs.items():
        if stop.is_set():
            return
        if before.rate == 0.0 or name not in recruiter.stats().jobs:
            continue
        if isinstance(recruiter, AsyncRecruiter):
            outcome = await recruiter.run_now(name)
        else:
            # In a thread, so that a job may run its own event loop.
            outcome = await asyncio.to_thread(recruiter.run_now, name)
        assert outcome is not None
        # A job may have uninstalled itself.
        after = recruiter.stats().jobs.get(name, before)
        yield _SliceReport(name, outcome, after.seconds - before.seconds)


def _stopped_by_signals() -> asyncio.Event:
    """Return an event that the first signal sets; a second one kills the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            # Python's own handler would wait for a job that hangs.
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    return stop


def _recruiter(where: str) -> Recruiter | AsyncRecruiter:
    form = "MODULE:RECRUITER, like app:recruiter"
    recruiter: Recruiter | AsyncRecruiter
    recruiter = imported_object(where, form, Recruiter, AsyncRecruiter)
    return recruiter
