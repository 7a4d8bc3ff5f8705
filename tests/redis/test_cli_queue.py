"""`workstealing queue`, in real processes where code is imported or time passes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from workstealing import TaskQueue, Worker
from workstealing.cli.commands import workstealing
from workstealing.errors import QueueClosed
from workstealing.testing import Server, wait_until

Begin = Callable[..., "subprocess.Popen[str]"]
Told = Callable[..., "subprocess.CompletedProcess[str]"]


class Desk:
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

    def told(self, command: str, *arguments: str, answer: str = "") -> Result:
        """Run a command on the queue by its name, so without any code."""
        named = ("--queue", self.queue.name, "--redis", self.url)
        return CliRunner().invoke(
            workstealing, ["queue", command, *arguments, *named], input=answer
        )


@pytest.fixture
def desk(redis_server: Server, key_prefix: str) -> Iterator[Desk]:
    desk = Desk(key_prefix, redis_server.url)
    yield desk
    desk.queue.driver.close()
    desk.queue.driver.client.close()


def test_add_puts_a_task_into_its_queue_and_prints_its_id(
    desk: Desk, told: Told
) -> None:
    plain = told("queue", "add", "app:echo", '{"text": "hi", "times": 2}')
    pairs = told(
        *("queue", "add", "app:echo", "text=2001", "times=2"),
        *("--id", "mine", "--priority", "0", "--in", "0"),
    )

    assert plain.returncode == pairs.returncode == 0, plain.stderr + pairs.stderr
    assert pairs.stdout == "mine\n"
    desk.drain()
    first = desk.queue.handle(plain.stdout.strip())
    assert first.result(timeout=5) == {"said": "hihi"}
    assert desk.queue.handle("mine").result(timeout=5) == {"said": "20012001"}


def test_add_can_put_a_task_aside_until_it_is_due(desk: Desk, told: Told) -> None:
    told("queue", "add", "app:echo", "text=hi", "--in", "60", "--id", "later")

    assert desk.queue.handle("later").state().state == "delayed"


def test_add_and_wait_prints_the_result_as_json(begin: Begin, told: Told) -> None:
    begin("worker", "app:queue")

    ended = told("queue", "add", "app:echo", "text=hi", "--wait", "--timeout", "30")

    assert (ended.stdout, ended.returncode) == ('{"said":"hi"}\n', 0)


def test_add_and_wait_exits_with_the_error_of_a_task_that_fails(
    begin: Begin, told: Told
) -> None:
    begin("worker", "app:queue")

    ended = told("queue", "add", "app:fail", "--wait", "--timeout", "30")

    assert (ended.stdout, ended.returncode) == ("", 1)
    assert 'raise ValueError("not today")' in ended.stderr
    assert "failed with ValueError: not today" in ended.stderr.splitlines()[-1]


def test_add_and_wait_exits_with_three_when_nobody_comes_in_time(told: Told) -> None:
    ended = told("queue", "add", "app:echo", "text=hi", "--wait", "--timeout", "0.05")

    assert ended.returncode == 3
    assert "did not end within 0.05 s" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["app:echo", '{"text"'], "the payload is not JSON"),
        (["app:echo", "hi"], "'hi' is neither a JSON object nor NAME=VALUE"),
        (["app:echo", "text=a", "text=b"], "text is given twice"),
        (["app:echo"], "argument 'text': is missing"),
        (["app:echo", "text=a", "times=x"], "argument 'times': expected `int`"),
        (["app:echo", "text=a", "tmes=1"], "argument 'tmes': is not known"),
        (["app:echo", "text=a", "--id", "a b"], "the id of a task must be"),
        (["app:echo", "text=a", "--priority", "3"], "priority must be 0 to 2"),
        (["app:echo", "text=a", "--in", "-1"], "delay must be 0 seconds or more"),
        (["app:echo", "text=a", "--timeout", "1"], "--timeout goes with --wait"),
        (["app:queue"], "app:queue is a TaskQueue, not a task of a queue"),
        (["echo"], "'echo' is not APP:TASK"),
    ],
)
def test_add_refuses_bad_input_in_one_clear_line(
    desk: Desk, told: Told, arguments: list[str], message: str
) -> None:
    ended = told("queue", "add", *arguments)

    assert ended.returncode == 2
    assert message in ended.stderr
    assert ended.stderr.startswith("Error: ")
    assert ended.stderr.count("\n") == 1
    assert desk.queue.counts().tasks == 0


@pytest.mark.parametrize(
    "command",
    ["ls", "cat", "stat", "tree", "why", "cancel", "done", "reopen", "dead"],
)
def test_a_queue_is_looked_at_by_name_or_by_application(
    desk: Desk, told: Told, command: str
) -> None:
    desk.echo.options(id="one").submit("hi")
    words = ["one"] if command in ("cat", "why", "cancel") else []

    by_name = desk.told(command, *words)
    by_application = told("queue", command, "app:queue", *words)

    assert by_name.exit_code == 0, by_name.output
    assert by_application.returncode == 0, by_application.stderr
    assert (
        by_name.output.split()[:1]
        == ((by_application.stdout or by_application.stderr).split()[:1])
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls"], "name the queue: APP:QUEUE first, or --queue NAME"),
        (["why", "one"], "name the queue: APP:QUEUE first, or --queue NAME"),
        (["ls", "--queue", "a/b"], "the name of a queue must be"),
        (["ls", "--queue", "q", "--run", "a b"], "the name of a run must be"),
        (["ls", "--queue", "q", "--redis", "nonsense"], "a Redis URL starts with"),
        (["ls", "app:queue", "--run", "x"], "--run and --redis go with --queue"),
        (["ls", "cellar", "--queue", "q"], "there is no place 'cellar'"),
        (["ls", "inbox", "dead", "--queue", "q"], "give one place; 2 were given"),
        (["ls", "--limit", "0", "--queue", "q"], "limit must be 1 to 1000"),
        (["cat", "--queue", "q"], "give one id of a task; none was given"),
        (["why", "a b", "--queue", "q"], "the id of a task must be"),
        (["cancel", "--queue", "q"], "give one id of a task, or more; none was"),
        (["reopen", "x", "--queue", "q"], "unexpected: x"),
        (["tree", "x", "--queue", "q"], "unexpected: x"),
        (["stat", "x", "--queue", "q"], "unexpected: x"),
        (["drain", "--queue", "q"], "needs their code: APP:QUEUE"),
        (["done", "--timeout", "1", "--queue", "q"], "--timeout goes with --wait"),
        (["dead", "--all", "--drop", "x", "--queue", "q"], "choose one of"),
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


def test_ls_lists_a_place_as_a_table_or_as_json(desk: Desk) -> None:
    desk.echo.options(id="one").submit("hi")
    desk.fail.options(id="bad").submit()
    desk.drain()

    table, dead = desk.told("ls", "done"), desk.told("ls", "dead", "--json")

    assert "one" in table.output
    assert "mill.0" in table.output
    (entry,) = json.loads(dead.output)
    assert (entry["id"], entry["task"], entry["state"]) == ("bad", "fail@1", "dead")
    assert entry["note"] == "ValueError: not today"
    assert "nothing in inbox" in desk.told("ls").output


def test_in_a_pipe_each_task_is_one_line_and_no_name_is_broken(desk: Desk) -> None:
    long = "a-rather-long-identifier-" * 6
    for n in range(3):
        desk.echo.options(id=f"{long}{n}").submit("hi")
    desk.fail.options(id="bad").submit()
    desk.drain()

    done = desk.told("ls", "done").output.splitlines()
    dead = desk.told("ls", "dead").output.splitlines()

    assert done[0].split() == ["id", "task", "state", "worker", "when", "note"]
    assert {line.split()[0] for line in done[1:]} == {f"{long}{n}" for n in range(3)}
    assert len(dead) == 2
    assert dead[1].split()[:4] == ["bad", "fail@1", "dead", "mill.0"]
    assert dead[1].endswith("  ValueError: not today")


def test_cat_shows_a_task_with_its_traceback(desk: Desk) -> None:
    desk.fail.options(id="bad").submit()
    desk.drain()

    shown = desk.told("cat", "bad").output

    assert shown.startswith("bad: failed. It failed: ValueError: not today.\n")
    assert '"name": "fail"' in shown
    assert 'raise ValueError("not today")' in shown
    missing = desk.told("cat", "nobody")
    assert (missing.exit_code, missing.output.count("\n")) == (1, 1)


def test_no_foreign_name_plays_tricks_on_the_terminal(desk: Desk) -> None:
    client: Any = desk.queue.driver.client
    trick = "\x1b[2J"
    envelope = {"v": 1, "name": trick, "version": 1, "payload": {"x": trick}}
    client.hset(desk.queue.keys.task, trick, json.dumps(envelope))
    client.rpush(desk.queue.keys.inboxes[1], trick)

    for command in ("ls", "tree", "stat"):
        shown = desk.told(command)
        assert shown.exit_code == 0
        assert "\x1b" not in shown.output


def test_stat_as_json_has_the_documented_fields(desk: Desk) -> None:
    desk.echo.submit("hi")
    desk.drain()
    desk.echo.submit("hi")

    told = json.loads(desk.told("stat", "--json").output)

    assert list(told) == [
        *("queue", "run", "server", "is_known", "now_ms", "is_closed", "waiting"),
        *("inbox", "oldest_at_ms", "assigned"),
        *("running", "delayed", "parked", "dead", "outcomes", "unfinished", "backlog"),
        *("living", "backlog_per_worker", "workers", "parkings", "totals", "upkeep"),
        "bytes",
    ]
    assert (told["waiting"], told["totals"]["done"]) == (1, 1)


def test_stat_names_the_server_and_the_queue(desk: Desk, redis_server: Server) -> None:
    desk.echo.submit("hi")

    first = desk.told("stat").output.splitlines()[0]

    socket = redis_server.url.removeprefix("unix://").partition("?")[0]
    assert first.startswith(f"{desk.queue.name}/default on unix:{socket}/0 at ")


def test_stat_says_when_there_is_no_such_queue_and_which_there_are(
    desk: Desk, redis_server: Server
) -> None:
    desk.echo.submit("hi")

    ended = CliRunner().invoke(
        workstealing,
        ["queue", "stat", "--queue", "thumbnals", "--redis", redis_server.url],
    )

    first, second = ended.output.splitlines()
    assert first.startswith("thumbnals/default on unix:")
    assert first.endswith("there is no such queue, or nobody used it yet")
    assert f"{desk.queue.name}/default" in second


def test_stat_never_tells_a_password(redis_server: Server, key_prefix: str) -> None:
    url = redis_server.url.replace("unix://", "unix://:hunter2@")

    ended = CliRunner().invoke(
        workstealing, ["queue", "stat", "--queue", key_prefix, "--redis", url]
    )

    assert "hunter2" not in ended.output


def test_stat_follows_until_it_is_interrupted(
    desk: Desk, begin: Begin, redis_server: Server
) -> None:
    named = ("--queue", desk.queue.name, "--redis", redis_server.url)
    process = begin("queue", "stat", "--follow", "--json", *named)
    assert process.stdout is not None

    before = json.loads(process.stdout.readline())
    desk.echo.submit("hi")
    wait_until(
        lambda: json.loads(process.stdout.readline())["waiting"] == 1,  # type: ignore[union-attr]
        30,
        "the task to be seen",
    )
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)

    assert before["waiting"] == 0
    assert (process.returncode, errors) == (0, "")


def test_stat_followed_by_a_pipe_is_a_line_per_look(desk: Desk, begin: Begin) -> None:
    process = begin("queue", "stat", "--follow", "--queue", desk.queue.name)
    assert process.stdout is not None

    before = process.stdout.readline()
    desk.echo.submit("hi")
    wait_until(
        lambda: "waiting 1 assigned 0 running 0" in process.stdout.readline(),  # type: ignore[union-attr]
        30,
        "the task to be seen",
    )
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)

    assert "there is no such queue" in before


def test_tree_prints_the_folders(desk: Desk) -> None:
    desk.echo.options(id="one").submit("hi")
    desk.drain()

    lines = desk.told("tree").output.splitlines()

    assert lines[0].startswith(desk.queue.name)
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


def test_why_says_it_in_sentences(desk: Desk) -> None:
    desk.echo.options(id="one").submit("hi")

    shown = desk.told("why", "one").output.splitlines()

    assert shown[0] == "one: waiting"
    assert "  It does not run because no worker lives." in shown


def test_drain_runs_what_is_there_and_ends(desk: Desk, told: Told) -> None:
    handle = desk.echo.submit("hi")

    ended = told("queue", "drain", "app:queue")

    assert ended.returncode == 0, ended.stderr
    assert handle.result(timeout=5) == {"said": "hi"}


def test_done_closes_the_queue_and_can_wait_for_the_end(desk: Desk) -> None:
    desk.echo.submit("hi")
    waited = desk.told("done", "--wait", "--timeout", "0.05")
    assert waited.exit_code == 3
    assert desk.queue.counts().is_closed

    desk.drain()
    ended = desk.told("done", "--wait", "--timeout", "30")
    assert ended.exit_code == 0
    assert "nothing is left to do" in ended.output


def test_a_queue_that_was_closed_is_opened_again(desk: Desk) -> None:
    desk.told("done")
    with pytest.raises(QueueClosed):
        desk.echo.submit("hi")

    ended = desk.told("reopen")

    assert ended.output == f"{desk.queue.name}/default takes input\n"
    assert desk.echo.submit("hi").state().state == "waiting"
    assert desk.told("reopen").exit_code == 0


def test_cancel_says_of_each_task_what_became_of_it(desk: Desk) -> None:
    desk.echo.options(id="over").submit("hi")
    desk.fail.options(id="bad").submit()
    desk.drain()
    desk.echo.options(id="one").submit("hi")
    desk.echo.options(id="two", delay=60).submit("hi")

    ended = desk.told("cancel", "one", "two", "over", "bad", "nobody")

    assert ended.exit_code == 1
    assert ended.output.splitlines() == [
        "one: cancelled",
        "two: cancelled",
        "over: ended before: done",
        "bad: ended before: failed",
        "nobody: unknown: never submitted to this run, or forgotten by now",
        "Error: 3 tasks could not be cancelled",
    ]
    assert desk.queue.handle("one").state().state == "cancelled"
    assert desk.queue.handle("two").state().state == "cancelled"


def test_cancelling_again_is_well(desk: Desk) -> None:
    desk.echo.options(id="one").submit("hi")
    desk.told("cancel", "one")

    again = desk.told("cancel", "one", "one")

    assert (again.output, again.exit_code) == ("one: cancelled before\n", 0)


def test_a_running_task_is_asked_to_stop(desk: Desk, begin: Begin, told: Told) -> None:
    told("queue", "add", "app:patient", "--id", "slow")
    begin("worker", "app:queue")
    handle = desk.queue.handle("slow")
    wait_until(lambda: handle.state().state == "running", 30, "the task to run")

    asked = desk.told("cancel", "slow")

    assert asked.output == "slow: runs, and is asked to stop\n"
    assert asked.exit_code == 0
    assert "asked to stop" in desk.told("why", "slow").output


def test_a_mistyped_id_cancels_nothing(desk: Desk) -> None:
    desk.echo.options(id="one").submit("hi")

    ended = desk.told("cancel", "one", "a b")

    assert ended.exit_code == 2
    assert desk.queue.handle("one").state().state == "waiting"


def test_dead_letters_are_listed_replayed_and_dropped(desk: Desk) -> None:
    for n in range(3):
        desk.fail.options(id=f"bad{n}").submit()
    desk.drain()

    listed = desk.told("dead", "--limit", "2")
    assert "ValueError: not today" in listed.output
    assert "… 1 more" in listed.output

    assert desk.told("dead", "--replay", "bad0").output == "1 replayed\n"
    assert desk.queue.handle("bad0").state().state == "waiting"
    assert desk.told("dead", "--all").output == "2 replayed\n"
    assert desk.queue.counts().dead == 0
    assert "no dead letters" in desk.told("dead").output


def test_nothing_is_dropped_without_being_asked_for(desk: Desk) -> None:
    desk.fail.options(id="bad").submit()
    desk.drain()

    declined = desk.told("dead", "--drop", "bad", answer="n\n")
    assert declined.exit_code == 1
    assert desk.queue.counts().dead == 1

    agreed = desk.told("dead", "--drop", "bad", answer="y\n")
    assert agreed.exit_code == 0
    assert "1 dropped" in agreed.output
    assert desk.queue.counts().dead == 0

    again = desk.told("dead", "--drop", "bad", "--yes")
    assert again.exit_code == 1
    assert "no dead letter: bad" in again.output
