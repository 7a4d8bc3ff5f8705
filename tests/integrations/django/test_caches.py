"""Hits of Django's caches enlist, misses are told, and values are what they were."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workstealing.testing import Server

Manage = Callable[..., "subprocess.CompletedProcess[str]"]

OURS = "workstealing.integrations.django"
BACKENDS = {
    "locmem": f"{OURS}.LocMemCache",
    "redis": f"{OURS}.RedisCache",
    "django-redis": f"{OURS}.DjangoRedisCache",
}
ALL = pytest.mark.parametrize("kind", BACKENDS)
BEGINNING = """
import django; django.setup()
from django.core.cache import cache
from workstealing.integrations.django import get_recruiter
calls, misses = [], []
recruiter = get_recruiter()
recruiter.enlist = lambda spare=None, rtt=None: calls.append(rtt)
def on_miss(key):
    misses.append(key)
    if key == "bad": raise RuntimeError("a hook that raises")
"""


@pytest.fixture
def run(manage: Manage, redis_server: Server, key_prefix: str) -> Callable[..., Any]:
    """Run a program on a cache; return what it says, as JSON."""

    def run(kind: str, program: str, **more: Any) -> Any:
        here = {"LOCATION": redis_server.url} if kind != "locmem" else {}
        cache = {"BACKEND": BACKENDS[kind], "KEY_PREFIX": key_prefix, **here, **more}
        done = manage(
            *("-c", f"{BEGINNING}\nimport json\n{program}"),
            SETTINGS=json.dumps({"CACHES": {"default": cache}}),
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


@ALL
def test_hits_enlist_and_misses_do_not(kind: str, run: Any) -> None:
    program = """
before = cache.get("a", "default"), len(calls)
cache.set("a", 1)
cache.set("nothing", None)
found = cache.get("a"), cache.get("nothing", "default"), cache.get("b")
print(json.dumps([before, found, len(calls)]))
"""

    before, found, calls = run(kind, program)
    assert before == ["default", 0]
    assert found == [1, None, None]
    assert calls == 2


@ALL
def test_several_keys_at_once_are_one_hit(kind: str, run: Any) -> None:
    program = """
cache.set_many({"a": 1, "b": 2})
found = cache.get_many(iter(["a", "b", "c"]))
one = len(calls)
cache.get_many(["x", "y"])
print(json.dumps([found, one, len(calls)]))
"""

    assert run(kind, program) == [{"a": 1, "b": 2}, 1, 1]


@ALL
def test_misses_are_told_and_a_hook_that_raises_harms_nobody(
    kind: str, run: Any
) -> None:
    program = """
found = cache.get("bad", 7), cache.get_or_set("made", lambda: 8), cache.get_many("xy")
print(json.dumps([found, misses]))
"""

    found, misses = run(kind, program, ON_MISS="__main__.on_miss")
    assert found == [7, 8, {}]
    assert misses == ["bad", "made", "x", "y"]


@ALL
def test_only_a_round_trip_to_redis_is_told_to_the_gate(kind: str, run: Any) -> None:
    program = """
cache.set("a", 1)
cache.get("a"), cache.get_many(["a"])
print(json.dumps([rtt is not None and rtt > 0 for rtt in calls]))
"""

    assert run(kind, program) == [kind != "locmem"] * 2


@ALL
def test_versions_are_passed_on(kind: str, run: Any) -> None:
    program = """
cache.set("a", 1, version=2)
found = cache.get("a"), cache.get("a", version=2), cache.get_many(["a"], version=2)
print(json.dumps(found))
"""

    assert run(kind, program) == [None, 1, {"a": 1}]


@pytest.mark.parametrize("kind", ["redis", "django-redis"])
def test_a_redis_that_is_down_is_told_as_without_us(
    kind: str, run: Any, tmp_path: Path
) -> None:
    program = """
try: cache.get("a")
except Exception as error: print(json.dumps([type(error).__name__, len(calls)]))
"""

    told = run(kind, program, LOCATION=f"unix://{tmp_path}/none")
    assert told == ["ConnectionError", 0]


def test_a_redis_that_django_redis_ignores_is_a_miss(run: Any, tmp_path: Path) -> None:
    down = {"LOCATION": f"unix://{tmp_path}/none", "ON_MISS": "__main__.on_miss"}
    options = {"OPTIONS": {"IGNORE_EXCEPTIONS": True}}
    program = 'print(json.dumps([cache.get("a", 7), misses, len(calls)]))'

    assert run("django-redis", program, **down, **options) == [7, ["a"], 0]


def test_a_hook_that_is_no_function_is_refused(run: Any) -> None:
    program = """
try: cache.get("a")
except Exception as error: print(json.dumps(str(error)))
"""

    told = run("locmem", program, ON_MISS=7)
    assert '"ON_MISS" must be a function' in told


def test_a_hit_on_an_event_loop_does_not_enlist(run: Any) -> None:
    program = """
import asyncio
async def main():
    cache.set("a", 1)
    found = cache.get("a"), len(calls)
    return found, await cache.aget("a"), len(calls)
print(json.dumps(asyncio.run(main())))
"""

    assert run("locmem", program) == [[1, 0], 1, 1]
