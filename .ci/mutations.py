"""Breaks the queue on purpose: without any one of its rules, a named test must fail.

`python .ci/mutations.py` works on a copy of the project, and writes the table of
`docs/guarantees.md`. Words choose the rules with one of them in their name or file, as
in `python .ci/mutations.py outposts`; the rows of the others stay as they are. A rule
whose loss no test notices ends it with 1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/guarantees.md"
COPIED = ("workstealing", "tests", "pyproject.toml")
LUA = "workstealing/queue/lua"


class Mutation(NamedTuple):
    """A rule, how it is taken away, and the test that notices."""

    rule: str
    file: str
    text: str
    instead: str
    test: str


MUTATIONS = (
    Mutation(
        "a report needs the token of the lock (the fence)",
        f"{LUA}/lib/settle.lua",
        "holders[n] ~= mine .. ARGV[i + 1]",
        "not is_mine(holders[n])",
        "tests/scripts/test_reporting.py::test_a_wrong_token_is_refused",
    ),
    Mutation(
        "a report counts once in a call",
        f"{LUA}/lib/settle.lua",
        "if is_settled[id] or ",
        "if ",
        "tests/scripts/test_reporting.py"
        "::test_a_report_that_is_twice_in_one_call_counts_once",
    ),
    Mutation(
        "after a lost reply, what the worker does not hold goes back",
        f"{LUA}/exchange.lua",
        "held >= 0 and resynchronize(held) or nil",
        "nil",
        "tests/scripts/test_reporting.py"
        "::test_what_a_worker_never_learnt_of_comes_back_in_order",
    ),
    Mutation(
        "what goes back gets a new token",
        f"{LUA}/lib/resynchronize.lua",
        "redis.call('HSET', lock, id, mine .. new_token())",
        "",
        "tests/scripts/test_reporting.py"
        "::test_a_report_of_what_was_put_back_comes_too_late",
    ),
    Mutation(
        "a living lease keeps its tasks",
        f"{LUA}/reassign.lua",
        "if lease_end and lease_end > now then return {-1, {}, {}} end",
        "",
        "tests/scripts/test_reassigning.py::test_a_living_worker_keeps_everything",
    ),
    Mutation(
        "an exchange renews the lease",
        f"{LUA}/exchange.lua",
        "if renews then first_write('ZADD', workers, now + lease_ms, worker) end",
        "",
        "tests/scripts/test_exchanging.py::test_an_exchange_renews_the_lease",
    ),
    Mutation(
        "only a member is given tasks",
        f"{LUA}/exchange.lua",
        "if (renews or held >= 0) and not is_member() then return {'lost'} end",
        "",
        "tests/scripts/test_exchanging.py"
        "::test_a_worker_that_never_joined_gets_nothing",
    ),
    Mutation(
        "an orphan is given back only if the dead worker has its lock (running)",
        f"{LUA}/lib/orphans.lua",
        "redis.call('HDEL', running, id)\n"
        "    if is_mine(redis.call('HGET', lock, id)) then",
        "redis.call('HDEL', running, id)\n    if true then",
        "tests/scripts/test_reassigning.py"
        "::test_what_a_dead_worker_no_longer_holds_stays_where_it_is",
    ),
    Mutation(
        "an orphan is given back only if the dead worker has its lock (waiting)",
        f"{LUA}/lib/orphans.lua",
        "or {}) do\n    if is_mine(redis.call('HGET', lock, id)) then",
        "or {}) do\n    if true then",
        "tests/scripts/test_reassigning.py"
        "::test_what_a_dead_worker_no_longer_holds_stays_where_it_is",
    ),
    Mutation(
        "three deaths are enough",
        f"{LUA}/lib/orphans.lua",
        "elseif most_deaths and deaths >= most_deaths then",
        "elseif false then",
        "tests/scripts/test_reassigning.py::test_a_task_is_given_up_after_three_deaths",
    ),
    Mutation(
        "what must not run twice is given up when its worker dies",
        f"{LUA}/lib/orphans.lua",
        "if string.sub(held[n + 1], 1, 1) == '!' then",
        "if false then",
        "tests/scripts/test_beginning.py"
        "::test_when_its_worker_dies_its_outcome_is_unknown",
    ),
    Mutation(
        "what was begun, must not run twice and is not held is given up",
        f"{LUA}/lib/resynchronize.lua",
        "        give_up({id, unknown})\n",
        "",
        "tests/scripts/test_beginning.py"
        "::test_one_that_its_worker_does_not_know_of_any_more_is_given_up",
    ),
    Mutation(
        "a suspect runs alone",
        f"{LUA}/lib/take.lua",
        "local suspect = is_odd and suspect_among(ids)",
        "local suspect",
        "tests/scripts/test_exchanging.py::test_a_suspect_is_taken_alone",
    ),
    Mutation(
        "a suspect runs alone in a spare moment, too",
        f"{LUA}/brief_exchange.lua",
        "elseif is_odd and suspect_among({id}) then",
        "elseif false then",
        "tests/scripts/test_brief_exchanging.py"
        "::test_what_somebody_died_with_is_taken_alone",
    ),
    Mutation(
        "what a spare moment never heard of goes back",
        f"{LUA}/brief_exchange.lua",
        "returned = return_running(math.huge, unknown)",
        "returned = 0",
        "tests/scripts/test_brief_exchanging.py"
        "::test_what_a_host_never_heard_of_goes_back",
    ),
    Mutation(
        "a theft locks the tasks to the thief",
        f"{LUA}/steal.lua",
        "redis.call('HSET', lock, unpack(locks))",
        "",
        "tests/scripts/test_stealing.py::test_a_stolen_task_is_the_thiefs",
    ),
    Mutation(
        "a theft that is repeated moves nothing",
        f"{LUA}/steal.lua",
        "or redis.call('LLEN', thief_deque) > 0 then",
        "then",
        "tests/scripts/test_stealing.py::test_a_theft_that_is_repeated_moves_nothing",
    ),
    Mutation(
        "a task that ends gives its permits back",
        f"{LUA}/lib/settle.lua",
        "if is_there(permit_holders) then return_permits(freed) end",
        "",
        "tests/scripts/test_lines.py::test_a_permit_comes_back_however_a_task_ends",
    ),
    Mutation(
        "a paused queue gives out nothing",
        f"{LUA}/exchange.lua",
        "want > 0 and not (is_odd and is_queue_paused())",
        "want > 0",
        "tests/scripts/test_pausing.py::test_a_paused_queue_gives_out_nothing",
    ),
    Mutation(
        "a tick is fired by one",
        f"{LUA}/fire.lua",
        "if redis.call('ZSCORE', ticks, name) ~= expected then return 'moved' end",
        "",
        "tests/scripts/test_schedules.py"
        "::test_every_tick_is_fired_once_or_counted_as_missed_in_any_order",
    ),
    Mutation(
        "after a failure, a worker names what it holds",
        "workstealing/workers/in_flight.py",
        'may think that it is more."""\n        self._is_unsure = True',
        'may think that it is more."""',
        "tests/unit/workers/test_in_flight.py"
        "::test_after_a_lost_reply_all_that_is_held_is_named_once",
    ),
    Mutation(
        "reports whose delivery is in doubt are repeated",
        "workstealing/workers/in_flight.py",
        "self._reports[:0] = reports\n",
        "",
        "tests/unit/workers/test_in_flight.py"
        "::test_reports_in_doubt_are_delivered_again_in_their_order",
    ),
    Mutation(
        "a task is finished once",
        "workstealing/workers/in_flight.py",
        "if self._running.pop(id(delivery), None) is None:",
        "if False:",
        "tests/unit/workers/test_in_flight.py"
        "::test_a_task_is_finished_once_though_its_id_comes_back",
    ),
    Mutation(
        "a worker that lost its lease drops what it holds",
        "workstealing/workers/exchanges.py",
        "        self._in_flight.drop_all()\n",
        "",
        "tests/unit/workers/test_loop.py"
        "::test_after_a_lost_lease_nothing_waits_that_others_may_run",
    ),
    Mutation(
        "a worker that lost its lease waits for no replica",
        "workstealing/workers/exchanges.py",
        "        self.is_unreplicated = False\n        tell_lease_lost",
        "        tell_lease_lost",
        "tests/unit/workers/test_loop.py"
        "::test_a_lease_lost_while_replicas_lack_a_report_lets_it_take_tasks_again",
    ),
    Mutation(
        "a slot whose task has ended stays with its queue",
        "workstealing/workers/shared_in_flight.py",
        "            self._unfed = (self._unfed or 0) - len(deliveries)\n",
        "",
        "tests/unit/workers/test_shared_in_flight.py"
        "::test_a_slot_whose_task_ends_before_the_loop_rests_stays_with_its_queue",
    ),
    Mutation(
        "an answer that renews nothing is no sign of life",
        "workstealing/workers/exchanges.py",
        "        if pending.renews:\n",
        "        if True:\n",
        "tests/unit/workers/test_loop.py"
        "::test_an_exchange_that_is_not_to_renew_the_lease_is_no_sign_of_life",
    ),
    Mutation(
        "whoever speaks next reads the reply that is under way first",
        "workstealing/workers/exchanges.py",
        "if self._under_way is not None and self.read_reply() is None:",
        "if False:",
        "tests/unit/workers/test_overlapping.py"
        "::test_a_process_that_ends_reads_the_reply_before_it_leaves",
    ),
    Mutation(
        "a reply that was read late renews the lease of when it was sent",
        "workstealing/workers/exchanges.py",
        "self._lease.renewed(pending.at if is_ahead else None)",
        "self._lease.renewed()",
        "tests/unit/workers/test_overlapping.py"
        "::test_a_lease_is_renewed_by_the_time_of_the_exchange_not_of_its_reading",
    ),
    Mutation(
        "reports that another shard did not answer are repeated",
        "workstealing/workers/outposts.py",
        "post.reports = reports + post.reports",
        "pass",
        "tests/unit/workers/test_outposts.py"
        "::test_after_a_failure_reports_are_repeated_and_what_is_held_is_named",
    ),
    Mutation(
        "a host that waits for replicas takes nothing in a spare moment",
        "workstealing/workers/spare_worker.py",
        "if self._alias.unsent and self._parts.settings.replicas:",
        "if False:",
        "tests/faults/test_replicas.py"
        "::test_a_spare_moment_takes_no_more_until_a_replica_has_what_it_reported",
    ),
    Mutation(
        "the lease of a brief function is renewed while it runs",
        "workstealing/workers/spare_lease.py",
        "if running is None or lease.silence < lease.renew_seconds:",
        "if True:",
        "tests/unit/workers/test_spare_lease.py"
        "::test_a_lease_is_renewed_when_a_third_of_it_is_over",
    ),
)


