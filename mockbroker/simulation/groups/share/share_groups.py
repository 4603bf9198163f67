"""The coordinator of share groups: runs the rows of ``share_rules`` for requests and timers.

One object holds the groups of all brokers; the broker that leads a group's partition of
``__consumer_offsets`` is its coordinator.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.modern.heartbeats import JOINING, HeartbeatResult
from mockbroker.simulation.groups.modern.modern_groups import ModernGroups
from mockbroker.simulation.groups.modern.modern_membership import GroupDependencies
from mockbroker.simulation.groups.modern.partitions import Assignment
from mockbroker.simulation.groups.share.share_assignor import ASSIGNOR
from mockbroker.simulation.groups.share.share_fetches import ShareFetches
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareHeartbeat
from mockbroker.simulation.groups.share.share_membership import ShareMembership
from mockbroker.simulation.groups.share.share_rules import ShareHeartbeatEvent
from mockbroker.simulation.groups.share.share_settings import ShareSettings
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.java_maps import hash_order_of_numbers, hash_order_of_uuids

__all__ = ["ShareGroups"]


class ShareGroups(ModernGroups[ShareGroup, HeartbeatResult]):
    """The share groups of a cluster.

    ``settings`` and ``times`` return the configs that groups follow; ``partitions`` keeps the state
    of share partitions.
    """

    kind = "share"
    membership: ShareMembership

    def __init__(
        self,
        shared: GroupDependencies,
        settings: Callable[[], ShareSettings],
        times: Callable[[str], GroupTimes],
        partitions: ShareFetches,
    ) -> None:
        super().__init__(shared, ShareMembership(shared, times, partitions.initialize))
        self.partitions_of = partitions.partitions_of
        self.forget = partitions.forget
        self._initialize = partitions.initialize
        self._settings = settings

    # ---- ShareGroupHeartbeat -----------------------------------------------------------------

    def _event(self, request: ShareHeartbeat, coordinator_error: ErrorCode) -> ShareHeartbeatEvent:
        group = self._groups.get(request.group_id)
        return ShareHeartbeatEvent(
            request=request,
            coordinator_error=coordinator_error,
            settings=self._settings(),
            member_id=request.member_id,
            group=group,
            is_taken=group is None and self._shared.is_taken(request.group_id),
        )

    def _beat(self, event: ShareHeartbeatEvent) -> HeartbeatResult:
        request, group, membership = event.request, event.known, self.membership
        before = event.member
        self._groups[group.group_id] = group
        changed = membership.follow_request(group, before, request)
        membership.make_target(group)
        member = membership.reconcile(group, before.member_id, changed=changed)
        membership.renew(group, member)
        full = request.joins or request.topic_names is not None
        sends = full or before.assigned != member.assigned
        result = HeartbeatResult(
            member_id=member.member_id,
            member_epoch=member.epoch,
            interval_ms=membership.times(group.group_id).heartbeat_interval_ms,
            assignment=member.assigned if sends else None,
        )
        membership.flush(group)
        membership.initialize_subscribed(group)
        return result

    def _leave(self, event: ShareHeartbeatEvent) -> HeartbeatResult:
        group, request = event.known, event.request
        self.membership.gone(group, [event.member])
        return HeartbeatResult(member_id=request.member_id, member_epoch=request.member_epoch)

    # ---- administration ----------------------------------------------------------------------

    def assignor_name(self, group: ShareGroup) -> str:
        """The assignor that the group uses."""
        return ASSIGNOR

    def make_empty(self, group_id: str) -> ShareGroup:
        """Return the group, which is made without members if there is none of this id."""
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = self._new(group_id)
        return group

    def _new(self, group_id: str) -> ShareGroup:
        """Return a group at the epoch that one has whose first member joins."""
        event = self._event(ShareHeartbeat(group_id, "", JOINING), ErrorCode.NONE)
        apply_first(self.membership.rules.group, event, event)
        return event.known

    def alter_offsets(
        self, group_id: str, offsets: Mapping[uuid.UUID, Mapping[int, int]]
    ) -> str | None:
        """AlterShareGroupOffsets, for a group without members: make the states of partitions at
        other offsets. Any topic makes the group. Returns the text of a failure: the partitions of
        the request stay as they were if one of them is negative."""
        if not offsets:
            return None
        group = self.make_empty(group_id)
        started = {topic_id: frozenset(starts) for topic_id, starts in offsets.items()}
        self.membership.initializing(group, started)
        for topic_id in hash_order_of_uuids(started):
            for index in hash_order_of_numbers(offsets[topic_id]):
                if index < 0:
                    text = urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
                    named = f"{group_id} {text} {index}"
                    return f"Initialize share group parameters has invalid partitionId - {named}"
        for topic_id, starts in offsets.items():
            for index, start in starts.items():
                self._initialize(group_id, frozenset({(topic_id, index)}), group.epoch, start)
        made = frozenset((topic_id, index) for topic_id in started for index in started[topic_id])
        if made:
            self.membership.initialized(group, made)
        return None

    def forget_topics(self, group: ShareGroup, partitions: Assignment) -> None:
        """Delete the state of share partitions."""
        self.membership.forget(group, partitions)
        self.membership.flush(group)
        self.forget(group.group_id, partitions)

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups, for a group that exists: an empty group goes, with its share state. Kafka
        fails to delete the state of negative partitions."""
        group = self._groups[group_id]
        if group.members:
            return ErrorCode.NON_EMPTY_GROUP
        if any(index < 0 for indexes in group.initializing.values() for index in indexes):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        self.discard(group)
        self.forget(group_id, group.initialized)
        for call in self._shared.on_deleted:
            call(group_id)
        return ErrorCode.NONE

    # ---- operations --------------------------------------------------------------------------

    def fence_instance(self, group_id: str, instance_id: str) -> str:
        """Share groups have no static members."""
        raise ClusterError(f"group {group_id!r} is a share group: it has no instances")

    def set_generation(self, group_id: str, number: int) -> None:
        """A tester cannot set the epoch of a share group."""
        raise ClusterError(f"group {group_id!r} is a share group: it has no generations")
