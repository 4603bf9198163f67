"""The records of streams groups in ``__consumer_offsets``, as Kafka writes them.

::

    17  group: its epoch, a hash of what it knows of its topics, the topology that they suffice for
    19  member: client and process
    20  group: the epoch of the target
    21  member: its target
    22  member: where it is on the way to it
    23  group: its topology
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kproto.codec.message import Message
from kproto.messages import streams_group_current_member_assignment_value as current
from kproto.messages import streams_group_target_assignment_member_value as stored_target
from kproto.messages import streams_group_topology_value as stored
from kproto.messages.streams_group_member_metadata_value import (
    Endpoint,
    KeyValue,
    StreamsGroupMemberMetadataValue,
)
from kproto.messages.streams_group_metadata_value import (
    LastAssignmentConfig,
    StreamsGroupMetadataValue,
)
from kproto.messages.streams_group_topology_key import StreamsGroupTopologyKey
from mockbroker.simulation.groups.modern.group_records import (
    GroupRecords,
    StoredRecord,
    metadata_hash,
)
from mockbroker.simulation.groups.modern.partitions import by_topic
from mockbroker.simulation.groups.streams.streams_group import Member, StreamsGroup, Task, Tasks
from mockbroker.simulation.groups.streams.topology import InternalTopic, Topology
from mockbroker.simulation.releases import facts

__all__ = ["StreamsRecords"]


class StreamsRecords(GroupRecords[StreamsGroup], kind="StreamsGroup"):
    """The records of one release."""

    target_times = facts.STREAMS_TARGET_TIMES_STORED

    def _epoch_value(self, group: StreamsGroup) -> Message:
        return StreamsGroupMetadataValue(
            epoch=group.epoch,
            metadata_hash=metadata_hash(group.facts),
            validated_topology_epoch=group.validated_epoch,
            last_assignment_configs=[
                LastAssignmentConfig(key=name, value=value) for name, value in group.configs
            ],
        )

    def topology(self, group_id: str, topology: Topology) -> StoredRecord:
        """The topology of a group."""
        value = stored.StreamsGroupTopologyValue(
            epoch=topology.epoch,
            subtopologies=[
                stored.Subtopology(
                    subtopology_id=subtopology.subtopology_id,
                    source_topics=list(subtopology.source_topics),
                    source_topic_regex=list(subtopology.source_regexes),
                    state_changelog_topics=[_topic(topic) for topic in subtopology.changelogs],
                    repartition_sink_topics=list(subtopology.sinks),
                    repartition_source_topics=[_topic(topic) for topic in subtopology.repartitions],
                    copartition_groups=[
                        stored.CopartitionGroup(
                            source_topics=list(one.source_topics),
                            source_topic_regex=list(one.source_regexes),
                            repartition_source_topics=list(one.repartition_topics),
                        )
                        for one in subtopology.copartition_groups
                    ],
                )
                for subtopology in topology.subtopologies
            ],
        )
        return StreamsGroupTopologyKey(group_id=group_id), value

    def _group_keys(self, group: StreamsGroup) -> list[Message]:
        return [
            self.epoch_key(group_id=group.group_id),
            StreamsGroupTopologyKey(group_id=group.group_id),
        ]

    def _member_value(self, member: Member) -> Message:
        endpoint = member.endpoint
        return StreamsGroupMemberMetadataValue(
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
            client_tags=[KeyValue(key=key, value=value) for key, value in member.tags],
        )

    def _target_value(self, target: Tasks) -> Message:
        def task_ids(tasks: Iterable[Task]) -> list[stored_target.TaskIds]:
            return [
                stored_target.TaskIds(subtopology_id=name, partitions=indexes)
                for name, indexes in by_topic(tasks)
            ]

        return stored_target.StreamsGroupTargetAssignmentMemberValue(
            active_tasks=task_ids(target.active),
            standby_tasks=task_ids(target.standby),
            warmup_tasks=task_ids(target.warmup),
        )

    def _current_value(self, member: Member) -> Message:
        return current.StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state + 1,  # Kafka counts these states from 1.
            active_tasks=_task_ids(member.assigned.active, member.epochs),
            standby_tasks=_task_ids(member.assigned.standby),
            warmup_tasks=_task_ids(member.assigned.warmup),
            active_tasks_pending_revocation=_task_ids(member.revoking.active, member.epochs),
            standby_tasks_pending_revocation=_task_ids(member.revoking.standby),
            warmup_tasks_pending_revocation=_task_ids(member.revoking.warmup),
        )


def _task_ids(
    tasks: Iterable[Task], epochs: Mapping[Task, int] | None = None
) -> list[current.TaskIds]:
    return [
        current.TaskIds(
            subtopology_id=name,
            partitions=indexes,
            assignment_epochs=[] if epochs is None else [epochs[name, index] for index in indexes],
        )
        for name, indexes in by_topic(tasks)
    ]


def _topic(topic: InternalTopic) -> stored.TopicInfo:
    return stored.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[
            stored.TopicConfig(key=name, value=value or "") for name, value in topic.configs
        ],
    )
