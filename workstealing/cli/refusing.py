"""How a command says no: one clear line and an exit code, never a traceback.

| code | meaning |
|---|---|
| 1 | the task failed, or Redis did |
| 2 | bad input |
| 3 | it took longer than the caller would wait |
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

__all__ = ("BadInput", "refusing")


class BadInput(click.ClickException):
    """What the user wrote cannot be meant."""

    exit_code = 2


class _TooLate(click.ClickException):
    exit_code = 3


@contextmanager
def refusing() -> Iterator[None]:
    """Turn errors of the library into what a command says; also a decorator."""
    try:
        yield
    except (ConfigurationError, PayloadInvalid, PayloadTooLarge) as error:
        raise BadInput(str(error)) from error
    except ResultTimeout as error:
        raise _TooLate(str(error)) from error
    except WorkStealingError as error:
        raise click.ClickException(str(error)) from error
