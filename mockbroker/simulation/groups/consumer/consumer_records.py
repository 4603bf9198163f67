"""The records of consumer groups in ``__consumer_offsets``, as Kafka writes them.

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
from kproto.messages import consumer_group_target_assignment_member_value as stored_target
from kproto.messages.consumer_group_current_member_assignment_value import (
    TopicPartitions as CurrentPartitions,
)
from kproto.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kproto.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kproto.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kproto.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
    TopicMetadata,
)
from kproto.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kproto.messages.consumer_group_regular_expression_value import (
    ConsumerGroupRegularExpressionValue,
)
from mockbroker.simulation.groups.consumer.consumer_group import (
    Assigned,
    ConsumerGroup,
    Member,
    ResolvedRegex,
)
from mockbroker.simulation.groups.modern.group_records import (
    GroupRecords,
    StoredRecord,
    metadata_hash,
)
from mockbroker.simulation.groups.modern.partitions import Assignment, by_topic
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release

__all__ = ["ConsumerRecords"]


class ConsumerRecords(GroupRecords[ConsumerGroup], kind="ConsumerGroup"):
    """The records of one release."""

    target_times = facts.MEMBER_EPOCHS_STORED

    def _use_release(self, release: Release) -> None:
        super()._use_release(release)
        self._has_epochs = release.has(facts.MEMBER_EPOCHS_STORED)
        self._has_hash = release.has(facts.METADATA_HASH_STORED)

    # ---- groups ------------------------------------------------------------------------------

    def _epoch_value(self, group: ConsumerGroup) -> Message:
        return ConsumerGroupMetadataValue(
            epoch=group.epoch, metadata_hash=metadata_hash(group.facts) if self._has_hash else 0
        )

    def topics(self, group: ConsumerGroup) -> list[StoredRecord]:
        if self._has_hash:
            return []
        value = ConsumerGroupPartitionMetadataValue(
            topics=[
                TopicMetadata(topic_id=topic_id, topic_name=name, num_partitions=count)
                for name, topic_id, count, _ in group.facts
            ]
        )
        return [(ConsumerGroupPartitionMetadataKey(group_id=group.group_id), value)]

    def regex(self, group_id: str, regex: str, resolved: ResolvedRegex | None) -> StoredRecord:
        """The topics that a regular expression matched; None deletes it."""
        key = ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex)
        if resolved is None:
            return key, None
        return key, ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.resolved_ms
        )

    def whole(self, group: ConsumerGroup) -> list[StoredRecord]:
        """Everything about a group that was a classic one."""
        group_id, members = group.group_id, group.members.values()
        return [
            *(self.member(group_id, member) for member in members),
            *self.topics(group),
            self.epoch(group),
            *(self.target(group_id, m, group.target.get(m, frozenset())) for m in group.members),
            self.target_epoch(group),
            *(self.current(group_id, member) for member in members),
        ]

    def _group_keys(self, group: ConsumerGroup) -> list[Message]:
        group_id = group.group_id
        return [
            *(self.regex(group_id, regex, None)[0] for regex in group.resolved),
            ConsumerGroupPartitionMetadataKey(group_id=group_id),
            self.epoch_key(group_id=group_id),
        ]

    # ---- members -----------------------------------------------------------------------------

    def _member_value(self, member: Member) -> Message:
        classic = None
        if member.classic is not None:
            classic = ClassicMemberMetadata(
                session_timeout_ms=member.classic.session_timeout_ms,
                supported_protocols=[
                    ClassicProtocol(name=name, metadata=data)
                    for name, data in member.classic.protocols
                ],
            )
        return ConsumerGroupMemberMetadataValue(
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

    def _target_value(self, target: Assignment) -> Message:
        return stored_target.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                stored_target.TopicPartition(topic_id=topic_id, partitions=indexes)
                for topic_id, indexes in by_topic(target)
            ]
        )

    def _current_value(self, member: Member) -> Message:
        return current.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=self._with_epochs(member.assigned),
            partitions_pending_revocation=self._with_epochs(member.revoking),
        )

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
