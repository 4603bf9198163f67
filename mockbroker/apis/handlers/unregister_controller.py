"""UnregisterController (94): the active controller forgets another controller, since Kafka 4.4."""

from __future__ import annotations

from kproto.messages.unregister_controller_response import UnregisterControllerResponse
from mockbroker.apis.common.requirements import cluster_operation
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["unregister_controller"]


@register(94, "0", requires=(cluster_operation(AclOperation.ALTER),))
def unregister_controller(call: Call) -> UnregisterControllerResponse:
    code, text = call.cluster.quorum.unregister_controller(call.body.controller_id)
    return UnregisterControllerResponse(error_code=code, error_message=text or "")
