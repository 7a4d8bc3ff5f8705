"""The backend for `django.tasks`: what Django promises, on our queues."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from workstealing import TaskQueue
from workstealing.testing import Server

Manage = Callable[..., "subprocess.CompletedProcess[str]"]

if find_spec("django") is None or find_spec("django.tasks") is None:
    pytest.skip("django.tasks needs Django 6.0, Python 3.12", allow_module_level=True)

ROOT = Path(__file__).parents[3]
BACKEND = "workstealing.integrations.django.TaskBackend"
TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "letters"]}}
BEGINNING = """
import asyncio, json
from dataclasses import replace
from datetime import timedelta
import django; django.setup()
from django.tasks import default_task_backend, task
from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
from django.utils.timezone import now
from bazaar.diary import write
from bazaar.errands import add, die, fail, greet, leave, look, unspeakable
def does_not_exist(result_id):
    try: default_task_backend.get_result(result_id)
    except TaskResultDoesNotExist: return True
def told(result):
    errors = [(e.exception_class_path, e.traceback) for e in result.errors]
    times = [result.enqueued_at, result.started_at, result.finished_at]
    return {
        "id": result.id, "status": result.status, "args": result.args,
        "kwargs": result.kwargs, "attempts": result.attempts, "errors": errors,
        "path": result.task.module_path, "queue": result.task.queue_name,
        "priority": result.task.priority, "times": [t is not None for t in times],
        "value": result._return_value, "in order": sorted(filter(None, times)) ==
        list(filter(None, times)),
    }
