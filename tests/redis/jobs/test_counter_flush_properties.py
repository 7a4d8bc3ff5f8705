from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis import Redis

from workstealing import Duty
from workstealing.errors import Conflict, HookFailed
from workstealing.jobs import CounterFlush

CHANGES = ("increment", "begin", "begin", "lease runs out", "die", "sink fails")
histories = st.lists(
    st.tuples(st.sampled_from(CHANGES + ("step",) * 2), st.integers(0, 4)),
    min_size=20,
    max_size=80,
)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(history=histories, batch=st.integers(1, 5))
def test_every_count_reaches_the_sink_once_per_batch_id(
    redis_client: Redis,
    key_prefix: str,
    stepped: Callable[..., Any],
    history: list[tuple[str, int]],
    batch: int,
) -> None:
    key = f"{key_prefix}:{uuid4().hex}"
    recorded: dict[str, dict[str, int]] = {}
    counted: Counter[str] = Counter()
    slices: list[Any] = []
    failures = 0

    def sink(batch_id: str, counts: dict[str, int]) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise LookupError("the database is away")
        assert recorded.setdefault(batch_id, counts) == counts

    def numbers(key: str) -> Counter[str]:
        flat = redis_client.hgetall(key).items()
        return Counter({name.decode(): int(count) for name, count in flat})

    def everywhere() -> Counter[str]:
        total = numbers(key)
        for counts in recorded.values():
            total.update(counts)
        batch_id = redis_client.get(f"{{{key}}}:batch")
        if batch_id is not None and batch_id.decode() not in recorded:
            total.update(numbers(f"{{{key}}}:taken"))
        return total

    counters = CounterFlush(redis_client, key, sink, batch=batch)

    def advance(recruit: Any, steps: int = 1) -> None:
        with suppress(Conflict, HookFailed):
            for _ in range(steps):
                if not recruit.ended:
                    recruit.step()
        slices[:] = [each for each in slices if each._flow.gi_frame]

    for change, number in history:
        if change == "increment":
            counters.increment(f"c{number}", number + 1)
            counted[f"c{number}"] += number + 1
        elif change == "begin":
            slices.append(stepped(counters._driver, counters._steps.flush()))
            advance(slices[-1], number)
        elif change == "sink fails":
            failures = 1
        elif change == "lease runs out":
            redis_client.unlink(f"{{{key}}}:lease")
        elif slices:
            place = number % len(slices)
            if change == "die":
                del slices[place]
            else:
                advance(slices[place])
        assert everywhere() == counted

    failures = 0
    for each in slices:
        with suppress(Conflict, HookFailed):
            each.finish()
    redis_client.unlink(f"{{{key}}}:lease")
    while counters.recruited() is not Duty.DISMISSED:
        pass
    assert counters.pending() == 0
    assert sum(map(Counter, recorded.values()), Counter()) == counted
