"""`workstealing queue`, in real processes where code is imported or time passes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from workstealing import TaskQueue, Unique, Worker
from workstealing.cli.commands import workstealing
from workstealing.client.queue_internals import internals_of
from workstealing.errors import InputEnded
from workstealing.inspecting import Inspector
from workstealing.testing import Server, wait_until

StartCli = Callable[..., "subprocess.Popen[str]"]
RunCli = Callable[..., "subprocess.CompletedProcess[str]"]


class QueueCli:
    """A queue with a task or two, and the command line beside it."""

    def __init__(self, name: str, url: str) -> None:
        self.queue = TaskQueue(name, url)
        self.url = url

        @self.queue.task(name="echo")
        def echo(text: str = "", times: int = 1) -> dict[str, str]:
            return {"said": text * times}

        @self.queue.task(name="fail")
        def fail() -> None:
            raise ValueError("not today")

        self.echo, self.fail = echo, fail

    def drain(self) -> None:
        Worker(self.queue, pool="mill").run(until_empty=True)

    def run(self, command: str, *arguments: str, answer: str = "") -> Result:
        """Run a command on the queue by its name, so without any code."""
        named = ("--queue", self.queue.name, "--redis", self.url)
        return CliRunner().invoke(
            workstealing, ["queue", command, *arguments, *named], input=answer
        )


@pytest.fixture
def cli(redis_server: Server, key_prefix: str) -> Iterator[QueueCli]:
    cli = QueueCli(key_prefix, redis_server.url)
    yield cli
    cli.queue.close()


def test_add_submits_a_task_and_prints_its_id(cli: QueueCli, run_cli: RunCli) -> None:
    plain = run_cli("queue", "add", "app:echo", '{"text": "hi", "times": 2}')
    pairs = run_cli(
        *("queue", "add", "app:echo", "text=2001", "times=2"),
        *("--id", "mine", "--priority", "0", "--in", "0"),
    )

    assert plain.returncode == pairs.returncode == 0, plain.stderr + pairs.stderr
    assert pairs.stdout == "mine\n"
    cli.drain()
    first = cli.queue.handle(plain.stdout.strip())
    assert first.result(timeout=5) == {"said": "hihi"}
    assert cli.queue.handle("mine").result(timeout=5) == {"said": "20012001"}


def test_add_says_that_an_id_has_ended_and_can_use_it_again(
    cli: QueueCli, run_cli: RunCli
) -> None:
    cli.echo.options(id="mine").submit("first").cancel()
    add = ("queue", "add", "app:echo", "text=hi", "--id", "mine")

    told, again = run_cli(*add), run_cli(*add, "--again")

    assert told.stdout == again.stdout == "mine\n"
    assert told.stderr == (
        "Warning: nothing was added: task mine has ended (cancelled) and is kept; give"
        " --again to forget it and add this one\n"
    )
    assert again.stderr == ""
    assert cli.queue.handle("mine").state().state == "waiting"
    nameless = run_cli("queue", "add", "app:echo", "text=hi", "--again")
    assert nameless.returncode == 2
    assert (
        "--again replaces a task that has ended: name it with --id" in nameless.stderr
    )


def test_replay_says_which_task_has_the_unique_key_of_a_dead_letter(
    cli: QueueCli,
) -> None:
    @cli.queue.task(name="bill", unique=Unique())
    def bill() -> None:
        raise ValueError("not today")

    letter = bill.submit()
    cli.drain()
    other = bill.submit()

    one = cli.run("replay", letter.id)
    every = cli.run("replay", "--all", "--yes")

    assert (one.exit_code, every.exit_code) == (1, 0)
    for told in (one, every):
        assert "0 replayed" in told.output
        assert f"task {other.id} has its unique key" in told.output
    why = " ".join(Inspector(cli.queue).why(other.id).sentences)
    assert "It is unique until it has ended" in why
    other.cancel()
    assert cli.run("replay", letter.id).output == "1 replayed\n"


def test_add_can_delay_a_task(cli: QueueCli, run_cli: RunCli) -> None:
    run_cli("queue", "add", "app:echo", "text=hi", "--in", "60", "--id", "later")

    assert cli.queue.handle("later").state().state == "delayed"


def test_add_and_wait_prints_the_result_as_json(
    start_cli: StartCli, run_cli: RunCli
) -> None:
    start_cli("worker", "app:queue")

    ended = run_cli("queue", "add", "app:echo", "text=hi", "--wait", "--timeout", "30")

    assert (ended.stdout, ended.returncode) == ('{"said":"hi"}\n', 0)


def test_add_and_wait_exits_with_the_error_of_a_task_that_fails(
    start_cli: StartCli, run_cli: RunCli
) -> None:
    start_cli("worker", "app:queue")

    ended = run_cli("queue", "add", "app:fail", "--wait", "--timeout", "30")

    assert (ended.stdout, ended.returncode) == ("", 1)
    assert 'raise ValueError("not today")' in ended.stderr
    assert "failed with ValueError: not today" in ended.stderr.splitlines()[-1]


def test_add_and_wait_exits_with_three_after_the_timeout(run_cli: RunCli) -> None:
    ended = run_cli(
        "queue", "add", "app:echo", "text=hi", "--wait", "--timeout", "0.05"
    )

    assert ended.returncode == 3
    assert "did not end within 0.05 s" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["app:echo", '{"text"'], "the payload is not valid JSON"),
        (["app:echo", "hi"], "'hi' is neither a JSON object nor NAME=VALUE"),
        (["app:echo", "text=a", "text=b"], "text is given twice"),
        (["app:echo"], "argument 'text' is missing"),
        (["app:echo", "text=a", "times=x"], "argument 'times': expected `int`"),
        (["app:echo", "text=a", "tmes=1"], "'tmes' is not known; it takes text, times"),
        (["app:echo", "text=a", "--id", "a b"], "the id of a task must be"),
        (["app:echo", "text=a", "--priority", "3"], "priority must be 0 to 2"),
        (["app:echo", "text=a", "--in", "-1"], "delay must be 0 seconds or more"),
        (["app:echo", "text=a", "--timeout", "1"], "--timeout needs --wait"),
        (["app:queue"], "app:queue is a TaskQueue, not a Task or AsyncTask"),
        (["echo"], "'echo' must be APP:TASK"),
    ],
)
def test_add_refuses_bad_input_in_one_clear_line(
    cli: QueueCli, run_cli: RunCli, arguments: list[str], message: str
) -> None:
    ended = run_cli("queue", "add", *arguments)

    assert ended.returncode == 2
    assert message in ended.stderr
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1
    assert cli.queue.counts().tasks == 0


@pytest.mark.parametrize(
    "command",
    ["ls", "cat", "stat", "tree", "why", "cancel", "done", "reopen", "dead"],
)
def test_a_queue_is_looked_at_by_name_or_by_application(
    cli: QueueCli, run_cli: RunCli, command: str
) -> None:
    cli.echo.options(id="one").submit("hi")
    words = ["one"] if command in ("cat", "why", "cancel") else []

    by_name = cli.run(command, *words)
    by_application = run_cli("queue", command, "app:queue", *words)

    assert by_name.exit_code == 0, by_name.output
    assert by_application.returncode == 0, by_application.stderr
    assert (
        by_name.output.split()[:1]
        == ((by_application.stdout or by_application.stderr).split()[:1])
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls"], "name the queue: APP:QUEUE as the first word, or --queue NAME"),
        (
            ["why", "one"],
            "name the queue: APP:QUEUE as the first word, or --queue NAME",
        ),
        (["ls", "--queue", "a/b"], "the name of a queue must be"),
        (["ls", "--queue", "q", "--run", "a b"], "the name of a run must be"),
        (["ls", "--queue", "q", "--redis", "nonsense"], "a Redis URL starts with"),
        (["ls", "app:queue", "--run", "x"], "--run and --redis need --queue"),
        (["ls", "cellar", "--queue", "q"], "a worker, got 'cellar'"),
        (["ls", "inbox", "dead", "--queue", "q"], "give one place, not 2"),
        (["ls", "--limit", "0", "--queue", "q"], "limit must be 1 to 1000"),
        (["cat", "--queue", "q"], "give the id of one task"),
        (["why", "a b", "--queue", "q"], "the id of a task must be"),
        (["cancel", "--queue", "q"], "give the ids of tasks, or --task, --state and"),
        (["reopen", "x", "--queue", "q"], "unexpected: x"),
        (["tree", "x", "--queue", "q"], "unexpected: x"),
        (["stat", "x", "--queue", "q"], "unexpected: x"),
        (["drain", "--queue", "q"], "needs their code: give APP:QUEUE"),
        (["done", "--timeout", "1", "--queue", "q"], "--timeout needs --wait"),
        (["dead", "x", "--queue", "q"], "unexpected: x"),
        (["replay", "--queue", "q"], "give the ids of dead letters, or --task"),
        (["drop", "--queue", "q"], "give the ids of dead letters, or --task"),
        (["drop", "x", "--all", "--queue", "q"], "give the ids of dead letters, or"),
        (["replay", "a b", "--queue", "q"], "the id of a task must be"),
    ],
)
def test_bad_input_gets_one_clear_line_and_exit_code_two(
    redis_server: Server, arguments: list[str], message: str
) -> None:
    ended = CliRunner(env={"WORKSTEALING_URL": redis_server.url}).invoke(
        workstealing, ["queue", *arguments]
    )

    assert ended.exit_code == 2
    assert message in ended.output
    assert ended.output.startswith("Error: ")
    assert ended.output.count("\n") == 1


def test_a_server_that_does_not_answer_is_one_clear_line_too() -> None:
    ended = CliRunner().invoke(
        workstealing,
        ["queue", "stat", "--queue", "q", "--redis", "unix:///nowhere/socket"],
    )

    assert ended.exit_code == 1
    assert ended.output.startswith("Error: ")
    assert ended.output.count("\n") == 1


def test_ls_lists_a_place_as_a_table_or_as_json(cli: QueueCli) -> None:
    cli.echo.options(id="one").submit("hi")
    cli.fail.options(id="bad").submit()
    cli.drain()

    table, dead = cli.run("ls", "done"), cli.run("ls", "dead", "--json")

    assert "one" in table.output
    assert "mill.0" in table.output
    (entry,) = json.loads(dead.output)
    assert (entry["id"], entry["task"], entry["state"]) == ("bad", "fail@1", "failed")
    assert entry["note"] == "ValueError: not today"
    assert "no tasks in inbox" in cli.run("ls").output


def test_steps_of_a_chain_that_wait_are_a_place_of_their_own(cli: QueueCli) -> None:
    handle = (cli.echo.s("hi") | cli.echo.s()).submit()
    first, last = handle.steps

    listed = cli.run("ls", "steps", "--json")

    (entry,) = json.loads(listed.output)
    assert (entry["id"], entry["place"]) == (last.id, "steps")
    assert entry["note"] == f"waits for task {first.id}"
    assert "steps" in cli.run("ls", "--help").output


def test_in_a_pipe_each_task_is_one_line_and_no_name_is_broken(cli: QueueCli) -> None:
    long = "a-rather-long-identifier-" * 6
    for n in range(3):
        cli.echo.options(id=f"{long}{n}").submit("hi")
    cli.fail.options(id="bad").submit()
    cli.drain()

    done = cli.run("ls", "done").output.splitlines()
    dead = cli.run("ls", "dead").output.splitlines()

    assert done[0].split() == ["id", "task", "state", "worker", "when", "note"]
    assert {line.split()[0] for line in done[1:]} == {f"{long}{n}" for n in range(3)}
    assert len(dead) == 2
    assert dead[1].split()[:4] == ["bad", "fail@1", "failed", "mill.0"]
    assert dead[1].endswith("  ValueError: not today")


def test_cat_shows_a_task_with_its_traceback(cli: QueueCli) -> None:
    cli.fail.options(id="bad").submit()
    cli.drain()

    shown = cli.run("cat", "bad").output

    assert shown.startswith("bad: failed. It failed: ValueError: not today.\n")
    assert '"name": "fail"' in shown
    assert 'raise ValueError("not today")' in shown
    missing = cli.run("cat", "nobody")
    assert (missing.exit_code, missing.output.count("\n")) == (1, 1)


def test_no_foreign_name_can_control_the_terminal(cli: QueueCli) -> None:
    client: Any = internals_of(cli.queue).driver.client
    trick = "\x1b[2J"
    envelope = {"v": 1, "name": trick, "version": 1, "payload": {"x": trick}}
    client.hset(internals_of(cli.queue).keys.task, trick, json.dumps(envelope))
    client.rpush(internals_of(cli.queue).keys.inboxes[1], trick)

    for command in ("ls", "tree", "stat"):
        shown = cli.run(command)
        assert shown.exit_code == 0
        assert "\x1b" not in shown.output


def test_no_error_of_a_task_can_control_the_terminal_or_forge_a_line(
    cli: QueueCli,
) -> None:
    client: Any = internals_of(cli.queue).driver.client
    keys, trick = internals_of(cli.queue).keys, "\x1b[2J\nforged: done"
    error = {
        "type": "ValueError",
        "message": trick,
        "traceback": f"ValueError: {trick}",
    }
    client.hset(keys.task, "bad", '{"v": 1, "name": "echo", "version": 1}')
    client.hset(keys.done, "bad", json.dumps({"state": "failed", "error": error}))
    client.zadd(keys.dead, {"bad": 1})

    for words in (("why", "bad"), ("dead",), ("ls", "dead"), ("cat", "bad")):
        shown = cli.run(*words).output
        assert "\x1b" not in shown
        told = shown.partition("\nValueError: ")[0]
        assert r"\x1b[2J" in told
        assert "\nforged" not in told


def test_stat_as_json_has_the_documented_fields(cli: QueueCli) -> None:
    cli.echo.submit("hi")
    cli.drain()
    cli.echo.submit("hi")

    stat = json.loads(cli.run("stat", "--json").output)

    assert list(stat) == [
        *("queue", "run", "server", "is_known", "now_ms", "input_ended", "waiting"),
        *("inbox", "oldest_at_ms", "assigned"),
        *("running", "delayed", "parked", "paused", "held_back", "dead"),
        *("outcomes", "unfinished"),
        *("backlog", "living", "backlog_per_worker", "workers", "parked_abilities"),
        *("pauses", "task_names", "totals"),
        "upkeep",
        "bytes",
        "steps",
        "shards",
        "unreachable",
    ]
    assert (stat["waiting"], stat["totals"]["done"]) == (1, 1)


def test_stat_names_the_server_and_the_queue(
    cli: QueueCli, redis_server: Server
) -> None:
    cli.echo.submit("hi")

    first = cli.run("stat").output.splitlines()[0]

    socket = redis_server.url.removeprefix("unix://").partition("?")[0]
    assert first.startswith(f"{cli.queue.name}/default on unix:{socket}/0 at ")


def test_stat_says_when_there_is_no_such_queue_and_which_there_are(
    cli: QueueCli, redis_server: Server
) -> None:
    cli.echo.submit("hi")

    ended = CliRunner().invoke(
        workstealing,
        ["queue", "stat", "--queue", "thumbnals", "--redis", redis_server.url],
    )

    first, second = ended.output.splitlines()
    assert first.startswith("thumbnals/default on unix:")
    assert first.endswith("there is no such queue, or it was never used")
    assert f"{cli.queue.name}/default" in second
    assert ended.exit_code == 1
    assert cli.run("stat").exit_code == 0


def test_stat_as_json_of_no_such_queue_prints_it_and_exits_with_one(
    cli: QueueCli,
) -> None:
    ended = cli.run("stat", "--json")

    assert json.loads(ended.stdout)["is_known"] is False
    assert ended.exit_code == 1


def test_stat_never_prints_a_password(redis_server: Server, key_prefix: str) -> None:
    url = redis_server.url.replace("unix://", "unix://:hunter2@")

    ended = CliRunner().invoke(
        workstealing, ["queue", "stat", "--queue", key_prefix, "--redis", url]
    )

    assert "hunter2" not in ended.output


def test_stat_follows_until_it_is_interrupted(
    cli: QueueCli, start_cli: StartCli, redis_server: Server
) -> None:
    named = ("--queue", cli.queue.name, "--redis", redis_server.url)
    process = start_cli("queue", "stat", "--follow", "--json", *named)
    assert process.stdout is not None

    before = json.loads(process.stdout.readline())
    cli.echo.submit("hi")
    wait_until(
        lambda: json.loads(process.stdout.readline())["waiting"] == 1,  # type: ignore[union-attr]
        30,
        "the task to be seen",
    )
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert before["waiting"] == 0
    assert (process.returncode, errors) == (0, "")


def test_stat_followed_by_a_pipe_is_a_line_per_look(
    cli: QueueCli, start_cli: StartCli
) -> None:
    process = start_cli("queue", "stat", "--follow", "--queue", cli.queue.name)
    assert process.stdout is not None

    before = process.stdout.readline()
    cli.echo.submit("hi")
    wait_until(
        lambda: "waiting 1 assigned 0 running 0" in process.stdout.readline(),  # type: ignore[union-attr]
        30,
        "the task to be seen",
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert "there is no such queue" in before


def test_tree_prints_the_folders(cli: QueueCli) -> None:
    cli.echo.options(id="one").submit("hi")
    cli.drain()

    lines = cli.run("tree").output.splitlines()

    assert lines[0].startswith(cli.queue.name)
    assert lines[1].startswith("└── default")
    assert [line.split("<")[0].rstrip() for line in lines[2:]] == [
        "    ├── inbox",
        "    │   ├── one",
        "    │   └── one.done",
        "    ├── outbox",
        "    │   └── one",
        "    └── queues",
        "        └── mill.0",
        "            ├── inbox",
        "            └── outbox",
        "                └── one",
    ]


def test_why_says_it_in_sentences(cli: QueueCli) -> None:
    cli.echo.options(id="one").submit("hi")

    shown = cli.run("why", "one").output.splitlines()

    assert shown[0] == "one: waiting"
    assert "  It is not running because no worker is alive." in shown


def test_why_and_cat_of_a_task_that_is_not_there_both_exit_with_1(
    cli: QueueCli,
) -> None:
    cli.echo.submit("hi")

    why, cat = cli.run("why", "nobody"), cli.run("cat", "nobody")

    assert "Nothing is known of nobody." in why.output
    assert (why.exit_code, cat.exit_code) == (1, 1)


def test_drain_runs_what_is_there_and_ends(cli: QueueCli, run_cli: RunCli) -> None:
    handle = cli.echo.submit("hi")

    ended = run_cli("queue", "drain", "app:queue")

    assert ended.returncode == 0, ended.stderr
    assert handle.result(timeout=5) == {"said": "hi"}


def test_done_closes_the_queue_and_can_wait_for_the_end(cli: QueueCli) -> None:
    cli.echo.submit("hi")
    waited = cli.run("done", "--wait", "--timeout", "0.05")
    assert waited.exit_code == 3
    assert cli.queue.counts().input_ended

    cli.drain()
    ended = cli.run("done", "--wait", "--timeout", "30")
    assert ended.exit_code == 0
    assert "no task is left to run" in ended.output


def test_a_queue_that_was_closed_is_opened_again(cli: QueueCli) -> None:
    cli.run("done")
    with pytest.raises(InputEnded):
        cli.echo.submit("hi")

    ended = cli.run("reopen")

    assert ended.output == f"{cli.queue.name}/default accepts tasks again\n"
    assert cli.echo.submit("hi").state().state == "waiting"
    assert cli.run("reopen").exit_code == 0


def test_cancel_says_what_happened_to_each_task(cli: QueueCli) -> None:
    cli.echo.options(id="over").submit("hi")
    cli.fail.options(id="bad").submit()
    cli.drain()
    cli.echo.options(id="one").submit("hi")
    cli.echo.options(id="two", delay=60).submit("hi")

    ended = cli.run("cancel", "one", "two", "over", "bad", "nobody")

    assert ended.exit_code == 1
    assert ended.output.splitlines() == [
        "one: cancelled",
        "two: cancelled",
        "over: had ended: done",
        "bad: had ended: failed",
        "nobody: unknown: never submitted to this run, or expired",
        "Error: 3 tasks could not be cancelled",
    ]
    assert cli.queue.handle("one").state().state == "cancelled"
    assert cli.queue.handle("two").state().state == "cancelled"


def test_cancelling_again_is_no_error(cli: QueueCli) -> None:
    cli.echo.options(id="one").submit("hi")
    cli.run("cancel", "one")

    again = cli.run("cancel", "one", "one")

    assert (again.output, again.exit_code) == ("one: was cancelled before\n", 0)


def test_a_running_task_is_asked_to_stop(
    cli: QueueCli, start_cli: StartCli, run_cli: RunCli
) -> None:
    run_cli("queue", "add", "app:patient", "--id", "slow")
    start_cli("worker", "app:queue")
    handle = cli.queue.handle("slow")
    wait_until(lambda: handle.state().state == "running", 30, "the task to run")

    asked = cli.run("cancel", "slow")

    assert asked.output == "slow: running; asked to stop\n"
    assert asked.exit_code == 0
    assert "asked to stop" in cli.run("why", "slow").output


def test_a_mistyped_id_cancels_nothing(cli: QueueCli) -> None:
    cli.echo.options(id="one").submit("hi")

    ended = cli.run("cancel", "one", "a b")

    assert ended.exit_code == 2
    assert cli.queue.handle("one").state().state == "waiting"


def _dead(cli: QueueCli, number: int = 3) -> None:
    for n in range(number):
        cli.fail.options(id=f"bad{n}").submit()
    cli.drain()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands believe that somebody can answer."""
    monkeypatch.setattr("workstealing.cli.options.is_interactive", lambda: True)


