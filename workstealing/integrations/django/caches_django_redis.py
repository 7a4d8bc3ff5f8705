"""Hooks on django-redis: its backend, enlisting on hits.

`"BACKEND": "workstealing.integrations.django.caches_django_redis.DjangoRedisCache"` in
`CACHES`; see `workstealing.integrations.django.caches` for what it does.
"""

from __future__ import annotations

from django_redis.cache import RedisCache

from workstealing.integrations.django.caches import EnlistingCache

__all__ = ("DjangoRedisCache",)


class DjangoRedisCache(EnlistingCache, RedisCache):
    """The cache of django-redis; with `IGNORE_EXCEPTIONS` an absent Redis is a miss."""

    is_remote = True
