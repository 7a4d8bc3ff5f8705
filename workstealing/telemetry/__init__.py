"""What happened, as values. Observers never raise into the caller."""

from __future__ import annotations
