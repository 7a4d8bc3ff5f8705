"""Who may call which task.

A policy maps roles to permissions, and a task names the permission that it needs. What
is not granted is denied: a role that the policy does not know grants nothing, there are
no wildcards, and a task without a permission may be called by nobody until it says
`permission=PUBLIC`. Without a policy nothing is denied.

A policy believes the roles that a request names. The program that makes the request
must know who may have which role; signatures prove that nobody changed it on its way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from workstealing.errors import ConfigurationError, NotPermitted

__all__ = (
    "LONGEST_ROLE",
    "MOST_ROLES",
    "PUBLIC",
    "AccessPolicy",
    "checked_permission",
    "checked_role",
)

PUBLIC = "*"
"""The permission of a task that everybody may call."""
LONGEST_ROLE = 100
"""Characters of a role or a permission."""
MOST_ROLES = 64
"""Roles of one request."""


class AccessPolicy:
    """Roles and what they may do: `AccessPolicy({"editor": {"images.resize"}})`."""

    __slots__ = ("_permissions",)

    def __init__(self, roles: Mapping[str, Collection[str]]) -> None:
        self._permissions = {
            checked_role(role): _checked_permissions(role, permissions)
            for role, permissions in roles.items()
        }

    def allows(self, roles: Iterable[str], permission: str | None) -> bool:
        """Return whether one of the roles has the permission."""
        if permission == PUBLIC:
            return True
        granted = self._permissions
        return permission is not None and any(
            permission in granted.get(role, ()) for role in roles
        )

    def check(
        self, task: str, permission: str | None, principal: str, roles: Iterable[str]
    ) -> None:
        """Raise `NotPermitted` unless one of the roles has the permission."""
        if not self.allows(roles, permission):
            raise NotPermitted(task, principal, ", ".join(roles), permission or "")

    def __repr__(self) -> str:
        return f"<AccessPolicy of {', '.join(sorted(self._permissions)) or 'nobody'}>"


def checked_permission(permission: Any) -> str | None:
    """Return what a task may say of its permission."""
    if permission is None:
        return None
    if permission == PUBLIC:
        return PUBLIC
    return _checked(permission, "a permission")


def checked_role(role: Any) -> str:
    """Return the name of a role."""
    return _checked(role, "a role")


def _checked_permissions(role: str, permissions: Any) -> frozenset[str]:
    # A string is a collection too, of letters.
    if isinstance(permissions, (str, bytes)) or not isinstance(permissions, Collection):
        raise ConfigurationError(
            f"role {role!r} needs a set of permissions, not {permissions!r}"
        )
    return frozenset(_checked(one, "a permission") for one in permissions)


def _checked(name: Any, what: str) -> str:
    if (
        isinstance(name, str)
        and 0 < len(name) <= LONGEST_ROLE
        and name.isprintable()
        and not _BANNED.intersection(name)
    ):
        return name
    raise ConfigurationError(
        f"{what} has 1 to {LONGEST_ROLE} printable characters, without spaces and"
        f" commas, and without * since there are no wildcards, not {ascii(name)[:80]}"
    )


_BANNED = frozenset(" ,*")
