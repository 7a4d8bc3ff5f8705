"""One file per library: its tasks, a `Producer`, and `work()`.

A library that has a command for its workers is started with that instead of `work()`:
it is in the catalogue.

A file is imported only in the virtual environment of its library.
"""

from __future__ import annotations
