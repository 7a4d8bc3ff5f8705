"""Who may call which task: what is not granted is denied."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workstealing import TaskQueue
from workstealing.errors import ConfigurationError, NotPermitted
from workstealing.tasks.definition import define
from workstealing.tasks.policy import PUBLIC, AccessPolicy

POLICY = AccessPolicy(
    {"editor": {"images.resize", "images.crop"}, "viewer": ["images.see"]}
)
NAMES = st.text(
    st.characters(categories=["L", "N"], include_characters="._-"), min_size=1
).filter(lambda name: len(name) <= 100)


def noop() -> None: ...


def test_a_role_allows_what_it_was_given_and_nothing_else() -> None:
    assert POLICY.allows(["editor"], "images.crop")
    assert POLICY.allows(("viewer", "editor"), "images.crop")
    assert not POLICY.allows(["viewer"], "images.crop")
    assert not POLICY.allows(["editor"], "images")


def test_a_role_that_the_policy_does_not_know_allows_nothing() -> None:
    assert not POLICY.allows(["admin", "root"], "images.see")
    assert not POLICY.allows([], "images.see")


def test_a_task_that_names_no_permission_is_for_nobody() -> None:
    assert not POLICY.allows(["editor", "viewer"], None)
    with pytest.raises(NotPermitted, match="give it permission="):
        POLICY.check("images.resize", None, "ann", ["editor"])


def test_a_public_task_is_for_everybody() -> None:
    assert POLICY.allows([], PUBLIC)
    assert AccessPolicy({}).allows([], PUBLIC)
    assert define(noop, permission=PUBLIC).permission == PUBLIC


@given(st.dictionaries(NAMES, st.frozensets(NAMES)), st.lists(NAMES), NAMES)
def test_a_policy_allows_exactly_the_union_of_the_roles(
    granted: dict[str, frozenset[str]], roles: list[str], permission: str
) -> None:
    expected = any(permission in granted.get(role, ()) for role in roles)

    assert AccessPolicy(granted).allows(roles, permission) is expected


@pytest.mark.parametrize(
    "roles",
    [
        {"editor": "images.resize"},
        {"editor": b"images.resize"},
        {"editor": 7},
        {"editor": {"*"}},
        {"editor": {"images.*"}},
        {"editor": {""}},
        {"*": {"images.resize"}},
        {"an editor": {"images.resize"}},
        {"a,b": {"images.resize"}},
        {"x" * 101: {"images.resize"}},
        {7: {"images.resize"}},
        ["editor"],
    ],
)
def test_wildcards_and_what_is_no_name_are_refused(roles: Any) -> None:
    with pytest.raises(ConfigurationError):
        AccessPolicy(roles)


def test_a_policy_does_not_change_when_its_source_does() -> None:
    source = {"editor": {"images.crop"}}
    policy = AccessPolicy(source)

    source["editor"].add("images.delete")
    source["viewer"] = {"images.crop"}

    assert not policy.allows(["editor", "viewer"], "images.delete")
    assert not policy.allows(["viewer"], "images.crop")


def test_a_refusal_says_who_lacks_what() -> None:
    with pytest.raises(NotPermitted) as refused:
        POLICY.check("images.crop", "images.crop", "ann", ("viewer", "guest"))

    told = str(refused.value)
    assert "'images.crop'" in told
    assert "'ann'" in told
    assert "viewer, guest" in told


def test_what_is_no_policy_is_refused_and_not_taken_for_none() -> None:
    with pytest.raises(ConfigurationError, match="must be an AccessPolicy"):
        TaskQueue("shop", policy={"editor": {"images.resize"}})


@pytest.mark.parametrize("permission", ["images resize", "", "a*", 7, "x" * 101])
def test_the_permission_of_a_task_is_a_name(permission: Any) -> None:
    with pytest.raises(ConfigurationError):
        define(noop, permission=permission)
