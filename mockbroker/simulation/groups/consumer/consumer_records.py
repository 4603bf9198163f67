"""What the coordinator of consumer groups writes to ``__consumer_offsets``, as Kafka writes it.

::

    3   group: its epoch, and a hash of what it knows of its topics
    4   group: its topics with their partitions, before 4.1
    5   member: subscription and client
    6   group: the epoch of the target
    7   member: its target
    8   member: where it is on the way to it
    16  group and regular expression: the topics it matched
"""

from __future__ import annotations

from kproto.codec.message import Message
from kproto.messages import consumer_group_current_member_assignment_value as current
from kproto.messages import consumer_group_target_assignment_member_value as target
from kproto.messages.consumer_group_current_member_assignment_key import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from kproto.messages.consumer_group_current_member_assignment_value import (
    TopicPartitions as CurrentPartitions,
)
from kproto.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kproto.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kproto.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kproto.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kproto.messages.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey,
)
from kproto.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
    TopicMetadata,
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
from kproto.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kproto.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kproto.messages.group_metadata_key import GroupMetadataKey
from mockbroker.simulation.groups.consumer.consumer_group import (
    Assigned,
    ConsumerGroup,
    Member,
    ResolvedRegex,
)
from mockbroker.simulation.groups.modern.group_records import StoredRecord, metadata_hash
from mockbroker.simulation.groups.modern.partitions import Assignment, by_topic
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release

__all__ = ["GroupRecords"]


class GroupRecords:
    """The records of one release."""

    def __init__(self, release: Release) -> None:
        self._has_epochs = release.has(facts.MEMBER_EPOCHS_STORED)
        self._has_hash = release.has(facts.METADATA_HASH_STORED)

    # ---- groups ------------------------------------------------------------------------------

    def epoch(self, group: ConsumerGroup) -> StoredRecord:
        """The epoch of a group, with what it knows of its topics."""
        value = ConsumerGroupMetadataValue(
            epoch=group.epoch, metadata_hash=metadata_hash(group.facts) if self._has_hash else 0
        )
        return ConsumerGroupMetadataKey(group_id=group.group_id), value

    def topics(self, group: ConsumerGroup) -> list[StoredRecord]:
        """What a group knows of its topics, where that has a record of its own."""
        if self._has_hash:
            return []
        value = ConsumerGroupPartitionMetadataValue(
            topics=[
                TopicMetadata(topic_id=topic_id, topic_name=name, num_partitions=count)
                for name, topic_id, count, _ in group.facts
            ]
        )
        return [(ConsumerGroupPartitionMetadataKey(group_id=group.group_id), value)]

    def target_epoch(self, group: ConsumerGroup) -> StoredRecord:
        value = ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=group.target_epoch,
            assignment_timestamp=group.target_ms if self._has_epochs else 0,
        )
        return ConsumerGroupTargetAssignmentMetadataKey(group_id=group.group_id), value

    def regex(self, group_id: str, regex: str, resolved: ResolvedRegex | None) -> StoredRecord:
        key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
        if resolved is None:
            return key, None
        return key, ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics),
            version=resolved.version,
            timestamp=resolved.resolved_ms,
        )

    def whole(self, group: ConsumerGroup) -> list[StoredRecord]:
        """Everything about a group that was a classic one."""
        group_id, members = group.group_id, group.members.values()
        return [
            *(self.member(group_id, each) for each in members),
            *self.topics(group),
            self.epoch(group),
            *(self.target(group_id, m, group.target.get(m, frozenset())) for m in group.members),
            self.target_epoch(group),
            *(self.current(group_id, each) for each in members),
        ]

    def deletion(self, group: ConsumerGroup) -> list[StoredRecord]:
        """The group is no more."""
        group_id = group.group_id
        return [
            *((_current_key(group_id, each), None) for each in group.members),
            *((_target_key(group_id, each), None) for each in group.members),
            (ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
            *((_member_key(group_id, each), None) for each in group.members),
            *(self.regex(group_id, each, None) for each in group.resolved),
            (ConsumerGroupPartitionMetadataKey(group_id=group_id), None),
            (ConsumerGroupMetadataKey(group_id=group_id), None),
        ]

    @staticmethod
    def classic_deletion(group_id: str) -> StoredRecord:
        """The classic group of this id is no more."""
        return GroupMetadataKey(group=group_id), None

    # ---- members -----------------------------------------------------------------------------

    def member(self, group_id: str, member: Member) -> StoredRecord:
        classic = None
        if member.classic is not None:
            classic = ClassicMemberMetadata(
                session_timeout_ms=member.classic.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=data)
                    for name, data in member.classic.protocols
                ],
            )
        value = ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topic_names),
            subscribed_topic_regex=member.topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=classic,
        )
        return _member_key(group_id, member.member_id), value

    def target(self, group_id: str, member_id: str, partitions: Assignment) -> StoredRecord:
        value = target.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                target.TopicPartition(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(partitions)
            ]
        )
        return _target_key(group_id, member_id), value

    def current(self, group_id: str, member: Member) -> StoredRecord:
        value = current.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=self._with_epochs(member.assigned),
            partitions_pending_revocation=self._with_epochs(member.revoking),
        )
        return _current_key(group_id, member.member_id), value

    def member_deletion(self, group_id: str, member_id: str) -> list[StoredRecord]:
        return [
            (_current_key(group_id, member_id), None),
            (_target_key(group_id, member_id), None),
            (_member_key(group_id, member_id), None),
        ]

    def _with_epochs(self, assigned: Assigned) -> list[CurrentPartitions]:
        return [
            CurrentPartitions(
                topic_id=topic_id,
                partitions=indexes,
                assignment_epochs=(
                    [assigned[topic_id, index] for index in indexes] if self._has_epochs else []
                ),
            )
            for topic_id, indexes in by_topic(assigned)
        ]


def _member_key(group_id: str, member_id: str) -> Message:
    return ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> Message:
    return ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> Message:
    return ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
