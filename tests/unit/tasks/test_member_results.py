"""What a step is given of those before it, without a server."""

from __future__ import annotations

import msgspec
import pytest

from workstealing.errors import (
    PayloadInvalid,
    TaskCancelled,
    TaskDead,
    TaskExpired,
    TaskFailed,
    TaskNotFound,
    WorkStealingError,
)
from workstealing.tasks.envelope import After
from workstealing.tasks.member_result import MemberResult, argument_of, with_argument
from workstealing.tasks.outcome import ErrorReport, TaskOutcome
from workstealing.tasks.signature import Signature


def test_an_argument_joins_those_of_the_payload() -> None:
    for payload, joined in (
        (b"{}", b'{"x":[1]}'),
        (b" { } ", b'{"x":[1]}'),
        (b'{"y":2}', b'{"x":[1],"y":2}'),
    ):
        assert bytes(with_argument(msgspec.Raw(payload), "x", b"[1]")) == joined


def test_a_step_takes_the_result_of_the_one_before_as_it_is() -> None:
    outcome = TaskOutcome(result=msgspec.Raw(b'{"a":1.0}')).encode()

    assert argument_of(After(task="t"), [("t", outcome)]) == b'{"a":1.0}'
    for gone in (b"", TaskOutcome(state="cancelled").encode()):
        with pytest.raises(TaskNotFound, match="task t, the step before it, is gone"):
            argument_of(After(task="t"), [("t", gone)])


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (TaskOutcome(state="failed", error=ErrorReport("E", "bad")), TaskFailed),
        (TaskOutcome(state="dead", reason="tired"), TaskDead),
        (TaskOutcome(state="cancelled"), TaskCancelled),
        (TaskOutcome(state="expired"), TaskExpired),
        (
            TaskOutcome(state="dead", refusal=("PayloadInvalid", "t", "x", "is bad")),
            PayloadInvalid,
        ),
        (None, TaskNotFound),
    ],
)
def test_a_member_that_is_not_done_raises_what_its_handle_would(
    outcome: TaskOutcome | None, error: type[WorkStealingError]
) -> None:
    found = [("g-0", b"" if outcome is None else outcome.encode())]
    encoded = argument_of(After(group="g", members=1), found)
    (member,) = msgspec.json.decode(encoded, type=list[MemberResult[int]])

    assert not member.is_done
    with pytest.raises(error) as raised:
        member.result()
    if outcome is not None:
        assert str(raised.value) == str(outcome.problem("g-0"))


def test_what_a_member_returned_has_its_type_again() -> None:
    found = [("g-0", TaskOutcome(result=msgspec.Raw(b"[1,2]")).encode())]
    encoded = argument_of(After(group="g", members=1), found)
    (member,) = msgspec.json.decode(encoded, type=list[MemberResult[set[int]]])

    assert (member.is_done, member.result()) == (True, {1, 2})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(encoded, type=list[MemberResult[str]])


def test_a_signature_without_its_first_argument_keeps_all_else() -> None:
    def resize(path: str, width: int, *, height: int = 7) -> None: ...

    left = Signature.of(resize).without_first()

    assert (left.parameters, left.positional) == (("width", "height"), ("width",))
    assert left.encode((3,), {}) == b'{"width":3}'
    assert left.decode(b'{"width":3}') == {"width": 3, "height": 7}
