"""Signatures: what they hold for, and that secrets stay secret."""

from __future__ import annotations

import copy
import hashlib
import hmac
import logging
import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing import Keyring, Registry, TaskQueue
from workstealing.client.queue_internals import internals_of
from workstealing.errors import BadSignature, ConfigurationError
from workstealing.tasks.admission import Admission
from workstealing.tasks.envelope import Envelope

SECRET = "a secret that nobody knows"
OTHER = "another secret, even longer"
PLAIN = (
    b'{"v":1,"name":"pay","version":1,"expires":9000000000000,"principal":"ann",'
    b'"roles":["clerk"],"payload":{"amount":7}}'
)


def signer(*secrets: str, queue: str = "shop", run: str = "default") -> Any:
    return Keyring(*(secrets or (SECRET,))).signer(queue, run)


def opened(envelope: bytes, task_id: str = "17", now_ms: int = 1_000) -> Envelope:
    return Admission(Registry(), None, signer()).verified_envelope(
        task_id, envelope, now_ms
    )


def test_what_was_signed_is_read_as_it_was_written() -> None:
    signed = signer().sign("17", PLAIN)

    envelope = opened(signed)

    assert signed.endswith(PLAIN[1:])
    assert (envelope.name, envelope.principal) == ("pay", "ann")
    assert msgspec.structs.replace(envelope, sig="").encode() == PLAIN


def test_another_language_can_sign_with_what_the_docs_say() -> None:
    key_id = hmac.digest(SECRET.encode(), b"workstealing key id", "sha256").hex()[:8]
    message = b"8:envelope,4:shop,7:default,2:17," + PLAIN
    mac = hmac.new(SECRET.encode(), message, hashlib.sha256).hexdigest()

    signed = b'{"sig":"' + f"{key_id}:{mac}".encode() + b'",' + PLAIN[1:]

    assert signed == signer().sign("17", PLAIN)


def without(envelope: bytes, part: bytes, other: bytes = b"") -> bytes:
    assert part in envelope
    return envelope.replace(part, other, 1)


SIGNED = signer().sign("17", PLAIN)
SIG = SIGNED[: SIGNED.index(b",") + 1]


@pytest.mark.parametrize(
    ("envelope", "problem"),
    [
        (PLAIN, "not signed"),
        (b"", "not signed"),
        (b"{}", "not signed"),
        (b" " + SIGNED, "not signed"),
        (without(SIGNED, b'"sig":"', b'"sig": "'), "not signed"),
        (without(SIGNED, SIG, b'{"sig":"",'), "not signed"),
        (without(SIGNED, SIG, SIG.upper()), "not signed"),
        (without(SIGNED, SIG[8:16], b"00000000"), "which is not in the keyring"),
        (signer(OTHER).sign("17", PLAIN), "which is not in the keyring"),
        (without(SIGNED, SIG[17:19], b"zz"), "not signed"),
        (without(SIGNED, b"ann", b"bob"), "changed"),
        (without(SIGNED, b"clerk", b"admin"), "changed"),
        (without(SIGNED, b'"amount":7', b'"amount":70'), "changed"),
        (without(SIGNED, b"9000000000000", b"9000000000001"), "changed"),
        (without(SIGNED, b'"version":1', b'"version":2'), "changed"),
        (SIGNED + b" ", "changed"),
        (SIG + SIGNED[1:], "changed"),
        (SIG + b'"sig":"x",' + PLAIN[1:], "changed"),
        (signer().sign("18", PLAIN), "another id"),
        (signer(queue="shop2").sign("17", PLAIN), "another id or queue"),
        (signer(run="2").sign("17", PLAIN), "another id or queue"),
    ],
)
def test_an_envelope_that_is_not_exactly_what_was_signed_is_refused(
    envelope: bytes, problem: str
) -> None:
    with pytest.raises(BadSignature, match=problem):
        opened(envelope)


def test_names_cannot_be_shifted_from_one_field_to_the_next() -> None:
    signed = signer(queue="ab", run="c").sign("d", PLAIN)

    for queue, run, task_id in (("a", "bc", "d"), ("ab", "cd", ""), ("abc", "d", "")):
        with pytest.raises(BadSignature):
            signer(queue=queue, run=run).verify(task_id, signed)


def test_a_second_signature_inside_what_was_signed_is_refused() -> None:
    doubled = signer().sign("17", b'{"sig":"x",' + PLAIN[1:])

    with pytest.raises(BadSignature, match="two signatures"):
        opened(doubled)


