"""ConsumerGroupDescribe (69, KIP-848): members, assignments and targets of consumer groups.

Versions: 1 kinds of members (4.0). Clients that get GROUP_ID_NOT_FOUND go on to DescribeGroups.
Without the feature ``group.version``, which came with 4.0, or with ``consumer`` taken out of
``group.coordinator.rebalance.protocols``, the broker refuses the request for each group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kproto.messages.consumer_group_describe_response import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from mockbroker.apis.common.group_descriptions import describe_groups
from mockbroker.apis.common.requirements import consumer_groups, silent
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition

__all__ = ["consumer_group_describe"]

_CLASSIC_MEMBER: Final = 0
_CONSUMER_MEMBER: Final = 1


@register(69, "0-1", requires=silent(consumer_groups))
def consumer_group_describe(call: Call) -> ConsumerGroupDescribeResponse:
    groups = describe_groups(
        call,
        DescribedGroup,
        call.cluster.groups.consumer,
        lambda group: _group(call, group),
        _topics_of,
    )
    return ConsumerGroupDescribeResponse(groups=groups)


def _group(call: Call, group: ConsumerGroup) -> DescribedGroup:
    groups = call.cluster.groups.consumer
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=groups.assignor_name(group),
        members=[
            Member(
                member_id=each.member_id,
                instance_id=each.instance_id,
                rack_id=each.rack_id,
                member_epoch=each.epoch,
                client_id=each.client_id,
                client_host=each.client_host,
                subscribed_topic_names=sorted(each.topic_names),
                subscribed_topic_regex=each.topic_regex,
                assignment=_assignment(call, groups.shown_assignment(each)),
                target_assignment=_assignment(call, group.target.get(each.member_id, frozenset())),
                member_type=_CONSUMER_MEMBER if each.classic is None else _CLASSIC_MEMBER,
            )
            for each in group.members.values()
        ],
    )


def _assignment(call: Call, partitions: Iterable[TopicIdPartition]) -> Assignment:
    topics = call.cluster.groups.consumer.topics
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for name, indexes in topics.by_name(partitions)
            if (topic_id := topics.id_of(name)) is not None
        ]
    )


def _topics_of(group: DescribedGroup) -> Iterable[str]:
    return (
        topic.topic_name
        for member in group.members
        for each in (member.assignment, member.target_assignment)
        for topic in each.topic_partitions
    )
