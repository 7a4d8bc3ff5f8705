"""Which keys are left when all is done, and how much memory they take.

What has no bound would grow from soak to soak, so every key that is left must be one of
those that may be, and be small.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from soak import app
from soak.bill import Bill
from soak.stage import Stage
from workstealing.client.queue_internals import internals_of

__all__ = ("check_leftovers", "memory_in_use")

_PAGE = Path(__file__).parents[1] / "docs" / "envelope.md"
_MOST_BYTES = 4 << 20
# What stays when no task, no worker and no outcome does, and how many entries it has.
# Groups are remembered as long as outcomes would be.
_STAYS = {
    "bell": 16,
    "control": 8,
    "declared_schedules": 1,
    "firings": 1,
    "hundred_minutes": 1000,
    "limits": 4,
    "parked_abilities": 1,
    "paused_schedules": 1,
    "rates": 1,
    "releases": 50,
    "schedules": 1,
    "stats": 40,
    "ten_minutes": 1000,
    "thefts": 200,
    "ticks": 1,
    "upkeep": 20,
}
_LENGTHS = {
    "hash": "HLEN",
    "zset": "ZCARD",
    "list": "LLEN",
    "set": "SCARD",
    "stream": "XLEN",
    "string": "STRLEN",
}


def memory_in_use(stage: Stage) -> int:
    """Return the bytes of all keys, without those of clients and buffers."""
    return int(stage.ask_primary("INFO", "memory")["used_memory_dataset"])


def check_leftovers(bill: Bill, stage: Stage, baseline: int) -> None:
    """Cancel, drop and purge what is left, and look at the keys."""
    app.queue.cancel_many()
    app.queue.drop_many()
    app.queue.purge()
    sizes = _sizes(stage)
    may_stay = _STAYS | dict.fromkeys(("groups", "group_times"), bill.groups)
    documented = set(re.findall(r"`([a-z_]+)[^`|]*`", _PAGE.read_text()))
    names = {name: name.partition(":")[0] for name in sizes}
    bill.check(
        "every key is documented",
        (name for name, word in names.items() if word not in documented),
    )
    bill.check(
        "no key is left without a bound",
        (
            f"{name} with {size}"
            for name, size in sizes.items()
            if size > may_stay.get(names[name], 0)
        ),
    )
    bill.notes["keys left"] = ", ".join(sorted(sizes))
    grown = memory_in_use(stage) - baseline
    bill.notes["memory above the baseline"] = f"{grown / 1024:,.0f} KiB"
    if grown > _MOST_BYTES:
        bill.broken.append(f"memory is back at its baseline: {grown:,} bytes above it")


def _sizes(stage: Stage) -> dict[str, int]:
    prefix = internals_of(app.queue).keys.prefix
    sizes = {}
    for key in stage.ask_primary("KEYS", "*"):
        kind: Any = stage.ask_primary("TYPE", key)
        sizes[key.removeprefix(prefix)] = int(stage.ask_primary(_LENGTHS[kind], key))
    return sizes
