"""One process of the fleet: `python -m soak.member kind name seed`."""

from __future__ import annotations

import faulthandler
import logging
import signal
import sys
import time

from soak import app
from soak.producer import produce
from workstealing import BriefTasks, Recruiter, Worker, WorkStealer
from workstealing.cli.entry import main as command_line

__all__ = ()


def main() -> None:
    """Be a member until SIGTERM."""
    kind, name, seed = sys.argv[1:]
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if kind == "producer":
        produce(seed)
    elif kind == "host":
        _serve()
    elif kind == "worker":
        worker = Worker(app.queue, pool=name)
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        worker.run()
    else:
        sys.argv[1:] = [
            *("worker", "soak.app:queue", "--kind", kind, "--pool", name),
            *("--workers", "2", "--stop-timeout", "5"),
        ]
        command_line()


def _serve() -> None:
    """Answer requests, and enlist after each."""
    is_over: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: is_over.append(1))
    recruiter = Recruiter(share=0.2)
    spare = BriefTasks(app.queue)
    recruiter.install(spare, "brief", rate=0.2)
    recruiter.install(WorkStealer(app.queue), "tasks", rate=0.3)
    recruiter.install(app.counters, "counters", rate=0.2)
    recruiter.install(app.fields, "fields", rate=0.2)
    while not is_over:
        time.sleep(0.02)
        try:
            recruiter.enlist()
        except Exception as error:  # noqa: BLE001 - enlist() promises not to
            app.ledger.note("surprise", "enlist", repr(error))
    spare.close()


if __name__ == "__main__":
    main()
