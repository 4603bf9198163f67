"""The operation that each API requires, and the texts of refusals, which are those of Kafka 4.x.

The module of each API decides where in its response a refusal goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kproto.error_codes import ErrorCode, message
from mockbroker.apis.calls import Call
from mockbroker.simulation.security.authorizer import CLUSTER_NAME, AclOperation, ResourceType

__all__ = [
    "BROKER_CONFIG_TYPES",
    "NEEDS",
    "authorized_names",
    "config_refusal",
    "may",
    "may_config",
    "text_of",
]

_Op = AclOperation
_CLUSTER, _TOPIC, _GROUP = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP
_TRANSACTION = ResourceType.TRANSACTIONAL_ID
_TOKEN, _USER = ResourceType.DELEGATION_TOKEN, ResourceType.USER

NEEDS: Final[Mapping[tuple[int, ResourceType], AclOperation]] = {
    (0, _TOPIC): _Op.WRITE,
    (0, _TRANSACTION): _Op.WRITE,
    (1, _CLUSTER): _Op.CLUSTER_ACTION,  # replicas
    (1, _TOPIC): _Op.READ,
    (2, _TOPIC): _Op.DESCRIBE,
    (3, _TOPIC): _Op.DESCRIBE,
    (4, _CLUSTER): _Op.CLUSTER_ACTION,
    (5, _CLUSTER): _Op.CLUSTER_ACTION,
    (6, _CLUSTER): _Op.CLUSTER_ACTION,
    (8, _GROUP): _Op.READ,
    (8, _TOPIC): _Op.READ,
    (9, _GROUP): _Op.DESCRIBE,
    (9, _TOPIC): _Op.DESCRIBE,
    (10, _CLUSTER): _Op.CLUSTER_ACTION,  # share groups
    (10, _GROUP): _Op.DESCRIBE,
    (10, _TRANSACTION): _Op.DESCRIBE,
    (11, _GROUP): _Op.READ,
    (12, _GROUP): _Op.READ,
    (13, _GROUP): _Op.READ,
    (14, _GROUP): _Op.READ,
    (15, _GROUP): _Op.DESCRIBE,
    (16, _CLUSTER): _Op.DESCRIBE,  # or on each group
    (16, _GROUP): _Op.DESCRIBE,
    (19, _CLUSTER): _Op.CREATE,  # either of the two will do
    (19, _TOPIC): _Op.CREATE,
    (20, _CLUSTER): _Op.DELETE,  # either of the two will do
    (20, _TOPIC): _Op.DELETE,
    (21, _TOPIC): _Op.DELETE,
    (22, _CLUSTER): _Op.IDEMPOTENT_WRITE,  # or, since 2.8, WRITE on any topic
    (22, _TRANSACTION): _Op.WRITE,
    (23, _CLUSTER): _Op.CLUSTER_ACTION,  # either of the two will do
    (23, _TOPIC): _Op.DESCRIBE,
    (24, _CLUSTER): _Op.CLUSTER_ACTION,  # brokers
    (24, _TOPIC): _Op.WRITE,
    (24, _TRANSACTION): _Op.WRITE,
    (25, _GROUP): _Op.READ,
    (25, _TRANSACTION): _Op.WRITE,
    (26, _TRANSACTION): _Op.WRITE,
    (27, _CLUSTER): _Op.ALTER,  # or CLUSTER_ACTION
    (28, _GROUP): _Op.READ,
    (28, _TOPIC): _Op.READ,
    (28, _TRANSACTION): _Op.WRITE,
    (29, _CLUSTER): _Op.DESCRIBE,
    (30, _CLUSTER): _Op.ALTER,
    (31, _CLUSTER): _Op.ALTER,
    (32, _CLUSTER): _Op.DESCRIBE_CONFIGS,
    (32, _GROUP): _Op.DESCRIBE_CONFIGS,
    (32, _TOPIC): _Op.DESCRIBE_CONFIGS,
    (34, _CLUSTER): _Op.ALTER,
    (33, _CLUSTER): _Op.ALTER_CONFIGS,
    (33, _GROUP): _Op.ALTER_CONFIGS,
    (33, _TOPIC): _Op.ALTER_CONFIGS,
    (35, _CLUSTER): _Op.DESCRIBE,
    (37, _TOPIC): _Op.ALTER,
    (38, _USER): _Op.CREATE_TOKENS,  # for another owner
    (41, _TOKEN): _Op.DESCRIBE,  # either of the two will do
    (41, _USER): _Op.DESCRIBE_TOKENS,
    (42, _GROUP): _Op.DELETE,
    (43, _CLUSTER): _Op.ALTER,
    (44, _CLUSTER): _Op.ALTER_CONFIGS,
    (44, _GROUP): _Op.ALTER_CONFIGS,
    (44, _TOPIC): _Op.ALTER_CONFIGS,
    (45, _CLUSTER): _Op.ALTER,
    (46, _CLUSTER): _Op.DESCRIBE,
    (47, _GROUP): _Op.DELETE,
    (47, _TOPIC): _Op.READ,
    (48, _CLUSTER): _Op.DESCRIBE_CONFIGS,
    (49, _CLUSTER): _Op.ALTER_CONFIGS,
    (50, _CLUSTER): _Op.DESCRIBE,
    (51, _CLUSTER): _Op.ALTER,
    (55, _CLUSTER): _Op.DESCRIBE,
    (57, _CLUSTER): _Op.ALTER,
    (60, _CLUSTER): _Op.DESCRIBE,  # to hear what else one may do
    (61, _TOPIC): _Op.READ,
    (64, _CLUSTER): _Op.ALTER,
    (65, _TOPIC): _Op.DESCRIBE,
    (65, _TRANSACTION): _Op.DESCRIBE,
    (66, _TRANSACTION): _Op.DESCRIBE,
    (68, _GROUP): _Op.READ,
    (68, _TOPIC): _Op.DESCRIBE,
    (69, _GROUP): _Op.DESCRIBE,
    (69, _TOPIC): _Op.DESCRIBE,
    (74, _CLUSTER): _Op.DESCRIBE_CONFIGS,
    (75, _TOPIC): _Op.DESCRIBE,
    (76, _GROUP): _Op.READ,
    (76, _TOPIC): _Op.DESCRIBE,
    (77, _GROUP): _Op.DESCRIBE,
    (77, _TOPIC): _Op.DESCRIBE,
    (78, _GROUP): _Op.READ,
    (78, _TOPIC): _Op.READ,
    (79, _GROUP): _Op.READ,
    (79, _TOPIC): _Op.READ,
    (80, _CLUSTER): _Op.ALTER,
    (81, _CLUSTER): _Op.ALTER,
    (83, _CLUSTER): _Op.CLUSTER_ACTION,
    (84, _CLUSTER): _Op.CLUSTER_ACTION,
    (85, _CLUSTER): _Op.CLUSTER_ACTION,
    (86, _CLUSTER): _Op.CLUSTER_ACTION,
    (87, _CLUSTER): _Op.CLUSTER_ACTION,
    (88, _GROUP): _Op.READ,
    (88, _TOPIC): _Op.DESCRIBE,
    (89, _GROUP): _Op.DESCRIBE,
    (89, _TOPIC): _Op.DESCRIBE,
    (93, _GROUP): _Op.READ,
    (94, _CLUSTER): _Op.ALTER,
    (90, _GROUP): _Op.DESCRIBE,
    (90, _TOPIC): _Op.DESCRIBE,
    (91, _GROUP): _Op.READ,
    (91, _TOPIC): _Op.READ,
    (92, _GROUP): _Op.DELETE,
    (92, _TOPIC): _Op.READ,
}
"""(API key, resource type) -> the operation that the caller must be allowed."""


def may(call: Call, resource_type: ResourceType = _CLUSTER, name: str = CLUSTER_NAME) -> bool:
    """Return whether the caller may use this API on the resource."""
    if call.authorizer is None:
        return True
    return call.authorizes(NEEDS[call.api.api_key, resource_type], resource_type, name)


def authorized_names(
    call: Call, names: Iterable[str], operation: AclOperation | None = None
) -> frozenset[str]:
    """Return the topics on which the caller may do ``operation``, by default the API's own."""
    requested = operation or NEEDS[call.api.api_key, _TOPIC]
    return frozenset(name for name in set(names) if call.authorizes(requested, _TOPIC, name))


_CODES: Final = {
    _CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    _TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    _GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
}


def text_of(resource_type: ResourceType) -> tuple[ErrorCode, str]:
    """Return the error of a resource that the caller may not access, with Kafka's text."""
    code = _CODES[resource_type]
    return code, message(code)


BROKER_CONFIG_TYPES: Final = frozenset({4, 8})
"""The ConfigResource types of a broker: configs and loggers."""
_CONFIG_OWNERS: Final = {2: _TOPIC, 4: _CLUSTER, 8: _CLUSTER, 16: _CLUSTER, 32: _GROUP}
"""ConfigResource type -> resource type of the ACLs that apply; 16 is client metrics."""


def may_config(call: Call, config_type: int, name: str) -> bool:
    """Return whether the caller may access these configs. True for unknown resource types, whose
    error takes precedence."""
    owner = _CONFIG_OWNERS.get(config_type)
    if owner is None:
        return True
    return may(call, owner, CLUSTER_NAME if owner is _CLUSTER else name)


def config_refusal(config_type: int) -> tuple[ErrorCode, str]:
    """Return the error of configs that the caller may not access, with Kafka's text."""
    return text_of(_CONFIG_OWNERS[config_type])
