"""Writes every picture, in both themes, into `docs/images/`."""

from __future__ import annotations

from pathlib import Path

from pictures import hero, steal, task_states, worker_dies
from pictures.canvas import DARK, LIGHT

FOLDER = Path(__file__).parent.parent / "docs/images"
PICTURES = {
    "hero": hero.draw,
    "steal": steal.draw,
    "task-states": task_states.draw,
    "worker-dies": worker_dies.draw,
}


def main() -> None:
    """Write them."""
    for name, draw in PICTURES.items():
        for theme in (LIGHT, DARK):
            (FOLDER / f"{name}-{theme.name}.svg").write_text(draw(theme))


if __name__ == "__main__":
    main()
