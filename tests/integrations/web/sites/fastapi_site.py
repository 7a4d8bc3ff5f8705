"""A FastAPI site where single routes enlist, by a dependency."""

from __future__ import annotations

import diary
from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException
from fastapi.responses import PlainTextResponse

from workstealing.integrations.starlette import enlist_after_response

app = FastAPI()
ours = (
    [Depends(enlist_after_response(diary.async_recruiter()))] if diary.IS_OURS else []
)


@app.get("/page", dependencies=ours)
async def page() -> str:
    return "page"


@app.get("/thread", dependencies=ours)
def thread() -> str:
    return "page"


@app.get("/response", dependencies=ours)
async def response() -> PlainTextResponse:
    return PlainTextResponse("page")


@app.get("/background", dependencies=ours)
async def background(tasks: BackgroundTasks) -> str:
    tasks.add_task(diary.write, "own-task")
    return "page"


@app.get("/other")
async def other() -> str:
    return "page"


@app.get("/nothing", status_code=204, dependencies=ours)
async def nothing() -> None:
    return None


@app.get("/missing", dependencies=ours)
async def missing() -> str:
    raise HTTPException(404)


@app.get("/fail", dependencies=ours)
async def fail() -> str:
    raise ValueError("a view that raises")
