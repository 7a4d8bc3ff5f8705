"""Django: side work after requests and cache hits, and task queues.

`INSTALLED_APPS = ["workstealing.integrations.django", …]`, the setting `WORKSTEALING`,
and `workstealing.integrations.django.middleware.EnlistMiddleware` as the first of
`MIDDLEWARE`. The page docs/integrations/django.md says the rest.
"""

from __future__ import annotations

from workstealing.integrations.django.shared import get_queue, get_recruiter

__all__ = ("get_queue", "get_recruiter")
