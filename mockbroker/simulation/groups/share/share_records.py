"""The records of share groups in ``__consumer_offsets``, as Kafka writes them.

::

    10  member: subscription and client
    11  group: its epoch, and a hash of what it knows of its topics
    12  group: the epoch of the target
    13  member: its target
    14  member: its assignment
    15  group: the partitions that have a share state
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from kproto.codec.message import Message
from kproto.messages import share_group_current_member_assignment_value as current
from kproto.messages import share_group_state_partition_metadata_value as states
from kproto.messages import share_group_target_assignment_member_value as stored_target
from kproto.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kproto.messages.share_group_metadata_value import ShareGroupMetadataValue
from kproto.messages.share_group_state_partition_metadata_key import (
    ShareGroupStatePartitionMetadataKey,
)
from mockbroker.simulation.groups.modern.group_records import (
    GroupRecords,
    StoredRecord,
    metadata_hash,
)
from mockbroker.simulation.groups.modern.partitions import Assignment, by_topic
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareMember
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release

__all__ = ["ShareRecords"]


class ShareRecords(GroupRecords[ShareGroup], kind="ShareGroup"):
    """The records of one release. ``name_of`` returns the name of a topic id."""

    target_times = facts.SHARE_TARGET_TIMES_STORED

    def __init__(self, release: Release, name_of: Callable[[uuid.UUID], str | None]) -> None:
        super().__init__(release)
        self._name_of = name_of

    def _epoch_value(self, group: ShareGroup) -> Message:
        return ShareGroupMetadataValue(epoch=group.epoch, metadata_hash=metadata_hash(group.facts))

    def share_states(self, group: ShareGroup) -> StoredRecord:
        """The partitions that have a share state, and those that are getting one."""
        getting = (
            (topic, sorted(indexes)) for topic, indexes in sorted(group.initializing.items())
        )
        value = states.ShareGroupStatePartitionMetadataValue(
            initializing_topics=self._infos(getting),
            initialized_topics=self._infos(by_topic(group.initialized)),
        )
        return ShareGroupStatePartitionMetadataKey(group_id=group.group_id), value

    def _infos(
        self, topics: Iterable[tuple[uuid.UUID, list[int]]]
    ) -> list[states.TopicPartitionsInfo]:
        return [
            states.TopicPartitionsInfo(
                topic_id=topic_id,
                topic_name=self._name_of(topic_id) or "<UNKNOWN>",
                partitions=indexes,
            )
            for topic_id, indexes in topics
        ]

    def _group_keys(self, group: ShareGroup) -> list[Message]:
        return [
            ShareGroupStatePartitionMetadataKey(group_id=group.group_id),
            self.epoch_key(group_id=group.group_id),
        ]

    def _member_value(self, member: ShareMember) -> Message:
        return ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
        )

    def _target_value(self, target: Assignment) -> Message:
        return stored_target.ShareGroupTargetAssignmentMemberValue(
            topic_partitions=[
                stored_target.TopicPartition(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(target)
            ]
        )

    def _current_value(self, member: ShareMember) -> Message:
        return current.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=0,
            assigned_partitions=[
                current.TopicPartitions(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(member.assigned)
            ],
        )