def test_dead_lists_and_changes_nothing(cli: QueueCli) -> None:
    cli.echo.submit("hi")
    assert cli.run("dead").output == "no dead letters\n"
    _dead(cli)

    listed = cli.run("dead", "--limit", "2")

    assert "ValueError: not today" in listed.output
    assert "… 1 more" in listed.output
    assert cli.queue.counts().dead == 3
    assert cli.run("dead", "--all").exit_code == 2
    assert cli.queue.counts().dead == 3


@pytest.mark.parametrize(
    ("command", "past"), [("replay", "replayed"), ("drop", "dropped")]
)
def test_one_dead_letter_is_replayed_or_dropped_without_a_question(
    cli: QueueCli, command: str, past: str
) -> None:
    _dead(cli)

    ended = cli.run(command, "bad0")

    assert (ended.output, ended.exit_code) == (f"1 {past}\n", 0)
    assert cli.queue.counts().dead == 2
    again = cli.run(command, "bad0")
    assert again.exit_code == 1
    assert again.output == f"0 {past}\nError: not a dead letter: bad0\n"


def test_a_replayed_task_waits_again_and_a_dropped_one_is_gone(cli: QueueCli) -> None:
    _dead(cli)

    cli.run("replay", "bad0")
    cli.run("drop", "bad1")

    assert cli.queue.handle("bad0").state().state == "waiting"
    assert [task.id for task in Inspector(cli.queue).ls("dead")] == ["bad2"]


