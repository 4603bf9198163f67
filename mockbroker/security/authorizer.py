"""May this principal do that? Kafka's StandardAuthorizer (KIP-801), from the rules as they stand.

Pure: rules, names and numbers in, yes or no out. It keeps no rules (they are the cluster's state)
and knows neither requests nor how a principal proved who it is. Numbers are the wire's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from mockbroker.errors import ClusterError
from mockbroker.state.results import AclBinding

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
"""The principal of a connection on which nobody authenticated."""
CLUSTER_NAME: Final = "kafka-cluster"
"""The one name that a resource of type CLUSTER has."""
WILDCARD: Final = "*"
"""As a literal resource name or a host: any. ``User:*`` is any principal of type User."""


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
"""Operation -> those that come with it. Only when allowing: DENY of READ denies no DESCRIBE."""


@dataclass(frozen=True)
class Authorizer:
    """``super_users`` are principals (``User:admin``) that no rule concerns.
    ``allow_everyone_if_no_acl_found`` is Kafka's config of that name: what becomes of a resource
    that no rule at all is about. Raises ClusterError for a super user that is no principal."""

    super_users: frozenset[str] = frozenset()
    allow_everyone_if_no_acl_found: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "super_users", frozenset(self.super_users))
        for principal in self.super_users:
            kind, colon, name = principal.partition(":")
            if not (kind and colon and name):
                raise ClusterError(f"{principal!r} is no principal; write one as User:admin")

    def allows(
        self,
        acls: Iterable[AclBinding],
        principal: str,
        host: str,
        operation: int,
        resource_type: int,
        resource_name: str,
    ) -> bool:
        """Deny wins over allow. Without a rule about the principal the answer is no, unless there
        is none about the resource either and ``allow_everyone_if_no_acl_found`` says otherwise."""
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
