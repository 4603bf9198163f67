"""The state machine of classic groups: rebalances, sessions, and requests that wait.

Each method is one step. The rows that decide between steps come in as ``Rules``, those of one
release.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.groups.classic.classic_group import (
    Group,
    GroupState,
    JoinAnswer,
    JoinResult,
    Member,
    SyncAnswer,
    SyncResult,
)
from mockbroker.simulation.groups.classic.classic_settings import GroupSettings
from mockbroker.simulation.groups.classic.subscriptions import subscribed_topics
from mockbroker.simulation.groups.sessions import Session
from mockbroker.simulation.releases.rows import Row, apply_first
from mockbroker.simulation.state.timers import Timer, Timers

__all__ = ["NEW_MEMBER_TIMEOUT_MS", "GroupEvent", "MemberEvent", "Rebalancing", "Rules"]

NEW_MEMBER_TIMEOUT_MS: Final = 300_000
"""The time-out of a new member's join. It has no id yet, so it cannot send heartbeats."""


# ---- events --------------------------------------------------------------------------------------


class GroupEvent(msgspec.Struct):
    """Something happens to a group: what conditions of rows look at, and effects act on."""

    machine: Rebalancing
    group: Group


class MemberEvent(GroupEvent):
    """Something happens to the member of this id, which the group may lack."""

    member_id: str
    instance_id: str | None = None

    @property
    def member(self) -> Member:
        """The member. Only for rows below those that refuse unknown members."""
        return self.group.members[self.member_id]


GroupRows: TypeAlias = tuple[Row[GroupEvent, GroupEvent], ...]
MemberRows: TypeAlias = tuple[Row[MemberEvent, MemberEvent], ...]


class Rules(msgspec.Struct, frozen=True):
    """The rows of one release that more than one request leads to, by what happens."""

    prepare: GroupRows
    """A rebalance is about to begin."""
    prepared: GroupRows
    """It has begun."""
    member_added: MemberRows
    joined: GroupRows
    """A member has joined."""
    settle: GroupRows
    """A member is gone."""
    late: GroupRows
    """A rebalance completes: members that did not join."""
    leader: GroupRows
    """A rebalance completes: a leader that did not join."""
    complete: GroupRows
    generation: GroupRows
    """A generation with members has begun."""
    joins_answered: MemberRows
    """The JoinGroup of a member has been answered."""
    session_end: MemberRows
    session_ended: GroupRows
    """A member is gone because its session ended."""
    pending_gone: GroupRows
    """An id that was handed out is forgotten."""
    sync_end: GroupRows
    """Time is up for members that have not synced."""


# ---- steps ---------------------------------------------------------------------------------------


