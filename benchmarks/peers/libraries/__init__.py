"""One file per library, with the same two names: `Producer` and `work()`.

A file is imported only in the virtual environment of its library.
"""

from __future__ import annotations
