"""Runs pytest; a few tests that failed are named and run once more, one at a time.

On a small, shared machine, a test that waits for processes it has started may wait in
vain. One that fails alone, too, fails; and more than five are no accident.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
PYTEST = [sys.executable, "-m", "pytest"]

FAILED.unlink(missing_ok=True)
code = subprocess.call([*PYTEST, *sys.argv[1:]])
failed = list(json.loads(FAILED.read_text())) if FAILED.exists() else []
if code == 1 and 1 <= len(failed) <= 5:
    print("Once more, alone:", *failed, sep="\n  ", flush=True)
    code = subprocess.call([*PYTEST, "-q", "-n", "0", *failed])
sys.exit(code)
