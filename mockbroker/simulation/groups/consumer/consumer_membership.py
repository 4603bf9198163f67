"""The state machine of consumer groups: members, targets, reconciliation, regular expressions.

Each method is one step; the rows of ``consumer_rules`` decide. Changes are written to the log as
records, which ``flush`` hands over in one batch for each request or timer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from mockbroker.simulation.groups.consumer.consumer_group import (
    ConsumerClocks,
    ConsumerGroup,
    HeartbeatRequest,
    Member,
    ResolvedRegex,
)
from mockbroker.simulation.groups.consumer.consumer_records import ConsumerRecords
from mockbroker.simulation.groups.consumer.consumer_rules import (
    ConsumerChange,
    ConsumerRules,
    ConsumersGone,
    RegexEvent,
)
from mockbroker.simulation.groups.consumer.consumer_settings import ConsumerSettings
from mockbroker.simulation.groups.consumer.partition_assignors import ASSIGNORS, Subscriber
from mockbroker.simulation.groups.consumer.partition_reconciliation import Reconciliation, reconcile
from mockbroker.simulation.groups.consumer.regexes import matching_names
from mockbroker.simulation.groups.modern.group_times import GroupTimes
from mockbroker.simulation.groups.modern.modern_membership import (
    GroupDependencies,
    StaticMembership,
)
from mockbroker.simulation.groups.modern.partitions import NOTHING, Assignment, TopicIdPartition
from mockbroker.simulation.groups.sessions import Session
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.timers import Timer

__all__ = ["ConsumerMembership", "Downgrade"]

Downgrade: TypeAlias = Callable[[ConsumerGroup, Sequence[Member]], None]
"""Turns a group into a classic one, without these members."""


def _updated(member: Member, request: HeartbeatRequest) -> Member:
    """The member with the fields of a heartbeat; those that it leaves out stay."""
    names = member.topic_names if request.topic_names is None else frozenset(request.topic_names)
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack_id=request.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topic_names=names,
        topic_regex=member.topic_regex if request.topic_regex is None else request.topic_regex,
        assignor=request.assignor or member.assignor,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


class ConsumerMembership(StaticMembership[ConsumerGroup]):
    """The state machine of consumer groups."""

    nothing = NOTHING

    def __init__(
        self,
        shared: GroupDependencies,
        settings: Callable[[], ConsumerSettings],
        times: Callable[[str], GroupTimes],
        classic_max_size: Callable[[], int],
        downgrade: Downgrade,
    ) -> None:
        super().__init__(shared, ConsumerRules, ConsumerRecords(shared.release), times)
        self.settings = settings
        self._downgrade = downgrade
        self._classic_max_size = classic_max_size

    # ---- sessions ----------------------------------------------------------------------------

    def _new_clocks(self, session: Session, timer: Callable[[str], Timer]) -> ConsumerClocks:
        return ConsumerClocks(session, timer("revocation"), timer("JoinGroup"), timer("SyncGroup"))

    def renew(self, group: ConsumerGroup, member: Member) -> None:
        if member.classic is None:
            super().renew(group, member)
        else:
            session_ms = member.classic.session_timeout_ms
            self.clocks(group, member.member_id).session.renew(session_ms)

    # ---- members -----------------------------------------------------------------------------

    def _kept_while_away(self, member: Member) -> dict[str, Any]:
        return {"revoking": {}, "assigned": dict.fromkeys(member.assigned, 0)}

    def _members_gone(self, group: ConsumerGroup, members: Sequence[Member]) -> ConsumersGone:
        return ConsumersGone(
            group,
            members,
            self.remove,
            self.settle,
            settings=self.settings(),
            classic_max_size=self._classic_max_size(),
            downgrade=self._downgrade,
        )

    def _removed(self, group: ConsumerGroup) -> None:
        self._forget_regexes(group)
        facts = self.topics.facts(group.subscribed)
        if facts != group.facts:
            group.facts = facts
            self.note(*self.records.topics(group))

    def _forget_regexes(self, group: ConsumerGroup) -> None:
        """Forget the expressions that no member has any longer."""
        for regex in group.resolved.keys() - group.regexes.keys():
            del group.resolved[regex]
            self.note(self.records.regex(group.group_id, regex, None))

    # ---- epochs and targets ------------------------------------------------------------------

    def follow_request(
        self, group: ConsumerGroup, member: Member, request: HeartbeatRequest
    ) -> tuple[Member, bool]:
        """Take over the fields of a heartbeat. Returns the member, and whether it subscribes to
        something else than before."""
        return self.update(group, member, _updated(member, request))

    def update(self, group: ConsumerGroup, former: Member, member: Member) -> tuple[Member, bool]:
        """Put a member in the place of its former self, and raise the epoch if that requires
        another target."""
        names = former.topic_names != member.topic_names
        regex = former.topic_regex != member.topic_regex
        assignor = self.assignor(group)
        self.put(group, member)
        resolved = regex and (member.topic_regex == "" or member.topic_regex in group.resolved)
        if regex:
            self._forget_regexes(group)
        other = former.assignor != member.assignor and self.assignor(group) != assignor
        if names or resolved or other or group.facts_version != self.topics.version:
            self._compare(
                group, subscription_changed=names, resolved_changed=resolved, assignor_changed=other
            )
        return member, names or regex

    def _compare(
        self,
        group: ConsumerGroup,
        *,
        subscription_changed: bool = False,
        resolved_changed: bool = False,
        assignor_changed: bool = False,
    ) -> None:
        """Look at the topics of the group again."""
        facts = self.topics.facts(group.subscribed)
        event = ConsumerChange(
            group=group,
            subscription_changed=subscription_changed,
            resolved_changed=resolved_changed,
            assignor_changed=assignor_changed,
            topics_changed=[fact[:3] for fact in facts] != [fact[:3] for fact in group.facts],
            racks_changed=facts != group.facts,
        )
        apply_first(self.rules.change, event, event)
        if facts != group.facts:
            group.facts = facts
            self.note(*self.records.topics(group))
        group.facts_version = self.topics.version
        if event.bumps:
            self.bump(group)

    def assignor(self, group: ConsumerGroup) -> str:
        """The name of the assignor that the group uses."""
        return group.preferred_assignor or next(iter(self.settings().assignors), "")

    def make_target(self, group: ConsumerGroup) -> bool:
        """Make the target of the group's epoch, if it is time. Returns whether it was."""
        makes = self.target_event(group).makes_target
        if makes:
            self.set_targets(group, self._computed(group))
        return makes

    def _computed(self, group: ConsumerGroup) -> dict[str, Assignment]:
        pinned = group.pinned_targets(NOTHING)
        if pinned is not None:
            return pinned
        counts = self.topics.counts(group.subscribed)
        subscriptions = {group.topics_of(member) for member in group.members.values()}
        topic_ids = {names: frozenset(self.topics.counts(names)) for names in subscriptions}
        members = {
            name: Subscriber(
                topic_ids[group.topics_of(member)],
                member.instance_id,
                frozenset(
                    tp for tp in group.target.get(name, NOTHING) if tp[1] < counts.get(tp[0], 0)
                ),
            )
            for name, member in group.members.items()
        }
        if not members:
            return {}
        return ASSIGNORS[self.assignor(group)](members, counts)

    # ---- reconciliation ----------------------------------------------------------------------

    def reconcile(
        self,
        group: ConsumerGroup,
        member: Member,
        owned: Assignment | None,
        *,
        changed: bool = False,
        is_new_instance: bool = False,
    ) -> Member:
        """Bring a member nearer to its target. A tester may hold that: then nothing is given up,
        and nothing is free."""
        if member.is_reconciled_to(group.target_epoch) and not changed:
            return member
        subscribed = self.topics.counts(group.topics_of(member))

        def is_subscribed(tp: TopicIdPartition) -> bool:
            return tp[0] in subscribed

        event = Reconciliation(
            member,
            group.target_epoch,
            group.target.get(member.member_id, NOTHING),
            None if group.held else owned,
            (lambda tp: False) if group.held else group.is_free,
            is_subscribed,
            changed,
            is_new_instance=is_new_instance,
        )
        after = reconcile(self.rules.target_read, self.rules.reconcile, event)
        self.advance(group, member, after)
        return after

    # ---- regular expressions -----------------------------------------------------------------

    def refresh_regexes(
        self, group: ConsumerGroup, visible: Callable[[Iterable[str]], frozenset[str]]
    ) -> None:
        """Resolve regular expressions, if it is time: other topics require another target."""
        if not group.regexes:
            return
        event = RegexEvent(
            group, self.timers.now_ms, self.settings().regex_interval_ms, self.topics.created
        )
        apply_first(self.rules.regex, event, event)
        if not event.resolves:
            return
        changed = False
        for regex in sorted(group.regexes):
            former = group.resolved.get(regex)
            resolved = ResolvedRegex(
                visible(matching_names(regex, self.topics.names())),
                self.topics.created,
                self.timers.now_ms,
            )
            changed |= resolved.topics != (NOTHING if former is None else former.topics)
            group.resolved[regex] = resolved
            self.note(self.records.regex(group.group_id, regex, resolved))
        self._compare(group, resolved_changed=changed)
