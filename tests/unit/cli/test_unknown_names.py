"""A command that is given an unknown name of a task says which one was meant."""

from __future__ import annotations

from typing import Any

import pytest

from workstealing.cli.options import BadInput
from workstealing.cli.queue_pause import _refuse_unknown
from workstealing.testing import MemoryQueue


@pytest.mark.parametrize("given", ["mail", "mial", "invoices.tasks.mial"])
def test_the_end_of_a_name_or_a_misspelt_one_suggests_the_whole(given: str) -> None:
    queue: Any = MemoryQueue("invoices")

    @queue.task(name="invoices.tasks.mail")
    def mail(to: str) -> None: ...

    with pytest.raises(BadInput, match=r"Did you mean invoices\.tasks\.mail\?"):
        _refuse_unknown(queue, queue.counts(), given)
