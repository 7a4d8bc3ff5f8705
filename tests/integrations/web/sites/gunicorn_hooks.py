"""A gunicorn configuration with our hooks; the site itself knows nothing of us."""

from __future__ import annotations

import diary

from workstealing.integrations.gunicorn import GunicornEnlistHooks

hooks = GunicornEnlistHooks(diary.recruiter(), diary.WHEN)
pre_request, post_request = hooks.pre_request, hooks.post_request
