"""AlterShareGroupOffsets (91, KIP-932): an empty share group begins elsewhere in its partitions.

Since 4.2 a group that does not exist begins to, with any topic that there is.
"""

from __future__ import annotations

import uuid

from kproto.codec.message import Message
from kproto.error_codes import ErrorCode, message
from kproto.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
)
from kproto.messages.alter_share_group_offsets_response import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.refusals import refusal
from mockbroker.apis.common.requirements import (
    group_access,
    group_coordinator,
    group_id_given,
    share_groups,
)
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.releases import facts
from mockbroker.simulation.security.authorizer import AclOperation
from mockbroker.simulation.state.cluster_parts import Topic

__all__ = ["alter_share_group_offsets"]


@register(
    91,
    "0",
    requires=(share_groups, group_access(AclOperation.READ), group_id_given, group_coordinator),
)
def alter_share_group_offsets(call: Call) -> Message:
    body: AlterShareGroupOffsetsRequest = call.body
    group_id, groups = body.group_id, call.cluster.groups
    group = groups.share.group(group_id)
    if group is None and groups.group(group_id) is not None:
        text = f"Group {group_id} is not a share group."
        return refusal(call, ErrorCode.GROUP_ID_NOT_FOUND, text)
    if group is None and not call.release.has(facts.SHARE_OFFSETS_MAKE_GROUPS):
        return refusal(call, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if group is not None and group.members:
        return refusal(call, ErrorCode.NON_EMPTY_GROUP, message(ErrorCode.NON_EMPTY_GROUP))
    answer = _Answer(call)
    failure = groups.share.alter_offsets(group_id, answer.offsets)
    if failure is not None:
        return refusal(call, ErrorCode.UNKNOWN_SERVER_ERROR, failure)
    return AlterShareGroupOffsetsResponse(responses=answer.topics)


class _Answer:
    """The rows by topic, those that the broker refuses first, and the offsets of the others."""

    def __init__(self, call: Call) -> None:
        body: AlterShareGroupOffsetsRequest = call.body
        self.offsets: dict[uuid.UUID, dict[int, int]] = {}
        self._rows: dict[str, AlterShareGroupOffsetsResponseTopic] = {}
        self._topics = call.cluster.controller.metadata_view(call.broker_id).topics
        self._negative_fail = call.release.has(facts.NEGATIVE_SHARE_PARTITIONS_FAIL)
        names = (each.topic_name for each in body.topics)
        readable = authorized_names(call, names, AclOperation.READ)
        for each in body.topics:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if each.topic_name in readable:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if each.topic_name not in readable or each.topic_name not in self._topics:
                for partition in each.partitions:
                    self._add(each.topic_name, partition.partition_index, code)
        for each in body.topics:
            if each.topic_name in readable and each.topic_name in self._topics:
                self._alter(each, self._topics[each.topic_name])

    @property
    def topics(self) -> list[AlterShareGroupOffsetsResponseTopic]:
        return list(self._rows.values())

    def _alter(self, requested: AlterShareGroupOffsetsRequestTopic, topic: Topic) -> None:
        self._row(requested.topic_name)
        starts = self.offsets.setdefault(topic.topic_id, {})
        for each in requested.partitions:
            index = each.partition_index
            if topic.partition(index) is not None or (index < 0 and self._negative_fail):
                starts[index] = each.start_offset
                self._add(requested.topic_name, index, ErrorCode.NONE)
            else:
                self._add(requested.topic_name, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _add(self, name: str, index: int, code: ErrorCode) -> None:
        row = AlterShareGroupOffsetsResponsePartition(partition_index=index, error_code=code)
        row.error_message = message(code) if code else None
        self._row(name).partitions.append(row)

    def _row(self, name: str) -> AlterShareGroupOffsetsResponseTopic:
        row = self._rows.setdefault(name, AlterShareGroupOffsetsResponseTopic(topic_name=name))
        topic = self._topics.get(name)
        if topic is not None:
            row.topic_id = topic.topic_id
        return row
