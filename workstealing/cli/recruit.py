"""`workstealing recruit`: side work for a cron job or a sidecar, without a lottery."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass

import click

from workstealing.cli.importing import imported
from workstealing.errors import ConfigurationError
from workstealing.recruiting.aio import AsyncRecruiter
from workstealing.recruiting.pacing import pace
from workstealing.recruiting.recruiter import Recruiter
from workstealing.telemetry.events import Outcome

__all__ = ("recruit_command",)


@click.command("recruit")
@click.argument("where", metavar="MODULE:RECRUITER")
@click.option("--once", is_flag=True, help="One round, then exit. The default.")
@click.option(
    "--every",
    type=float,
    metavar="SECONDS",
    help="A round every so many seconds, until SIGTERM or SIGINT.",
)
def recruit_command(where: str, once: bool, every: float | None) -> None:
    """Do a slice of each job of a recruiter, lottery and budget aside.

    MODULE is looked for in the current folder first. A job of rate 0 is left out. One
    line tells how each slice ended; with --every those that found nothing are not told.

    Exits with 1 if a job or a setup function failed or there is no job, which a loop
    takes as it comes.
    """
    if once and every is not None:
        raise click.UsageError("choose one of --once and --every")
    try:
        if every is not None:
            pace(None, every)
        recruiter = _recruiter(where)
    except ConfigurationError as error:
        raise click.UsageError(str(error)) from error
    # Does nothing if the module has set up logging itself.
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    if not asyncio.run(_recruit(recruiter, every)):
        raise SystemExit(1)


@dataclass(frozen=True, slots=True)
class _Report:
    job: str
    outcome: Outcome
    seconds: float

    def __str__(self) -> str:
        return f"{self.job}: {self.outcome}, {self.seconds:.3f} s"


async def _recruit(recruiter: Recruiter | AsyncRecruiter, every: float | None) -> bool:
    """Go round until told to stop; tell whether all went well."""
    stop = _stopped_by_signals()
    if every is None:
        return await _go_round(recruiter, stop, tell_empty=True)
    while not stop.is_set():
        await _go_round(recruiter, stop, tell_empty=False)
        try:
            await asyncio.wait_for(stop.wait(), every)
        except asyncio.TimeoutError:
            continue
    return True


async def _go_round(
    recruiter: Recruiter | AsyncRecruiter, stop: asyncio.Event, *, tell_empty: bool
) -> bool:
    failures_before = recruiter.stats().setup_failures
    number, is_well = 0, True
    async for report in _reports(recruiter, stop):
        number += 1
        is_well = is_well and report.outcome is not Outcome.ERROR
        if tell_empty or report.outcome is not Outcome.EMPTY:
            click.echo(report)
    if recruiter.stats().setup_failures > failures_before:
        click.echo("a setup function failed", err=True)
        return False
    if not number and not stop.is_set():
        click.echo("no job is installed on this recruiter", err=True)
        return False
    return is_well


async def _reports(
    recruiter: Recruiter | AsyncRecruiter, stop: asyncio.Event
) -> AsyncIterator[_Report]:
    # An enlist with no time to spare does no slice, but lets setup functions run.
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
            outcome = await recruiter.muster(name)
        else:
            # In a thread, so that a job may run an event loop of its own.
            outcome = await asyncio.to_thread(recruiter.muster, name)
        assert outcome is not None
        # A job may have uninstalled itself.
        after = recruiter.stats().jobs.get(name, before)
        yield _Report(name, outcome, after.seconds - before.seconds)


def _stopped_by_signals() -> asyncio.Event:
    """Return an event that the first signal sets; a second one ends the process."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            # Python's own answer to Ctrl-C would wait for a job that hangs.
            signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)
    return stop


def _recruiter(where: str) -> Recruiter | AsyncRecruiter:
    found = imported(where, "MODULE:RECRUITER, like app:recruiter")
    if not isinstance(found, (Recruiter, AsyncRecruiter)):
        raise ConfigurationError(
            f"{where} is a {type(found).__name__}, not a Recruiter or AsyncRecruiter"
        )
    return found
