"""DescribeShareGroupOffsets (90, KIP-932): where share groups are in their partitions.

Version 1 has the lag (KIP-1226). Start offsets are -1 for partitions without a share state, and
until the first fetch of a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kproto.error_codes import ErrorCode, message
from kproto.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kproto.messages.describe_share_group_offsets_response import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.apis.common.requirements import share_groups, silent
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition, by_topic
from mockbroker.simulation.groups.share.share_partition import UNINITIALIZED
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["describe_share_group_offsets"]


@register(90, "0-1", requires=silent(share_groups))
def describe_share_group_offsets(call: Call) -> DescribeShareGroupOffsetsResponse:
    body: DescribeShareGroupOffsetsRequest = call.body
    return DescribeShareGroupOffsetsResponse(groups=[_group(call, each) for each in body.groups])


def _group(
    call: Call, requested: DescribeShareGroupOffsetsRequestGroup
) -> DescribeShareGroupOffsetsResponseGroup:
    group_id = requested.group_id
    answer = DescribeShareGroupOffsetsResponseGroup(group_id=group_id)
    if not call.authorizes(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        answer.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    elif requested.topics is None:
        error = coordinator_error(call, group_id)
        if error:
            answer.error_code, answer.error_message = error, message(error)
        else:
            answer.topics = _all_topics(call, group_id)
    else:
        wanted = [(each.topic_name, each.partitions) for each in requested.topics]
        allowed = authorized_names(call, (name for name, _ in wanted), AclOperation.DESCRIBE)
        readable = [each for each in wanted if each[0] in allowed]
        if not all(_may_be_read(call, group_id, *each) for each in readable):
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            answer.error_code, answer.error_message = code, message(code)
            return answer
        answer.topics = [
            _topic(call, group_id, name, indexes)
            for name, indexes in _without_repetitions(call, readable)
        ] + [_unauthorized(name, indexes) for name, indexes in wanted if name not in allowed]
    return answer


def _without_repetitions(
    call: Call, wanted: Sequence[tuple[str, Sequence[int]]]
) -> list[tuple[str, Sequence[int]]]:
    """All that is asked of a topic that exists, once."""
    found: list[tuple[str, Sequence[int]]] = [each for each in wanted if not _exists(call, each[0])]
    known: dict[str, dict[int, None]] = {}
    for name, indexes in wanted:
        if _exists(call, name):
            known.setdefault(name, {}).update(dict.fromkeys(indexes))
    return [(name, list(indexes)) for name, indexes in known.items()] + found


def _exists(call: Call, name: str) -> bool:
    return call.cluster.groups.share.topics.id_of(name) is not None


def _may_be_read(call: Call, group_id: str, name: str, indexes: Sequence[int]) -> bool:
    """Kafka's share coordinator reads nothing without a group id, without partitions of any row, or
    with a negative one."""
    return not _exists(call, name) or (bool(group_id) and min(indexes, default=-1) >= 0)


def _all_topics(call: Call, group_id: str) -> list[DescribeShareGroupOffsetsResponseTopic]:
    group = call.cluster.groups.share.group(group_id)
    found = []
    for topic_id, indexes in by_topic(() if group is None else group.initialized):
        name = call.cluster.groups.share.topics.name_of(topic_id)
        if name is not None and authorized_names(call, [name], AclOperation.DESCRIBE):
            found.append(_topic(call, group_id, name, indexes))
    return found


def _topic(
    call: Call, group_id: str, name: str, indexes: Iterable[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    answer = DescribeShareGroupOffsetsResponseTopic(topic_name=name)
    topic_id = call.cluster.groups.share.topics.id_of(name)
    if topic_id is not None:
        answer.topic_id = topic_id
    answer.partitions = [
        DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=-1)
        if topic_id is None
        else _partition(call, group_id, name, (topic_id, index))
        for index in indexes
    ]
    return answer


def _partition(
    call: Call, group_id: str, name: str, key: TopicIdPartition
) -> DescribeShareGroupOffsetsResponsePartition:
    share = call.cluster.share_fetches.partition(group_id, key)
    row = DescribeShareGroupOffsetsResponsePartition(partition_index=key[1], start_offset=-1)
    if share is None:
        return row
    row.start_offset, row.leader_epoch = share.stored_start, share.leader_epoch
    if share.stored_start != UNINITIALIZED and call.version >= 1:
        end = call.cluster.share_fetches.end_offset((name, key[1]))
        row.lag = end - share.stored_start - share.stored_complete
    return row


def _unauthorized(name: str, indexes: Iterable[int]) -> DescribeShareGroupOffsetsResponseTopic:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, start_offset=-1, error_code=code, error_message=message(code)
            )
            for index in indexes
        ],
    )
