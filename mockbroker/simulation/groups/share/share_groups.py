"""The coordinator of share groups: runs the rows of ``share_rules`` for requests and timers.

One object holds the groups of all brokers; the broker that leads a group's partition of
``__consumer_offsets`` is its coordinator.
"""

from __future__ import annotations

from collections.abc import Callable

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.modern.group_records import WriteRecords
from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.heartbeats import JOINING, HeartbeatResult
from mockbroker.simulation.groups.modern.partitions import Assignment
from mockbroker.simulation.groups.share.share_assignor import ASSIGNOR
from mockbroker.simulation.groups.share.share_fetches import ShareFetches
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareHeartbeat
from mockbroker.simulation.groups.share.share_membership import ShareMembership
from mockbroker.simulation.groups.share.share_operations import ShareOperations
from mockbroker.simulation.groups.share.share_records import ShareRecords
from mockbroker.simulation.groups.share.share_rules import ShareHeartbeatEvent, ShareRules
from mockbroker.simulation.groups.share.share_settings import ShareSettings
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rules_of_release
from mockbroker.simulation.state.timers import Timers

__all__ = ["ShareGroups"]


class ShareGroups(ShareOperations):
    """The share groups of a cluster.

    ``is_taken`` says whether a group of any kind has an id. ``settings`` and ``times`` return
    the configs that groups follow. ``write`` appends records for a group, ``partitions`` keeps the
    state of share partitions. ``on_changed`` are called with the id of a group that changed,
    ``on_deleted`` with the id of one that is gone.
    """

    def __init__(
        self,
        timers: Timers,
        release: Release,
        topics: GroupTopics,
        is_taken: Callable[[str], bool],
        settings: Callable[[], ShareSettings],
        times: Callable[[str], GroupTimes],
        write: WriteRecords,
        partitions: ShareFetches,
        on_changed: list[Callable[[str], None]],
        on_deleted: list[Callable[[str], None]],
    ) -> None:
        self.partitions_of = partitions.partitions_of
        self.forget = partitions.forget
        super().__init__(
            ShareMembership(
                timers,
                rules_of_release(ShareRules, release),
                ShareRecords(release, topics.name_of),
                topics,
                times,
                write,
                self._report,
                lambda group, assigned: partitions.initialize(
                    group.group_id, assigned, group.epoch
                ),
            ),
            on_changed,
            on_deleted,
        )
        self.topics = topics
        self._is_taken = is_taken
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
            is_taken=group is None and self._is_taken(request.group_id),
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

    def initialize_at(self, group: ShareGroup, partitions: Assignment) -> None:
        """Take note of share partitions whose state was made by AlterShareGroupOffsets."""
        self.membership.note(self.membership.records.share_states(group, partitions))
        self.membership.flush(group)
        self.membership.initialized(group, partitions)
        self.membership.flush(group)

    def forget_topics(self, group: ShareGroup, partitions: Assignment) -> None:
        """Delete the state of share partitions."""
        self.membership.forget(group, partitions)
        self.membership.flush(group)
        self.forget(group.group_id, partitions)

    def delete(self, group_id: str) -> ErrorCode:
        """DeleteGroups, for a group that exists: an empty group goes, with its share state."""
        group = self._groups[group_id]
        if group.members:
            return ErrorCode.NON_EMPTY_GROUP
        self.discard(group)
        self.forget(group_id, group.initialized)
        for call in self.on_deleted:
            call(group_id)
        return ErrorCode.NONE
