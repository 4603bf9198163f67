"""StreamsGroupTopologyDescriptionUpdate (93): a member describes its topology to the broker.

Kafka 4.4 hands descriptions to a plugin, and ships none: without one it refuses the request, and
never requests a description in a heartbeat. So does this.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode, message
from kproto.messages.streams_group_topology_description_update_request import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from kproto.messages.streams_group_topology_description_update_response import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from mockbroker.apis.common.group_answers import may_use_group, streams_groups_served
from mockbroker.apis.registry import Call, register

__all__ = ["streams_group_topology_description_update"]


@register(93, "0")
def streams_group_topology_description_update(
    call: Call,
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    body: StreamsGroupTopologyDescriptionUpdateRequest = call.body
    code, text = (
        ErrorCode.UNSUPPORTED_VERSION,
        "The broker has no streams group topology description plugin configured.",
    )
    if not streams_groups_served(call):
        text = message(code)
    elif not may_use_group(call, body.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        text = message(code)
    return StreamsGroupTopologyDescriptionUpdateResponse(error_code=code, error_message=text)
