"""Writes every picture, in both themes, into `docs/images/`."""

from __future__ import annotations

from pathlib import Path

from pictures import (
    cast,
    chains_and_groups,
    hero,
    limit_lines,
    paused_name,
    plan_curve,
    schedule_ticks,
    steal,
    task_states,
    worker_dies,
    worker_pool,
)
from pictures.canvas import DARK, LIGHT

FOLDER = Path(__file__).parent.parent / "docs/images"
PICTURES = {
    "chains-and-groups": chains_and_groups.draw,
    "demo-cast": cast.draw,
    "hero": hero.draw,
    "limit-lines": limit_lines.draw,
    "paused-name": paused_name.draw,
    "plan-curve": plan_curve.draw,
    "schedule-ticks": schedule_ticks.draw,
    "steal": steal.draw,
    "task-states": task_states.draw,
    "worker-dies": worker_dies.draw,
    "worker-pool": worker_pool.draw,
}


def main() -> None:
    """Write them."""
    for name, draw in PICTURES.items():
        for theme in (LIGHT, DARK):
            (FOLDER / f"{name}-{theme.name}.svg").write_text(draw(theme))


if __name__ == "__main__":
    main()
