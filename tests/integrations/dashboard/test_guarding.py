"""Who may see the dashboard, and who may act on it."""

from __future__ import annotations

import inspect
import logging
import re
from typing import Any

import httpx
import pytest

from workstealing import AsyncTaskQueue
from workstealing.dashboard import create_app
from workstealing.dashboard.access_guard import AccessGuard
from workstealing.errors import ConfigurationError

from .conftest import ORIGIN, READ_ONLY, TOKEN, Clock

PAGES = [
    *("/", "/queue?queue=q", "/task?queue=q&id=x", "/tasks?queue=q&state=dead"),
    *("/schedules?queue=q", "/workers", "/worker?queue=q&name=w", "/search?id=x"),
    *("/workers?queue=q", "/side-work", "/acts"),
]
ACTS = ["/act", "/bulk", "/steer"]
FOR_PROGRAMS = ["/api/stat", "/metrics"]


def test_no_page_and_no_act_is_left_out_here() -> None:
    routes = set(re.findall(r'Route\("(/[^"]*)"', inspect.getsource(create_app)))
    for_all = {"/healthz", "/assets/{name}"}

    tried = {path.partition("?")[0] for path in (*PAGES, *ACTS, *FOR_PROGRAMS)}
    assert tried | for_all == routes


@pytest.mark.parametrize("path", PAGES)
async def test_a_stranger_is_sent_to_the_door(
    stranger: httpx.AsyncClient, path: str
) -> None:
    answer = await stranger.get(path)

    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


@pytest.mark.parametrize("path", FOR_PROGRAMS)
async def test_a_program_without_the_token_is_told_so(
    stranger: httpx.AsyncClient, path: str
) -> None:
    answer = await stranger.get(path)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", FOR_PROGRAMS)
async def test_a_program_with_the_token_is_answered(
    stranger: httpx.AsyncClient, path: str
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}

    assert (await stranger.get(path, headers=headers)).status_code == 200
    wrong = {"Authorization": f"Bearer {TOKEN}x"}
    assert (await stranger.get(path, headers=wrong)).status_code == 401


async def test_health_and_assets_are_for_all(stranger: httpx.AsyncClient) -> None:
    assert (await stranger.get("/healthz")).text == "ok\n"
    for name in ("style.css", "live.js", "login.js"):
        assert (await stranger.get(f"/assets/{name}")).status_code == 200
    assert (await stranger.get("/assets/..%2Fapp.py")).status_code == 404
    assert (await stranger.get("/assets/app.py")).status_code == 404


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "ü" * 30])
async def test_a_wrong_token_opens_nothing(
    stranger: httpx.AsyncClient, token: str
) -> None:
    headers = {"Origin": ORIGIN}

    answer = await stranger.post("/login", data={"token": token}, headers=headers)

    assert answer.status_code == 403
    assert "Wrong token." in answer.text
    assert "set-cookie" not in answer.headers


async def test_the_cookie_is_no_token_and_no_other_site_can_send_it(
    stranger: httpx.AsyncClient,
) -> None:
    answer = await stranger.post(
        "/login", data={"token": TOKEN}, headers={"Origin": ORIGIN}
    )

    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "secure" not in cookie
    assert TOKEN not in cookie
    assert (await stranger.get("/")).status_code == 200


async def test_where_tls_is_spoken_the_cookie_goes_over_nothing_else(
    stranger: httpx.AsyncClient,
) -> None:
    headers = {"Host": "dash.example", "Origin": "https://dash.example"}

    answer = await stranger.post("/login", data={"token": TOKEN}, headers=headers)

    assert "secure" in answer.headers["set-cookie"].lower()


async def test_a_session_ends_after_twelve_hours(
    browser: httpx.AsyncClient, clock: Clock
) -> None:
    clock.now += 12 * 3600 - 1
    assert (await browser.get("/")).status_code == 200

    clock.now += 2
    assert (await browser.get("/")).status_code == 303


