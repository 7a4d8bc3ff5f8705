"""What Sentinels say, read without any."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workstealing.drivers.sentinel_announcements import (
    CHANNELS,
    Announcement,
    read_reply,
)

NEW = ("10.0.0.2", 6380)
STEP = b"slave 10.0.0.2:6380 10.0.0.2 6380 @ main 10.0.0.1 6379"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ([b"10.0.0.2", b"6380"], Announcement("named", NEW)),
        (
            [b"message", b"+switch-master", b"main 10.0.0.1 6379 10.0.0.2 6380"],
            Announcement("promoted", NEW),
        ),
        (
            [b"message", b"+failover-state-send-slaveof-noone", STEP],
            Announcement("promoting", NEW),
        ),
        (
            [b"message", b"+failover-state-wait-promotion", STEP],
            Announcement("promoting", NEW),
        ),
        ([b"message", b"+promoted-slave", STEP], Announcement("promoted", NEW)),
        (
            [
                b"message",
                b"-failover-abort-slave-timeout",
                b"master main 10.0.0.1 6379",
            ],
            Announcement("given up"),
        ),
        (
            [b"message", b"+switch-master", b"main ::1 6379 fd00::2 6380"],
            Announcement("promoted", ("fd00::2", 6380)),
        ),
    ],
)
def test_what_is_said_of_our_service_is_read(reply: object, told: Announcement) -> None:
    assert read_reply(reply, "main") == told


@pytest.mark.parametrize("service", ["mai", "main2", "in", "", "10.0.0.1"])
@pytest.mark.parametrize(
    "message",
    [
        (b"+switch-master", b"main 10.0.0.1 6379 10.0.0.2 6380"),
        (b"+promoted-slave", STEP),
        (b"-failover-abort-slave-timeout", b"master main 10.0.0.1 6379"),
    ],
)
def test_what_is_said_of_another_service_is_not(
    message: tuple[bytes, bytes], service: str
) -> None:
    assert read_reply([b"message", *message], service) is None


def test_the_name_of_a_service_may_have_spaces() -> None:
    message = b"my main one 10.0.0.1 6379 10.0.0.2 6380"

    told = read_reply([b"message", b"+switch-master", message], "my main one")

    assert told == Announcement("promoted", NEW)


@pytest.mark.parametrize("port", [b"", b"0", b"-1", b"65536", b"port", "٣".encode()])
def test_what_is_no_port_leads_nowhere(port: bytes) -> None:
    switched = b"main 10.0.0.1 6379 10.0.0.2 " + port

    assert read_reply([b"10.0.0.2", port], "main") is None
    assert read_reply([b"message", b"+switch-master", switched], "main") is None


@pytest.mark.foreign
@settings(settings.get_profile("foreign"))
@given(
    reply=st.recursive(
        st.none() | st.integers() | st.binary(),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=8,
    )
    | st.tuples(st.just(b"message"), st.sampled_from(CHANNELS), st.binary()).map(list)
)
def test_whatever_is_sent_can_be_read(reply: object) -> None:
    told = read_reply(reply, "main")

    assert told is None or told.address is None or 0 < told.address[1] < 65536
