"""The embedded server, seen from the processes that use it."""

from __future__ import annotations

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

import pytest
from redis import Redis

from workstealing.drivers import embedded as embedding
from workstealing.drivers.embedded import server_binary
from workstealing.drivers.embedded_keeper import answers
from workstealing.errors import ConfigurationError, MissingExtra
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
        return self.url.removeprefix("unix://")

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


def test_persisted_data_has_one_server_whatever_the_project(
    start: Any, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    data = str(tmp_path / "data")

    assert start(project, data).url == start(other, data).url
    assert start(project).url != start(project, data).url


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


def test_without_any_binary_the_error_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(MissingExtra, match=r"pip install 'workstealing\[embedded\]'"):
        server_binary()


def test_a_server_on_the_path_will_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(embedding, "find_spec", lambda _: None)
    binary = tmp_path / "redis-server"
    binary.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert server_binary() == binary
