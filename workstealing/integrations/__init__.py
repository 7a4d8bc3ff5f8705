"""Where processes enlist: one module per framework, server, cache or queue.

All of them have one shape: first the thing that is hooked, then the recruiter, then
options that have the same name everywhere.

- **Web** frameworks and servers take a class, `<Framework>Enlist…`, with `recruiter`
  and `when`: requests enlist after their response.
- **Caches** take `enlist_on_hits(cache, recruiter)`, or a class where the cache wants
  one, with `on_miss`: hits enlist.
- **Queues** take `enlist_after_tasks(app, recruiter)`, or a class where the queue wants
  one, with `idle_every`: their workers enlist after each task, and run a slice every
  few seconds while they have none.
"""

from __future__ import annotations

from workstealing.integrations.conditions import When, request_took

__all__ = ("When", "request_took")