@pytest.mark.parametrize("command", ["replay", "drop"])
@pytest.mark.parametrize("which", [("--all",), ("bad0", "bad1")])
def test_more_than_one_dead_letter_is_touched_only_if_the_answer_is_yes(
    cli: QueueCli, terminal: None, command: str, which: tuple[str, ...]
) -> None:
    _dead(cli)
    number = 3 if which == ("--all",) else 2

    declined = cli.run(command, *which, answer="n\n")
    left = cli.queue.counts().dead
    agreed = cli.run(command, *which, answer="y\n")

    assert (declined.exit_code, left) == (1, 3)
    assert f"{number} dead letters? [y/N]" in declined.output
    assert agreed.exit_code == 0
    assert cli.queue.counts().dead == 3 - number


@pytest.mark.parametrize("command", ["replay", "drop"])
@pytest.mark.parametrize("which", [("--all",), ("bad0", "bad1")])
def test_without_a_terminal_more_than_one_dead_letter_needs_a_yes(
    cli: QueueCli, command: str, which: tuple[str, ...]
) -> None:
    _dead(cli)

    refused = cli.run(command, *which, answer="y\n")
    left = cli.queue.counts().dead
    done = cli.run(command, *which, "--yes")

    assert (refused.exit_code, left) == (2, 3)
    assert refused.output.startswith(f"Error: to {command} ")
    assert "--yes" in refused.output
    assert refused.output.count("\n") == 1
    assert done.exit_code == 0
    assert cli.queue.counts().dead == (0 if which == ("--all",) else 1)


