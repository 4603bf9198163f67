"""DescribeCluster (60): brokers and controller, without topics.

Versions: 1 endpoint type (KIP-919): clients ask a broker for brokers (1) or a controller for
controllers (2); 2 fenced brokers on request. Flexible from 0.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from kproto.messages.describe_cluster_request import DescribeClusterRequest
from kproto.messages.describe_cluster_response import DescribeClusterBroker, DescribeClusterResponse
from mockbroker.apis.common.authorized_operations import cluster_operations
from mockbroker.apis.registry import Call, register

__all__ = ["describe_cluster"]

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_NAMES: Final = {_BROKERS: "BROKER", _CONTROLLERS: "CONTROLLER"}


@register(60, "0-2", cacheable=True)
def describe_cluster(call: Call) -> DescribeClusterResponse:
    request: DescribeClusterRequest = call.body
    own_type = _BROKERS if call.session.controller is None else _CONTROLLERS
    if request.endpoint_type != own_type:
        return _wrong_endpoint(call.version, request.endpoint_type, own_type)
    if own_type == _CONTROLLERS:
        return _controllers(call)
    view = call.cluster.controller.metadata_view(call.broker_id)
    fenced_too = call.version >= 2 and request.include_fenced_brokers
    response = DescribeClusterResponse(
        cluster_id=view.cluster_id,
        controller_id=call.named_controller(),
        brokers=[
            DescribeClusterBroker(
                broker_id=b.broker_id, host=b.host, port=b.port, rack=b.rack, is_fenced=not b.live
            )
            for b in call.reached(view.registered_brokers() if fenced_too else view.live_brokers())
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(call)
    return response


def _controllers(call: Call) -> DescribeClusterResponse:
    """Return the controllers that can be reached, and the active one."""
    quorum = call.cluster.quorum
    response = DescribeClusterResponse(
        endpoint_type=_CONTROLLERS,
        cluster_id=call.cluster.state.cluster_id,
        controller_id=quorum.leader_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=host, port=port)
            for node_id, (_, host, port) in sorted(quorum.endpoints.items())
        ],
    )
    if call.body.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(call)
    return response


def _wrong_endpoint(version: int, endpoint_type: int, own_type: int) -> DescribeClusterResponse:
    """Return the error of an endpoint type other than the listener's."""
    if endpoint_type in _NAMES:
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        text = (
            f"The request was sent to an endpoint of type {_NAMES[own_type]}, "
            f"but we wanted an endpoint of type {_NAMES[endpoint_type]}"
        )
    else:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        text = f"Unsupported endpoint type {endpoint_type}"
    return DescribeClusterResponse(
        error_code=ErrorCode.INVALID_REQUEST if version == 0 else code, error_message=text
    )
