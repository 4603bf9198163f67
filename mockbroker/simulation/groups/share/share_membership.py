"""The state machine of share groups: members, targets, share partitions.

The rows of ``share_rules`` decide. Changes are written to the log as records, which ``flush`` hands
over in one batch for each request or timer.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.modern.modern_membership import (
    GroupDependencies,
    ModernMembership,
)
from mockbroker.simulation.groups.modern.partitions import NOTHING, Assignment, by_topic
from mockbroker.simulation.groups.share.share_assignor import simple
from mockbroker.simulation.groups.share.share_group import ShareGroup, ShareHeartbeat, ShareMember
from mockbroker.simulation.groups.share.share_partition import UNINITIALIZED
from mockbroker.simulation.groups.share.share_records import ShareRecords
from mockbroker.simulation.groups.share.share_rules import ShareChange, ShareRules
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first

__all__ = ["ShareMembership"]


class ShareMembership(ModernMembership[ShareGroup]):
    """The state machine of share groups. ``initialize`` makes the state of share partitions
    for a group, given by its id and its epoch, at an offset."""

    def __init__(
        self,
        shared: GroupDependencies,
        times: Callable[[str], GroupTimes],
        initialize: Callable[[str, Assignment, int, int], None],
    ) -> None:
        records = ShareRecords(shared.release, shared.topics.name_of)
        super().__init__(shared, ShareRules, records, times)
        self._initialize = initialize

    def _use_release(self, release: Release) -> None:
        super()._use_release(release)
        self._later_at_zero = release.has(facts.LATER_SHARE_PARTITIONS_AT_ZERO)

    def renew(self, group: ShareGroup, member: ShareMember) -> None:
        session = group.clocks.get(member.member_id)
        if session is None:
            session = group.clocks[member.member_id] = self.session(group, member.member_id)
        session.renew(self.times(group.group_id).session_ms)

    # ---- members -----------------------------------------------------------------------------

    def follow_request(
        self, group: ShareGroup, former: ShareMember, request: ShareHeartbeat
    ) -> bool:
        """Take over the fields of a heartbeat, and raise the epoch if that requires another target.
        Returns whether it did."""
        names = former.topic_names
        if request.topic_names is not None:
            names = frozenset(request.topic_names)
        member = replace(
            former,
            rack_id=request.rack_id or former.rack_id,
            topic_names=names,
            client_id=request.client_id,
            client_host=request.client_host,
        )
        unassigned = group.target_epoch >= group.epoch and self._has_unassigned(group)
        self.put(group, member)
        facts = self.topics.facts(group.subscribed)
        event = ShareChange(
            subscription_changed=former.topic_names != names,
            topics_changed=facts != group.facts,
            unassigned=unassigned,
        )
        apply_first(self.rules.change, event, event)
        group.facts = facts
        if event.bumps:
            self.bump(group)
        return event.bumps

    def _has_unassigned(self, group: ShareGroup) -> bool:
        """Whether a share partition of a subscribed topic is in no target."""
        subscribed = self.topics.counts(group.subscribed)
        assigned = NOTHING.union(*group.target.values())
        existing = {tp for tp in group.initialized if tp[0] in subscribed}
        return bool(group.members) and not existing <= assigned

    def _removed(self, group: ShareGroup) -> None:
        group.facts = self.topics.facts(group.subscribed)

    # ---- epochs and targets ------------------------------------------------------------------

    def make_target(self, group: ShareGroup) -> None:
        """Make the target of the group's epoch, if it is time."""
        if self.target_event(group).makes_target:
            self.set_targets(group, self._computed(group), unwritten=NOTHING)

    def _computed(self, group: ShareGroup) -> dict[str, Assignment]:
        counts = self.topics.counts(group.subscribed)
        partitions = [
            (topic_id, index)
            for topic_id, count in counts.items()
            for index in range(count)
            if (topic_id, index) in group.initialized
        ]
        topics = {
            name: frozenset(self.topics.counts(member.topic_names))
            for name, member in group.members.items()
        }
        return simple(topics, partitions, group.target)

    def reconcile(self, group: ShareGroup, member_id: str, *, changed: bool) -> ShareMember:
        """Bring a member to its target, at once. A tester may hold that."""
        member = group.members[member_id]
        behind = member.epoch != group.target_epoch
        if group.held or not (behind or changed):
            return member
        subscribed = self.topics.counts(member.topic_names)
        target = group.target.get(member_id, NOTHING)
        after = replace(member, assigned=frozenset(tp for tp in target if tp[0] in subscribed))
        if behind:
            after = replace(after, epoch=group.target_epoch, previous_epoch=member.epoch)
        self.put(group, after)
        return after

    # ---- share partitions --------------------------------------------------------------------

    def initialize_subscribed(self, group: ShareGroup) -> None:
        """Make the state of the share partitions that are subscribed and have none. The next
        heartbeat assigns them."""
        counts = self.topics.counts(group.subscribed)
        every = {(topic, index) for topic, count in counts.items() for index in range(count)}
        missing = frozenset(every - group.initialized)
        if not missing:
            return
        known = {topic_id for topic_id, _ in group.initialized} | group.initializing.keys()
        later = frozenset(each for each in missing if each[0] in known)
        if not self._later_at_zero:
            later = NOTHING
        self.initializing(
            group, {topic: frozenset(indexes) for topic, indexes in by_topic(missing)}
        )
        self._initialize(group.group_id, missing - later, group.epoch, UNINITIALIZED)
        self._initialize(group.group_id, later, group.epoch, 0)
        self.initialized(group, missing)

    def initializing(self, group: ShareGroup, topics: Mapping[uuid.UUID, frozenset[int]]) -> None:
        """Note that share partitions are getting a state."""
        for topic_id, indexes in topics.items():
            found = group.initializing.get(topic_id, frozenset())
            group.initializing[topic_id] = found | indexes
        self.note(self.records.share_states(group))
        self.flush(group)

    def initialized(self, group: ShareGroup, partitions: Assignment) -> None:
        """Note that share partitions have a state."""
        group.initialized |= partitions
        for topic_id, indexes in by_topic(partitions):
            left = group.initializing.pop(topic_id, frozenset()).difference(indexes)
            if left:
                group.initializing[topic_id] = left
        self.note(self.records.share_states(group))
        self.flush(group)

    def forget(self, group: ShareGroup, partitions: Assignment) -> None:
        """Forget the state of share partitions."""
        group.initialized -= partitions
        self.note(self.records.share_states(group))