def test_all_of_no_dead_letters_is_no_question(cli: QueueCli) -> None:
    cli.echo.submit("hi")
    assert cli.run("replay", "--all").output == "0 replayed\n"
    assert cli.run("drop", "--all").output == "0 dropped\n"


def test_pause_and_resume_hold_back_a_queue_and_say_so(cli: QueueCli) -> None:
    cli.echo.options(id="one").submit("hi")

    paused = cli.run("pause")
    again = cli.run("pause")
    cli.drain()

    name = f"{cli.queue.name}/default"
    assert paused.output == f"{name} is paused; running tasks finish\n"
    assert again.output.startswith(f"{name} is already paused, since 20")
    assert "PAUSED: the queue has been paused since 20" in cli.run("stat").output
    assert "the queue is paused" in cli.run("ls").output
    assert "the queue is paused since 20" in cli.run("tree").output
    assert (
        "It is not begun: the queue has been paused since"
        in cli.run("why", "one").output
    )
    assert cli.run("resume").output == f"{name} is resumed\n"
    late = cli.run("resume")
    assert (late.exit_code, "is not paused" in late.output) == (1, True)
    cli.drain()
    assert cli.queue.handle("one").result(timeout=5) == {"said": "hi"}


def test_pause_and_resume_hold_back_one_name(cli: QueueCli) -> None:
    cli.echo.options(id="one").submit("hi")
    assert cli.run("pause", "--task", "echo", "--unknown").exit_code == 0
    cli.drain()

    again = cli.run("pause", "--task", "echo")

    assert "task echo of" in again.output
    assert "is already paused, since 20" in again.output
    assert "task echo is paused" in cli.run("ls", "paused").output
    assert "1 task put aside" in cli.run("stat").output
    assert "task echo is paused since" in cli.run("resume").output
    assert cli.run("resume", "--task", "echo").exit_code == 0
    cli.drain()
    assert cli.queue.handle("one").result(timeout=5) == {"said": "hi"}


