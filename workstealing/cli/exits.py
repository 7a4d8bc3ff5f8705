"""How a command fails: one clear line on stderr and an exit code, never a traceback.

| code | meaning |
|---|---|
| 1 | it could not be done: the task failed, Redis did, no worker is alive |
| 2 | bad input; nothing was done |
| 3 | it took longer than `--timeout` |
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from workstealing.errors import (
    ConfigurationError,
    PayloadInvalid,
    PayloadTooLarge,
    ResultTimeout,
    WorkStealingError,
)

__all__ = ("BadInput", "clear_errors")


class BadInput(click.ClickException):
    """The words or options of a command make no sense."""

    exit_code = 2


class _TimedOut(click.ClickException):
    exit_code = 3


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn errors of the library into those of a command; also a decorator."""
    try:
        yield
    except (ConfigurationError, PayloadInvalid, PayloadTooLarge) as error:
        raise BadInput(str(error)) from error
    except ResultTimeout as error:
        raise _TimedOut(str(error)) from error
    except WorkStealingError as error:
        raise click.ClickException(str(error)) from error
