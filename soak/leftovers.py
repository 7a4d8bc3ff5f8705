"""Which keys are left when all is done, and how much memory they take.

What has no bound would grow from soak to soak, so every key that is left must be one of
those that may be, and be small.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from soak import app
from soak.bill import Bill
from soak.stage import Stage
from workstealing.client.queue_internals import internals_of

__all__ = ("check_leftovers", "memory_in_use")

_PAGE = Path(__file__).parents[1] / "docs" / "envelope.md"
# Of one server: code of scripts, tables of keys that do not shrink at once.
_MOST_BYTES = 4 << 20
# What stays when no task, no worker and no outcome does, and how many entries it has.
# Groups are remembered as long as outcomes would be.
_STAYS = {
    "bell": 16,
    "control": 12,
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
    return sum(
        int(stage.ask(index, "INFO", "memory")["used_memory_dataset"])
        for index in stage.primaries()
    )


def check_leftovers(bill: Bill, stage: Stage, baseline: int) -> None:
    """Cancel, drop and purge what is left, and look at the keys."""
    app.queue.cancel_many()
    app.queue.drop_many()
    app.queue.purge()
    left = _left(stage)
    may_stay = _STAYS | dict.fromkeys(("groups", "group_times"), bill.groups)
    table = _PAGE.read_text().partition("## The keys of a queue")[2]
    firsts = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    documented = {word for cell in firsts for word in re.findall(r"`([a-z_]+)", cell)}
    bill.check(
        "every key is documented",
        (one.key for one in left if one.word not in documented),
    )
    bill.check(
        "no key is left without a bound",
        (
            f"{one.key} with {one.size}"
            for one in left
            if one.size > may_stay.get(one.word, 0) and not one.expires
        ),
    )
    bill.notes["keys left"] = ", ".join(sorted({one.word for one in left}))
    grown = memory_in_use(stage) - baseline
    bill.notes["memory above the baseline"] = f"{grown / 1024:,.0f} KiB"
    if grown > _MOST_BYTES * len(stage.primaries()):
        bill.broken.append(f"memory is back at its baseline: {grown:,} bytes above it")


@dataclass(frozen=True, slots=True)
class _Left:
    key: str
    word: str
    """What the key is called in the documentation."""
    size: int
    expires: bool


def _left(stage: Stage) -> list[_Left]:
    prefixes = [keys.prefix for keys in internals_of(app.queue).shards.all]
    found = []
    for index in stage.primaries():
        for key in stage.ask(index, "KEYS", "*"):
            kind = stage.ask(index, "TYPE", key)
            if kind == "none":
                continue  # it has just expired
            name = key
            for prefix in prefixes:
                name = name.removeprefix(prefix)
            size = int(stage.ask(index, _LENGTHS[kind], key))
            expires = int(stage.ask(index, "PTTL", key)) >= 0
            found.append(_Left(key, name.partition(":")[0], size, expires))
    return found