def test_a_signed_envelope_expires() -> None:
    assert opened(SIGNED, now_ms=9_000_000_000_000).name == "pay"
    with pytest.raises(BadSignature, match="expired"):
        opened(SIGNED, now_ms=9_000_000_000_001)


def test_a_signed_envelope_that_never_expires_is_refused() -> None:
    eternal = signer().sign("17", without(PLAIN, b'"expires":9000000000000,'))

    with pytest.raises(BadSignature, match="when it expires"):
        opened(eternal)


@given(st.binary(min_size=1, max_size=4), st.integers(0, len(SIGNED) - 1))
def test_no_other_bytes_in_any_place_are_accepted(other: bytes, place: int) -> None:
    changed = SIGNED[:place] + other + SIGNED[place + len(other) :]
    if changed != SIGNED:
        with pytest.raises(BadSignature):
            opened(changed)


@given(st.binary(max_size=200))
def test_whatever_stands_in_redis_is_refused_and_nothing_else_happens(
    envelope: bytes,
) -> None:
    with pytest.raises(BadSignature):
        opened(envelope)


def test_the_first_secret_signs_and_all_verify() -> None:
    old, both, new = signer(OTHER), signer(SECRET, OTHER), signer(SECRET)

    by_old, by_both = old.sign("17", PLAIN), both.sign("17", PLAIN)

    assert both.verify("17", by_old)
    assert new.verify("17", by_both)
    with pytest.raises(BadSignature):
        old.verify("17", by_both)


def test_secrets_come_from_a_file_one_per_line(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"# the new one\n{SECRET}\n\n  {OTHER}\n")

    keyring = Keyring.from_file(file)

    assert keyring.key_ids == Keyring(SECRET, OTHER).key_ids
    assert keyring.signer("shop", "default").sign("17", PLAIN) == SIGNED


def test_a_file_without_a_secret_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# nothing yet\n")

    with pytest.raises(ConfigurationError, match="no secret"):
        Keyring.from_file(file)


@pytest.mark.parametrize("secret", ["", "short", b"fifteen bytes..", "é" * 7, None, 7])
def test_weak_secrets_and_what_is_none_are_refused_without_being_told(
    secret: Any,
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Keyring(secret)

    assert not isinstance(secret, str) or not secret or secret not in str(refused.value)


def test_text_and_bytes_are_the_same_secret() -> None:
    assert Keyring(SECRET).key_ids == Keyring(SECRET.encode()).key_ids
    with pytest.raises(ConfigurationError, match="twice"):
        Keyring(SECRET, SECRET.encode())


def test_a_secret_is_never_shown_nor_written_down() -> None:
    keyring = Keyring(SECRET, OTHER)
    queue = TaskQueue("shop", "redis://localhost:1", keyring=keyring)

    shown = [
        keyring,
        keyring.signer("shop", "default"),
        queue,
        internals_of(queue).admission,
    ]

    for one in shown:
        assert SECRET not in repr(one) + str(one)
        assert OTHER not in repr(one) + str(one)
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not pickled"):
            copied(keyring)


def test_a_refusal_tells_neither_payload_nor_principal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(BadSignature) as refused:
        opened(without(SIGNED, b'"amount":7', b'"amount":70'))

    told = f"{refused.value}{refused.value!r}{caplog.text}"
    assert "amount" not in told
    assert "ann" not in told


def test_a_queue_takes_one_secret_or_a_keyring_and_not_both() -> None:
    one = internals_of(TaskQueue("shop", secret=SECRET)).admission.signer
    other = internals_of(TaskQueue("shop", keyring=Keyring(SECRET))).admission.signer

    assert one is not None
    assert other is not None
    assert one.sign("17", PLAIN) == other.sign("17", PLAIN) == SIGNED
    assert internals_of(TaskQueue("shop")).admission.signer is None
    with pytest.raises(ConfigurationError, match="not both"):
        TaskQueue("shop", secret=SECRET, keyring=Keyring(SECRET))
    with pytest.raises(ConfigurationError, match="must be a Keyring") as refused:
        TaskQueue("shop", keyring=SECRET)
    assert SECRET not in str(refused.value)


def test_an_empty_secret_does_not_turn_signatures_off() -> None:
    with pytest.raises(ConfigurationError):
        TaskQueue("shop", secret="")


def test_signatures_are_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not by the clock, which would be flaky: by what is called.
    compared: list[str] = []
    compare = hmac.compare_digest

    def watched(one: str, other: str) -> bool:
        compared.append(other)
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)

    sig = signer().verify("17", SIGNED)

    assert compared == [sig[9:]]
