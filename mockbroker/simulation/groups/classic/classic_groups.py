"""The coordinator of classic groups: runs rules for requests and timers.

One object holds the groups of all brokers; the broker that leads a group's partition of
``__consumer_offsets`` is its coordinator, and the APIs check that before they come here. No
sockets and no messages: a join or a sync is answered by calling ``answer``, at once or later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from kproto.error_codes import ErrorCode
from mockbroker.simulation.coordinators.group_facts import GroupCommit
from mockbroker.simulation.groups.classic.classic_group import (
    DescribedGroup,
    DescribedMember,
    Group,
    GroupState,
    JoinAnswer,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncAnswer,
    SyncRequest,
    SyncResult,
)
from mockbroker.simulation.groups.classic.classic_operations import ClassicOperations
from mockbroker.simulation.groups.classic.classic_requests import (
    Admission,
    CommitEvent,
    DeleteEvent,
    DescribeEvent,
    Gate,
    HeartbeatEvent,
    JoinEvent,
    LeaveEvent,
    MissingGroup,
    SyncEvent,
)
from mockbroker.simulation.groups.classic.classic_settings import MOST_GROUPS, GroupSettings
from mockbroker.simulation.groups.classic.commit_rules import CommitRules
from mockbroker.simulation.groups.classic.join_rules import JoinRules
from mockbroker.simulation.groups.classic.member_rules import MemberRules
from mockbroker.simulation.groups.classic.rebalance_rules import rebalance_rules
from mockbroker.simulation.groups.classic.rebalancing import GroupEvent, Rebalancing
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, apply_first, rules_of_release
from mockbroker.simulation.state.timers import Timers

__all__ = ["ClassicGroups"]


class ClassicGroups(ClassicOperations):
    """The classic groups of a cluster.

    ``settings`` returns the broker configs that groups follow. ``on_changed`` are called with the
    id of a group whose state, members or generation changed, ``on_deleted`` with the id of a group
    that is gone. The latter list is that of groups of every kind; ``on_classic_deleted`` are called
    after it for classic groups alone.
    """

    def __init__(
        self,
        timers: Timers,
        release: Release,
        settings: Callable[[], GroupSettings],
    ) -> None:
        self.on_changed: list[Callable[[str], None]] = []
        self.on_deleted: list[Callable[[str], None]] = []
        self.on_classic_deleted: list[Callable[[str], None]] = []
        rules = rebalance_rules(release)
        self._rebalancing = Rebalancing(timers, rules, settings, self._changed)
        super().__init__(self._rebalancing)
        release.follow(self._use_release)
        self._timers = timers

    def _use_release(self, release: Release) -> None:
        self._rebalancing.rules = rebalance_rules(release)
        self._join_rules = rules_of_release(JoinRules, release)
        self._member_rules = rules_of_release(MemberRules, release)
        self._commit_rules = rules_of_release(CommitRules, release)

    # ---- facts -------------------------------------------------------------------------------

    @property
    def groups(self) -> Mapping[str, Group]:
        """All groups by id, oldest first."""
        return MappingProxyType(self._groups)

    def group(self, group_id: str) -> Group | None:
        """Return a group; None if there is none of this id."""
        return self._groups.get(group_id)

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Return whether members of a consumer group consume a topic. A group of consumers whose
        metadata cannot be read counts as subscribed to everything."""
        group = self._groups.get(group_id)
        if group is None or not group.is_consumer_group:
            return False
        return group.subscribed is None or topic in group.subscribed

    def empty_since_ms(self, group_id: str) -> int | None:
        """Return when a group became empty; None if it has members or does not exist."""
        group = self._groups.get(group_id)
        return group.since_ms if group is not None and group.is_in(GroupState.EMPTY) else None

    # ---- requests ----------------------------------------------------------------------------

    def join(
        self,
        request: JoinRequest,
        answer: JoinAnswer,
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """JoinGroup. ``answer`` is called once, when the rebalance completes or before.
        ``coordinator_error`` says whether the broker coordinates the group, here and below."""
        group = self._groups.get(request.group_id)
        admission = Admission(self.machine, group, request, answer, coordinator_error)
        if apply_first(self._join_rules.admission, admission, admission):
            return
        is_new = group is None
        if group is None:
            if self._full:
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                return answer(JoinResult(code, request.member_id))
            group = self._make(request.group_id)
        event = JoinEvent(
            self.machine,
            group,
            request.member_id,
            request.instance_id,
            request=request,
            answer=answer,
            new_member_id=self._id_for,
            on_updated=self._join_rules.updated,
            on_replaced=self._join_rules.replaced,
        )
        if is_new:
            apply_first(self._join_rules.made, event, event)
        apply_first(self._join_rules.join, event, event)

    def sync(
        self,
        request: SyncRequest,
        answer: SyncAnswer,
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """SyncGroup. ``answer`` is called once, when the leader has assigned or before."""
        group, code = self._pass(self._member_rules.sync_gate, request.group_id, coordinator_error)
        if group is None:
            return answer(SyncResult(code))
        event = SyncEvent(
            self.machine,
            group,
            request.member_id,
            request.instance_id,
            request=request,
            answer=answer,
        )
        apply_first(self._member_rules.sync, event, event)

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> ErrorCode:
        """Heartbeat: the member lives."""
        group, code = self._pass(self._member_rules.heartbeat_gate, group_id, coordinator_error)
        if group is None:
            return code
        event = HeartbeatEvent(self.machine, group, member_id, instance_id, generation=generation)
        apply_first(self._member_rules.heartbeat, event, event)
        return event.code

    def leave(
        self,
        group_id: str,
        members: Sequence[LeavingMember],
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> tuple[ErrorCode, tuple[ErrorCode, ...]]:
        """LeaveGroup: an error for the request, and one for each member if that is 0."""
        group, code = self._pass(self._member_rules.leave_gate, group_id, coordinator_error)
        if group is None:
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                return ErrorCode.NONE, tuple(code for _ in members)
            return code, ()
        if group.is_in(GroupState.DEAD):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, ()
        codes = []
        for member in members:
            event = LeaveEvent(self.machine, group, member.member_id, member.instance_id)
            apply_first(self._member_rules.leave, event, event)
            codes.append(event.code)
        if ErrorCode.NONE in codes:
            whole = GroupEvent(self.machine, group)
            apply_first(self._member_rules.left, whole, whole)
        return ErrorCode.NONE, tuple(codes)

    def make_simple(self, group_id: str) -> None:
        """Make a simple group if there is none, and the table of groups is not full."""
        if group_id not in self._groups and not self._full:
            self._make(group_id)

    def validate_commit(self, commit: GroupCommit) -> ErrorCode:
        """Return whether offsets may be stored for a group, as 0 or an error code.

        Makes a simple group if there is none and no generation is named; renews the member's
        session.
        """
        group = self._groups.get(commit.group_id)
        if group is None:
            if self._full:
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
            missing = MissingGroup(commit, lambda: self._make(commit.group_id))
            apply_first(self._commit_rules.missing, missing, missing)
            group = self._groups.get(commit.group_id)
            if missing.code or group is None:
                return missing.code
        event = CommitEvent(
            self.machine, group, commit.member_id or "", commit.instance_id,
            generation=commit.epoch, transactional=commit.transactional,
        )  # fmt: skip
        apply_first(self._commit_rules.commit, event, event)
        return event.code

    # ---- administration ----------------------------------------------------------------------

    def delete(self, group_id: str, coordinator_error: ErrorCode = ErrorCode.NONE) -> ErrorCode:
        """DeleteGroups, for one group: an empty group goes, with its offsets."""
        group, code = self._pass(self._commit_rules.delete_gate, group_id, coordinator_error)
        if group is None:
            return code
        event = DeleteEvent(self.machine, group, "", delete=self._delete)
        apply_first(self._commit_rules.delete, event, event)
        return event.code

    def describe(self, group_id: str) -> DescribedGroup | None:
        """DescribeGroups, for one group; None if there is none of this id."""
        group = self._groups.get(group_id)
        if group is None:
            return None
        event = DescribeEvent(self.machine, group, state=group.state)
        apply_first(self._commit_rules.describe, event, event)
        protocol = group.protocol_name if event.shows_metadata else None
        return DescribedGroup(
            event.state,
            group.protocol_type or "",
            protocol or "",
            tuple(
                DescribedMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    member.metadata(protocol),
                    member.assignment if event.shows_assignments else b"",
                )
                for member in group.members.values()
            ),
        )

    # ---- expiry and moves of coordinators ----------------------------------------------------

    def forget_if_empty(self, group_id: str) -> bool:
        """Delete a group without offsets, unless it has members: ids that may join are forgotten
        with it. Returns whether it is gone."""
        group = self._groups.get(group_id)
        if group is None or not group.is_in(GroupState.EMPTY):
            return False
        self._delete(group)
        return True

    def unload(self, group_ids: Iterable[str]) -> None:
        """The coordinator of these groups lost its partition: waiting requests fail with error
        16."""
        for group in self._known(group_ids):
            for member_id in list(group.joins):
                group.answer_join(member_id, JoinResult(ErrorCode.NOT_COORDINATOR, member_id))
            for member_id in list(group.syncs):
                group.answer_sync(member_id, SyncResult(ErrorCode.NOT_COORDINATOR))
            self.machine.stop_timers(group)

    def load(self, group_ids: Iterable[str], has_offsets: Callable[[str], bool]) -> None:
        """Another coordinator reads these groups from the log: the last generation that has
        assignments, with the sessions of its members started anew. A group that was never written
        there and has no commits that make it is gone."""
        for former in self._known(group_ids):
            group_id = former.group_id
            if former.stored is None and not has_offsets(group_id):
                del self._groups[group_id]
                continue
            group = self._groups[group_id] = Group(group_id, self._timers.now_ms)
            self.machine.restore(group, former)
            self._changed(group)
            if len(group.members) > self.machine.settings.max_size:
                self.machine.prepare(group)

    # ---- groups of other kinds ---------------------------------------------------------------

    def hand_over(self, group_id: str) -> None:
        """Give up a group that becomes one of another kind. Waiting requests fail with error 27."""
        self.end_waits(group_id)
        self.machine.stop_timers(self._groups.pop(group_id))

    def end_waits(self, group_id: str) -> None:
        """Fail the requests that wait in a group with error 27. Their members stay, and have to
        join again."""
        group = self._groups[group_id]
        code = ErrorCode.REBALANCE_IN_PROGRESS
        for member_id in list(group.joins):
            group.answer_join(member_id, JoinResult(code, member_id))
        for member_id in list(group.syncs):
            group.answer_sync(member_id, SyncResult(code))

    def adopt(self, group: Group, *, rebalance: bool) -> None:
        """Take a stable group that was one of another kind."""
        self._groups[group.group_id] = group
        for member in group.members.values():
            self.machine.renew(member)
        self._changed(group)
        if rebalance:
            self.machine.prepare(group)

    def _known(self, group_ids: Iterable[str]) -> Iterator[Group]:
        for group_id in list(group_ids):
            group = self._groups.get(group_id)
            if group is not None:
                yield group

    # ---- groups ------------------------------------------------------------------------------

    @property
    def _full(self) -> bool:
        return len(self._groups) >= MOST_GROUPS

    def _pass(
        self, gate: tuple[Row[Gate, Gate], ...], group_id: str, coordinator_error: ErrorCode
    ) -> tuple[Group | None, ErrorCode]:
        """Return the group that a member names; None and an error code if the request has its
        answer without it."""
        group = self._groups.get(group_id)
        event = Gate(group_id, group is not None, coordinator_error)
        apply_first(gate, event, event)
        if event.code is None:
            return group, ErrorCode.NONE
        return None, event.code

    def _make(self, group_id: str) -> Group:
        group = self._groups[group_id] = Group(group_id, self._timers.now_ms)
        self._changed(group)
        return group

    def _delete(self, group: Group) -> None:
        group.enter(GroupState.DEAD, self._timers.now_ms)
        self.machine.stop_timers(group)
        del self._groups[group.group_id]
        self._changed(group)
        for call in (*self.on_deleted, *self.on_classic_deleted):
            call(group.group_id)

    def _changed(self, group: Group) -> None:
        for call in self.on_changed:
            call(group.group_id)

    def _id_for(self, request: JoinRequest) -> str:
        prefix = request.client_id if request.instance_id is None else request.instance_id
        return self._new_member_id(prefix)