def test_a_name_that_nobody_knows_is_not_paused_by_mistake(
    cli: QueueCli, run_cli: RunCli
) -> None:
    refused = run_cli("queue", "pause", "app:queue", "--task", "ehco")

    assert refused.returncode == 2
    assert "knows a task 'ehco', so nothing was paused" in refused.stderr
    assert "Did you mean echo?" in refused.stderr
    assert cli.run("pause", "--task", "ehco").exit_code == 2
    assert not cli.queue.paused()


def _numbered(cli: QueueCli) -> None:
    for n in range(3):
        cli.echo.options(id=f"e{n}").submit("x")
    cli.fail.options(id="f").submit()


def test_tasks_are_counted_and_cancelled_by_name_state_and_age(cli: QueueCli) -> None:
    _numbered(cli)

    assert cli.run("count").output == "4\n"
    assert cli.run("count", "--task", "echo", "--state", "waiting").output == "3\n"
    assert cli.run("count", "--older-than", "2h").output == "0\n"
    assert cli.run("cancel", "--older-than", "1d", "--yes").output == "0 cancelled\n"
    assert cli.run("cancel", "--task", "fail").output == "1 cancelled\n"
    assert cli.run("cancel", "--task", "echo", "--yes").output == "3 cancelled\n"
    assert cli.run("count", "--state", "cancelled").output == "4\n"


