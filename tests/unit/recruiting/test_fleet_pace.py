"""One slice per interval in all processes together, however many there are."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from workstealing import AsyncRecruiter, Duty, Recruiter
from workstealing.errors import AmbiguousPace, ConfigurationError, RedisUnavailable
from workstealing.telemetry.events import BreakerClosed, BreakerOpened, Outcome
from workstealing.testing import ManualClock, RecordingObserver

EVERY = 30.0
LONG = 900.0


class Turns:
    """Turns as Redis keeps them; it can be away."""

    target = ""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._free_at: dict[str, float] = {}
        self.is_away = False
        self.asked = 0

    def take(self, job: str, seconds: float) -> float:
        self.asked += 1
        if self.is_away:
            raise RedisUnavailable("away")
        now = self._clock.monotonic()
        left = self._free_at.get(job, 0.0) - now
        if left > 0:
            return left
        self._free_at[job] = now + seconds
        return 0.0


class AsyncTurns(Turns):
    async def take(self, job: str, seconds: float) -> float:  # type: ignore[override]
        return super().take(job, seconds)


class FleetOfProcesses:
    def __init__(self, number: int) -> None:
        self.clock = ManualClock()
        self.turns = Turns(self.clock)
        self.slices: list[float] = []
        self.recruiters = []
        for seed in range(number):
            recruiter = Recruiter(
                chance=Random(seed), clock=self.clock, share=None, deadline=None
            )
            recruiter.install(self.work, "sweep", every=EVERY, of=self.turns)
            self.recruiters.append(recruiter)

    def work(self) -> None:
        self.slices.append(self.clock.monotonic())

    def live(self, seconds: float) -> int:
        """Let every process enlist once a second; return how many slices there were."""
        before = len(self.slices)
        for _ in range(int(seconds)):
            self.clock.advance(1.0)
            for recruiter in self.recruiters:
                recruiter.enlist()
        return len(self.slices) - before


@pytest.mark.parametrize("number", [1, 10, 100])
def test_a_fleet_of_any_size_has_as_many_slices_as_were_asked_for(number: int) -> None:
    fleet = FleetOfProcesses(number)

    slices = fleet.live(LONG)

    assert slices == pytest.approx(LONG / EVERY, rel=0.15)
    assert fleet.turns.asked <= number * (slices + 1) * 1.5, "one try per turn, or so"


@pytest.mark.parametrize("number", [1, 10, 100])
def test_without_an_answer_nothing_is_done_and_afterwards_there_is_no_storm(
    number: int,
) -> None:
    fleet = FleetOfProcesses(number)
    fleet.live(LONG / 6)

    fleet.turns.is_away = True
    assert fleet.live(LONG / 6) == 0
    fleet.turns.is_away = False

    began = len(fleet.slices)
    slices = fleet.live(LONG)
    assert slices == pytest.approx(LONG / EVERY, rel=0.15)
    times = fleet.slices[began:]
    gaps = [later - sooner for sooner, later in pairwise(times)]
    assert min(gaps) > 0.9 * EVERY, "no two slices were close to each other"


@pytest.mark.parametrize("server", ["redis", "database"])
def test_a_turn_tells_of_its_own_server_not_of_what_the_job_depends_on(
    server: str,
) -> None:
    """Unless both are the same."""
    clock, observer = ManualClock(), RecordingObserver()
    turns = Turns(clock)
    turns.target = server
    recruiter = Recruiter(share=None, clock=clock, observers=(observer,))

    def work() -> None:
        raise ConnectionError("the database is away")

    recruiter.install(work, "sweep", every=EVERY, of=turns, target="database")

    assert recruiter.run_now() is Outcome.ERROR
    assert list(recruiter.stats().open_targets) == ["database"]
    clock.advance(1.5)
    assert recruiter.run_now() is Outcome.CONFLICT
    is_same = server == "database"
    assert [event.target for event in observer.of(BreakerClosed)] == [server] * is_same

    clock.advance(EVERY)
    turns.is_away = True
    assert recruiter.run_now() is Outcome.ERROR
    opened = [event.target for event in observer.of(BreakerOpened)]
    assert opened == ["database", server]
    assert recruiter.run_now() is Outcome.OPEN, "without turns there are no slices"

    clock.advance(EVERY)
    turns.is_away = False
    assert recruiter.run_now() is Outcome.ERROR
    assert {event.target for event in observer.of(BreakerClosed)} == {server}
    assert list(recruiter.stats().open_targets) == ["database"]


def test_a_pace_can_become_that_of_each_process() -> None:
    fleet = FleetOfProcesses(1)
    recruiter = fleet.recruiters[0]
    recruiter.set_rate("sweep", 1.0)

    assert [recruiter.enlist() for _ in range(3)] == [Duty.RECRUITED] * 3
    recruiter.set_rate("sweep", every=EVERY, of=fleet.turns)
    assert fleet.live(LONG) == pytest.approx(LONG / EVERY, rel=0.15)


def test_a_pace_that_is_refused_changes_nothing() -> None:
    """Otherwise the job would run in every process, without a turn."""
    fleet = FleetOfProcesses(1)
    recruiter = fleet.recruiters[0]
    recruiter.set_rate("sweep", 1.0)

    with pytest.raises(ConfigurationError, match="give it a Fleet"):
        recruiter.set_rate("sweep", every=EVERY, of=AsyncTurns(fleet.clock))

    job = recruiter.stats().jobs["sweep"]
    assert (job.rate, job.every, job.of_fleet) == (1.0, None, False)
    assert recruiter.enlist() is Duty.RECRUITED


async def test_an_asyncio_host_shares_the_turns() -> None:
    clock = ManualClock()
    turns, slices = AsyncTurns(clock), []

    async def work() -> None:
        slices.append(clock.monotonic())

    recruiter = AsyncRecruiter(clock=clock, share=None, chance=Random(1), deadline=None)
    recruiter.install(work, "sweep", every=EVERY, of=turns)
    for _ in range(int(LONG)):
        clock.advance(1.0)
        await recruiter.enlist()
    assert len(slices) == pytest.approx(LONG / EVERY, rel=0.15)


def test_whose_slices_are_meant_must_make_sense() -> None:
    recruiter = Recruiter()
    with pytest.raises(AmbiguousPace, match="every="):
        recruiter.install(print, "job", rate=0.1, of=Turns(ManualClock()))
    for_plain = "'job' is not a coroutine function: give it a Fleet, not an AsyncFleet"
    with pytest.raises(ConfigurationError, match=for_plain):
        recruiter.install(print, "job", every=1, of=AsyncTurns(ManualClock()))
    with pytest.raises(ConfigurationError, match=for_plain):
        AsyncRecruiter().install(print, "job", every=1, of=AsyncTurns(ManualClock()))

    async def coroutine() -> None: ...

    for_coroutines = "'job' is a coroutine function: give it an AsyncFleet, not a Fleet"
    with pytest.raises(ConfigurationError, match=for_coroutines):
        AsyncRecruiter().install(coroutine, "job", every=1, of=Turns(ManualClock()))
    with pytest.raises(ConfigurationError, match="must be a Fleet"):
        recruiter.install(print, "job", every=1, of="fleet")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="must be a Fleet"):
        Recruiter().install(lambda: None, "job", every=5, of=Turns)  # type: ignore[arg-type]
