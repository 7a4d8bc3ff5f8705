"""The site for WSGI servers."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bazaar.settings")
app = get_wsgi_application()
