"""The state machine of streams groups: members, topologies, targets, reconciliation.

The rows of ``streams_rules`` and ``task_reconciliation`` decide. Changes are written when the
request or the timer that caused them has run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from msgspec.structs import replace

from mockbroker.simulation.groups.modern.group_records import StoredRecord
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.modern_membership import StaticMembership
from mockbroker.simulation.groups.sessions import Session
from mockbroker.simulation.groups.streams.streams_group import (
    LEAVING_FOR_A_WHILE,
    NO_TASKS,
    HeartbeatRequest,
    Member,
    MemberClocks,
    MemberState,
    Status,
    StreamsGroup,
    Task,
    Tasks,
)
from mockbroker.simulation.groups.streams.streams_heartbeats import (
    ChangeEvent,
    HeartbeatEvent,
    MemberGone,
    TargetEvent,
    UpdateEvent,
)
from mockbroker.simulation.groups.streams.streams_records import StreamsRecords
from mockbroker.simulation.groups.streams.streams_rules import StreamsRules
from mockbroker.simulation.groups.streams.streams_settings import StreamsSettings
from mockbroker.simulation.groups.streams.task_assignor import Worker, sticky
from mockbroker.simulation.groups.streams.task_reconciliation import (
    Holders,
    Reconciliation,
    reconcile,
)
from mockbroker.simulation.groups.streams.topology import ConfiguredTopology, Topology, configure
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.timers import Timers

__all__ = ["Membership"]


def _updated(member: Member, request: HeartbeatRequest) -> Member:
    """The member with what a heartbeat says; what it leaves out stays."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id if request.rack_id is not None else member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=(
            member.topology_epoch if request.topology is None else request.topology.epoch
        ),
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=member.endpoint if request.endpoint is None else request.endpoint,
        tags=member.tags if request.tags is None else request.tags,
        client_id=request.client_id,
        client_host=request.client_host,
    )


