"""Does what the plan says, each track in a thread of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

from redis.exceptions import RedisError

from soak.fleet import Fleet, Member
from soak.plan import Fault
from soak.stage import Stage

__all__ = ("Faults",)

_SHARE_CUT = 0.1
_LAG = 0.15


class Faults:
    """The plan on its way."""

    def __init__(self, plan: Sequence[Fault], stage: Stage, fleet: Fleet) -> None:
        self._stage = stage
        self._fleet = fleet
        self.done: list[Fault] = []
        """What has happened."""
        self.failed: list[str] = []
        """What could not be done: the soak itself is at fault."""
        self._threads = [
            threading.Thread(target=self._run, args=(track, plan))
            for track in sorted({fault.track for fault in plan})
        ]

    def run(self) -> None:
        """Do all of it."""
        for thread in self._threads:
            thread.start()
        for thread in self._threads:
            thread.join()
        for proxy in self._stage.proxies:
            proxy.cut_all()
        try:
            self._stage.recover()
        except TimeoutError as error:
            self.failed.append(f"the servers do not recover: {error}")

    def _run(self, track: str, plan: Sequence[Fault]) -> None:
        began = time.monotonic()
        for fault in plan:
            if fault.track != track:
                continue
            time.sleep(max(0.0, began + fault.at - time.monotonic()))
            self.done.append(fault)
            try:
                self._do(fault)
            except Exception as error:  # noqa: BLE001 - the soak goes on, and says it
                self.failed.append(f"{fault}: {error!r}")

    def _do(self, fault: Fault) -> None:
        of_ours: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill,
            "kill_child": self._kill_child,
            "freeze": self._freeze,
            "terminate": self._terminate,
            "cut_requests": self._cut_requests,
            "cut_replies": self._cut_replies,
            "delay": self._delay,
            "half_open": self._half_open,
            "black_hole": self._black_hole,
            "cut_all": self._cut_all,
            "forget_scripts": self._forget_scripts,
            "kill_clients": self._kill_clients,
        }
        if fault.name in of_ours:
            of_ours[fault.name](fault)
        else:
            getattr(self._stage, fault.name)(fault.seconds)

    def _kill(self, fault: Fault) -> None:
        self._fleet.kill(self._whom(fault))

    def _kill_child(self, fault: Fault) -> None:
        parents = [one for one in self._fleet.members if one.kind == "processes"]
        children = [pid for parent in parents for pid in parent.children()]
        if children:
            with suppress(ProcessLookupError):
                os.kill(children[int(fault.draw * len(children))], signal.SIGKILL)

    def _freeze(self, fault: Fault) -> None:
        whom = self._whom(fault)
        whom.send(signal.SIGSTOP)
        time.sleep(fault.seconds)
        whom.send(signal.SIGCONT)

    def _terminate(self, fault: Fault) -> None:
        self._fleet.terminate(self._whom(fault))

    def _cut_requests(self, fault: Fault) -> None:
        chance = Random(fault.draw)
        for proxy in self._stage.proxies:
            proxy.lose_request_if(lambda _: chance.random() < _SHARE_CUT)
        time.sleep(fault.seconds)
        for proxy in self._stage.proxies:
            proxy.lose_request_if(None)

    def _cut_replies(self, fault: Fault) -> None:
        chance = Random(fault.draw)
        for proxy in self._stage.proxies:
            proxy.cut_reply_if(lambda _: chance.random() < _SHARE_CUT)
        time.sleep(fault.seconds)
        for proxy in self._stage.proxies:
            proxy.cut_reply_if(None)

    def _delay(self, fault: Fault) -> None:
        for proxy in self._stage.proxies:
            proxy.delay_by(_LAG * fault.draw)
        time.sleep(fault.seconds)
        for proxy in self._stage.proxies:
            proxy.delay_by(0.0)

    def _half_open(self, fault: Fault) -> None:
        for proxy in self._stage.proxies:
            proxy.hang_all()

    def _black_hole(self, fault: Fault) -> None:
        """Cut one server off from everybody."""
        proxy = self._stage.proxies[int(fault.draw * len(self._stage.proxies))]
        began = time.time()
        proxy.swallow(True)
        time.sleep(fault.seconds)
        proxy.swallow(False)
        self._stage.was_cut_off(began)

    def _cut_all(self, fault: Fault) -> None:
        for proxy in self._stage.proxies:
            proxy.cut_all()

    def _forget_scripts(self, fault: Fault) -> None:
        with suppress(RedisError, OSError):
            self._stage.ask_primary("SCRIPT", "FLUSH")

    def _kill_clients(self, fault: Fault) -> None:
        with suppress(RedisError, OSError):
            self._stage.ask_primary("CLIENT", "KILL", "TYPE", "normal")

    def _whom(self, fault: Fault) -> Member:
        members = self._fleet.members
        return members[int(fault.draw * len(members))]
