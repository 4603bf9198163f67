"""ReadShareGroupState (84, KIP-932): a leader loads the state of share partitions."""

from __future__ import annotations

import uuid

from kproto.messages.read_share_group_state_request import PartitionData, ReadShareGroupStateRequest
from kproto.messages.read_share_group_state_response import (
    PartitionResult,
    ReadShareGroupStateResponse,
    ReadStateResult,
    StateBatch,
)
from mockbroker.apis.common.requirements import cluster_access
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_states import ShareStateError
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["read_share_group_state"]


@register(84, "0", requires=(cluster_access(AclOperation.CLUSTER_ACTION),))
def read_share_group_state(call: Call) -> ReadShareGroupStateResponse:
    body: ReadShareGroupStateRequest = call.body

    def carry_out(
        topic_id: uuid.UUID, requested: PartitionData
    ) -> PartitionResult | ShareStateError:
        found = call.cluster.share_states.read(
            body.group_id, topic_id, requested.partition, requested.leader_epoch
        )
        if isinstance(found, ShareStateError):
            return found
        return PartitionResult(
            partition=requested.partition,
            state_epoch=found.state_epoch,
            start_offset=found.start_offset,
            state_batches=[
                StateBatch(
                    first_offset=each.first,
                    last_offset=each.last,
                    delivery_state=each.state,
                    delivery_count=each.deliveries,
                )
                for each in found.batches
            ],
        )

    return ReadShareGroupStateResponse(
        results=state_results(
            call, "read share group state", carry_out, PartitionResult, ReadStateResult
        )
    )
