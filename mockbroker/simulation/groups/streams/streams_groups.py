"""The coordinator of streams groups: runs the rows of ``streams_rules`` for requests and timers.

One object holds the groups of all brokers; the broker that leads a group's partition of
``__consumer_offsets`` is its coordinator. No sockets and no messages: a heartbeat has its answer at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.modern.heartbeats import LEAVING_FOR_A_WHILE
from mockbroker.simulation.groups.modern.modern_groups import StaticMemberGroups
from mockbroker.simulation.groups.modern.modern_membership import GroupDependencies
from mockbroker.simulation.groups.modern.partitions import by_topic
from mockbroker.simulation.groups.streams.streams_group import (
    NO_TASKS,
    EndpointPartitions,
    HeartbeatRequest,
    Member,
    StatusCode,
    StreamsGroup,
    StreamsResult,
    Task,
    Tasks,
)
from mockbroker.simulation.groups.streams.streams_heartbeats import StreamsHeartbeat
from mockbroker.simulation.groups.streams.streams_membership import StreamsMembership
from mockbroker.simulation.groups.streams.streams_rules import (
    EndpointEvent,
    PartitionsEvent,
    StatusEvent,
    UnreadyEvent,
)
from mockbroker.simulation.groups.streams.streams_settings import StreamsSettings
from mockbroker.simulation.groups.streams.task_assignor import ASSIGNOR
from mockbroker.simulation.groups.streams.topology import ConfiguredTopology
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["StreamsGroups"]


class StreamsGroups(StaticMemberGroups[StreamsGroup, StreamsResult]):
    """The streams groups of a cluster.

    ``classic`` has the classic groups; ``settings`` returns the configs that a group follows.
    """

    kind = "streams"
    seed = 1071
    membership: StreamsMembership

    def __init__(
        self,
        shared: GroupDependencies,
        classic: ClassicGroups,
        settings: Callable[[str], StreamsSettings],
    ) -> None:
        super().__init__(shared, StreamsMembership(shared, settings))
        self._classic = classic
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

    def _event(self, request: HeartbeatRequest, coordinator_error: ErrorCode) -> StreamsHeartbeat:
        group_id = request.group_id
        group, classic = self._groups.get(group_id), self._classic.group(group_id)
        return StreamsHeartbeat(
            request=request,
            coordinator_error=coordinator_error,
            settings=self._settings(group_id),
            member_id=request.member_id,
            group=group,
            is_taken=group is None and self._shared.is_taken(group_id),
            is_replaceable=classic is not None and not classic.members,
            configure=self.membership.configured,
        )

    def _beat(self, event: StreamsHeartbeat) -> StreamsResult:
        request, group, membership = event.request, event.known, self.membership
        configured, settings = event.configured, event.settings
        assert configured is not None
        code = self._endpoint_error(event) if configured.subtopologies is None else ErrorCode.NONE
        if code:
            return StreamsResult(error_code=code)
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
        rules = membership.rules
        status = StatusEvent(group, member, request.version, settings.tags, configured)
        apply_first(rules.stale, status, status)
        for reason in membership.make_target(group, configured):
            status.add(StatusCode.ASSIGNMENT_DELAYED, reason)
        member = membership.reconcile(group, member, request.owned)
        membership.renew(group, member)
        if request.shutdown:
            group.request_shutdown(request.member_id)
        for rows in rules.statuses:
            apply_first(rows, status, status)
        sends = request.joins or former.assigned != member.assigned
        endpoint = EndpointEvent(event.member, member, request.joins)
        apply_first(rules.endpoint, endpoint, endpoint)
        epoch = group.endpoint_epoch + endpoint.raises
        # Kafka forgets the epoch of a group that it only makes.
        group.endpoint_epoch = 0 if event.makes else epoch
        result = StreamsResult(
            member_id=member.member_id,
            member_epoch=member.epoch,
            interval_ms=settings.times.heartbeat_interval_ms,
            task_offset_interval_ms=settings.task_offset_interval_ms,
            acceptable_recovery_lag=settings.acceptable_recovery_lag,
            statuses=tuple(status.statuses),
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

    def _leave(self, event: StreamsHeartbeat) -> StreamsResult:
        group, request = event.known, event.request
        member = event.holder or event.member
        if request.is_static and request.member_epoch == LEAVING_FOR_A_WHILE:
            self.membership.leave_for_a_while(group, member)
        else:
            self.membership.gone(group, [member])
        return StreamsResult(
            member_id=member.member_id, member_epoch=request.member_epoch, statuses=()
        )

    def assignor_name(self, group: StreamsGroup) -> str:
        """The assignor that the group uses."""
        return ASSIGNOR

    # ---- endpoints ---------------------------------------------------------------------------

    def _endpoint_error(self, event: StreamsHeartbeat) -> ErrorCode:
        """The error with which Kafka fails to send the endpoints, because source topics of the
        group are missing or differ. What it keeps outside of records has changed by then."""
        request, group, rules = event.request, event.known, self.membership.rules
        former = event.member
        after = replace(
            self.membership.updated(former, request),
            assigned=former.assigned if group.held else NO_TASKS,
        )
        endpoint = EndpointEvent(former, after, request.joins)
        apply_first(rules.endpoint, endpoint, endpoint)
        epoch = group.endpoint_epoch + endpoint.raises
        known = {**group.members, after.member_id: after}.values()
        unready = UnreadyEvent(
            any(each.endpoint is not None for each in known), epoch != request.endpoint_epoch
        )
        apply_first(rules.unready, unready, unready)
        if unready.code:
            group.endpoint_epoch = epoch
            if request.shutdown:
                group.request_shutdown(request.member_id)
        return unready.code

    def _endpoints(
        self, group: StreamsGroup, sender: Member, configured: ConfiguredTopology
    ) -> tuple[EndpointPartitions, ...]:
        """The partitions behind the endpoint of each member; the sender's come last."""
        others = [member for name, member in group.members.items() if name != sender.member_id]
        return tuple(
            EndpointPartitions(
                each.endpoint,
                self._partitions(configured, each.assigned.active),
                self._partitions(configured, each.assigned.standby | each.assigned.warmup),
            )
            for each in (*others, sender)
            if each.endpoint is not None
        )

    def _partitions(
        self, configured: ConfiguredTopology, tasks: Iterable[Task]
    ) -> tuple[tuple[str, tuple[int, ...]], ...]:
        sources = {
            subtopology.subtopology_id: subtopology.sources
            for subtopology in configured.subtopologies or ()
        }
        shown: dict[str, tuple[int, ...]] = {}
        for name, indexes in by_topic(tasks):
            counts = self.topics.counts(sources.get(name, ()))
            for topic_id, number in counts.items():
                event = PartitionsEvent(frozenset(indexes), number)
                apply_first(self.membership.rules.partitions, event, event)
                topic = self.topics.name_of(topic_id)
                if topic is not None and event.is_shown:
                    shown[topic] = event.shown
        return tuple(shown.items())

    # ---- offsets -----------------------------------------------------------------------------

    def _held_since(
        self, group: StreamsGroup, member: Member, partition: TopicPartition
    ) -> int | None:
        assert group.topology is not None, "the first member brings it"
        subtopology = group.topology.subtopology_of(partition[0])
        return None if subtopology is None else member.epochs.get((subtopology, partition[1]))

    # ---- operations --------------------------------------------------------------------------

    def shut_down(self, group_id: str, member: str) -> None:
        """Let a member request that the whole application shuts down: each member learns of it with
        its next heartbeat."""
        group = self._existing(group_id)
        requester = self._member(group, member)
        group.shutdown_member = group.shutdown_member or requester.member_id
        self.membership.changed(group)

    def set_target(self, group_id: str, target: Mapping[str, Sequence[TopicPartition]]) -> None:
        """Give members these active tasks, as subtopology and partition, instead of those of the
        assignor, until ``release_assignor``. Members that are not named get nothing."""
        group = self._existing(group_id)
        for tasks in target.values():
            for name, index in tasks:
                known = group.configured
                if known is None or not 0 <= index < known.tasks.get(name, 0):
                    raise ClusterError(f"group {group_id!r} has no task {name}-{index}")
        self._pin(group, {name: Tasks(frozenset(tasks)) for name, tasks in target.items()})

    def _at_epoch(self, member: Member, number: int) -> Member:
        epochs = dict.fromkeys(member.epochs, number)
        return replace(member, epoch=number, previous_epoch=number, epochs=epochs)

    def _make_target(self, group: StreamsGroup) -> None:
        if group.configured is not None:
            self.membership.make_target(group, group.configured)
