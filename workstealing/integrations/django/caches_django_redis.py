"""Hooks on django-redis: its cache backend, enlisting on hits.

`"BACKEND": "workstealing.integrations.django.DjangoRedisCache"` in `CACHES`; see
`workstealing.integrations.django.caches` for what it does. A module of its own, because
django-redis may not be installed.
"""

from __future__ import annotations

from django_redis.cache import RedisCache

from workstealing.integrations.django.caches import EnlistCacheMixin

__all__ = ("DjangoRedisCache",)


class DjangoRedisCache(EnlistCacheMixin, RedisCache):
    """The cache of django-redis; with `IGNORE_EXCEPTIONS`, no Redis is a miss."""

    is_remote = True
