"""The coordinator of consumer groups: runs the rows of ``consumer_rules`` for requests and timers.

One object holds the groups of all brokers; the broker that leads a group's partition of
``__consumer_offsets`` is its coordinator. No sockets and no messages: a heartbeat has its answer at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.consumer.consumer_group import (
    ConsumerGroup,
    HeartbeatRequest,
    Member,
)
from mockbroker.simulation.groups.consumer.consumer_heartbeats import (
    CommitEvent,
    DescribeEvent,
    HeartbeatEvent,
)
from mockbroker.simulation.groups.consumer.consumer_membership import Membership
from mockbroker.simulation.groups.consumer.consumer_operations import TesterSteps
from mockbroker.simulation.groups.consumer.consumer_records import GroupRecords
from mockbroker.simulation.groups.consumer.consumer_rules import HeartbeatRow, consumer_rules
from mockbroker.simulation.groups.consumer.consumer_settings import ConsumerSettings
from mockbroker.simulation.groups.consumer.migration import Migration, UpgradeRefusedError
from mockbroker.simulation.groups.consumer.regexes import regex_problem
from mockbroker.simulation.groups.modern.group_records import StoredRecord
from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.heartbeats import LEAVING, HeartbeatResult
from mockbroker.simulation.groups.modern.partitions import Assignment
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.model import TopicPartition
from mockbroker.simulation.state.timers import Timers

__all__ = ["ConsumerGroups"]


class ConsumerGroups(TesterSteps):
    """The consumer groups of a cluster.

    ``classic`` has the classic groups, which share the group ids. ``settings`` and ``times`` return
    the configs that groups follow. ``write`` appends records for a group. ``on_changed`` are called
    with the id of a group that changed, ``on_deleted`` with the id of one that is gone.
    """

    def __init__(
        self,
        timers: Timers,
        release: Release,
        topics: GroupTopics,
        classic: ClassicGroups,
        settings: Callable[[], ConsumerSettings],
        times: Callable[[str], GroupTimes],
    ) -> None:
        self.write: Callable[[str, Iterable[StoredRecord]], None] = lambda group_id, records: None
        self.is_taken: Callable[[str], bool] = lambda group_id: False
        """Whether an id is that of a group of a newer kind than classic, but not of this one."""
        rules = consumer_rules(release)
        super().__init__(
            Membership(
                timers,
                rules,
                GroupRecords(release),
                topics,
                settings,
                times,
                lambda: classic.machine.settings.max_size,
                lambda group_id, records: self.write(group_id, records),
                self._report,
            ),
            classic.on_changed,
            classic.on_deleted,
        )
        self.classic_members = Migration(
            self.membership, classic, self._groups, release, self.new_member_id
        )
        self._classic = classic
        self._rules = rules
        self._topics = topics
        self._settings = settings

    # ---- facts -------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether the brokers serve consumer groups."""
        return self._settings().enabled

    @property
    def topics(self) -> GroupTopics:
        return self._topics

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Return whether members of a group consume a topic."""
        group = self._groups.get(group_id)
        return group is not None and topic in group.subscribed

    # ---- ConsumerGroupHeartbeat --------------------------------------------------------------

    def heartbeat(
        self, request: HeartbeatRequest, coordinator_error: ErrorCode = ErrorCode.NONE
    ) -> HeartbeatResult:
        """A member joins, lives, or leaves. ``coordinator_error`` says whether the broker
        coordinates the group."""
        rules, event = self._rules, self._event(request, coordinator_error)
        if self._refuses(event, rules.read) or self._refuses(event, rules.group):
            assert event.result is not None
            return event.result
        if request.leaves:
            return self._leave(event)
        if self._refuses(event, rules.member):
            assert event.result is not None
            return event.result
        if event.replaces is None and self._refuses(event, rules.epoch):
            assert event.result is not None
            return event.result
        return self._beat(event)

    def _event(self, request: HeartbeatRequest, coordinator_error: ErrorCode) -> HeartbeatEvent:
        return HeartbeatEvent(
            request,
            coordinator_error,
            self._settings(),
            request.member_id,
            self._groups.get(request.group_id),
            self._classic.group(request.group_id),
            lambda: self.classic_members.converted(request.group_id),
            self.new_member_id,
            regex_problem,
            self.is_taken(request.group_id),
        )

    @staticmethod
    def _refuses(event: HeartbeatEvent, rows: tuple[HeartbeatRow, ...]) -> bool:
        try:
            apply_first(rows, event, event)
        except UpgradeRefusedError as refusal:
            event.result = HeartbeatResult(ErrorCode.GROUP_ID_NOT_FOUND, str(refusal))
        return event.result is not None

    def _beat(self, event: HeartbeatEvent) -> HeartbeatResult:
        request, group, membership = event.request, event.known, self.membership
        if event.converts:
            self.classic_members.take_over(group)
        self._groups[group.group_id] = group
        if event.replaces is not None:
            before = membership.take_place(group, event.replaces, event.member_id)
        else:
            before = event.member
        member, changed = membership.follow_request(group, before, request)
        membership.make_target(group)
        member = membership.reconcile(group, member, request.owned, changed=changed)
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

    def _leave(self, event: HeartbeatEvent) -> HeartbeatResult:
        if self._refuses(event, self._rules.leaver):
            assert event.result is not None
            return event.result
        group, request = event.known, event.request
        if request.instance_id is not None and request.member_epoch != LEAVING:
            self.membership.leave_for_a_while(group, event.member)
        else:
            self.membership.gone(group, [event.member])
        self.membership.flush(group)
        return HeartbeatResult(member_id=event.member.member_id, member_epoch=request.member_epoch)

    # ---- offsets -----------------------------------------------------------------------------

    def validate_commit(
        self,
        group: ConsumerGroup,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        version: int,
        partitions: Iterable[TopicPartition] = (),
        transactional: bool = False,
    ) -> ErrorCode:
        """Return whether a member may commit offsets of these partitions, as 0 or an error code."""
        ids = [
            None if (topic_id := self._topics.id_of(name)) is None else (topic_id, index)
            for name, index in partitions
        ]
        event = CommitEvent(group, member_id, instance_id, epoch, version, transactional, ids)
        apply_first(self._rules.commit, event, event)
        return event.code

    def validate_fetch(self, group: ConsumerGroup, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether a member may fetch offsets, as 0 or an error code."""
        event = CommitEvent(group, member_id, None, epoch, 0, transactional=False)
        apply_first(self._rules.fetch, event, event)
        return event.code

    # ---- administration ----------------------------------------------------------------------

    def shown_assignment(self, member: Member) -> Assignment:
        """The partitions with which ConsumerGroupDescribe shows a member."""
        event = DescribeEvent(member)
        apply_first(self._rules.describe, event, event)
        return event.shown

    def assignor_name(self, group: ConsumerGroup) -> str:
        """The assignor that the group uses."""
        return self.membership.assignor(group)
