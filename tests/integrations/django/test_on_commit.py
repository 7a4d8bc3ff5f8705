"""A task is submitted when Django commits, and not if it rolls back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from workstealing.testing import Server

_PROGRAM = """
import os
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
)
django.setup()
import json
from django.db import transaction
from workstealing import TaskQueue
from workstealing.errors import PayloadInvalid
from workstealing.integrations.django import submit_on_commit

queue = TaskQueue(os.environ["QUEUE"], os.environ["REDIS"])

@queue.task(name="welcome")
def welcome(user: int) -> None: ...

seen = []
with transaction.atomic():
    submit_on_commit(welcome, 1)
    seen.append(queue.counts().tasks)
seen.append(queue.counts().tasks)
try:
    with transaction.atomic():
        submit_on_commit(welcome, user=2)
        raise KeyError
except KeyError:
    seen.append(queue.counts().tasks)
submit_on_commit(welcome, 3)
seen.append(queue.counts().tasks)
with transaction.atomic():
    try:
        submit_on_commit(welcome, "ann")
    except PayloadInvalid:
        seen.append("refused")
print(json.dumps(seen))
"""

Manage = Callable[..., "subprocess.CompletedProcess[str]"]


def test_tasks_follow_the_transaction(
    manage: Manage, redis_server: Server, key_prefix: str
) -> None:
    done = manage("-c", _PROGRAM, QUEUE=key_prefix, REDIS=redis_server.url)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [0, 1, 1, 2, "refused"]
