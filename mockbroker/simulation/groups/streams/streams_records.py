"""What the coordinator of streams groups writes to ``__consumer_offsets``, as Kafka writes it.

::

    17  group: its epoch, a hash of what it knows of its topics, the topology that they suffice for
    19  member: client and process
    20  group: the epoch of the target
    21  member: its target
    22  member: where it is on the way to it
    23  group: its topology
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kproto.messages import streams_group_current_member_assignment_value as current
from kproto.messages import streams_group_target_assignment_member_value as target
from kproto.messages import streams_group_topology_value as stored
from kproto.messages.group_metadata_key import GroupMetadataKey
from kproto.messages.streams_group_current_member_assignment_key import (
    StreamsGroupCurrentMemberAssignmentKey,
)
from kproto.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kproto.messages.streams_group_member_metadata_value import (
    Endpoint,
    KeyValue,
    StreamsGroupMemberMetadataValue,
)
from kproto.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kproto.messages.streams_group_metadata_value import (
    LastAssignmentConfig,
    StreamsGroupMetadataValue,
)
from kproto.messages.streams_group_target_assignment_member_key import (
    StreamsGroupTargetAssignmentMemberKey,
)
from kproto.messages.streams_group_target_assignment_metadata_key import (
    StreamsGroupTargetAssignmentMetadataKey,
)
from kproto.messages.streams_group_target_assignment_metadata_value import (
    StreamsGroupTargetAssignmentMetadataValue,
)
from kproto.messages.streams_group_topology_key import StreamsGroupTopologyKey
from mockbroker.simulation.groups.modern.group_records import StoredRecord, metadata_hash
from mockbroker.simulation.groups.streams.streams_group import Member, StreamsGroup, Task, Tasks
from mockbroker.simulation.groups.streams.topology import InternalTopic, Topology
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release

__all__ = ["StreamsRecords", "by_subtopology"]


def by_subtopology(tasks: Iterable[Task]) -> Iterator[tuple[str, list[int]]]:
    """Yield each subtopology with its partitions, both in ascending order."""
    found: dict[str, list[int]] = {}
    for name, index in sorted(tasks):
        found.setdefault(name, []).append(index)
    yield from found.items()


class StreamsRecords:
    """The records of one release."""

    def __init__(self, release: Release) -> None:
        self._has_times = release.has(facts.STREAMS_TARGET_TIMES_STORED)

    # ---- groups ------------------------------------------------------------------------------

    def epoch(self, group: StreamsGroup) -> StoredRecord:
        """The epoch of a group, with what its target depends on."""
        value = StreamsGroupMetadataValue(
            epoch=group.epoch,
            metadata_hash=metadata_hash(group.facts),
            validated_topology_epoch=group.validated_epoch,
            last_assignment_configs=[
                LastAssignmentConfig(key=name, value=each) for name, each in group.configs
            ],
        )
        return StreamsGroupMetadataKey(group_id=group.group_id), value

    def target_epoch(self, group: StreamsGroup) -> StoredRecord:
        value = StreamsGroupTargetAssignmentMetadataValue(
            assignment_epoch=group.target_epoch,
            assignment_timestamp=group.target_ms if self._has_times else 0,
        )
        return StreamsGroupTargetAssignmentMetadataKey(group_id=group.group_id), value

    def topology(self, group_id: str, topology: Topology) -> StoredRecord:
        value = stored.StreamsGroupTopologyValue(
            epoch=topology.epoch,
            subtopologies=[
                stored.Subtopology(
                    subtopology_id=each.subtopology_id,
                    source_topics=list(each.source_topics),
                    source_topic_regex=list(each.source_regexes),
                    state_changelog_topics=[_topic(topic) for topic in each.changelogs],
                    repartition_sink_topics=list(each.sinks),
                    repartition_source_topics=[_topic(topic) for topic in each.repartitions],
                    copartition_groups=[
                        stored.CopartitionGroup(
                            source_topics=list(one.source_topics),
                            source_topic_regex=list(one.source_regexes),
                            repartition_source_topics=list(one.repartition_topics),
                        )
                        for one in each.copartition_groups
                    ],
                )
                for each in topology.subtopologies
            ],
        )
        return StreamsGroupTopologyKey(group_id=group_id), value

    def deletion(self, group: StreamsGroup) -> list[StoredRecord]:
        """The group is no more."""
        group_id, members = group.group_id, list(group.members)
        return [
            *((_current_key(group_id, each), None) for each in members),
            *((_target_key(group_id, each), None) for each in members),
            (StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
            *((_member_key(group_id, each), None) for each in members),
            (StreamsGroupMetadataKey(group_id=group_id), None),
            (StreamsGroupTopologyKey(group_id=group_id), None),
        ]

    @staticmethod
    def classic_deletion(group_id: str) -> StoredRecord:
        """The classic group of this id is no more."""
        return GroupMetadataKey(group=group_id), None

    # ---- members -----------------------------------------------------------------------------

    def member(self, group_id: str, member: Member) -> StoredRecord:
        endpoint = member.endpoint
        value = StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=(
                None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1])
            ),
            client_tags=[KeyValue(key=key, value=each) for key, each in member.tags],
        )
        return _member_key(group_id, member.member_id), value

    def target(self, group_id: str, member_id: str, tasks: Tasks) -> StoredRecord:
        def listed(wanted: Iterable[Task]) -> list[target.TaskIds]:
            return [
                target.TaskIds(subtopology_id=name, partitions=indexes)
                for name, indexes in by_subtopology(wanted)
            ]

        value = target.StreamsGroupTargetAssignmentMemberValue(
            active_tasks=listed(tasks.active),
            standby_tasks=listed(tasks.standby),
            warmup_tasks=listed(tasks.warmup),
        )
        return _target_key(group_id, member_id), value

    def current(self, group_id: str, member: Member) -> StoredRecord:
        value = current.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            active_tasks=_listed(member.assigned.active, member.epochs),
            standby_tasks=_listed(member.assigned.standby),
            warmup_tasks=_listed(member.assigned.warmup),
            active_tasks_pending_revocation=_listed(member.revoking.active, member.epochs),
            standby_tasks_pending_revocation=_listed(member.revoking.standby),
            warmup_tasks_pending_revocation=_listed(member.revoking.warmup),
        )
        return _current_key(group_id, member.member_id), value

    def member_deletion(self, group_id: str, member_id: str) -> list[StoredRecord]:
        return [
            (_current_key(group_id, member_id), None),
            (_target_key(group_id, member_id), None),
            (_member_key(group_id, member_id), None),
        ]


def _listed(
    tasks: Iterable[Task], epochs: Mapping[Task, int] | None = None
) -> list[current.TaskIds]:
    return [
        current.TaskIds(
            subtopology_id=name,
            partitions=indexes,
            assignment_epochs=[] if epochs is None else [epochs[name, each] for each in indexes],
        )
        for name, indexes in by_subtopology(tasks)
    ]


def _topic(topic: InternalTopic) -> stored.TopicInfo:
    return stored.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            stored.TopicConfig(key=name, value=each or "") for name, each in topic.configs
        ],
    )


def _member_key(group_id: str, member_id: str) -> StreamsGroupMemberMetadataKey:
    return StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)


def _target_key(group_id: str, member_id: str) -> StreamsGroupTargetAssignmentMemberKey:
    return StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)


def _current_key(group_id: str, member_id: str) -> StreamsGroupCurrentMemberAssignmentKey:
    return StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
