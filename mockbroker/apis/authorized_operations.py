"""Bit fields of authorized operations (KIP-430): bit n stands for the AclOperation of code n.

Without an authorizer, of all the operations that a resource of that type has.
"""

from __future__ import annotations

from typing import Final

from mockbroker.apis.registry import Call
from mockbroker.security.authorizer import CLUSTER_NAME, AclOperation, ResourceType

__all__ = ["cluster_operations", "topic_operations"]

_Op = AclOperation
_OPERATIONS: Final = {
    ResourceType.CLUSTER: (
        _Op.CREATE, _Op.ALTER, _Op.DESCRIBE, _Op.CLUSTER_ACTION, _Op.DESCRIBE_CONFIGS,
        _Op.ALTER_CONFIGS, _Op.IDEMPOTENT_WRITE,
    ),
    ResourceType.TOPIC: (
        _Op.READ, _Op.WRITE, _Op.CREATE, _Op.DELETE, _Op.ALTER, _Op.DESCRIBE,
        _Op.DESCRIBE_CONFIGS, _Op.ALTER_CONFIGS,
    ),
}  # fmt: skip


def cluster_operations(call: Call) -> int:
    """What the caller may do to the cluster: nothing is told to whom may not describe it."""
    if not call.authorizes(AclOperation.DESCRIBE):
        return 0
    return _bits(call, ResourceType.CLUSTER, CLUSTER_NAME)


def topic_operations(call: Call, name: str) -> int:
    """What the caller may do to a topic of that name, whether or not it exists."""
    return _bits(call, ResourceType.TOPIC, name)


def _bits(call: Call, resource_type: ResourceType, name: str) -> int:
    return sum(
        1 << operation
        for operation in _OPERATIONS[resource_type]
        if call.authorizes(operation, resource_type, name)
    )