async def test_a_session_cannot_be_made_longer_or_invented(
    stranger: httpx.AsyncClient, browser: httpx.AsyncClient
) -> None:
    (cookie,) = browser.cookies.jar
    end, _, signature = str(cookie.value).partition(".")

    for value in (
        f"{int(end) + 1}.{signature}",
        f"{end}.{'0' * 64}",
        f"{end}.",
        ".",
        "",
        "x",
        f"x.{signature}",
    ):
        headers = {"Cookie": f"{cookie.name}={value}"}
        assert (await stranger.get("/", headers=headers)).status_code == 303


async def test_who_leaves_is_a_stranger_again(browser: httpx.AsyncClient) -> None:
    await browser.post("/logout")

    assert (await browser.get("/")).status_code == 303


async def test_the_cookie_of_who_has_left_opens_nothing(
    browser: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    (cookie,) = browser.cookies.jar
    kept = {"Cookie": f"{cookie.name}={cookie.value}"}
    assert (await stranger.get("/", headers=kept)).status_code == 200

    await browser.post("/logout")

    assert (await stranger.get("/", headers=kept)).status_code == 303


async def test_who_leaves_ends_no_session_of_others(
    browser: httpx.AsyncClient, stranger: httpx.AsyncClient
) -> None:
    origin = {"Origin": str(stranger.base_url).rstrip("/")}
    await stranger.post("/login", data={"token": TOKEN}, headers=origin)
    assert (await stranger.get("/")).status_code == 200

    await browser.post("/logout")

    assert (await stranger.get("/")).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "[::1",
        "[::1].evil.example",
        "localhost#.evil.example",
        "localhost?.evil.example",
        "localhost/.evil.example",
        "localhost\\.evil.example",
        "evil.example@localhost",
        "local\thost",
        "localhost evil.example",
    ],
)
async def test_a_foreign_name_that_points_here_is_refused(
    browser: httpx.AsyncClient, host: str
) -> None:
    answer = await browser.get("/", headers={"Host": host})

    assert answer.status_code == 421
    assert "queue" not in answer.text.lower()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:8765",
        "localhost",
        "LOCALHOST:1",
        "[::1]:8765",
        "10.0.0.7",
        "Dash.Example:443",
    ],
)
async def test_an_address_or_an_allowed_name_is_answered(
    browser: httpx.AsyncClient, host: str
) -> None:
    (cookie,) = browser.cookies.jar
    headers = {"Host": host, "Cookie": f"{cookie.name}={cookie.value}"}

    assert (await browser.get("/", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "file://127.0.0.1:8765"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", [*ACTS, "/login", "/logout"])
async def test_a_form_of_another_site_does_nothing(
    stranger: httpx.AsyncClient,
    browser: httpx.AsyncClient,
    queue: AsyncTaskQueue,
    headers: dict[str, str],
    path: str,
) -> None:
    @queue.task(name="echo")
    def echo() -> None: ...

    handle = await echo.submit()
    stranger.cookies = browser.cookies
    form = {"queue": queue.name, "run": "default", "id": handle.id}

    answer = await stranger.post(
        path, data={**form, "action": "cancel", "token": TOKEN}, headers=headers
    )

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert (await handle.state()).state == "waiting"


async def test_a_form_is_taken_from_a_page_of_ours_that_names_no_origin(
    stranger: httpx.AsyncClient, browser: httpx.AsyncClient
) -> None:
    stranger.cookies = browser.cookies

    answer = await stranger.post("/logout", headers={"Sec-Fetch-Site": "same-origin"})

    assert answer.status_code == 303


async def test_no_get_changes_anything(
    browser: httpx.AsyncClient, queue: AsyncTaskQueue
) -> None:
    @queue.task(name="echo")
    def echo() -> None: ...

    handle = await echo.submit()
    where = f"queue={queue.name}&run=default&id={handle.id}&action=cancel"

    for path in ("/act", "/task", "/queue", "/logout"):
        await browser.get(f"{path}?{where}")

    assert (await handle.state()).state == "waiting"
    assert (await browser.get(f"/act?{where}")).status_code == 405
    assert (await browser.get("/")).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        *(*PAGES, *FOR_PROGRAMS),
        *("/login", "/healthz", "/nowhere", "/queue?queue=a%20b"),
    ],
)
async def test_every_answer_tells_browsers_to_be_careful(
    browser: httpx.AsyncClient, path: str
) -> None:
    headers = (await browser.get(path)).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", PAGES)
