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
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_states import ShareStateError

__all__ = ["initialize_share_group_state"]


@register(83, "0")
def initialize_share_group_state(call: Call) -> InitializeShareGroupStateResponse:
    body: InitializeShareGroupStateRequest = call.body

    def row(topic_id: uuid.UUID, asked: PartitionData) -> PartitionResult:
        error = call.cluster.share_states.initialize(
            body.group_id, topic_id, asked.partition, asked.state_epoch, asked.start_offset
        )
        if error is not None:
            return _failed(asked.partition, error)
        return PartitionResult(partition=asked.partition)

    return InitializeShareGroupStateResponse(
        results=state_results(call, "initialize share group state", row, _failed, _result)
    )


def _failed(index: int, error: ShareStateError) -> PartitionResult:
    return PartitionResult(partition=index, error_code=error.code, error_message=error.text)


def _result(topic_id: uuid.UUID, rows: list[PartitionResult]) -> InitializeStateResult:
    return InitializeStateResult(topic_id=topic_id, partitions=rows)