"""


class Shop:
    """A site with two queues, and programs that it runs."""

    def __init__(self, manage: Manage, url: str, run: str) -> None:
        self._manage = manage
        queues = {name: {"run": run, "lease": 0.5} for name in ("default", "letters")}
        self._settings = {
            "REDIS": url,
            "MORE": json.dumps({"QUEUES": queues}),
            "SETTINGS": json.dumps({"TASKS": TASKS}),
        }

    def ask(self, expression: str, **settings: str) -> Any:
        """Return the value of an expression, as JSON."""
        program = f"{BEGINNING}\nprint(json.dumps({expression}))"
        done = self._manage("-c", program, **(self._settings | settings))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def refusal(self, expression: str, **settings: str) -> str:
        """Return the last line of what it raises."""
        program = f"{BEGINNING}\n{expression}"
        done = self._manage("-c", program, **(self._settings | settings))
        assert done.returncode != 0
        return done.stderr.splitlines()[-1]

    def work(self, queue: str = "default", ends_with: int = 0) -> str:
        """Run what waits; return what the worker says."""
        words = ("workstealing_worker", queue, "--until-empty")
        done = self._manage(*words, **self._settings)
        assert done.returncode == ends_with, done.stderr
        return done.stderr

    def look_up(self, result_id: str) -> Any:
        """Return what is known of a task."""
        return self.ask(f"told(default_task_backend.get_result({result_id!r}))")


@pytest.fixture
def shop(manage: Manage, redis_server: Server, key_prefix: str) -> Shop:
    return Shop(manage, redis_server.url, key_prefix)


def test_a_task_is_enqueued_run_and_looked_up(shop: Shop) -> None:
    given = shop.ask("told(add.enqueue(20, other=22))")
    assert given["status"] == "READY"
    assert given["times"] == [True, False, False]
    assert shop.look_up(given["id"]) == given

    shop.work()
    found = shop.look_up(given["id"])
    assert found["status"] == "SUCCESSFUL"
    assert found["value"] == 42
    assert (found["args"], found["kwargs"]) == ([20], {"other": 22})
    assert found["path"] == "bazaar.errands.add"
    assert found["attempts"] == 1
    assert found["times"] == [True, True, True]
    assert found["in order"]


def test_a_task_refreshes_its_result(shop: Shop) -> None:
    result_id = shop.ask("add.enqueue(1).id")
    shop.work()

    assert shop.ask(f"add.get_result({result_id!r}).return_value") == 2
    refusal = shop.refusal(f"fail.get_result({result_id!r})")
    assert "TaskResultMismatch" in refusal


def test_the_async_twins_do_the_same(shop: Shop) -> None:
    result_id = shop.ask("asyncio.run(greet.aenqueue('Ann')).id")
    shop.work("letters")

    found = shop.ask(f"told(asyncio.run(greet.aget_result({result_id!r})))")
    assert found["value"] == {"hello": "Ann"}
    assert (found["queue"], found["priority"]) == ("letters", 10)


def test_a_task_that_fails_is_told_with_its_traceback(shop: Shop) -> None:
    result_id = shop.ask("fail.enqueue().id")
    shop.work()

    found = shop.look_up(result_id)
    assert found["status"] == "FAILED"
    ((path, traceback),) = found["errors"]
    assert path == "builtins.LookupError"
    assert "nothing there" in traceback
    assert found["path"] == "bazaar.errands.fail"


@pytest.mark.timeout(180)
def test_a_task_that_kills_its_workers_has_failed(shop: Shop) -> None:
    result_id = shop.ask("die.enqueue().id")
    for _ in range(3):
        shop.work(ends_with=7)
    shop.work()

    found = shop.look_up(result_id)
    assert found["status"] == "FAILED"
    assert found["errors"][0][0] == "workstealing.errors.TaskDead"


def test_a_value_that_is_no_json_fails_the_task(shop: Shop) -> None:
    result_id = shop.ask("unspeakable.enqueue().id")
    shop.work()

    assert shop.look_up(result_id)["errors"][0][0] == "builtins.TypeError"


def test_a_task_can_look_at_its_own_result(shop: Shop) -> None:
    result_id = shop.ask("look.enqueue().id")
    shop.work()

    own_id, attempt, status, workers = shop.look_up(result_id)["value"]
    assert (own_id, attempt, status) == (result_id, 1, "RUNNING")
    assert len(workers) == 1


def test_a_task_is_not_run_before_its_time(
    shop: Shop, redis_server: Server, key_prefix: str
) -> None:
    later = "add.using(run_after=now() + timedelta(hours=1)).enqueue(1)"
    given = shop.ask(f"told({later})")

    assert shop.look_up(given["id"])["status"] == "READY"
    queue = TaskQueue("default", redis_server.url, run=key_prefix)
    assert queue.handle(given["id"]).state().state == "delayed"


@pytest.mark.parametrize(("priority", "inbox"), [(100, 0), (1, 0), (0, 1), (-1, 2)])
def test_priorities_become_three(
    priority: int, inbox: int, shop: Shop, redis_server: Server, key_prefix: str
) -> None:
    shop.ask(f"add.using(priority={priority}).enqueue(1).id")

    queue = TaskQueue("default", redis_server.url, run=key_prefix)
    assert queue.counts().inbox[inbox] == 1


def test_a_priority_may_be_any_whole_number(shop: Shop) -> None:
    result_id = shop.ask("add.using(priority=3.0).enqueue(1).id")
    shop.work()

    found = shop.look_up(result_id)
    assert (found["status"], found["priority"]) == ("SUCCESSFUL", 3)
    assert "InvalidTask" in shop.refusal("add.using(priority=3.5)")


def test_a_result_has_no_time_of_another_variant_of_its_task(shop: Shop) -> None:
    # Our backend meets a variant first: the task itself is of another one.
    both = {"now": {"BACKEND": "django.tasks.backends.dummy.DummyBackend"}, **TASKS}
    first = (
        "task(backend='now')(write)"
        ".using(backend='default', run_after=now() + timedelta(hours=1))"
    )
    result_id = f"replace({first}, run_after=None).enqueue('hello').id"

    found = shop.ask(
        f"default_task_backend.get_result({result_id}).task.run_after",
        SETTINGS=json.dumps({"TASKS": both}),
    )
    assert found is None


@pytest.mark.parametrize("backend", [BACKEND, "bazaar.task_backends.OwnBackend"])
def test_any_queue_is_valid_if_django_has_an_empty_list(
    shop: Shop, key_prefix: str, backend: str
) -> None:
    tasks = {"default": {"BACKEND": backend, "QUEUES": []}}
    shop._settings["SETTINGS"] = json.dumps({"TASKS": tasks})
    variant = f"add.using(queue_name={key_prefix!r})"

    result_id = shop.ask(f"{variant}.enqueue(1).id")
    shop.work(key_prefix)

    found = shop.ask(f"told({variant}.get_result({result_id!r}))")
    assert (found["value"], found["queue"]) == (2, key_prefix)
    assert "InvalidTask" in shop.refusal("add.using(queue_name='a b')")
    known = shop.ask("add.enqueue(1).id")
    shop.work()
    assert shop.look_up(known)["status"] == "SUCCESSFUL"


def test_results_that_do_not_exist_are_told(
    shop: Shop, redis_server: Server, key_prefix: str
) -> None:
    queue = TaskQueue("default", redis_server.url, run=key_prefix)
    other = queue.task(name="other")(lambda: None).submit()
    cancelled = shop.ask("add.enqueue(1).id")
    queue.handle(cancelled).cancel()

    ids = ["unheard-of", "not an id", other.id, cancelled]
    assert shop.ask(f"[does_not_exist(result_id) for result_id in {ids}]") == [True] * 4


def test_signals_are_sent(shop: Shop) -> None:
    # Django itself logs what its signals say.
    logged = {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        "loggers": {"django.tasks": {"handlers": ["console"], "level": "DEBUG"}},
    }
    shop.ask("[add.enqueue(1).id, fail.enqueue().id, leave.enqueue().id]")
    shop._settings["SETTINGS"] = json.dumps({"TASKS": TASKS, "LOGGING": logged})

    output = shop.work()
    for path, state in (
        ("add", "RUNNING"),
        ("add", "SUCCESSFUL"),
        ("fail", "RUNNING"),
        ("fail", "FAILED"),
        ("leave", "RUNNING"),
        ("leave", "FAILED"),
    ):
        assert f"path=bazaar.errands.{path} state={state}" in output


def test_a_queue_that_is_not_in_the_settings_is_refused(shop: Shop) -> None:
    refusal = shop.refusal("", MORE="{}")
    assert "there is no queue 'default'" in refusal
    refusal = shop.refusal("add.using(queue_name='other')")
    # The first sentence is that of Django's own backends.
    assert "InvalidTask: Queue 'other' is not valid for backend." in refusal
    assert "bazaar.errands.add uses it, but 'default' has 'default'," in refusal
    assert "'letters': add 'other' to WORKSTEALING" in refusal


def test_all_queues_of_the_settings_are_valid_if_django_names_none(shop: Shop) -> None:
    tasks = json.dumps({"TASKS": {"default": {"BACKEND": BACKEND}}})

    queues = "[add.queue_name, greet.queue_name]"
    assert shop.ask(queues, SETTINGS=tasks) == ["default", "letters"]


def test_the_settings_of_the_page_are_enough_for_a_task(
    redis_server: Server, key_prefix: str
) -> None:
    page = (ROOT / "docs/integrations/django.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    settings = [text for text in blocks if re.match(r"INSTALLED_APPS|TASKS", text)]
    program = f"""
{"".join(settings)}
from django.conf import settings
for queue in WORKSTEALING["QUEUES"].values(): queue["run"] = {key_prefix!r}
settings.configure(INSTALLED_APPS=INSTALLED_APPS, MIDDLEWARE=MIDDLEWARE,
    WORKSTEALING=WORKSTEALING, TASKS=TASKS)
