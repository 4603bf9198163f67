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
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_partition import StateBatch
from mockbroker.simulation.groups.share.share_states import ShareStateError, WrittenState

__all__ = ["write_share_group_state"]


@register(85, "0-1")
def write_share_group_state(call: Call) -> WriteShareGroupStateResponse:
    body: WriteShareGroupStateRequest = call.body

    def row(topic_id: uuid.UUID, asked: PartitionData) -> PartitionResult:
        batches = [
            StateBatch(
                each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
            )
            for each in asked.state_batches
        ]
        error = call.cluster.share_states.write(
            body.group_id,
            topic_id,
            asked.partition,
            asked.leader_epoch,
            asked.state_epoch,
            WrittenState(asked.start_offset, asked.delivery_complete_count, batches),
        )
        if error is not None:
            return _failed(asked.partition, error)
        return PartitionResult(partition=asked.partition)

    return WriteShareGroupStateResponse(
        results=state_results(call, "write share group state", row, _failed, _result)
    )


def _failed(index: int, error: ShareStateError) -> PartitionResult:
    return PartitionResult(partition=index, error_code=error.code, error_message=error.text)


def _result(topic_id: uuid.UUID, rows: list[PartitionResult]) -> WriteStateResult:
    return WriteStateResult(topic_id=topic_id, partitions=rows)
