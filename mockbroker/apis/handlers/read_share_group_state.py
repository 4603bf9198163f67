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
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_states import ShareStateError

__all__ = ["read_share_group_state"]


@register(84, "0")
def read_share_group_state(call: Call) -> ReadShareGroupStateResponse:
    body: ReadShareGroupStateRequest = call.body

    def row(topic_id: uuid.UUID, asked: PartitionData) -> PartitionResult:
        found = call.cluster.share_states.read(
            body.group_id, topic_id, asked.partition, asked.leader_epoch
        )
        if isinstance(found, ShareStateError):
            return _failed(asked.partition, found)
        return PartitionResult(
            partition=asked.partition,
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
        results=state_results(call, "read share group state", row, _failed, _result)
    )


def _failed(index: int, error: ShareStateError) -> PartitionResult:
    return PartitionResult(partition=index, error_code=error.code, error_message=error.text)


def _result(topic_id: uuid.UUID, rows: list[PartitionResult]) -> ReadStateResult:
    return ReadStateResult(topic_id=topic_id, partitions=rows)