import django; django.setup()
from django.tasks import task
import math
math.add = lambda one, other: one + other
math.add.__module__, math.add.__qualname__ = "math", "add"
add = task(math.add)
result = add.enqueue(20, other=22)
from workstealing import Worker
from workstealing.integrations.django import get_queue
Worker(get_queue("default")).run(until_empty=True)
result.refresh()
print(result.status, result.return_value)
"""

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "WORKSTEALING_URL": redis_server.url},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert len(settings) == 2
    assert done.stdout.split() == ["SUCCESSFUL", "42"], done.stderr


def test_options_are_refused(shop: Shop) -> None:
    tasks = {"default": {**TASKS["default"], "OPTIONS": {"retries": 3}}}

    refusal = shop.refusal("", SETTINGS=json.dumps({"TASKS": tasks}))
    assert 'remove TASKS["default"]["OPTIONS"]' in refusal


def test_a_task_that_is_not_known_here_is_not_imported(
    shop: Shop, redis_server: Server, key_prefix: str
) -> None:
    queue = TaskQueue("default", redis_server.url, run=key_prefix)

    def strange(call: dict[str, Any]) -> None: ...

    strange_task = queue.task(name="antigravity.fly")(strange)
    call = {"args": [], "kwargs": {}, "enqueued": 0}
    given = strange_task.submit(call)

    refusal = shop.refusal(f"default_task_backend.get_result({given.id!r})")
    assert "no task antigravity.fly is registered here" in refusal