def test_many_are_cancelled_only_if_the_answer_is_yes(
    cli: QueueCli, terminal: None
) -> None:
    _numbered(cli)

    declined = cli.run("cancel", "--all", answer="n\n")
    left = cli.queue.counts().unfinished
    agreed = cli.run("cancel", "--all", answer="y\n")

    assert (declined.exit_code, left) == (1, 4)
    assert "Cancel 4 tasks? [y/N]" in declined.output
    assert agreed.output.endswith("4 cancelled\n")


def test_replaying_all_asks_before_a_single_one_too(
    cli: QueueCli, terminal: None
) -> None:
    _numbered(cli)
    cli.drain()

    declined = cli.run("replay", "--all", answer="n\n")
    left = cli.queue.counts().dead
    agreed = cli.run("replay", "--all", answer="y\n")

    assert (declined.exit_code, left) == (1, 1)
    assert "Replay 1 dead letter? [y/N]" in declined.output
    assert agreed.output.endswith("1 replayed\n")


def test_dead_letters_and_outcomes_are_chosen_by_name(cli: QueueCli) -> None:
    _numbered(cli)
    cli.drain()

    assert cli.run("replay", "--task", "echo", "--yes").output == "0 replayed\n"
    assert cli.run("drop", "--state", "failed", "--yes").output == "1 dropped\n"
    assert cli.run("purge", "--task", "echo", "--yes").output == "3 purged\n"
    assert cli.run("purge", "--all").output == "0 purged\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cancel", "x", "--task", "echo"], "give the ids of tasks, or --task"),
        (["cancel", "--task", "echo", "--all"], "give the ids of tasks, or --task"),
        (["purge"], "say which: --task, --state, --older-than, or --all"),
        (["count", "--older-than", "soon"], "is seconds, or like 10m, 6h, 7d; not 'so"),
        (["cancel", "--state", "done"], "'done' is not one of"),
    ],
)
def test_a_choice_that_is_none_is_refused(
    cli: QueueCli, arguments: list[str], message: str
) -> None:
    refused = cli.run(*arguments)

    assert refused.exit_code == 2
    assert message in refused.output


