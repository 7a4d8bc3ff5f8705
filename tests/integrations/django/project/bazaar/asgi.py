"""The site for ASGI servers."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bazaar.settings")
app = get_asgi_application()
