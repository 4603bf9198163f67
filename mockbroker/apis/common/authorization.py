"""Access to topics and configs, which handlers check one by one, with Kafka's texts of refusals."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kproto.error_codes import ErrorCode, message
from mockbroker.apis.calls import Call
from mockbroker.simulation.security.authorizer import CLUSTER_NAME, AclOperation, ResourceType

__all__ = ["BROKER_CONFIG_TYPES", "authorized_names", "config_refusal", "may_config", "text_of"]

_CLUSTER, _TOPIC, _GROUP = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP


def authorized_names(
    call: Call, names: Iterable[str], operation: AclOperation, resource_type: ResourceType = _TOPIC
) -> frozenset[str]:
    """Return the topics, or other resources, on which the caller is allowed the operation."""
    if call.authorizer is None:
        return frozenset(names)
    return frozenset(name for name in set(names) if call.authorizes(operation, resource_type, name))


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


def may_config(call: Call, operation: AclOperation, config_type: int, name: str) -> bool:
    """Return whether the caller is allowed the operation on these configs. True for unknown
    resource types, whose error takes precedence."""
    owner = _CONFIG_OWNERS.get(config_type)
    if owner is None:
        return True
    return call.authorizes(operation, owner, CLUSTER_NAME if owner is _CLUSTER else name)


def config_refusal(config_type: int) -> tuple[ErrorCode, str]:
    """Return the error of configs that the caller may not access, with Kafka's text."""
    return text_of(_CONFIG_OWNERS[config_type])
