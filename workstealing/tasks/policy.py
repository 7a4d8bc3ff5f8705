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

from workstealing._checks import checked_role, checked_roles
from workstealing.errors import ConfigurationError, NotPermitted

__all__ = ("PUBLIC", "AccessPolicy", "checked_permission")

PUBLIC = "*"
"""The permission of a task that everybody may call."""


class AccessPolicy:
    """Roles and what they may do: `AccessPolicy({"editor": {"images.resize"}})`."""

    __slots__ = ("_permissions",)

    def __init__(self, roles: Mapping[str, Collection[str]]) -> None:
        if not isinstance(roles, Mapping):
            raise ConfigurationError(
                f"an AccessPolicy takes a dict, role to permissions, not {roles!r}"
            )
        self._permissions = {
            checked_role(role): frozenset(
                checked_roles(
                    permissions, f"the permissions of role {role!r}", "a permission"
                )
            )
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
    return checked_role(permission, "a permission")
