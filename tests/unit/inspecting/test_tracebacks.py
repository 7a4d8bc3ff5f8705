"""Tracebacks of other machines, read as text."""

from __future__ import annotations

from workstealing.inspecting.tracebacks import parts_of_traceback, where_raised

TRACE = """Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/workstealing/tasks/runner.py", line 190, in run
    value = call()
  File "C:\\site-packages\\workstealing\\workers\\thread_slots.py", line 169, in _call
    return function()
           ^^^^^^^^^^
  File "/app/shop.py", line 64, in transcode
    part.write(frame)
OSError: [Errno 28] No space left on device
"""


def test_frames_of_the_library_are_told_from_others() -> None:
    parts = parts_of_traceback(TRACE)

    assert [part.frames for part in parts] == [0, 2, 0]
    assert "runner.py" in parts[1].text
    assert parts[2].text.startswith('  File "/app/shop.py"')
    assert "\n".join(part.text for part in parts) + "\n" == TRACE


def test_an_error_was_raised_where_the_last_line_of_other_code_is() -> None:
    assert where_raised(TRACE) == "shop.py:64 in transcode"
    ours = "\n".join(TRACE.split("\n")[:3])
    assert where_raised(ours) == "runner.py:190 in run"
    assert where_raised("no traceback") == ""


def test_the_standard_library_is_not_where_if_somebody_called_it() -> None:
    shop, library, installed = (
        f'  File "{file}", line 7, in wait\n'
        for file in (
            "/app/shop.py",
            "/usr/lib/python3.12/asyncio/tasks.py",
            "/venv/lib/python3.12/site-packages/pool.py",
        )
    )
    assert where_raised(shop + library) == "shop.py:7 in wait"
    assert where_raised(shop + installed + library) == "pool.py:7 in wait"
    assert where_raised(library) == "tasks.py:7 in wait"
