"""The settings of the site; with us if the environment says so."""

from __future__ import annotations

import json
import os
from typing import Any

IS_OURS = os.environ.get("OURS", "yes") == "yes"
CACHE = "workstealing.integrations.django.LocMemCache"

SECRET_KEY = "not a secret"
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "bazaar.urls"
USE_TZ = True
INSTALLED_APPS = ["bazaar"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": f"{os.environ['DIARY']}.db",
    }
}
CACHES: dict[str, Any] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"workstealing": {"handlers": ["console"], "level": "INFO"}},
}
if IS_OURS:
    INSTALLED_APPS = [*INSTALLED_APPS, "workstealing.integrations.django"]
    MIDDLEWARE = [
        "workstealing.integrations.django.DjangoEnlistMiddleware",
        *MIDDLEWARE,
    ]
    WORKSTEALING = {
        "REDIS": os.environ.get("REDIS"),
        "RECRUITER": {"share": None, "observers": ["bazaar.diary.diary"]},
        "WHEN": os.environ.get("WHEN", "always"),
        **json.loads(os.environ.get("MORE", "{}")),
    }
    if WORKSTEALING["WHEN"] == "quick":
        from workstealing.integrations import When

        WORKSTEALING["WHEN"] = When.quick(1e-9)
# Whatever else a test wants.
globals().update(json.loads(os.environ.get("SETTINGS", "{}")))
