"""StreamsGroupTopologyDescriptionUpdate (93): a member describes its topology to the broker.

Kafka 4.4 hands descriptions to a plugin, and ships none: without one it refuses the request, and
never requests a description in a heartbeat. So does this.
"""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.streams_group_topology_description_update_response import (
    StreamsGroupTopologyDescriptionUpdateResponse,
)
from mockbroker.apis.common.requirements import group_access, streams_groups
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["streams_group_topology_description_update"]


@register(93, "0", requires=(streams_groups, group_access(AclOperation.READ)))
def streams_group_topology_description_update(
    _call: Call,
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    return StreamsGroupTopologyDescriptionUpdateResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        error_message="The broker has no streams group topology description plugin configured.",
    )
