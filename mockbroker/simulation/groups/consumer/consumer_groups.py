"""The coordinator of consumer groups: runs the rows of ``consumer_rules`` for requests and timers.

One object holds the groups of all brokers; the broker that leads a group's partition of
``__consumer_offsets`` is its coordinator. No sockets and no messages: a heartbeat has its answer at
once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.consumer.consumer_group import (
    ConsumerGroup,
    HeartbeatRequest,
    Member,
)
from mockbroker.simulation.groups.consumer.consumer_heartbeats import ConsumerHeartbeat
from mockbroker.simulation.groups.consumer.consumer_membership import ConsumerMembership
from mockbroker.simulation.groups.consumer.consumer_rules import DescribeEvent
from mockbroker.simulation.groups.consumer.consumer_settings import ConsumerSettings
from mockbroker.simulation.groups.consumer.migration import Migration
from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.modern.heartbeats import LEAVING, HeartbeatResult
from mockbroker.simulation.groups.modern.modern_groups import StaticMemberGroups
from mockbroker.simulation.groups.modern.modern_membership import GroupDependencies
from mockbroker.simulation.groups.modern.partitions import Assignment
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["ConsumerGroups"]


class ConsumerGroups(StaticMemberGroups[ConsumerGroup, HeartbeatResult]):
    """The consumer groups of a cluster.

    ``classic`` has the classic groups. ``settings`` and ``times`` return the configs that groups
    follow.
    """

    kind = "consumer"
    seed = 848
    membership: ConsumerMembership

    def __init__(
        self,
        shared: GroupDependencies,
        classic: ClassicGroups,
        settings: Callable[[], ConsumerSettings],
        times: Callable[[str], GroupTimes],
    ) -> None:
        membership = ConsumerMembership(
            shared,
            settings,
            times,
            lambda: classic.machine.settings.max_size,
            lambda group, gone: self.classic_members.downgrade(group, gone),
        )
        super().__init__(shared, membership)
        self.classic_members = Migration(
            membership, classic, self._groups, shared.release, self.new_member_id
        )
        self._classic = classic
        self._settings = settings

    # ---- facts -------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether the brokers serve consumer groups."""
        return self._settings().enabled

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Return whether members of a group consume a topic."""
        group = self._groups.get(group_id)
        return group is not None and topic in group.subscribed

    # ---- ConsumerGroupHeartbeat --------------------------------------------------------------

    def _event(self, request: HeartbeatRequest, coordinator_error: ErrorCode) -> ConsumerHeartbeat:
        group_id = request.group_id
        group = self._groups.get(group_id)
        return ConsumerHeartbeat(
            request=request,
            coordinator_error=coordinator_error,
            settings=self._settings(),
            member_id=request.member_id,
            group=group,
            is_taken=group is None and self._shared.is_taken(group_id),
            classic=self._classic.group(group_id),
            convert=lambda: self.classic_members.converted(group_id),
            new_member_id=self.new_member_id,
        )

    def _beat(self, event: ConsumerHeartbeat) -> HeartbeatResult:
        request, group, membership = event.request, event.known, self.membership
        if event.converts:
            self.classic_members.take_over(group)
        self._groups[group.group_id] = group
        if event.replaces is not None:
            before = membership.take_place(group, event.replaces, event.member_id)
        else:
            before = event.member
        is_new_instance = request.is_static and event.holder is None
        member, changed = membership.follow_request(group, before, request)
        is_new_instance &= not membership.make_target(group)
        member = membership.reconcile(
            group, member, request.owned, changed=changed, is_new_instance=is_new_instance
        )
        membership.renew(group, member)
        sends = request.joins or request.is_full or before.assigned.keys() != member.assigned.keys()
        result = HeartbeatResult(
            member_id=member.member_id,
            member_epoch=member.epoch,
            interval_ms=membership.times(group.group_id).heartbeat_interval_ms,
            assignment=frozenset(member.assigned) if sends else None,
        )
        membership.flush(group)
        membership.refresh_regexes(group, request.visible)
        membership.flush(group)
        return result

    def _leave(self, event: ConsumerHeartbeat) -> HeartbeatResult:
        group, request = event.known, event.request
        if request.is_static and request.member_epoch != LEAVING:
            self.membership.leave_for_a_while(group, event.member)
        else:
            code = self.membership.gone(group, [event.member])
            if code:
                return HeartbeatResult(error_code=code)
        return HeartbeatResult(member_id=event.member.member_id, member_epoch=request.member_epoch)

    def _held_since(
        self, group: ConsumerGroup, member: Any, partition: TopicPartition
    ) -> int | None:
        topic_id = self.topics.id_of(partition[0])
        if topic_id is None:
            return None
        held: dict[Any, int] = {**member.revoking, **member.assigned}
        return held.get((topic_id, partition[1]))

    # ---- administration ----------------------------------------------------------------------

    def shown_assignment(self, member: Member) -> Assignment:
        """The partitions with which ConsumerGroupDescribe shows a member."""
        event = DescribeEvent(member)
        apply_first(self.membership.rules.describe, event, event)
        return event.shown

    def assignor_name(self, group: ConsumerGroup) -> str:
        """The assignor that the group uses."""
        return self.membership.assignor(group)

    # ---- operations --------------------------------------------------------------------------

    def set_target(self, group_id: str, target: Mapping[str, Sequence[TopicPartition]]) -> None:
        """Give members these targets instead of those of the assignor, until ``release_assignor``.
        Members that are not named get nothing."""
        group = self._existing(group_id)
        self._pin(
            group, {name: frozenset(map(self._partition, each)) for name, each in target.items()}
        )

    def _partition(self, tp: TopicPartition) -> tuple[uuid.UUID, int]:
        topic_id = self.membership.topics.id_of(tp[0])
        if topic_id is None:
            raise ClusterError(f"there is no topic {tp[0]!r}")
        return topic_id, tp[1]

    def _at_epoch(self, member: Member, number: int) -> Member:
        return replace(
            member,
            epoch=number,
            previous_epoch=number,
            assigned=dict.fromkeys(member.assigned, number),
            revoking=dict.fromkeys(member.revoking, number),
        )

    def _make_target(self, group: ConsumerGroup) -> None:
        self.membership.make_target(group)
