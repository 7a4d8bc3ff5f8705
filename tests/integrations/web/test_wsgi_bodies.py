"""What a server sees of a body that passed the WSGI middleware."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults
from wsgiref.validate import validator

import pytest
from flask import Flask

from workstealing import AsyncRecruiter, Recruiter
from workstealing.errors import ConfigurationError
from workstealing.integrations.asgi import AsgiEnlistMiddleware
from workstealing.integrations.flask import FlaskEnlist
from workstealing.integrations.gunicorn import GunicornEnlistHooks
from workstealing.integrations.uwsgi import UwsgiEnlistMiddleware
from workstealing.integrations.wsgi import WsgiEnlistMiddleware


class Body:
    """Counts how often it is closed."""

    def __init__(self, *chunks: bytes, fails: bool = False) -> None:
        self._chunks = iter(chunks)
        self._fails = fails
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        self.closed += 1
        if self._fails:
            raise OSError("a body that cannot be closed")


@pytest.fixture
def recruiter() -> Recruiter:
    recruiter = Recruiter(share=None)
    recruiter.install(lambda: None, "job", rate=1.0)
    return recruiter


def serve(
    recruiter: Recruiter,
    body: Any,
    status: str = "200 OK",
    length: str = "",
    **server: Any,
) -> Any:
    def app(environ: Any, start_response: Any) -> Any:
        sized = [("Content-Length", length)] if length else []
        start_response(status, [("Content-Type", "text/plain"), *sized])
        return body

    return call(WsgiEnlistMiddleware(app, recruiter), **server)


def call(app: Any, **server: Any) -> Any:
    environ: dict[str, Any] = {"wsgi.file_wrapper": FileWrapper, **server}
    setup_testing_defaults(environ)
    environ["QUERY_STRING"] = ""
    return app(environ, lambda status, headers, exc_info=None: lambda data: None)


def test_a_body_is_closed_once_and_then_enlists(recruiter: Recruiter) -> None:
    body = Body(b"a", b"b")
    served = serve(recruiter, body)

    assert b"".join(served) == b"ab"
    assert recruiter.stats().calls == 0
    served.close()
    assert body.closed == 1
    assert recruiter.stats().calls == 1


def test_a_server_that_gives_up_closes_the_body_once(recruiter: Recruiter) -> None:
    body = Body(b"a", b"b")
    served = serve(recruiter, body)

    for _ in served:
        break
    served.close()
    assert body.closed == 1
    assert recruiter.stats().calls == 0


def test_a_body_that_cannot_be_closed_enlists_nobody(recruiter: Recruiter) -> None:
    served = serve(recruiter, Body(b"a", fails=True))

    assert list(served) == [b"a"]
    with pytest.raises(OSError, match="cannot be closed"):
        served.close()
    assert recruiter.stats().calls == 0


@pytest.mark.parametrize("body", [[b"a"], (b"a", b"b"), []])
def test_a_body_with_a_length_keeps_it(body: Any, recruiter: Recruiter) -> None:
    served = serve(recruiter, body)

    assert len(served) == len(body)
    assert list(served) == list(body)
    served.close()
    assert recruiter.stats().calls == 1


def test_a_body_without_a_length_gets_none(recruiter: Recruiter) -> None:
    assert not hasattr(serve(recruiter, Body(b"a")), "__len__")


def test_a_file_is_still_known_by_its_type(recruiter: Recruiter, tmp_path: Any) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with path.open("rb") as file:
        wrapped = FileWrapper(file)
        served = serve(recruiter, wrapped)

        assert served is wrapped
        served.close()
        assert file.closed
    assert recruiter.stats().calls == 1


def test_a_file_of_a_type_that_cannot_be_hooked_passes(recruiter: Recruiter) -> None:
    class Sealed:
        __slots__ = ()

    def app(environ: Any, start_response: Any) -> Any:
        environ["wsgi.file_wrapper"] = Sealed
        start_response("200 OK", [])
        return Sealed()

    assert type(call(WsgiEnlistMiddleware(app, recruiter))) is Sealed


# What tells a server that closes a body before it has finished the response.
LATE = pytest.mark.parametrize(
    "server",
    [
        {"waitress.client_disconnected": bool},
        {"uwsgi.version": b"2.0.31"},
        {"SERVER_SOFTWARE": "Cheroot/11.1.2 Server"},
        {"SERVER_SOFTWARE": "Granian"},
        {"SERVER_SOFTWARE": "WSGIServer/0.2 CPython/3.11.7"},
    ],
    ids=str,
)


@LATE
def test_a_server_that_finishes_late_enlists_after_a_body_of_the_length_it_names(
    server: Any, recruiter: Recruiter
) -> None:
    served = serve(recruiter, [b"a", b"b"], length="2", **server)

    assert list(served) == [b"a", b"b"]
    served.close()
    assert recruiter.stats().calls == 1


@LATE
@pytest.mark.parametrize(
    ("body", "status", "length"),
    [
        ((), "304 Not Modified", ""),
        ((), "204 No Content", ""),
        ((), "200 OK", "0"),
        ((b"a", b"b"), "200 OK", ""),
        ((b"a",), "200 OK", "2"),
    ],
)
def test_a_server_that_finishes_late_enlists_nobody_while_it_has_more_to_send(
    server: Any, body: Any, status: str, length: str, recruiter: Recruiter
) -> None:
    served = serve(recruiter, body, status, length, **server)

    assert tuple(served) == body
    served.close()
    assert recruiter.stats().calls == 0


def test_a_file_that_waitress_sends_is_not_touched(recruiter: Recruiter) -> None:
    wrapped = FileWrapper(BytesIO(b"content"))
    close = wrapped.close

    served = serve(recruiter, wrapped, **{"waitress.client_disconnected": bool})
    assert served is wrapped
    assert served.close == close


@pytest.mark.parametrize(("length", "calls"), [("7", 1), ("", 0)])
def test_a_file_that_wsgiref_sends_enlists_if_it_has_a_length(
    length: str, calls: int, recruiter: Recruiter
) -> None:
    wrapped = FileWrapper(BytesIO(b"content"))
    wsgiref = {"SERVER_SOFTWARE": "WSGIServer/0.2"}

    served = serve(recruiter, wrapped, length=length, **wsgiref)
    assert served is wrapped
    served.close()
    assert recruiter.stats().calls == calls


def test_a_list_that_granian_would_measure_stays_a_list(recruiter: Recruiter) -> None:
    body = [b"a", b"b"]

    assert serve(recruiter, body, SERVER_SOFTWARE="Granian") is body


@pytest.mark.parametrize(
    "headers", [iter([("A", "b")]), [("A",)], [(b"A", b"b")], None]
)
def test_headers_reach_the_server_as_they_are(
    headers: Any, recruiter: Recruiter
) -> None:
    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", headers)
        return [b"a"]

    seen: list[Any] = []
    environ: dict[str, Any] = {}
    setup_testing_defaults(environ)
    WsgiEnlistMiddleware(app, recruiter)(
        environ, lambda status, headers, exc_info=None: seen.append(headers)
    )
    assert seen == [headers]
    assert not isinstance(headers, Iterator) or list(headers) == [("A", "b")]


def test_a_status_that_is_none_reaches_nobody(recruiter: Recruiter) -> None:
    served = serve(recruiter, [b"a"], status="banana")

    assert list(served) == [b"a"]
    served.close()


def test_both_sides_keep_to_the_letter_of_wsgi(recruiter: Recruiter) -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"a"]

    served = call(validator(WsgiEnlistMiddleware(validator(app), recruiter)))

    assert list(served) == [b"a"]
    served.close()
    assert recruiter.stats().calls == 1


def test_the_configuration_of_flask_can_switch_it_off(recruiter: Recruiter) -> None:
    app = Flask("quiet")
    app.config["WORKSTEALING_WHEN"] = None
    FlaskEnlist(recruiter=recruiter).init_app(app)

    response = app.test_client().get("/")
    assert response.status_code == 404
    response.get_data()
    response.close()
    assert recruiter.stats().calls == 0


def test_two_extensions_on_one_flask_application_are_refused(
    recruiter: Recruiter,
) -> None:
    app = Flask("twice")
    FlaskEnlist(app, recruiter=recruiter)

    with pytest.raises(ConfigurationError, match="already"):
        FlaskEnlist(app, recruiter=recruiter)


@pytest.mark.parametrize("wrong", [None, AsyncRecruiter(), "recruiter"])
def test_a_wsgi_host_needs_a_recruiter(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="Recruiter"):
        WsgiEnlistMiddleware(call, wrong)


def test_an_asgi_host_refuses_a_recruiter_that_would_block_it() -> None:
    with pytest.raises(ConfigurationError, match="AsyncRecruiter"):
        AsgiEnlistMiddleware(call, Recruiter())  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [WsgiEnlistMiddleware, AsgiEnlistMiddleware])
def test_a_wrong_when_is_refused(kind: Any) -> None:
    recruiter = Recruiter() if kind is WsgiEnlistMiddleware else AsyncRecruiter()

    with pytest.raises(ConfigurationError, match="when"):
        kind(call, recruiter, "always")


def test_an_application_that_raises_what_gevent_hangs_up_with_enlists_nobody(
    recruiter: Recruiter,
) -> None:
    hooks = GunicornEnlistHooks(recruiter)
    response = SimpleNamespace(status_code=200)

    try:
        next(iter(()))
    except StopIteration:
        hooks.post_request(None, None, {}, response)
    assert recruiter.stats().calls == 1, "raised by the hook's caller itself"

    try:
        _raise_stop_iteration()
    except StopIteration:
        hooks.post_request(None, None, {}, response)
    assert recruiter.stats().calls == 1


def _raise_stop_iteration() -> None:
    raise StopIteration


def test_outside_of_uwsgi_its_module_says_so(recruiter: Recruiter) -> None:
    with pytest.raises(ConfigurationError, match="not a uWSGI server"):
        UwsgiEnlistMiddleware(call, recruiter)
