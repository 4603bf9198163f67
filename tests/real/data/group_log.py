"""What coordinators wrote about a session's group to ``__consumer_offsets`` and
``__share_group_state``, record by record."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from kproto.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kproto.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kproto.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kproto.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kproto.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kproto.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kproto.messages.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey,
)
from kproto.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
)
from kproto.messages.consumer_group_regular_expression_key import (
    ConsumerGroupRegularExpressionKey,
)
from kproto.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from kproto.messages.consumer_group_target_assignment_member_key import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from kproto.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
)
from kproto.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kproto.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.group_metadata_key import GroupMetadataKey
from kproto.messages.group_metadata_value import GroupMetadataValue
from kproto.messages.offset_commit_key import OffsetCommitKey
from kproto.messages.offset_commit_value import OffsetCommitValue
from kproto.messages.share_snapshot_key import ShareSnapshotKey
from kproto.messages.share_snapshot_value import ShareSnapshotValue
from kproto.messages.share_update_key import ShareUpdateKey
from kproto.messages.share_update_value import ShareUpdateValue
from kproto.messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kproto.messages.streams_group_current_member_assignment_value import (
    StreamsGroupCurrentMemberAssignmentValue,
)
from kproto.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kproto.messages.streams_group_member_metadata_value import StreamsGroupMemberMetadataValue
from kproto.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kproto.messages.streams_group_metadata_value import StreamsGroupMetadataValue
from kproto.messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from kproto.messages.streams_group_target_assignment_member_value import (
    StreamsGroupTargetAssignmentMemberValue,
)
from kproto.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kproto.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kproto.messages.streams_group_topology_key import StreamsGroupTopologyKey
from kproto.messages.streams_group_topology_value import StreamsGroupTopologyValue
from kproto.records import RecordBatches
from tests.real.data.side import Side

__all__ = ["note_group_records", "note_share_records"]

_GROUPS: Final[dict[int, Any]] = {
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
"""The classes of key and value by the type that a key begins with."""
_SHARES: Final[dict[int, Any]] = {
    0: (ShareSnapshotKey, ShareSnapshotValue),
    1: (ShareUpdateKey, ShareUpdateValue),
}
_TYPE: Final = struct.Struct(">h")
_VERSION: Final = 12
"""Of Fetch: the last that names topics."""
_CLOCKS: Final = frozenset(
    {
        "assignmentTimestamp",
        "commitTimestamp",
        "createTimestamp",
        "currentStateTimestamp",
        "timestamp",
        "writeTimestamp",
    }
)
_DRAWN: Final = frozenset({"metadataHash", "topicId"})
"""Ids of topics are drawn at random, and the hash depends on them."""


async def note_group_records(k: Side) -> None:
    """Note each record of the session's group. Values that every run draws anew are hidden."""
    await _note_records(k, "__consumer_offsets", k.coordinator, _GROUPS)


async def note_share_records(k: Side, coordinator: int) -> None:
    """As ``note_group_records``, of the group's share partitions."""
    await _note_records(k, "__share_group_state", coordinator, _SHARES)


async def _note_records(k: Side, name: str, broker: int, classes: dict[int, Any]) -> None:
    offset = 0
    while True:
        part = FetchPartition(
            partition=0, fetch_offset=offset, partition_max_bytes=1 << 24, current_leader_epoch=-1
        )
        body = FetchRequest(
            max_wait_ms=0, max_bytes=1 << 24, topics=[FetchTopic(topic=name, partitions=[part])]
        )
        answer = await k.ask(body, version=_VERSION, broker=broker, quiet=True)
        found = answer.responses[0].partitions[0]
        batches = list(RecordBatches(found.records or b""))
        if not batches:
            return
        for batch in batches:
            for record in batch if not batch.is_control else ():
                if record.offset >= offset:
                    _note(k, classes, record.key, record.value)
        offset = batches[-1].last_offset + 1


def _note(k: Side, classes: dict[int, Any], key: bytes | None, value: bytes | None) -> None:
    (kind,) = _TYPE.unpack_from(key or b"\xff\xff")
    if key is None or kind not in classes:
        return
    key_class, value_class = classes[kind]
    named = _hidden(json.loads(key_class.decode(key[2:], 0).to_json(0)))
    if k.group not in (named.get("groupId"), named.get("group")):
        return
    shown: Any = None
    if value is not None:
        (version,) = _TYPE.unpack_from(value)
        read = json.loads(value_class.decode(value[2:], version).to_json(version))
        shown = {"version": version, **_hidden(read)}
    k.remark(f"record of {key_class.__name__.removesuffix('Key')}", json.dumps([named, shown]))


def _hidden(value: Any) -> Any:
    if isinstance(value, list):
        return [_hidden(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _shown(name, each) for name, each in value.items()}


def _shown(name: str, value: Any) -> Any:
    if name in _CLOCKS and value > 0:
        return "<now>"
    return f"<{name}>" if name in _DRAWN and value else _hidden(value)
