"""A Flask site."""

from __future__ import annotations

from collections.abc import Iterator

import diary
from flask import Flask, Response, g, send_file

app = Flask(__name__)


@app.get("/page")
def page() -> str:
    return "page"


@app.get("/stream")
def stream() -> Response:
    return Response((f"{number}\n" for number in range(5)), mimetype="text/plain")


@app.get("/file")
def file() -> Response:
    return send_file(__file__)


@app.get("/nothing")
def nothing() -> tuple[str, int]:
    return "", 204


@app.get("/fail")
def fail() -> str:
    raise ValueError("a view that raises")


@app.get("/fail-late")
def fail_late() -> Response:
    def body() -> Iterator[str]:
        yield "so far"
        raise ValueError("a body that raises")

    return Response(body(), mimetype="text/plain")


@app.get("/asks")
def asks() -> str:
    g.enlist = True
    return "page"


@app.get("/declines")
def declines() -> str:
    g.enlist = False
    return "page"


@app.get("/endless")
def endless() -> Response:
    def body() -> Iterator[bytes]:
        while True:
            yield b"x" * 65536

    response = Response(body(), mimetype="text/plain")
    response.call_on_close(lambda: diary.write("closed"))
    return response


if diary.IS_OURS:
    from workstealing.integrations.flask import FlaskEnlist

    FlaskEnlist(app, recruiter=diary.recruiter(), when=diary.WHEN)
