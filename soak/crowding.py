"""How many tasks with a limit ran at once, by their own notes.

A run counts from its first note to its last if the queue took its result: then its
worker had it, and its permit, all the while. That leaves out what the documentation
leaves out, and no more: whose worker was killed, or was taken for dead while it ran,
has lost the permit, and its report was refused. Those are counted and shown. A task
begins after it was given its permit and ends before that is returned, so what is found
here is never more than what the queue has let run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from soak.ledger import Entry

__all__ = ("Crowding", "look_for_crowds")


class Crowding:
    """What the runs of one task have done."""

    def __init__(self, most: int) -> None:
        self.most = most
        """How many of a key may run at once."""
        self.begins: Counter[int] = Counter()
        """How often a run began as the first, second, … of its key."""
        self.uncounted = 0
        """Runs whose result was not taken."""
        self.crowds: list[str] = []
        """When there were too many."""

    def __str__(self) -> str:
        beside = ", ".join(f"{n}: {self.begins[n]}" for n in sorted(self.begins))
        return f"{beside} (most {self.most}); {self.uncounted} runs do not count"

    def count(self, key: str, moments: Iterable[tuple[float, int, str]]) -> None:
        """Go through the begins and ends of a key."""
        running: set[str] = set()
        # Of what has the same millisecond, ends may have been first.
        for at, step, run in sorted(moments):
            if step < 0:
                running.discard(run)
                continue
            running.add(run)
            self.begins[len(running)] += 1
            if len(running) > self.most:
                self.crowds.append(f"{len(running)} of {key} at {at:.3f}")


def look_for_crowds(
    events: Mapping[str, list[Entry]],
    results: Mapping[str, str],
    most_of: Mapping[str, int],
) -> dict[str, Crowding]:
    """Look at tasks of some names, of which so many of a key may run at once.

    *results* has the run of each task whose result the queue took.
    """
    found = {name: Crowding(most) for name, most in most_of.items()}
    ends = {entry.words[2]: entry.at for entry in events["ended"]}
    moments: dict[tuple[str, str], list[tuple[float, int, str]]] = defaultdict(list)
    for entry in events["began"]:
        task_id, name, run, _, *keys = entry.words
        if name not in found:
            continue
        if results.get(task_id) != run or run not in ends:
            found[name].uncounted += 1
            continue
        if entry.at < ends[run]:
            moments[name, keys[0]] += [(entry.at, 1, run), (ends[run], -1, run)]
    for (name, key), some in moments.items():
        found[name].count(key, some)
    return found
