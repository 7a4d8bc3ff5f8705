"""How a worker goes from one shard of its queue to another.

`ShardRounds` says where to. Before the worker goes, it delivers its reports and hands
back the tasks that it has not begun. Tasks that still run are left to `Outposts`.
"""

from __future__ import annotations

from threading import Lock

from workstealing._logs import BackgroundLogger
from workstealing.drivers.sync_driver import DedicatedDriver
from workstealing.errors import RedisError
from workstealing.workers.exchanges import Exchanges
from workstealing.workers.handing_back import HandingBack
from workstealing.workers.identity import WorkerIdentity
from workstealing.workers.in_flight import InFlight
from workstealing.workers.outposts import Outposts
from workstealing.workers.shard_rounds import ShardRounds
from workstealing.workers.slots import Slots

__all__ = ("ShardMoves",)

logger = BackgroundLogger(__name__)


class ShardMoves:
    """Moves one worker between the shards of its queue.

    Args:
        identity: which worker, and the shard that it is in.
        driver: the connection of the worker's loop.
        in_flight: what the worker holds.
        slots: they listen for wake-ups of the shard that the worker is in.
        exchanges: deliver reports before a move.
        handing_back: hands back tasks before a move.
        outposts: look after tasks that still run.
        rounds: say where it is worth going.
        speaking: is held during a move, so that the heartbeat does not talk to Redis.
    """

    def __init__(
        self,
        identity: WorkerIdentity,
        driver: DedicatedDriver,
        in_flight: InFlight,
        slots: Slots,
        exchanges: Exchanges,
        handing_back: HandingBack,
        outposts: Outposts,
        rounds: ShardRounds,
        speaking: Lock,
    ) -> None:
        self._identity = identity
        self._driver = driver
        self._in_flight = in_flight
        self._slots = slots
        self._exchanges = exchanges
        self._handing_back = handing_back
        self._speaking = speaking
        self.outposts = outposts
        self.rounds = rounds

    def settle(self) -> None:
        """Begin in the shard with the fewest workers."""
        self._move_to(self._driver.run(self.rounds.settle()))

    def go_elsewhere(self, *, is_idle: bool, looks_at_all: bool) -> bool:
        """Look at other shards, and go to one of them if that is worth it."""
        flow = self.rounds.look(is_idle=is_idle, looks_at_all=looks_at_all)
        shard = self._driver.run(flow)
        if shard is None:
            return False
        with self._speaking:
            before = self._identity.keys
            # Reports first; then all that is not begun goes back.
            self._exchanges.exchange(self._driver, want=0, keep=0)
            if self._exchanges.is_member:
                self._handing_back.all_waiting(self._driver, final=False)
                self.outposts.leave_behind(before, is_unsure=False)
                if not self.outposts.has(before.shard):
                    self._handing_back.all_waiting(self._driver, final=True)
            self._move_to(shard)
        return True

    def find_refuge(self) -> int | None:
        """Return a shard that can be reached, as the one that it is in cannot."""
        try:
            return self._driver.run(self.rounds.escape())
        except RedisError:
            return None

    def escape_to(self, shard: int) -> None:
        """Go to another shard without a word to the one that cannot be reached."""
        with self._speaking:
            self._in_flight.release_all()
            self.outposts.leave_behind(self._identity.keys, is_unsure=True)
            self._move_to(shard)

    def _move_to(self, shard: int) -> None:
        """Be in another shard from now on; the loop joins it next."""
        identity = self._identity
        if identity.keys.shard != shard:
            self._exchanges.note_left()
            self.outposts.come_back(shard)
            identity.keys = identity.shards.all[shard]
            self._slots.has_moved()
            logger.debug("worker %s goes to shard %d", identity.name, shard)
