"""`python -m workstealing`: the command line, where its script is not on PATH."""

from __future__ import annotations

from workstealing.cli.entry import main

__all__ = ()

if __name__ == "__main__":
    main()
