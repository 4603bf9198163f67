"""FindCoordinator (10): the broker that serves a group, a transactional id or a share partition.

Versions: 1 key type and error text; 3 flexible; 4 several keys in one request, of which each has
its own row; 5 error TRANSACTION_ABORTABLE in the protocol's range; 6 keys of share partitions
(KIP-932). The first request for a kind creates its internal topic and fails with
COORDINATOR_NOT_AVAILABLE (15), which clients retry.

A broker that advertises none of the APIs that the coordinator would serve (``--advertise
implemented``) answers UNSUPPORTED_VERSION (35) instead, which clients report at once.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode, message
from kproto.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from mockbroker.apis.registry import Call, register
from mockbroker.errors import UnreadableError
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind, share_key
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.state.metadata_views import MetadataView

__all__ = ["find_coordinator"]

_NOWHERE: Final = Broker(-1, host="", port=-1)
_SHARE_KEYS_SINCE_VERSION: Final = 6
_KIND_OF: Final = {kind.value: kind for kind in CoordinatorKind}

_RESOURCES: Final = {
    CoordinatorKind.GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    CoordinatorKind.TRANSACTION: (
        ResourceType.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
}
"""Kind -> resource type of a key, and the error of callers who may not describe it."""

_NEEDS: Final = {
    CoordinatorKind.GROUP: {
        8: "OffsetCommit",
        11: "JoinGroup",
        68: "ConsumerGroupHeartbeat",
        88: "StreamsGroupHeartbeat",
    },
    CoordinatorKind.TRANSACTION: {22: "InitProducerId"},
    CoordinatorKind.SHARE: {83: "InitializeShareGroupState"},
}
"""Kind -> the APIs by which clients first use the coordinator: one of them must be served."""


@register(10, "0-6")
def find_coordinator(call: Call) -> FindCoordinatorResponse:
    keys = [call.body.key] if call.version < 4 else call.body.coordinator_keys
    _check_key_type(call)
    refused = _refusal(call)
    # What a key creates, the next one does not see.
    view = call.cluster.controller.metadata_view(call.broker_id)
    rows = [_row(call, view, key) if refused is None else _row_of(key, *refused) for key in keys]
    if call.version >= 4:
        return FindCoordinatorResponse(coordinators=rows)
    (row,) = rows
    text: str | None
    text = row.error_message or message(row.error_code)
    if call.version == 0 or not call.release.has(facts.COORDINATOR_TEXTS):
        text = None
    return FindCoordinatorResponse(
        error_code=row.error_code,
        error_message=text,
        node_id=row.node_id,
        host=row.host,
        port=row.port,
    )


def _kind(call: Call) -> CoordinatorKind | None:
    key_type = call.body.key_type if call.version >= 1 else CoordinatorKind.GROUP
    kind = _KIND_OF.get(key_type)
    if kind is CoordinatorKind.SHARE and call.version < _SHARE_KEYS_SINCE_VERSION:
        return kind if call.release.has(facts.SHARE_KEYS_NAMED) else None
    return kind


def _check_key_type(call: Call) -> None:
    if call.release.has(facts.COORDINATOR_KEYS_READ) and _kind(call) is None:
        raise UnreadableError(f"key type {call.body.key_type}, which Kafka does not read")


def _refusal(call: Call) -> tuple[ErrorCode, str] | None:
    """Return the error of the whole request, which every key gets with its text."""
    kind = _kind(call)
    code = ErrorCode.NONE
    if kind is None:
        code = ErrorCode.INVALID_REQUEST
        if call.release.has(facts.COORDINATOR_TYPES_UNEXPECTED):
            code = ErrorCode.UNKNOWN_SERVER_ERROR
    elif kind is CoordinatorKind.SHARE and call.version >= _SHARE_KEYS_SINCE_VERSION:
        code = (
            ErrorCode.NONE
            if call.authorizes(AclOperation.CLUSTER_ACTION)
            else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        )
    return (code, message(code)) if code else None


def _row(call: Call, view: MetadataView, key: str) -> Coordinator:
    kind = _kind(call)
    assert kind is not None, "that is refused"
    if kind in _RESOURCES:
        resource_type, refused = _RESOURCES[kind]
        if not call.authorizes(AclOperation.DESCRIBE, resource_type, key):
            return _row_of(key, refused)
    if kind is CoordinatorKind.SHARE and call.version < _SHARE_KEYS_SINCE_VERSION:
        return _row_of(key, ErrorCode.INVALID_REQUEST)
    if not call.cluster.coordinators.exists(kind):
        return _row_of(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    needs = _NEEDS[kind]
    served_by_kafka = needs.keys() & call.profile.versions.keys()
    if served_by_kafka and not needs.keys() & call.advertised.keys():
        text = f"This broker has no coordinator: it does not serve {' or '.join(needs.values())}."
        return _row_of(key, ErrorCode.UNSUPPORTED_VERSION, text)
    requested = share_key(key) if kind is CoordinatorKind.SHARE else key
    if requested is None:
        return _row_of(key, ErrorCode.INVALID_REQUEST)
    broker = call.cluster.coordinators.find(kind, requested, call.broker_id, view=view)
    if broker is not None and call.session.listener:
        broker = broker.at(call.session.listener)
    if broker is None:
        return _row_of(key, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return _row_of(key, ErrorCode.NONE, broker=broker)


def _row_of(key: str, code: ErrorCode, text: str = "", *, broker: Broker = _NOWHERE) -> Coordinator:
    return Coordinator(
        key=key,
        node_id=broker.broker_id,
        host=broker.host,
        port=broker.port,
        error_code=code,
        error_message=text,
    )
