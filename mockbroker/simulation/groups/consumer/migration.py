"""Members of the classic protocol in consumer groups, and groups that turn into the other kind.

A classic group of consumers becomes a consumer group when a member joins by heartbeat (68), and a
consumer group a classic one when the last such member leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import Group as ClassicGroup
from mockbroker.simulation.groups.classic.classic_group import (
    GroupState,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)
from mockbroker.simulation.groups.classic.classic_group import Member as ClassicMember
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.classic.subscriptions import subscribed_topics
from mockbroker.simulation.groups.consumer.classic_member_rules import (
    ClassicEvent,
    ClassicJoin,
    ClassicRules,
    ClassicSync,
    Replacement,
)
from mockbroker.simulation.groups.consumer.consumer_group import (
    CONSUMER_TYPE,
    ClassicPart,
    ConsumerGroup,
    Member,
)
from mockbroker.simulation.groups.consumer.consumer_heartbeats import UpgradeRefusedError
from mockbroker.simulation.groups.consumer.consumer_membership import ConsumerMembership
from mockbroker.simulation.groups.consumer_protocol import (
    read_assignment,
    read_subscription,
    version_of,
    write_assignment,
)
from mockbroker.simulation.groups.modern.partitions import NOTHING, Assignment
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rules_of_release

__all__ = ["Migration"]


class Migration:
    """Serves members of the classic protocol, and converts groups."""

    def __init__(
        self,
        membership: ConsumerMembership,
        classic: ClassicGroups,
        groups: dict[str, ConsumerGroup],
        release: Release,
        new_member_id: Callable[[], str],
    ) -> None:
        self._membership = membership
        self._classic = classic
        self._groups = groups
        release.follow(self._use_release)
        self._new_member_id = new_member_id

    def _use_release(self, release: Release) -> None:
        self._rules = rules_of_release(ClassicRules, release)

    # ---- from a classic group ----------------------------------------------------------------

    def converted(self, group_id: str) -> ConsumerGroup:
        """Return the consumer group that a classic group would be. Raises UpgradeRefusedError. What
        waits in the classic group gets 27 in either case."""
        classic = self._classic.groups[group_id]
        self._classic.end_waits(group_id)
        group = ConsumerGroup(group_id, epoch=classic.generation, target_epoch=classic.generation)
        for each in classic.members.values():
            member, target = self._converted(classic, each)
            group.target[member.member_id] = target
            group.put(member)
        group.facts = self._membership.topics.facts(group.subscribed)
        return group

    def _converted(self, classic: ClassicGroup, member: ClassicMember) -> tuple[Member, Assignment]:
        cannot = f"Cannot upgrade classic group {classic.group_id} to consumer group because "
        name = classic.protocol_name or member.protocols[0][0]
        subscription = read_subscription(member.metadata(name))
        assignment = read_assignment(member.assignment) if member.assignment else None
        if subscription is None or (member.assignment and assignment is None):
            raise UpgradeRefusedError(cannot + "the embedded consumer protocol is malformed.")
        if assignment is not None and assignment.user_data:
            raise UpgradeRefusedError(
                cannot + "an unsupported custom assignor is in use. Please refer to the "
                "documentation or switch to a default assignor before re-attempting the upgrade."
            )
        assigned = NOTHING
        if assignment is not None:
            assigned = self._membership.topics.assignment(
                (each.topic, each.partitions) for each in assignment.assigned_partitions
            )
        generation = classic.generation
        converted = Member(
            member.member_id,
            instance_id=member.instance_id,
            rack_id=subscription.rack_id or None,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topic_names=frozenset(subscription.topics),
            client_id=member.client_id,
            client_host=member.client_host,
            classic=ClassicPart(member.session_timeout_ms, member.protocols),
            epoch=generation,
            previous_epoch=generation,
            assigned=dict.fromkeys(sorted(assigned), generation),
        )
        return converted, assigned

    def take_over(self, group: ConsumerGroup) -> None:
        """Let a group take the place of the classic one of its id: whatever waits there gets 27."""
        membership = self._membership
        self._classic.hand_over(group.group_id)
        membership.note(membership.records.classic_deletion(group.group_id))
        if group.members:
            membership.note(*membership.records.whole(group))
        for member in group.members.values():
            membership.renew(group, member)

    # ---- to a classic group ------------------------------------------------------------------

    def downgrade(
        self, group: ConsumerGroup, gone: Sequence[Member], *, rebalance: bool = True
    ) -> None:
        """Make a group of members of the classic protocol a classic one again."""
        membership, now_ms = self._membership, self._membership.timers.now_ms
        for member in gone:
            membership.note(*membership.records.member_deletion(group.group_id, member.member_id))
            group.remove(member.member_id)
        membership.note(*membership.records.deletion(group))
        group.stop()
        del self._groups[group.group_id]
        membership.flush(group)
        classic = ClassicGroup(
            group.group_id, now_ms, generation=group.epoch, protocol_type=CONSUMER_TYPE
        )
        machine = self._classic.machine
        for each in group.members.values():
            assert each.classic is not None, "the others are gone"
            classic.add(
                ClassicMember(
                    each.member_id, each.instance_id, each.client_id, each.client_host,
                    each.classic.session_timeout_ms, each.rebalance_timeout_ms, CONSUMER_TYPE,
                    each.classic.protocols, machine.session(classic, each.member_id),
                    is_new=False,
                )
            )  # fmt: skip
        classic.protocol_name = classic.elected_protocol()
        classic.subscribed = subscribed_topics(classic)
        for name, stays in classic.members.items():
            target = group.target.get(name, NOTHING)
            stays.assignment = self._serialized(target, stays.metadata(classic.protocol_name))
        classic.enter(GroupState.STABLE, now_ms)
        classic.store()
        self._classic.adopt(classic, rebalance=rebalance)

    def _serialized(self, assignment: Assignment, subscription: bytes) -> bytes:
        by_name = self._membership.topics.by_name(assignment)
        return write_assignment(by_name, version_of(subscription) or 0)

    # ---- requests ----------------------------------------------------------------------------

    def join(self, group: ConsumerGroup, request: JoinRequest) -> JoinResult:
        """JoinGroup, at a consumer group with members."""
        membership = self._membership
        subscription = read_subscription(request.protocols[0][1]) if request.protocols else None
        event = ClassicJoin(
            group,
            request.member_id,
            request.instance_id,
            request=request,
            settings=membership.settings(),
            subscription=subscription,
            new_member_id=self._new_member_id,
        )
        apply_first(self._rules.join, event, event)
        if event.code is not None:
            given = event.code is ErrorCode.MEMBER_ID_REQUIRED
            return JoinResult(event.code, event.member_id if given else "")
        member = self._join(event)
        if group.group_id in self._groups:
            clocks = membership.clocks(group, member.member_id)
            clocks.join.set(None)
            membership.renew(group, member)
            clocks.sync.set(membership.timers.now_ms + request.rebalance_timeout_ms)
        membership.flush(group)
        name = request.protocols[0][0]
        return JoinResult(ErrorCode.NONE, member.member_id, member.epoch, CONSUMER_TYPE, name)

    def _join(self, event: ClassicJoin) -> Member:
        membership, group, request = self._membership, event.group, event.request
        downgrades = False
        is_new_instance = event.instance_id is not None and event.holder is None
        if event.replaces is None:
            former = event.holder or group.members.get(event.member_id) or Member(event.member_id)
        else:
            replacement = Replacement(
                group, event.replaces, event.settings, self._classic.machine.settings.max_size
            )
            apply_first(self._rules.replacement, replacement, replacement)
            downgrades = replacement.downgrades
            former = membership.take_place(group, event.replaces, event.member_id)
        read = event.subscription
        assert read is not None, "a row refuses that"
        member, changed = membership.update(
            group,
            former,
            replace(
                former,
                instance_id=request.instance_id or former.instance_id,
                rack_id=read.rack_id or former.rack_id,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                topic_names=frozenset(read.topics),
                topic_regex="",
                client_id=request.client_id,
                client_host=request.client_host,
                classic=ClassicPart(request.session_timeout_ms, request.protocols),
            ),
        )
        owned = membership.topics.assignment(
            (assigned.topic, assigned.partitions) for assigned in read.owned_partitions
        )
        stale = group.target_epoch < group.epoch
        if not downgrades:
            is_new_instance &= not membership.make_target(group)
        if not downgrades or not stale:
            member = membership.reconcile(
                group, member, owned, changed=changed, is_new_instance=is_new_instance
            )
        if downgrades:
            self.downgrade(group, (), rebalance=stale)
        return member

    def sync(self, group: ConsumerGroup, request: SyncRequest) -> SyncResult:
        """SyncGroup, at a consumer group."""
        event = ClassicSync(
            group,
            request.member_id,
            request.instance_id,
            request.generation,
            self._begin_join_timer(group),
            request=request,
        )
        if not apply_first(self._rules.members, event, event):
            apply_first(self._rules.sync, event, event)
        if event.code is not None:
            return SyncResult(event.code)
        member, membership = event.member, self._membership
        assert member.classic is not None, "a row refuses others"
        membership.clocks(group, member.member_id).sync.set(None)
        membership.renew(group, member)
        data = self._serialized(frozenset(member.assigned), member.classic.protocols[0][1])
        return SyncResult(ErrorCode.NONE, request.protocol_type, request.protocol_name, data)

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """Heartbeat (12), at a consumer group."""
        event = ClassicEvent(
            group, member_id, instance_id, generation, self._begin_join_timer(group)
        )
        if apply_first(self._rules.members, event, event):
            assert event.code is not None
            return event.code
        self._membership.renew(group, event.member)
        apply_first(self._rules.heartbeat, event, event)
        return event.code or ErrorCode.NONE

    def _begin_join_timer(self, group: ConsumerGroup) -> Callable[[Member], None]:
        """A function that gives a member one rebalance time-out to join, if it has none yet."""

        def begin(member: Member) -> None:
            timer = self._membership.clocks(group, member.member_id).join
            if timer.due_ms is None:
                timer.set(self._membership.timers.now_ms + member.rebalance_timeout_ms)

        return begin

    def leave(
        self, group: ConsumerGroup, members: Sequence[LeavingMember]
    ) -> tuple[ErrorCode, tuple[ErrorCode, ...]]:
        """LeaveGroup, at a consumer group: an error for each member."""
        codes, gone = [], {}
        for member in members:
            event = ClassicEvent(group, member.member_id, member.instance_id)
            apply_first(self._rules.leave, event, event)
            codes.append(event.code or ErrorCode.NONE)
            if event.code is None:
                gone[event.member.member_id] = event.member
        if gone:
            code = self._membership.gone(group, list(gone.values()))
            if code:
                return code, ()
            self._membership.flush(group)
        return ErrorCode.NONE, tuple(codes)
