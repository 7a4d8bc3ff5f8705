"""A Django site in one file, whose requests look after its sessions and its queue."""

from __future__ import annotations

import argparse
import os
from typing import Any

import django
from django.conf import settings
from django.core.cache import cache
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpRequest, HttpResponse
from django.urls import path
from serving import loaded, served

from workstealing import Worker, connect
from workstealing.inspecting import Inspector
from workstealing.integrations.django import get_queue, get_recruiter
from workstealing.jobs import VolatileHash

NAME = f"django_site-{os.getpid()}"
OURS = "workstealing.integrations.django"
settings.configure(
    DEBUG=True,  # so that the embedded server may be started
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[OURS],
    MIDDLEWARE=[f"{OURS}.DjangoEnlistMiddleware"],  # the first, or the only one
    CACHES={"default": {"BACKEND": f"{OURS}.LocMemCache", "TIMEOUT": 2}},
    WORKSTEALING={
        "RECRUITER": {"share": 0.1},  # 1 % by default; more, so that you see it
        "JOBS": {"sessions": {"job": f"{__name__}.sessions", "rate": 0.05}},
        "QUEUES": {"thumbnails": {"run": NAME, "upkeep": 0.5}},
    },
)
django.setup()
redis, thumbnails, swept = connect(timeout=1.0), get_queue("thumbnails"), list[Any]()
sessions = VolatileHash(redis, NAME, on_expire=lambda *one: swept.append(one))


@thumbnails.task(name="resize")
def resize(number: int) -> str:
    """Pretend to make a thumbnail."""
    return f"{number}.png"


def page(request: HttpRequest, number: int) -> HttpResponse:
    """Greet a visitor, whose session lasts a second, with a page from the cache."""
    sessions.set(request.GET["visitor"], f"was on page {number}", ttl=1.0)
    text = cache.get(number)
    if text is None:
        cache.set(number, text := f"page {number} and its picture")
        resize.submit_in(0.5, number)  # upkeep puts it into the queue when it is due
    return HttpResponse(text)


urlpatterns = [path("<int:number>", page)]


def main() -> int:
    """Open the site for a while, and print what its requests did besides."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    with served(WSGIHandler()) as address, redis:
        requests = loaded(address, parser.parse_args().seconds)
        Worker(thumbnails).run(until_empty=True)
        print(f"{requests:,} requests, {len(swept):,} sessions swept away")
        for name, job in get_recruiter().stats().jobs.items():
            print(f"{name}: {job.recruited} slices of use, {job.seconds:.3f} s in all")
        stat = Inspector(thumbnails).stat()
        upkeep = stat.upkeep.slices.get("web", 0)
        print(f"{stat.totals.done} thumbnails; the site did upkeep {upkeep} times")
        redis.unlink(*redis.scan_iter(f"*{NAME}*", count=1000))
    return 0 if swept and upkeep else 1


if __name__ == "__main__":
    raise SystemExit(main())
