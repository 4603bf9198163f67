"""StreamsGroupDescribe (89, KIP-1071): topology, members, tasks and targets of streams groups.

Versions: 1 descriptions of topologies, and the assignor (4.4). Without the feature
``streams.version``, which came with 4.2, or with ``streams`` taken out of
``group.coordinator.rebalance.protocols``, the broker refuses the request for each group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kproto.messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    StreamsGroupDescribeResponse,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from mockbroker.apis.common.group_descriptions import describe_groups
from mockbroker.apis.common.requirements import silent, streams_groups
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.modern.partitions import by_topic
from mockbroker.simulation.groups.streams.streams_group import (
    NO_TASKS,
    StreamsGroup,
    Task,
    TaskOffsets,
    Tasks,
)
from mockbroker.simulation.groups.streams.streams_group import Member as GroupMember
from mockbroker.simulation.groups.streams.task_assignor import ASSIGNOR
from mockbroker.simulation.groups.streams.topology import InternalTopic
from mockbroker.simulation.groups.streams.topology import Subtopology as KnownSubtopology

__all__ = ["streams_group_describe"]

_NO_DESCRIPTION: Final = 1
"""The status of descriptions of topologies, which a plugin of the broker would have to keep."""
_HIDDEN: Final = "The described group uses topics that the client is not authorized to describe."


@register(89, "0-1", requires=silent(streams_groups))
def streams_group_describe(call: Call) -> StreamsGroupDescribeResponse:
    groups = describe_groups(
        call,
        DescribedGroup,
        call.cluster.groups.streams,
        lambda group: _described(call, group),
        _topics_of,
        hidden=_HIDDEN,
    )
    return StreamsGroupDescribeResponse(groups=groups)


def _described(call: Call, group: StreamsGroup) -> DescribedGroup:
    described = _group(group)
    if call.version >= 1:
        described.assignor_name = ASSIGNOR
        if call.body.include_topology_description:
            described.topology_description_status = _NO_DESCRIPTION
    return described


def _group(group: StreamsGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        topology=_topology(group),
        members=[_member(group, each) for each in group.members.values()],
    )


def _topology(group: StreamsGroup) -> Topology | None:
    """The topology with numbers of partitions, once its topics are there; else as it was sent."""
    if group.topology is None:
        return None
    shown: Iterable[KnownSubtopology] = sorted(
        group.topology.subtopologies, key=lambda each: each.subtopology_id
    )
    if group.configured is not None and group.configured.is_ready:
        shown = group.configured.subtopologies or ()
    return Topology(
        epoch=group.topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=sorted(each.source_topics),
                repartition_sink_topics=sorted(each.sinks),
                state_changelog_topics=_topics(each.changelogs),
                repartition_source_topics=_topics(each.repartitions),
            )
            for each in shown
        ],
    )


def _topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[KeyValue(key=name, value=text or "") for name, text in each.configs],
        )
        for each in sorted(topics, key=lambda each: each.name)
    ]


def _member(group: StreamsGroup, member: GroupMember) -> Member:
    endpoint = member.endpoint
    offsets, ends = group.offsets.get(member.member_id, ((), ()))
    return Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[KeyValue(key=key, value=each) for key, each in member.tags],
        task_offsets=_offsets(offsets),
        task_end_offsets=_offsets(ends),
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(group.target.get(member.member_id, NO_TASKS)),
    )


def _offsets(offsets: TaskOffsets) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=name, partition=index, offset=offset)
        for name, index, offset in sorted(offsets)
    ]


def _assignment(tasks: Tasks) -> Assignment:
    def listed(wanted: Iterable[Task]) -> list[TaskIds]:
        return [
            TaskIds(subtopology_id=name, partitions=indexes) for name, indexes in by_topic(wanted)
        ]

    return Assignment(
        active_tasks=listed(tasks.active),
        standby_tasks=listed(tasks.standby),
        warmup_tasks=listed(tasks.warmup),
    )


def _topics_of(group: DescribedGroup) -> Iterable[str]:
    subtopologies = None if group.topology is None else group.topology.subtopologies
    return (
        name
        for each in subtopologies or ()
        for name in (
            *each.source_topics,
            *each.repartition_sink_topics,
            *(topic.name for topic in each.repartition_source_topics),
            *(topic.name for topic in each.state_changelog_topics),
        )
    )