def main(words: list[str]) -> int:
    """Try those that the words choose, or all; 1 if one was not noticed."""
    tried = [one for one in MUTATIONS if not words or is_meant(one, words)]
    if not tried:
        sys.exit(f"no rule has {' or '.join(words)} in its name or file")
    page = PAGE.read_text(encoding="utf-8")
    table = re.compile(r"(?<=<!-- mutations -->\n).*?(?=<!-- end -->)", re.DOTALL)
    (before,) = table.findall(page)
    rows = set(before.splitlines(keepends=True))
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        for mutation in tried:
            is_noticed = notices(mutation, Path(folder))
            print("noticed" if is_noticed else "NOT NOTICED", mutation.rule, flush=True)
            missed += not is_noticed
            (rows.add if is_noticed else rows.discard)(row_of(mutation))
    head = "| without the rule that … | in | this fails |\n| --- | --- | --- |\n"
    after = head + "".join(row for row in map(row_of, MUTATIONS) if row in rows)
    PAGE.write_text(table.sub(lambda _: after, page), encoding="utf-8")
    return int(missed > 0)


def is_meant(mutation: Mutation, words: list[str]) -> bool:
    """Return whether its rule or its file has one of the words."""
    return any(word in mutation.rule or word in mutation.file for word in words)


def row_of(mutation: Mutation) -> str:
    """Return its line of the table."""
    file = mutation.file.rpartition("/")[2]
    return f"| {mutation.rule} | `{file}` | `{mutation.test}` |\n"


def notices(mutation: Mutation, folder: Path) -> bool:
    """Return whether the test passes as it is, and fails without the rule."""
    copy = folder / "project"
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, copy / name, ignore=ignored)
        else:
            shutil.copy(source, copy)
    if not passes(mutation.test, copy):
        sys.exit(f"{mutation.test} fails without any change")
    file = copy / mutation.file
    before = file.read_text(encoding="utf-8")
    if before.count(mutation.text) != 1:
        sys.exit(f"{mutation.file} has not exactly one {mutation.text!r}")
    changed = before.replace(mutation.text, mutation.instead)
    file.write_text(changed, encoding="utf-8")
    return not passes(mutation.test, copy)


def passes(test: str, copy: Path) -> bool:
    """Run one test of the copy, on fakeredis if it may."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test],
        cwd=copy,
        env=environment,
        capture_output=True,
        check=False,
    )
    if run.returncode not in (0, 1):
        sys.exit(f"{test} cannot be run:\n{run.stdout.decode()}{run.stderr.decode()}")
    return run.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
