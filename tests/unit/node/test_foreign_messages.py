"""Whatever a node is sent, it answers in JSON and goes on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workstealing.node.cluster import Cluster
from workstealing.node.cluster_state import MemoryState
from workstealing.node.messages import CheckClusterState, ErrorCode, Request
from workstealing.node.node import Node

FOREIGN = settings.get_profile("foreign")
KINDS = [kind.type for kind in Request.__subclasses__()]
FIELDS = sorted(
    {field for kind in Request.__subclasses__() for field in kind.__struct_fields__}
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | TEXT
    | st.sampled_from(["w1", "w2"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)
BODIES = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS) | TEXT, "msg_id": st.integers() | VALUES},
    optional={field: VALUES for field in FIELDS if field not in ("type", "msg_id")},
)


@pytest.mark.foreign
@settings(FOREIGN, max_examples=FOREIGN.max_examples * 3)
@given(
    st.lists(
        st.binary(max_size=60)
        | VALUES.map(lambda value: json.dumps(value).encode())
        | BODIES.map(lambda body: json.dumps(body).encode()),
        max_size=6,
    )
)
def test_any_messages_are_answered_and_the_node_goes_on(told: list[bytes]) -> None:
    node = Node(Cluster(MemoryState()))

    for message in told:
        reply: Any = json.loads(node.answer(message))
        assert isinstance(reply["type"], str)
        assert reply.get("code", 12) in {code.value for code in ErrorCode}

    last = {"type": CheckClusterState.type, "msg_id": 1}
    assert json.loads(node.answer(json.dumps(last).encode()))["in_reply_to"] == 1
