"""FindCoordinator (10): the mock has no groups, transactions or share groups.

Versions: 1 key type; 3 flexible; 4 several keys in one request; 5 and 6 new error codes and key
types. Every key gets COORDINATOR_NOT_AVAILABLE(15), which clients retry until their own timeout.
A broker that advertises none of the APIs that the coordinator would serve (``--advertise
implemented``) answers UNSUPPORTED_VERSION(35) instead, which clients report at once.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode, message
from kproto.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from mockbroker.apis.authorization import may
from mockbroker.apis.registry import Call, register
from mockbroker.security.authorizer import CLUSTER_NAME, ResourceType

__all__ = ["find_coordinator"]

_NOWHERE: Final = -1

_KINDS: Final = {
    0: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    1: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    2: (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
}
"""Key type -> resource type, and the error of callers who may not describe the resource."""

_NEEDS: Final = {
    0: {11: "JoinGroup", 68: "ConsumerGroupHeartbeat"},
    1: {22: "InitProducerId"},
    2: {76: "ShareGroupHeartbeat"},
}
"""Key type -> the APIs by which clients first use the coordinator: one of them must be served."""


@register(
    10,
    "0-6",
    gap="the mock has no group or transaction coordinators, so clients retry until their time-out, "
    "or fail at once with serve --advertise implemented",
)
def find_coordinator(call: Call) -> FindCoordinatorResponse:
    if call.version < 4:
        code, text = _error(call, call.body.key)
        return FindCoordinatorResponse(
            error_code=code,
            error_message=text if call.version >= 1 else None,
            node_id=_NOWHERE,
            host="",
            port=_NOWHERE,
        )
    return FindCoordinatorResponse(
        coordinators=[_coordinator(call, key) for key in call.body.coordinator_keys]
    )


def _coordinator(call: Call, key: str) -> Coordinator:
    code, text = _error(call, key)
    # With several keys Kafka sends no text for the keys that the caller may not describe.
    silent = code in (
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )
    return Coordinator(
        key=key,
        node_id=_NOWHERE,
        host="",
        port=_NOWHERE,
        error_code=code,
        error_message="" if silent else text,
    )


def _error(call: Call, key: str) -> tuple[ErrorCode, str]:
    key_type = call.body.key_type if call.version >= 1 else 0
    if key_type in _KINDS:
        resource_type, refused = _KINDS[key_type]
        whole = resource_type is ResourceType.CLUSTER
        if not may(call, resource_type, CLUSTER_NAME if whole else key):
            return refused, message(refused)
    needs = _NEEDS.get(key_type, {})
    if needs and not needs.keys() & call.advertised.keys():
        text = f"This broker has no coordinator: it does not serve {' or '.join(needs.values())}."
        return ErrorCode.UNSUPPORTED_VERSION, text
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code, message(code)
