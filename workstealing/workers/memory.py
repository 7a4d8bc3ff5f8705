"""How much memory this process holds."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

__all__ = ("resident_mib",)

_MIB = 1024 * 1024
_STATM = Path("/proc/self/statm")


def resident_mib() -> float:
    """Return the MiB in memory now; where the system does not tell, at the most."""
    try:
        pages = int(_STATM.read_text().split()[1])
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (_MIB if sys.platform == "darwin" else 1024)
    return pages * os.sysconf("SC_PAGE_SIZE") / _MIB
