"""DeleteShareGroupState (86, KIP-932): share partitions lose their state."""

from __future__ import annotations

import uuid

from kproto.messages.delete_share_group_state_request import (
    DeleteShareGroupStateRequest,
    PartitionData,
)
from kproto.messages.delete_share_group_state_response import (
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    PartitionResult,
)
from mockbroker.apis.common.requirements import cluster_access
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_states import ShareStateError
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["delete_share_group_state"]


@register(86, "0", requires=(cluster_access(AclOperation.CLUSTER_ACTION),))
def delete_share_group_state(call: Call) -> DeleteShareGroupStateResponse:
    body: DeleteShareGroupStateRequest = call.body

    def carry_out(
        topic_id: uuid.UUID, requested: PartitionData
    ) -> PartitionResult | ShareStateError:
        error = call.cluster.share_states.delete(body.group_id, topic_id, requested.partition)
        return error or PartitionResult(partition=requested.partition)

    return DeleteShareGroupStateResponse(
        results=state_results(
            call, "delete share group state", carry_out, PartitionResult, DeleteStateResult
        )
    )