class Rebalancing:
    """The state machine of groups. ``changed`` is called with a group after each change that a
    tester may wait for: its state, its members, its generation."""

    def __init__(
        self,
        timers: Timers,
        rules: Rules,
        settings: Callable[[], GroupSettings],
        changed: Callable[[Group], None],
    ) -> None:
        self.timers = timers
        self.changed = changed
        self.rules = rules
        self._settings = settings

    @property
    def settings(self) -> GroupSettings:
        return self._settings()

    # ---- members and sessions ----------------------------------------------------------------

    def session(self, group: Group, member_id: str) -> Session:
        """A session that does not run yet."""
        return Session(
            self.timers,
            partial(self.end_session, group, member_id),
            f"group {group.group_id}: session of {member_id}",
        )

    def add_pending(self, group: Group, member_id: str, timeout_ms: int) -> None:
        """Reserve an id for a member that has to join with it."""
        session = group.pending[member_id] = self.session(group, member_id)
        session.renew(timeout_ms)
        self.changed(group)

    def add(self, group: Group, member: Member) -> None:
        group.add(member)
        event = MemberEvent(self, group, member.member_id, member.instance_id)
        apply_first(self.rules.member_added, event, event)
        self.changed(group)

    def replace(self, group: Group, instance_id: str, member_id: str) -> None:
        """Give the member of an instance another id. Requests that wait under the former id are
        fenced."""
        former = group.instances[instance_id]
        fenced = ErrorCode.FENCED_INSTANCE_ID
        group.answer_join(former, JoinResult(fenced, former))
        group.answer_sync(former, SyncResult(fenced))
        member = group.members[former]
        member.session.stop()
        member.session = self.session(group, member_id)
        group.rename(member, member_id)
        self.renew(member)
        self.changed(group)

    def renew(self, member: Member) -> None:
        member.session.renew(member.session_timeout_ms)

    def end_session(self, group: Group, member_id: str) -> None:
        """The session of a member or of a pending id is over."""
        event = MemberEvent(self, group, member_id)
        apply_first(self.rules.session_end, event, event)

    def remove(self, group: Group, member_id: str) -> None:
        """Forget a member or a pending id. Kafka drops a sync that waits without an answer; here
        it gets 25 like a join, so that no client waits for ever."""
        group.answer_join(member_id, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, ""))
        group.answer_sync(member_id, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)
        self.changed(group)

    def joined(self, group: Group) -> None:
        """Go on after a member joined: begin a rebalance, or complete the one that waited."""
        event = GroupEvent(self, group)
        apply_first(self.rules.joined, event, event)

    def settle(self, group: Group) -> None:
        """Go on after members are gone: begin a rebalance, or complete the one that waited for
        them."""
        event = GroupEvent(self, group)
        apply_first(self.rules.settle, event, event)

    def settle_after_session(self, group: Group) -> None:
        """As ``settle``, if the session of a member has ended."""
        event = GroupEvent(self, group)
        apply_first(self.rules.session_ended, event, event)

    def settle_without_pending(self, group: Group) -> None:
        """Go on after an id that was handed out is forgotten: the rebalance no longer waits for
        it."""
        event = GroupEvent(self, group)
        apply_first(self.rules.pending_gone, event, event)

    # ---- what waits --------------------------------------------------------------------------

    def wait_for_join(self, group: Group, member_id: str, answer: JoinAnswer) -> None:
        """Keep the answer until the rebalance completes. A former join of this member is never
        answered."""
        group.joins[member_id] = answer

    def wait_for_sync(self, group: Group, member_id: str, answer: SyncAnswer) -> None:
        """Keep the answer until the leader has assigned. A former sync of this member is never
        answered."""
        group.syncs[member_id] = answer

    def has_synced(self, group: Group, member_id: str) -> None:
        group.unsynced.discard(member_id)
        if not group.unsynced:
            self._stop_sync_timer(group)

    # ---- rebalances --------------------------------------------------------------------------

    def prepare(self, group: Group) -> None:
        """Begin a rebalance: every member has to join again."""
        event = GroupEvent(self, group)
        apply_first(self.rules.prepare, event, event)
        group.unsynced.clear()
        self._stop_sync_timer(group)
        group.enter(GroupState.PREPARING, self.timers.now_ms)
        self.changed(group)
        apply_first(self.rules.prepared, event, event)

    def complete(self, group: Group) -> None:
        """End a rebalance with the members that have joined, unless a tester holds it."""
        self.stop_join_timer(group)
        if group.held:
            return
        event = GroupEvent(self, group)
        apply_first(self.rules.late, event, event)
        apply_first(self.rules.leader, event, event)
        apply_first(self.rules.complete, event, event)

    def delay(self, group: Group) -> None:
        """Let more members come before the first generation (KIP-134)."""
        delay_ms = self.settings.initial_rebalance_delay_ms
        self._delay(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))

    def _delay(self, group: Group, delay_ms: int, left_ms: int) -> None:
        self.set_join_timer(group, delay_ms, partial(self._delay_over, group, delay_ms, left_ms))

    def _delay_over(self, group: Group, delay_ms: int, left_ms: int) -> None:
        if group.grew and left_ms:
            group.grew = False
            more_ms = min(self.settings.initial_rebalance_delay_ms, left_ms)
            self._delay(group, more_ms, max(left_ms - delay_ms, 0))
        else:
            self.complete(group)

    def wait_for_members(self, group: Group) -> None:
        """Complete the rebalance when the longest rebalance time-out is over."""
        self.set_join_timer(group, group.rebalance_timeout_ms, partial(self.complete, group))

    def next_generation(self, group: Group) -> None:
        group.generation += 1
        if group.members:
            group.protocol_name = group.elected_protocol()
            group.subscribed = subscribed_topics(group)
            group.enter(GroupState.COMPLETING, self.timers.now_ms)
        else:
            group.protocol_name = None
            group.subscribed = subscribed_topics(group)
            group.enter(GroupState.EMPTY, self.timers.now_ms)
            group.store()
        group.grew = False
        group.unsynced.clear()
        self.changed(group)

    def answer_joins(self, group: Group) -> None:
        """Tell each member its generation."""
        for member in list(group.members.values()):
            group.answer_join(member.member_id, group.generation_for(member.member_id))
            event = MemberEvent(self, group, member.member_id)
            apply_first(self.rules.joins_answered, event, event)
            member.is_new = False

    def begin_syncing(self, group: Group) -> None:
        event = GroupEvent(self, group)
        apply_first(self.rules.generation, event, event)

    def wait_for_syncs(self, group: Group) -> None:
        """Give the members of this generation one rebalance time-out to sync."""
        group.unsynced = set(group.members)
        group.sync_timer = self._timer(
            group, "SyncGroup", group.rebalance_timeout_ms, partial(self._sync_over, group)
        )

    def _sync_over(self, group: Group) -> None:
        group.sync_timer = None
        event = GroupEvent(self, group)
        apply_first(self.rules.sync_end, event, event)

    def assign(self, group: Group, assignments: dict[str, bytes]) -> None:
        """Take the leader's assignments; a member that they lack gets empty bytes."""
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        group.enter(GroupState.STABLE, self.timers.now_ms)
        group.store()
        self.changed(group)
        self.answer_syncs(group, ErrorCode.NONE)

    def answer_syncs(self, group: Group, code: int) -> None:
        """Answer the syncs that wait; the sessions of their members start anew."""
        names = (group.protocol_type, group.protocol_name) if not code else (None, None)
        for member in list(group.members.values()):
            if group.answer_sync(member.member_id, SyncResult(code, *names, member.assignment)):
                self.renew(member)

    # ---- log ---------------------------------------------------------------------------------

    def restore(self, group: Group, former: Group) -> None:
        """Make a group what ``former`` last stored. Sessions start anew."""
        stored = former.stored
        if stored is None:
            return
        group.stored = stored
        for each in stored.members:
            member = Member(
                each.member_id, each.instance_id, each.client_id, each.client_host,
                each.session_timeout_ms, each.rebalance_timeout_ms, stored.protocol_type or "",
                each.protocols, self.session(group, each.member_id), each.assignment, is_new=False,
            )  # fmt: skip
            group.add(member)
            self.renew(member)
        group.generation, group.leader = stored.generation, stored.leader
        group.protocol_type, group.protocol_name = stored.protocol_type, stored.protocol_name
        group.subscribed = subscribed_topics(group)
        state = GroupState.STABLE if stored.members else GroupState.EMPTY
        group.enter(state, stored.since_ms)

    # ---- timers ------------------------------------------------------------------------------

    def set_join_timer(self, group: Group, delay_ms: int, call: Callable[[], None]) -> None:
        self.stop_join_timer(group)
        group.join_timer = self._timer(group, "JoinGroup", delay_ms, call)

    def stop_join_timer(self, group: Group) -> None:
        if group.join_timer is not None:
            group.join_timer.set(None)
            group.join_timer = None

    def _stop_sync_timer(self, group: Group) -> None:
        if group.sync_timer is not None:
            group.sync_timer.set(None)
            group.sync_timer = None

    def stop_timers(self, group: Group) -> None:
        """Stop everything that could still happen to a group that is gone."""
        self.stop_join_timer(group)
        self._stop_sync_timer(group)
        for member in group.members.values():
            member.session.stop()
        for session in group.pending.values():
            session.stop()

    def _timer(self, group: Group, what: str, delay_ms: int, call: Callable[[], None]) -> Timer:
        timer = self.timers.timer(call, f"group {group.group_id}: end of {what}")
        timer.set(self.timers.now_ms + delay_ms)
        return timer
