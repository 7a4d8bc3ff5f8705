"""Our own budgets, measured as ratios within one run."""

from __future__ import annotations
