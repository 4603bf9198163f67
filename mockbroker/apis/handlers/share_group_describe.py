"""ShareGroupDescribe (77, KIP-932): members and assignments of share groups.

Version 1 is the first one that releases have. Without the feature ``share.version`` the broker
refuses the request for each group.
"""

from __future__ import annotations

from collections.abc import Iterable

from kproto.messages.share_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from mockbroker.apis.common.group_descriptions import describe_groups
from mockbroker.apis.common.requirements import share_groups, silent
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareMember

__all__ = ["share_group_describe"]


@register(77, "1", requires=silent(share_groups))
def share_group_describe(call: Call) -> ShareGroupDescribeResponse:
    groups = describe_groups(
        call,
        DescribedGroup,
        call.cluster.groups.share,
        lambda group: _group(call, group),
        _topics_of,
        explains=True,
    )
    return ShareGroupDescribeResponse(groups=groups)


def _group(call: Call, group: ShareGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name="simple",
        members=[
            Member(
                member_id=each.member_id,
                rack_id=each.rack_id,
                member_epoch=each.epoch,
                client_id=each.client_id,
                client_host=each.client_host,
                subscribed_topic_names=sorted(each.topic_names),
                assignment=_assignment(call, each),
            )
            for each in group.members.values()
        ],
    )


def _assignment(call: Call, member: ShareMember) -> Assignment:
    topics = call.cluster.groups.share.topics
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for name, indexes in topics.by_name(member.assigned)
            if (topic_id := topics.id_of(name)) is not None
        ]
    )


def _topics_of(group: DescribedGroup) -> Iterable[str]:
    return (
        topic.topic_name for each in group.members for topic in each.assignment.topic_partitions
    )
