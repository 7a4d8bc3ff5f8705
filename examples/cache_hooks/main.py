"""A shop with existing caches: their hits do the work, their misses are counted.

`python examples/cache_hooks/main.py` ends after some seconds.
"""

from __future__ import annotations

import math
import random
import secrets
import time
from collections import Counter
from functools import lru_cache

from cachetools import TTLCache

from workstealing import Recruiter, connect, time_left
from workstealing.integrations.cachetools import enlist_on_hits
from workstealing.integrations.memoize import memoized
from workstealing.jobs import RefreshAhead

SECONDS = 4.0
PRODUCTS = [f"product-{number}" for number in range(20)]

recruiter = Recruiter(share=0.2)  # the default is 1 %; more, so that you see it
missed: Counter[str] = Counter()
computed: Counter[str] = Counter()


# 1. An existing cache of cachetools, and one more line.
prices: TTLCache[str, bytes | str | None] = TTLCache(maxsize=100, ttl=0.2)
enlist_on_hits(prices, recruiter, on_miss=lambda name: missed.update([name]))


# 2. A memoized function: its decorator moved into ours.
@memoized(lru_cache(maxsize=None), recruiter)
def title(name: str) -> str:
    """Return the title of a product."""
    return name.replace("-", " ").title()


def compute(name: str) -> str:
    """Ask the slow price service; note whether a visitor waits for it."""
    computed["in a spare moment" if time_left() < math.inf else "a visitor waited"] += 1
    time.sleep(0.003)
    return f"{sum(map(ord, name))} credits"


def main() -> int:
    """Serve for a while, then print who did what."""
    with connect(timeout=1.0) as redis:
        key = f"hooks-{secrets.token_hex(4)}"
        # 3. Used on a miss: prices in Redis that are computed before they expire.
        shared = RefreshAhead(redis, key, compute, ttl=1.0, ahead=0.6)
        recruiter.install(shared, "refresh-prices", rate=0.05)
        pages, end = 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            name = random.choice(PRODUCTS)
            price = prices.get(name)  # a hit enlists, a miss is counted
            if price is None:
                price = prices[name] = shared.get(name)
            title(name)  # a hit enlists
            pages += 1
            time.sleep(0.001)  # the rest of the page
        for name in PRODUCTS:
            shared.forget(name)
    stats, job = recruiter.stats(), recruiter.stats().jobs["refresh-prices"]
    print(
        f"{pages:,} pages, {stats.calls:,} cache hits, {sum(missed.values()):,} misses"
    )
    print(f"missed most: {missed.most_common(1)[0][0]}; titles: {title.cache_info()}")
    print(f"slices: drawn {job.drawn}, worked {job.recruited}, {job.seconds:.2f} s\n")
    for who, times in computed.most_common():
        print(f"  {times:>4} prices computed: {who}")
    return 0 if computed["in a spare moment"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
