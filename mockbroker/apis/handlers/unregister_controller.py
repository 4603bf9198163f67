"""UnregisterController (94): the active controller forgets another controller, since Kafka 4.4."""

from __future__ import annotations

from kproto.messages.unregister_controller_response import UnregisterControllerResponse
from mockbroker.apis.common.authorization import cluster_refusal
from mockbroker.apis.registry import Call, register

__all__ = ["unregister_controller"]


@register(94, "0")
def unregister_controller(call: Call) -> UnregisterControllerResponse:
    code, text = cluster_refusal(call) or call.cluster.quorum.unregister_controller(
        call.body.controller_id
    )
    return UnregisterControllerResponse(error_code=code, error_message=text or "")
