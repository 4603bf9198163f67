"""The state machine of streams groups: members, topologies, targets, reconciliation.

The rows of ``streams_rules`` and ``task_reconciliation`` decide. Changes are written when the
request or the timer that caused them has run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from mockbroker.simulation.groups.modern.modern_membership import (
    GroupDependencies,
    StaticMembership,
)
from mockbroker.simulation.groups.streams.streams_group import (
    NO_TASKS,
    HeartbeatRequest,
    Member,
    StreamsGroup,
    Task,
    TaskOffsets,
    Tasks,
)
from mockbroker.simulation.groups.streams.streams_heartbeats import StreamsHeartbeat
from mockbroker.simulation.groups.streams.streams_records import StreamsRecords
from mockbroker.simulation.groups.streams.streams_rules import (
    StreamsChange,
    StreamsRules,
    UpdateEvent,
)
from mockbroker.simulation.groups.streams.streams_settings import StreamsSettings
from mockbroker.simulation.groups.streams.task_assignor import Worker, sticky
from mockbroker.simulation.groups.streams.task_reconciliation import (
    Holders,
    Reconciliation,
    reconcile,
)
from mockbroker.simulation.groups.streams.topology import ConfiguredTopology, Topology, configure
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.fixes import KAFKA_20899
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first

__all__ = ["StreamsMembership"]


def _updated(member: Member, request: HeartbeatRequest) -> Member:
    """The member with the fields of a heartbeat; those that it leaves out stay."""
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


class StreamsMembership(StaticMembership[StreamsGroup]):
    """The state machine of streams groups."""

    nothing = NO_TASKS

    def __init__(
        self, shared: GroupDependencies, settings: Callable[[str], StreamsSettings]
    ) -> None:
        records = StreamsRecords(shared.release)
        super().__init__(shared, StreamsRules, records, lambda group: settings(group).times)

    def _use_release(self, release: Release) -> None:
        super()._use_release(release)
        self._release = release

    # ---- members -----------------------------------------------------------------------------

    def restart(self, group: StreamsGroup) -> None:
        """Start the timers of all members, as a new coordinator does. What is in no record is
        forgotten: endpoints, offsets of tasks, a requested shutdown."""
        group.configured, group.endpoint_epoch, group.shutdown_member = None, 0, None
        group.offsets.clear()
        super().restart(group)

    def take_place(self, group: StreamsGroup, former: Member, member_id: str) -> Member:
        shutdown = group.shutdown_member
        member: Member = super().take_place(group, former, member_id)
        group.shutdown_member = shutdown
        return member

    def _kept_while_away(self, member: Member) -> dict[str, Any]:
        return {"revoking": NO_TASKS, "epochs": dict.fromkeys(member.assigned.active, 0)}

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

    def updated(self, former: Member, request: HeartbeatRequest) -> Member:
        """The member as a heartbeat describes it."""
        update = UpdateEvent(_updated(former, request), request)
        apply_first(self.rules.update, update, update)
        return update.member

    def follow(self, event: StreamsHeartbeat, former: Member, settings: StreamsSettings) -> Member:
        """Take over the fields of a heartbeat, and raise the epoch if that requires another
        target."""
        group, topology, configured = event.known, event.topology, event.configured
        assert topology is not None
        assert configured is not None
        request = event.request
        member = self.updated(former, request)
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
        change = StreamsChange(
            is_static=request.is_static,
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

    def make_target(self, group: StreamsGroup, configured: ConfiguredTopology) -> list[str]:
        """Make the target of the group's epoch if it is time; else return why not, if members are
        to know."""
        event = self.target_event(group)
        if event.makes_target:
            self.set_targets(group, self._computed(group, configured))
        return event.delays

    def _computed(self, group: StreamsGroup, configured: ConfiguredTopology) -> dict[str, Tasks]:
        if not configured.is_ready:
            return dict.fromkeys(group.members, NO_TASKS)
        pinned = group.pinned_targets(NO_TASKS)
        if pinned is not None:
            return pinned
        workers = {
            name: Worker(member.process_id, *self._placed(group, member))
            for name, member in group.members.items()
        }
        standbys = dict(group.configs).get("num.standby.replicas", "0")
        return sticky(
            workers,
            configured.tasks,
            configured.stateful,
            int(standbys),
            tries_all=self._release.has(KAFKA_20899),
        )

    def _placed(self, group: StreamsGroup, member: Member) -> tuple[Tasks, TaskOffsets]:
        """The tasks and offsets of a member that the assignor goes by. Releases before 4.4 refuse
        offsets."""
        target = group.target.get(member.member_id, NO_TASKS)
        offsets, _ = group.offsets.get(member.member_id, ((), ()))
        return member.assigned if self._release.has(facts.HELD_TASKS_STAY) else target, offsets

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
        self.advance(group, member, after)
        return after


def _holders(group: StreamsGroup) -> Holders:
    active: dict[Task, str] = {}
    standby: set[tuple[Task, str]] = set()
    for member in group.members.values():
        held = member.assigned | member.revoking
        active.update(dict.fromkeys(held.active, member.process_id))
        standby.update((task, member.process_id) for task in held.standby)
    return Holders(active, frozenset(standby))
