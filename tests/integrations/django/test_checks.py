"""What `manage.py check` says, and what stops a site when it starts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Manage = Callable[..., "subprocess.CompletedProcess[str]"]

OURS = "workstealing.integrations.django.DjangoEnlistMiddleware"
HOOKED = "workstealing.integrations.django"


def said(manage: Manage, more: Any = None, **settings: Any) -> str:
    done = manage(
        *("check", "--fail-level", "DEBUG"),
        MORE=json.dumps(more or {}),
        SETTINGS=json.dumps(settings),
    )
    return done.stdout + done.stderr


def test_a_site_that_is_in_order_passes(manage: Manage) -> None:
    assert "no issues" in said(manage)


def test_wrong_settings_stop_the_site(manage: Manage) -> None:
    told = said(manage, {"RECRUTER": {}})

    assert "ConfigurationError: WORKSTEALING has no key 'RECRUTER'" in told


def test_a_middleware_behind_the_cache_is_told(manage: Manage) -> None:
    caching = "django.middleware.cache.UpdateCacheMiddleware"

    told = said(manage, MIDDLEWARE=[caching, OURS])
    assert "workstealing.W001" in told
    assert caching in told
    assert "W001" not in said(manage, MIDDLEWARE=[OURS, caching])


def test_a_middleware_that_is_there_twice_is_told(manage: Manage) -> None:
    assert "workstealing.E001" in said(manage, MIDDLEWARE=[OURS, OURS])


def test_a_site_where_nobody_enlists_is_told(manage: Manage) -> None:
    assert "workstealing.W002" in said(manage, MIDDLEWARE=[])
    assert "workstealing.W002" in said(manage, {"WHEN": None})
    hooked = {"default": {"BACKEND": f"{HOOKED}.LocMemCache"}}
    assert "W002" not in said(manage, MIDDLEWARE=[], CACHES=hooked)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("bazaar.jobs.nothing", "does not define"),
        ("bazaar.missing.job", "No module named"),
        ("bazaar.views.__doc__", "NotAJob"),
        ("bazaar.jobs.coroutine", "it is a coroutine function"),
    ],
)
def test_a_job_that_is_none_is_told(path: str, told: str, manage: Manage) -> None:
    jobs = {"JOBS": {"sweep": {"job": path, "rate": 0.5}}}

    answer = said(manage, jobs)
    assert "workstealing.E002" in answer
    assert told in answer


def test_a_job_that_is_one_passes(manage: Manage) -> None:
    assert "no issues" in said(
        manage, {"JOBS": {"sweep": {"job": "bazaar.jobs.note", "rate": 0.5}}}
    )


def test_two_servers_are_told_without_their_passwords(manage: Manage) -> None:
    done = manage(
        "check",
        REDIS="redis://:hunter2@localhost/0",
        WORKSTEALING_URL="redis://:hunter3@localhost/0",
    )

    assert "workstealing.W005" in done.stderr
    assert "hunter" not in done.stderr


QUEUES = json.dumps({"QUEUES": {"parcels": {}}})


def test_queues_without_a_redis_are_an_error_in_production(manage: Manage) -> None:
    done = manage("check", MORE=QUEUES)

    assert done.returncode != 0
    assert "workstealing.E003" in done.stderr
    assert 'Set WORKSTEALING["REDIS"]' in done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        {"SETTINGS": json.dumps({"DEBUG": True})},
        {"WORKSTEALING_EMBEDDED": "allow"},
        {"REDIS": "redis://localhost/0"},
        {"WORKSTEALING_URL": "redis://localhost/0"},
        {"REDIS_URL": "redis://localhost/0"},
        {"MORE": "{}"},
    ],
)
def test_queues_with_a_redis_or_in_development_pass(
    settings: dict[str, str], manage: Manage
) -> None:
    assert "no issues" in manage("check", **{"MORE": QUEUES, **settings}).stdout


@pytest.mark.parametrize(("debug", "embedded"), [(False, "'never'"), (True, "None")])
def test_a_site_in_production_forbids_the_embedded_server(
    debug: bool, embedded: str, manage: Manage
) -> None:
    program = (
        "import os, django; django.setup();"
        "print(repr(os.environ.get('WORKSTEALING_EMBEDDED')))"
    )

    done = manage("-c", program, SETTINGS=json.dumps({"DEBUG": debug}))
    assert done.stdout.strip() == embedded, done.stderr


def test_without_a_redis_a_queue_in_production_says_so(manage: Manage) -> None:
    program = (
        "import django; django.setup();"
        "from workstealing.integrations.django import get_queue;"
        "get_queue('parcels').counts()"
    )

    done = manage("-c", program, MORE=QUEUES)
    assert "ConfigurationError: no Redis server is named" in done.stderr
    assert "WORKSTEALING_EMBEDDED=never" in done.stderr


def test_a_middleware_is_known_by_any_path(manage: Manage) -> None:
    module = "workstealing.integrations.django.middleware"
    inner = f"{module}.DjangoEnlistMiddleware"

    assert "workstealing.E001" in said(manage, MIDDLEWARE=[OURS, inner])


def test_a_module_that_needs_what_is_not_installed_is_skipped(
    manage: Manage, tmp_path: Path
) -> None:
    app = tmp_path / "stranger"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "tasks.py").write_text("import no_such_queue")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
        "from django.core.management import call_command; import django;"
        "from django.conf import settings;"
        "settings.INSTALLED_APPS += ['stranger']; django.setup();"
        "call_command('check')"
    )

    done = manage("-c", program)
    assert done.returncode == 0, done.stderr
    assert "stranger.tasks was skipped: No module named 'no_such_queue'" in done.stderr
    assert "workstealing.W004" in done.stderr


def test_a_module_that_is_wrong_stops_the_site(manage: Manage, tmp_path: Path) -> None:
    app = tmp_path / "broken"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "jobs.py").write_text("import broken.nothing")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import django;"
        "from django.conf import settings;"
        "settings.INSTALLED_APPS += ['broken']; django.setup()"
    )

    done = manage("-c", program)
    assert done.returncode != 0
    assert "No module named 'broken.nothing'" in done.stderr


def test_the_middleware_asks_for_the_app(manage: Manage) -> None:
    program = (
        "import django; from django.conf import settings;"
        "settings.INSTALLED_APPS = []; django.setup();"
        "from django.core.wsgi import get_wsgi_application as get; get()"
    )

    done = manage("-c", program)
    assert 'add "workstealing.integrations.django" to INSTALLED_APPS' in done.stderr


def test_the_gate_needs_a_cache_in_redis(manage: Manage) -> None:
    program = (
        "import django; from django.conf import settings; import workstealing;"
        "settings.WORKSTEALING['RECRUITER']['gate'] = workstealing.StoreGate();"
        "{caches} django.setup();"
        "from django.core.management import call_command; call_command('check')"
    )
    caches = f"settings.CACHES = {{'default': {{'BACKEND': '{HOOKED}.RedisCache'}}}};"

    assert "workstealing.W003" in manage("-c", program.format(caches="")).stderr
    assert "W003" not in manage("-c", program.format(caches=caches)).stderr
