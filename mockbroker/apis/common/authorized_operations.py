"""Bit fields of authorized operations (KIP-430): bit n stands for the AclOperation of code n.

Without an authorizer every operation of the resource type is authorized.
"""

from __future__ import annotations

from typing import Final

from mockbroker.apis.calls import Call
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import CLUSTER_NAME, AclOperation, ResourceType

__all__ = ["cluster_operations", "group_operations", "topic_operations"]

_Op = AclOperation
_OPERATIONS: Final = {
    ResourceType.CLUSTER: (
        _Op.CREATE, _Op.ALTER, _Op.DESCRIBE, _Op.CLUSTER_ACTION, _Op.DESCRIBE_CONFIGS,
        _Op.ALTER_CONFIGS, _Op.IDEMPOTENT_WRITE,
    ),
    ResourceType.GROUP: (
        _Op.READ, _Op.DELETE, _Op.DESCRIBE, _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS,
    ),
    ResourceType.TOPIC: (
        _Op.READ, _Op.WRITE, _Op.CREATE, _Op.DELETE, _Op.ALTER, _Op.DESCRIBE,
        _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS,
    ),
}  # fmt: skip
_GROUP_CONFIGS: Final = 1 << _Op.DESCRIBE_CONFIGS | 1 << _Op.ALTER_CONFIGS


def cluster_operations(call: Call) -> int:
    """Return the caller's operations on the cluster; 0 if DESCRIBE is not among them."""
    if not call.authorizes(AclOperation.DESCRIBE):
        return 0
    return _bits(call, ResourceType.CLUSTER, CLUSTER_NAME)


def group_operations(call: Call, group_id: str) -> int:
    """Return the caller's operations on a group id, whether or not the group exists."""
    bits = _bits(call, ResourceType.GROUP, group_id)
    return bits if call.release.has(facts.GROUP_CONFIG_OPERATIONS) else bits & ~_GROUP_CONFIGS


def topic_operations(call: Call, name: str) -> int:
    """Return the caller's operations on a topic name, whether or not the topic exists."""
    return _bits(call, ResourceType.TOPIC, name)


def _bits(call: Call, resource_type: ResourceType, name: str) -> int:
    return sum(
        1 << operation
        for operation in _OPERATIONS[resource_type]
        if call.authorizes(operation, resource_type, name)
    )
