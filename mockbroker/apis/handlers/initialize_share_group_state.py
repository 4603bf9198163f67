"""InitializeShareGroupState (83, KIP-932): share partitions get a state."""

from __future__ import annotations

import uuid

from kproto.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    PartitionData,
)
from kproto.messages.initialize_share_group_state_response import (
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    PartitionResult,
)
from mockbroker.apis.common.requirements import cluster_access
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_states import ShareStateError
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["initialize_share_group_state"]


@register(83, "0", requires=(cluster_access(AclOperation.CLUSTER_ACTION),))
def initialize_share_group_state(call: Call) -> InitializeShareGroupStateResponse:
    body: InitializeShareGroupStateRequest = call.body

    def carry_out(
        topic_id: uuid.UUID, requested: PartitionData
    ) -> PartitionResult | ShareStateError:
        error = call.cluster.share_states.initialize(
            body.group_id,
            topic_id,
            requested.partition,
            requested.state_epoch,
            requested.start_offset,
        )
        return error or PartitionResult(partition=requested.partition)

    return InitializeShareGroupStateResponse(
        results=state_results(
            call,
            "initialize share group state",
            carry_out,
            PartitionResult,
            InitializeStateResult,
            leaves_topics_out=True,
        )
    )
