"""The access rules of a case's cluster: texts such as ``allow write topic foo``.

Each is one ACL of the mock cluster for all principals and hosts. A resource that no rule names is
open to every client, as with `allow.everyone.if.no.acl.found`.
"""

from __future__ import annotations

from typing import Final

from kspec.errors import KspecError
from mockbroker.simulation.security.authorizer import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockbroker.simulation.state.results import AclBinding

__all__ = ["access_rule"]

_EVERYBODY: Final = "User:*"
_PERMISSIONS: Final = {"allow": PermissionType.ALLOW, "deny": PermissionType.DENY}
_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS: Final = {
    each.name.lower().replace("_", "-"): each for each in AclOperation if each >= AclOperation.ALL
}


def access_rule(text: str) -> AclBinding:
    """Parse ``allow describe topic foo`` or ``allow alter cluster``. Raises KspecError."""
    words = text.split()
    if words[2:] == ["cluster"]:
        words.append(CLUSTER_NAME)
    try:
        permission, operation, resource, name = words
        return AclBinding(
            resource_type=_RESOURCES[resource],
            resource_name=name,
            pattern_type=PatternType.LITERAL,
            principal=_EVERYBODY,
            host=WILDCARD,
            operation=_OPERATIONS[operation],
            permission_type=_PERMISSIONS[permission],
        )
    except (ValueError, KeyError):
        raise KspecError(
            f"{text!r} is not allow or deny, an operation ({', '.join(_OPERATIONS)}), a resource "
            f"({', '.join(_RESOURCES)}) and its name"
        ) from None
