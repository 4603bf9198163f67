"""The coordinator of streams groups: runs the rows of ``streams_rules`` for requests and timers.

One object holds the groups of all brokers; the broker that leads a group's partition of
``__consumer_offsets`` is its coordinator. No sockets and no messages: a heartbeat has its answer at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.modern.group_records import StoredRecord
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.streams.streams_group import (
    LEAVING_FOR_A_WHILE,
    EndpointPartitions,
    HeartbeatRequest,
    HeartbeatResult,
    Member,
    StreamsGroup,
    Task,
)
from mockbroker.simulation.groups.streams.streams_heartbeats import (
    AnswerEvent,
    CommitEvent,
    EndpointEvent,
    HeartbeatEvent,
    PartitionsEvent,
    endpoint_partitions,
)
from mockbroker.simulation.groups.streams.streams_membership import Membership
from mockbroker.simulation.groups.streams.streams_operations import TesterSteps
from mockbroker.simulation.groups.streams.streams_records import StreamsRecords, by_subtopology
from mockbroker.simulation.groups.streams.streams_rules import (
    HeartbeatRow,
    configure,
    streams_rules,
)
from mockbroker.simulation.groups.streams.streams_settings import StreamsSettings
from mockbroker.simulation.groups.streams.topology import ConfiguredTopology
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.model import TopicPartition
from mockbroker.simulation.state.timers import Timers

__all__ = ["StreamsGroups"]


class StreamsGroups(TesterSteps):
    """The streams groups of a cluster.

    ``classic`` has the classic groups, which share the group ids; ``is_taken`` says whether an id
    is that of any group. ``settings`` returns the configs that a group follows. ``write`` appends
    records for a group. ``on_changed`` are called with the id of a group that changed,
    ``on_deleted`` with the id of one that is gone.
    """

    def __init__(
        self,
        timers: Timers,
        release: Release,
        topics: GroupTopics,
        classic: ClassicGroups,
        is_taken: Callable[[str], bool],
        settings: Callable[[str], StreamsSettings],
    ) -> None:
        self.write: Callable[[str, Iterable[StoredRecord]], None] = lambda group_id, records: None
        self._rules = streams_rules(release)
        super().__init__(
            Membership(
                timers,
                self._rules,
                StreamsRecords(release),
                topics,
                settings,
                lambda group_id, records: self.write(group_id, records),
                self._report,
            ),
            classic.on_changed,
            classic.on_deleted,
        )
        self._classic = classic
        self._is_taken = is_taken
        self._topics = topics
        self._settings = settings

    # ---- facts -------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether the brokers serve streams groups."""
        return self._settings("").enabled

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Return whether members of a group read a topic."""
        group = self._groups.get(group_id)
        if group is None or not group.members or group.topology is None:
            return False
        return group.topology.subtopology_of(topic) is not None

    # ---- StreamsGroupHeartbeat ---------------------------------------------------------------

    def heartbeat(
        self, request: HeartbeatRequest, coordinator_error: ErrorCode = ErrorCode.NONE
    ) -> HeartbeatResult:
        """A member joins, lives, or leaves. ``coordinator_error`` says whether the broker
        coordinates the group."""
        rules, event = self._rules, self._event(request, coordinator_error)
        if self._refuses(event, rules.read) or self._refuses(event, rules.group):
            assert event.result is not None
            return event.result
        if request.leaves and request.shutdown:
            event.known.shutdown_member = event.known.shutdown_member or request.member_id
        if self._refuses(event, rules.member):
            assert event.result is not None
            return event.result
        if request.leaves:
            return self._leave(event)
        if event.replaces is None and self._refuses(event, rules.epoch):
            assert event.result is not None
            return event.result
        if not self._refuses(event, rules.topology):
            configure(event)
        if event.result is None:
            self._refuses(event, rules.tasks)
        if event.result is not None:
            return event.result
        return self._beat(event)

    def _event(self, request: HeartbeatRequest, coordinator_error: ErrorCode) -> HeartbeatEvent:
        group_id = request.group_id
        group, classic = self._groups.get(group_id), self._classic.group(group_id)
        return HeartbeatEvent(
            request,
            coordinator_error,
            self._settings(group_id),
            group,
            other=group is None and self._is_taken(group_id),
            replaceable=classic is not None and not classic.members,
            configure=self.membership.configured,
        )

    @staticmethod
    def _refuses(event: HeartbeatEvent, rows: tuple[HeartbeatRow, ...]) -> bool:
        apply_first(rows, event, event)
        return event.result is not None

    def _beat(self, event: HeartbeatEvent) -> HeartbeatResult:
        request, group, membership = event.request, event.known, self.membership
        configured, settings = event.configured, event.settings
        assert configured is not None
        if event.makes and self._classic.group(group.group_id) is not None:
            self._classic.hand_over(group.group_id)
            membership.note(membership.records.classic_deletion(group.group_id))
        self._groups[group.group_id] = group
        if not group.members:
            membership.delay_target(group, settings.initial_delay_ms)
        former = event.member
        if event.replaces is not None:
            former = membership.take_place(group, event.replaces, request.member_id)
        member = membership.follow(event, former, settings)
        answer = AnswerEvent(group, member, request.version, settings.tags, configured)
        apply_first(self._rules.stale, answer, answer)
        answer.statuses += membership.make_target(group, configured)
        member = membership.reconcile(group, member, request.owned)
        membership.renew(group, member)
        if request.shutdown:
            group.shutdown_member = group.shutdown_member or request.member_id
        for rows in self._rules.answers:
            apply_first(rows, answer, answer)
        sends = request.joins or former.assigned != member.assigned
        endpoint = EndpointEvent(event.member, member, request.joins)
        apply_first(self._rules.endpoint, endpoint, endpoint)
        epoch = group.endpoint_epoch + endpoint.raises
        # Kafka forgets the epoch of a group that it only makes.
        group.endpoint_epoch = 0 if event.makes else epoch
        result = HeartbeatResult(
            member_id=member.member_id,
            member_epoch=member.epoch,
            interval_ms=settings.times.heartbeat_interval_ms,
            task_offset_interval_ms=settings.task_offset_interval_ms,
            acceptable_recovery_lag=settings.acceptable_recovery_lag,
            statuses=tuple(answer.statuses),
            tasks=member.assigned if sends else None,
            endpoint_epoch=group.endpoint_epoch,
            endpoints=(
                self._endpoints(group, member, configured)
                if epoch != request.endpoint_epoch
                else None
            ),
            missing=configured.missing if not configured.is_ready else (),
        )
        membership.flush(group)
        return result

    def _leave(self, event: HeartbeatEvent) -> HeartbeatResult:
        group, request = event.known, event.request
        member = event.holder or event.member
        if request.instance_id is not None and request.member_epoch == LEAVING_FOR_A_WHILE:
            self.membership.leave_for_a_while(group, member)
        else:
            self.membership.gone(group, member)
        self.membership.flush(group)
        return HeartbeatResult(
            member_id=member.member_id, member_epoch=request.member_epoch, statuses=()
        )

    # ---- endpoints ---------------------------------------------------------------------------

    def _endpoints(
        self, group: StreamsGroup, sender: Member, configured: ConfiguredTopology
    ) -> tuple[EndpointPartitions, ...]:
        """The partitions behind the endpoint of each member; the sender's come last."""
        others = [each for name, each in group.members.items() if name != sender.member_id]
        return tuple(
            endpoint_partitions(
                each.endpoint,
                self._partitions(configured, each.assigned.active),
                self._partitions(configured, each.assigned.standby | each.assigned.warmup),
            )
            for each in (*others, sender)
            if each.endpoint is not None
        )

    def _partitions(
        self, configured: ConfiguredTopology, tasks: Iterable[Task]
    ) -> dict[str, tuple[int, ...]]:
        sources = {each.subtopology_id: each.sources for each in configured.subtopologies or ()}
        found: dict[str, tuple[int, ...]] = {}
        for name, indexes in by_subtopology(tasks):
            counts = self._topics.counts(sources.get(name, ()))
            for topic_id, number in counts.items():
                event = PartitionsEvent(frozenset(indexes), number)
                apply_first(self._rules.partitions, event, event)
                topic = self._topics.name_of(topic_id)
                if topic is not None and event.is_shown:
                    found[topic] = event.shown
        return found

    # ---- offsets -----------------------------------------------------------------------------

    def validate_commit(
        self,
        group: StreamsGroup,
        member_id: str,
        instance_id: str | None,
        epoch: int,
        *,
        version: int,
        partitions: Iterable[TopicPartition] = (),
        transactional: bool = False,
    ) -> ErrorCode:
        """Return whether a member may commit offsets of these partitions, as 0 or an error code."""
        event = CommitEvent(
            group, member_id, instance_id, epoch, version, transactional, list(partitions)
        )
        apply_first(self._rules.commit, event, event)
        return event.code

    def validate_fetch(self, group: StreamsGroup, member_id: str | None, epoch: int) -> ErrorCode:
        """Return whether a member may fetch offsets, as 0 or an error code."""
        event = CommitEvent(group, member_id, None, epoch, 0, transactional=False)
        apply_first(self._rules.fetch, event, event)
        return event.code