async def test_who_only_looks_is_shown_no_button_that_acts(
    stranger: httpx.AsyncClient, path: str
) -> None:
    bearer = {"Authorization": f"Bearer {READ_ONLY}"}

    page = (await stranger.get(path, headers=bearer)).text

    assert set(re.findall(r'method="post" action="([^"]*)"', page)) <= {"/logout"}


@pytest.mark.parametrize("path", PAGES)
async def test_no_page_is_shown_under_a_foreign_name(
    browser: httpx.AsyncClient, path: str
) -> None:
    answer = await browser.get(path, headers={"Host": "evil.example"})

    assert answer.status_code == 421


async def test_a_large_form_is_not_read(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/login", data={"token": "x" * 100_000})

    assert answer.status_code == 413


async def test_no_token_is_ever_logged(
    browser: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "workstealing"):
        await browser.post("/login", data={"token": TOKEN})
        await browser.get("/", headers={"Authorization": f"Bearer {TOKEN}"})

    assert TOKEN not in caplog.text


def test_a_token_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least 16 characters"):
        AccessGuard("secret")


def test_spaces_and_newlines_around_a_token_are_no_part_of_it() -> None:
    guard = AccessGuard(f" {TOKEN}\n", read_only_token=f"{READ_ONLY}\n")

    assert guard.admits(TOKEN)
    assert guard.admits(READ_ONLY)
    with pytest.raises(ConfigurationError, match="at least 16 characters"):
        AccessGuard("short" + " " * 20)
    with pytest.raises(ConfigurationError, match="must not be the same"):
        AccessGuard(TOKEN, read_only_token=f"{TOKEN}\n")


def test_a_guard_does_not_show_its_token() -> None:
    guard: Any = AccessGuard(TOKEN)

    assert TOKEN not in repr(guard)


@pytest.mark.parametrize("path", ACTS)
async def test_the_token_that_only_reads_sees_all_and_changes_nothing(
    stranger: httpx.AsyncClient, queue: AsyncTaskQueue, path: str
) -> None:
    @queue.task(name="echo")
    def echo() -> None: ...

    handle = await echo.submit()
    form = {"queue": queue.name, "run": "default", "id": handle.id}
    headers = {"Origin": ORIGIN}
    signed_in = await stranger.post(
        "/login", data={"token": READ_ONLY}, headers=headers
    )
    assert signed_in.status_code == 303

    by_session = await stranger.post(
        path, data={**form, "action": "cancel"}, headers=headers
    )
    stranger.cookies.clear()
    bearer = {"Authorization": f"Bearer {READ_ONLY}"}
    by_token = await stranger.post(
        path, data={**form, "action": "cancel"}, headers=bearer
    )
    page = await stranger.get(f"/queue?queue={queue.name}", headers=bearer)

    assert by_session.status_code == by_token.status_code == 403
    assert "This token is read-only" in by_token.text
    assert page.status_code == 200
    assert "Pause the queue" not in page.text
    assert (await handle.state()).state == "waiting"


async def test_who_only_looks_can_sign_out(stranger: httpx.AsyncClient) -> None:
    headers = {"Origin": ORIGIN}
    await stranger.post("/login", data={"token": READ_ONLY}, headers=headers)
    assert (await stranger.get("/")).status_code == 200

    await stranger.post("/logout", headers=headers)

    assert (await stranger.get("/")).status_code == 303


def test_both_tokens_must_be_long_and_different() -> None:
    with pytest.raises(ConfigurationError, match="at least 16 characters"):
        AccessGuard(TOKEN, read_only_token="short")
    with pytest.raises(ConfigurationError, match="must not be the same"):
        AccessGuard(TOKEN, read_only_token=TOKEN)