def test_an_id_that_is_known_is_said_to_be(run_cli: RunCli) -> None:
    first = run_cli("queue", "add", "app:echo", "text=a", "--id", "once")
    again = run_cli("queue", "add", "app:echo", "text=b", "--id", "once")

    assert (first.stdout, first.stderr) == ("once\n", "")
    assert again.stdout == "once\n"
    assert "nothing was added: there is a task once already" in again.stderr


def test_a_queue_that_is_not_there_is_not_paused_by_mistake(cli: QueueCli) -> None:
    refused = cli.run("pause")

    assert refused.exit_code == 2
    assert f"there is no queue {cli.queue.name}/default" in refused.output
    assert not cli.queue.paused()
    assert "there is no queue" in cli.run("limits", "ls").output
    assert cli.run("pause", "--unknown").exit_code == 0
    assert cli.queue.paused()
    assert cli.run("limits", "ls").output == "no limits\n"


@pytest.mark.parametrize("words", [(), ("--task", "echo")])
def test_what_another_process_has_just_paused_is_said_to_be(
    cli: QueueCli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    cli.echo.submit("hi")
    pause = TaskQueue.pause

    def second(queue: TaskQueue, task: str | None = None) -> bool:
        assert pause(queue, task)
        return pause(queue, task)

    monkeypatch.setattr(TaskQueue, "pause", second)

    ended = cli.run("pause", "--unknown", *words)

    assert ended.exit_code == 0
    assert "is already paused, since 20" in ended.output


def test_logs_prints_what_a_task_printed_and_follows_it_to_its_end(
    cli: QueueCli,
) -> None:
    @cli.queue.task(name="tell")
    def tell() -> None:
        print("one\x1b[2J")  # noqa: T201
        print("two")  # noqa: T201

    told = tell.options(log=True).submit()
    silent = cli.echo.submit("hi")
    quiet = cli.echo.options(log=True).submit("hi")
    waits = "it has logged and printed nothing so far\n"
    assert cli.run("logs", quiet.id).stderr == waits
    assert "submit it with options(log=True)" in cli.run("logs", silent.id).stderr
    cli.drain()

    printed, followed = cli.run("logs", told.id), cli.run("logs", told.id, "-f")

    assert printed.stdout == followed.stdout == "one\\x1b[2J\ntwo\n"
    for ended in (silent, quiet):
        said = cli.run("logs", ended.id).stderr
        assert "it logged and printed nothing, or was submitted without options" in said
    for words in (("nobody",), ("nobody", "--follow")):
        missing = cli.run("logs", *words)
        assert missing.exit_code == 1
        assert "there is no task nobody" in missing.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("why", "one"),
        ("cat", "one"),
        ("logs", "one"),
        ("logs", "one", "--follow"),
        ("cancel", "one"),
        ("replay", "one"),
        ("drop", "one", "two", "--yes"),
        ("count", "--state", "dead"),
        ("ls",),
        ("ls", "--json"),
        ("tree",),
        ("dead",),
        ("cancel", "--all"),
        ("replay", "--all", "--yes"),
        ("drop", "--state", "failed"),
        ("purge", "--task", "nobody"),
    ],
)
def test_a_mistyped_queue_is_noticed(cli: QueueCli, words: tuple[str, ...]) -> None:
    mistyped = cli.run(*words)
    cli.echo.submit("hi")
    cli.drain()
    known = cli.run(*words)

    assert f"there is no queue {cli.queue.name}/default" in mistyped.stderr
    assert "there is no queue" not in known.stderr
