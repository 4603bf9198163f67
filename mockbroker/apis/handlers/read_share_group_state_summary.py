"""ReadShareGroupStateSummary (87, KIP-932): where share partitions begin.

Versions: 1 delivery complete count (KIP-1226).
"""

from __future__ import annotations

import uuid

from kproto.messages.read_share_group_state_summary_request import (
    PartitionData,
    ReadShareGroupStateSummaryRequest,
)
from kproto.messages.read_share_group_state_summary_response import (
    PartitionResult,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)
from mockbroker.apis.common.requirements import cluster_access
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_partition import UNINITIALIZED
from mockbroker.simulation.groups.share.share_states import ShareStateError
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["read_share_group_state_summary"]


@register(87, "0-1", requires=(cluster_access(AclOperation.CLUSTER_ACTION),))
def read_share_group_state_summary(call: Call) -> ReadShareGroupStateSummaryResponse:
    body: ReadShareGroupStateSummaryRequest = call.body

    def carry_out(
        topic_id: uuid.UUID, requested: PartitionData
    ) -> PartitionResult | ShareStateError:
        found = call.cluster.share_states.summary(body.group_id, topic_id, requested.partition)
        if isinstance(found, ShareStateError):
            return found
        if found is None:
            return PartitionResult(partition=requested.partition, start_offset=UNINITIALIZED)
        return PartitionResult(
            partition=requested.partition,
            state_epoch=found.state_epoch,
            leader_epoch=found.leader_epoch,
            start_offset=found.start_offset,
            delivery_complete_count=found.complete,
        )

    return ReadShareGroupStateSummaryResponse(
        results=state_results(
            call,
            "read share group state summary",
            carry_out,
            PartitionResult,
            ReadStateSummaryResult,
        )
    )