class Membership(StaticMembership[StreamsGroup]):
    """The state machine of streams groups. ``write`` appends records for a group, ``changed`` is
    called with a group after each change that a tester may wait for."""

    nothing = NO_TASKS
    records: StreamsRecords

    def __init__(
        self,
        timers: Timers,
        rules: StreamsRules,
        records: StreamsRecords,
        topics: GroupTopics,
        settings: Callable[[str], StreamsSettings],
        write: Callable[[str, Iterable[StoredRecord]], None],
        changed: Callable[[StreamsGroup], None],
    ) -> None:
        super().__init__(timers, write, changed)
        self.topics = topics
        self.records = records
        self.rules = rules
        self.settings = settings

    # ---- sessions ----------------------------------------------------------------------------

    def clocks(self, group: StreamsGroup, member_id: str) -> MemberClocks:
        """The timers of a member."""
        found = group.clocks.get(member_id)
        if found is None:
            fence = partial(self.fence_member, group, member_id)
            of = f"group {group.group_id}: %s of {member_id}"
            found = group.clocks[member_id] = MemberClocks(
                Session(self.timers, fence, of % "session"),
                revocation=self.timers.timer(fence, of % "revocation"),
            )
        return found

    def renew(self, group: StreamsGroup, member: Member) -> None:
        """Let the session of a member begin anew."""
        session_ms = self.settings(group.group_id).times.session_ms
        self.clocks(group, member.member_id).session.renew(session_ms)

    def restart(self, group: StreamsGroup) -> None:
        """Start the timers of all members, as a new coordinator does. What is in no record is
        forgotten: endpoints, offsets of tasks, a requested shutdown."""
        group.configured, group.endpoint_epoch, group.shutdown_member = None, 0, None
        group.offsets.clear()
        super().restart(group)

    def time_revocation(self, group: StreamsGroup, member: Member) -> None:
        revokes = member.state is MemberState.UNREVOKED and not group.held
        due_ms = self.timers.now_ms + member.rebalance_timeout_ms
        self.clocks(group, member.member_id).revocation.set(due_ms if revokes else None)

    def expel(self, group: StreamsGroup, member: Member) -> None:
        self.gone(group, member)

    # ---- members -----------------------------------------------------------------------------

    def take_place(self, group: StreamsGroup, former: Member, member_id: str) -> Member:
        shutdown = group.shutdown_member
        member: Member = super().take_place(group, former, member_id)
        group.shutdown_member = shutdown
        return member

    def leave_for_a_while(self, group: StreamsGroup, member: Member) -> None:
        """A static member keeps its tasks for one session."""
        self.put(
            group,
            replace(
                member,
                epoch=LEAVING_FOR_A_WHILE,
                revoking=NO_TASKS,
                epochs=dict.fromkeys(member.assigned.active, 0),
            ),
        )

    def gone(self, group: StreamsGroup, member: Member) -> None:
        """A member leaves the group or is fenced."""
        event = MemberGone(group, member, self._remove, self.settle)
        apply_first(self.rules.gone, event, event)

    def _remove(self, group: StreamsGroup, member: Member) -> None:
        self.note(*self.records.member_deletion(group.group_id, member.member_id))
        group.remove(member.member_id)
        self.bump(group)

    # ---- epochs and targets ------------------------------------------------------------------

    def configured(self, group: StreamsGroup, topology: Topology) -> ConfiguredTopology:
        """The topology with the topics that there are now."""
        if (
            group.configured is not None
            and group.topology == topology
            and group.facts_version == self.topics.version
        ):
            return group.configured
        counts = self.topics.counts(topology.required)
        by_name = {self.topics.name_of(topic_id): number for topic_id, number in counts.items()}
        return configure(topology, {name: each for name, each in by_name.items() if name})

    def follow(self, event: HeartbeatEvent, former: Member, settings: StreamsSettings) -> Member:
        """Take over what a heartbeat says, and raise the epoch if that asks for it."""
        group, topology, configured = event.known, event.topology, event.configured
        assert topology is not None
        assert configured is not None
        request = event.request
        update = UpdateEvent(_updated(former, request), request)
        apply_first(self.rules.update, update, update)
        member = update.member
        is_new = member.member_id not in group.members
        self.put(group, member)
        if request.task_offsets is not None or request.task_end_offsets is not None:
            offsets, ends = group.offsets.get(member.member_id, ((), ()))
            group.offsets[member.member_id] = (
                offsets if request.task_offsets is None else request.task_offsets,
                ends if request.task_end_offsets is None else request.task_end_offsets,
            )
        if group.topology is None:
            group.topology = topology
            self.note(self.records.topology(group.group_id, topology))
        facts = self.topics.facts(topology.required)
        validated = topology.epoch if configured.is_ready else -1
        change = ChangeEvent(
            is_static=member.instance_id is not None,
            metadata_changed=is_new or member.metadata != former.metadata,
            placement_changed=member.placement != former.placement,
            facts_changed=facts != group.facts,
            configs_changed=group.configs != settings.assignment_configs,
        )
        apply_first(self.rules.change, change, change)
        # Kafka forgets the topics of a group that it only makes, and looks at them again.
        group.configured = None if event.makes else configured
        group.facts, group.facts_version = facts, self.topics.version
        if change.bumps:
            group.validated_epoch = validated
            group.configs = settings.assignment_configs
            self.bump(group)
        return member

    def delay_target(self, group: StreamsGroup, delay_ms: int) -> None:
        """Let a new group wait for more members."""
        if delay_ms and not group.is_delayed:
            group.delay = self.timers.timer(
                partial(self._end_delay, group), f"group {group.group_id}: first target"
            )
            group.delay.set(self.timers.now_ms + delay_ms)

    def _end_delay(self, group: StreamsGroup) -> None:
        if group.members and group.configured is not None:
            self.make_target(group, group.configured)
            self.flush(group)

    def make_target(self, group: StreamsGroup, configured: ConfiguredTopology) -> list[Status]:
        """Make the target of the group's epoch if it is time, or say why not."""
        interval_ms = self.settings(group.group_id).times.assignment_interval_ms
        event = TargetEvent(group, self.timers.now_ms, interval_ms)
        apply_first(self.rules.target, event, event)
        if event.makes_target:
            self.set_targets(group, self._computed(group, configured))
        return event.statuses

    def _computed(self, group: StreamsGroup, configured: ConfiguredTopology) -> dict[str, Tasks]:
        if not configured.is_ready:
            return dict.fromkeys(group.members, NO_TASKS)
        pinned = group.pinned_targets(NO_TASKS)
        if pinned is not None:
            return pinned
        workers = {
            name: Worker(each.process_id, group.target.get(name, NO_TASKS))
            for name, each in group.members.items()
        }
        standbys = dict(group.configs).get("num.standby.replicas", "0")
        return sticky(workers, configured.tasks, configured.stateful, int(standbys))

    # ---- reconciliation ----------------------------------------------------------------------

    def reconcile(self, group: StreamsGroup, member: Member, owned: Tasks | None) -> Member:
        """Bring a member nearer to its target. A tester may hold that: then nothing is given up,
        and nothing is free. While the first target is delayed, there is none."""
        target = group.target.get(member.member_id, NO_TASKS)
        epoch = max(1, group.target_epoch) if group.is_delayed else group.target_epoch
        event = Reconciliation(
            member,
            epoch,
            NO_TASKS if group.is_delayed else target,
            None if group.held else owned,
            None if group.held else _holders(group),
        )
        after = reconcile(self.rules.reconcile, self.rules.difference, event)
        if after.progress != member.progress:
            self.put(group, after)
            self.time_revocation(group, after)
        return after


def _holders(group: StreamsGroup) -> Holders:
    active: dict[Task, str] = {}
    standby: set[tuple[Task, str]] = set()
    for each in group.members.values():
        held = each.assigned | each.revoking
        active.update(dict.fromkeys(held.active, each.process_id))
        standby.update((task, each.process_id) for task in held.standby)
    return Holders(active, frozenset(standby))
