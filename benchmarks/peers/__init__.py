"""This package beside other task queues: the same tasks, one server, in turns.

`python -m benchmarks.peers` installs each library into a virtual environment of its
own, measures all of them, and writes figures, tables and plots. The code of a library
is in `libraries/`, how it is set up in `catalogue.py`.
"""

from __future__ import annotations
