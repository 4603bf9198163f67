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
from mockbroker.apis.common.share_state_answers import state_results
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_states import ShareStateError

__all__ = ["delete_share_group_state"]


@register(86, "0")
def delete_share_group_state(call: Call) -> DeleteShareGroupStateResponse:
    body: DeleteShareGroupStateRequest = call.body

    def row(topic_id: uuid.UUID, asked: PartitionData) -> PartitionResult:
        error = call.cluster.share_states.delete(body.group_id, topic_id, asked.partition)
        if error is not None:
            return _failed(asked.partition, error)
        return PartitionResult(partition=asked.partition)

    return DeleteShareGroupStateResponse(
        results=state_results(call, "delete share group state", row, _failed, _result)
    )


def _failed(index: int, error: ShareStateError) -> PartitionResult:
    return PartitionResult(partition=index, error_code=error.code, error_message=error.text)


def _result(topic_id: uuid.UUID, rows: list[PartitionResult]) -> DeleteStateResult:
    return DeleteStateResult(topic_id=topic_id, partitions=rows)
