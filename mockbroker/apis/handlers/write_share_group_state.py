"""WriteShareGroupState (85, KIP-932): a leader stores the state of share partitions.

Versions: 1 delivery complete count (KIP-1226).
"""

from __future__ import annotations

import uuid

from kproto.messages.write_share_group_state_request import (
    PartitionData,
    WriteShareGroupStateRequest,
)
from kproto.messages.write_share_group_state_response import (
    PartitionResult,
    WriteShareGroupStateResponse,
    WriteStateResult,
)
from mockbroker.apis.common.requirements import cluster_access
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_states import ShareStateError
from mockbroker.simulation.groups.share.stored_batches import StateBatch, WrittenState
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["write_share_group_state"]


@register(85, "0-1", requires=(cluster_access(AclOperation.CLUSTER_ACTION),))
def write_share_group_state(call: Call) -> WriteShareGroupStateResponse:
    body: WriteShareGroupStateRequest = call.body

    def carry_out(
        topic_id: uuid.UUID, requested: PartitionData
    ) -> PartitionResult | ShareStateError:
        batches = [
            StateBatch(
                each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
            )
            for each in requested.state_batches
        ]
        error = call.cluster.share_states.write(
            body.group_id,
            topic_id,
            requested.partition,
            requested.leader_epoch,
            requested.state_epoch,
            WrittenState(requested.start_offset, requested.delivery_complete_count, batches),
        )
        return error or PartitionResult(partition=requested.partition)

    return WriteShareGroupStateResponse(
        results=state_results(
            call, "write share group state", carry_out, PartitionResult, WriteStateResult
        )
    )
