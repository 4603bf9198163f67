"""Authorization by access rules, like Kafka's StandardAuthorizer (KIP-801).

The rules are part of the cluster's state and are passed in. Numbers are those of the protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.simulation.state.results import AclBinding

__all__ = [
    "ANONYMOUS",
    "CLUSTER_NAME",
    "WILDCARD",
    "AclOperation",
    "Authorizer",
    "PatternType",
    "PermissionType",
    "ResourceType",
]

ANONYMOUS: Final = "User:ANONYMOUS"
"""The principal of a connection without authentication."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""
WILDCARD: Final = "*"
"""Matches any literal resource name or host. ``User:*`` matches any principal of type User."""


class ResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


_IMPLIED_BY: Final[dict[int, frozenset[int]]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""Operation -> operations that imply it. Only ALLOW implies: a DENY of READ does not deny
DESCRIBE."""


@dataclass(frozen=True)
class Authorizer:
    """Decides whether an operation is allowed.

    ``super_users`` are principals (``User:admin``) that may do everything.
    ``allow_everyone_if_no_acl_found`` is Kafka's config of that name: it allows everything on
    resources without any rule. Raises ClusterError for a super user that is not a principal.
    """

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "super_users", frozenset(self.super_users))
        for principal in self.super_users:
            kind, colon, name = principal.partition(":")
            if not (kind and colon and name):
                raise ClusterError(
                    f"{principal!r} is not a principal; use TYPE:NAME, as in User:admin"
                )

    def allows(
        self,
        acls: Iterable[AclBinding],
        principal: str,
        host: str,
        operation: int,
        resource_type: int,
        resource_name: str,
    ) -> bool:
        """Return whether the operation is allowed. Deny takes precedence over allow.

        Without a rule for the principal it is denied, unless the resource has no rule at all and
        ``allow_everyone_if_no_acl_found`` is set.
        """
        if principal in self.super_users:
            return True
        found = allowed = False
        for acl in _about(acls, resource_type, resource_name):
            found = True
            if not _concerns(acl, principal, host):
                continue
            if acl.permission_type == PermissionType.DENY:
                if acl.operation in (AclOperation.ALL, operation):
                    return False
            elif _grants(acl.operation, operation):
                allowed = True
        return allowed or (not found and self.allow_everyone_if_no_acl_found)


def _about(acls: Iterable[AclBinding], kind: int, name: str) -> Iterator[AclBinding]:
    for acl in acls:
        if acl.resource_type != kind:
            continue
        if acl.pattern_type == PatternType.PREFIXED:
            if name.startswith(acl.resource_name):
                yield acl
        elif acl.resource_name in (WILDCARD, name):
            yield acl


def _concerns(acl: AclBinding, principal: str, host: str) -> bool:
    any_of_type = f"{principal.partition(':')[0]}:{WILDCARD}"
    return acl.principal in (principal, any_of_type) and acl.host in (WILDCARD, host)


def _grants(granted: int, operation: int) -> bool:
    return granted in (AclOperation.ALL, operation) or granted in _IMPLIED_BY.get(operation, ())
