"""The groups of a cluster of every kind, and the dispatch of requests by group id.

``classic``, ``consumer``, ``streams`` and ``share`` each keep groups of their kind and share the
ids. A request goes to the kind that has the group, and else to the kind whose request it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.coordinators.group_facts import STABLE, GroupCommit, GroupStanding
from mockbroker.simulation.coordinators.group_log import GroupLog
from mockbroker.simulation.groups.classic.classic_group import (
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
from mockbroker.simulation.groups.classic.classic_groups import ClassicGroups
from mockbroker.simulation.groups.classic.classic_settings import group_settings
from mockbroker.simulation.groups.classic.stored_groups import StoredGroups
from mockbroker.simulation.groups.consumer.consumer_group import CONSUMER_TYPE, ConsumerGroup
from mockbroker.simulation.groups.consumer.consumer_groups import ConsumerGroups
from mockbroker.simulation.groups.consumer.consumer_settings import consumer_settings
from mockbroker.simulation.groups.group_views import (
    GroupView,
    view_classic_group,
    view_group,
)
from mockbroker.simulation.groups.modern.group_times import group_times
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.modern_membership import GroupDependencies
from mockbroker.simulation.groups.share.share_fetches import ShareFetches
from mockbroker.simulation.groups.share.share_group import ShareGroup
from mockbroker.simulation.groups.share.share_groups import ShareGroups
from mockbroker.simulation.groups.share.share_settings import share_settings
from mockbroker.simulation.groups.streams.streams_group import StreamsGroup
from mockbroker.simulation.groups.streams.streams_groups import StreamsGroups
from mockbroker.simulation.groups.streams.streams_settings import streams_settings
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.controller import Controller

__all__ = ["Groups", "ListedGroup"]

ModernGroup: TypeAlias = ConsumerGroup | StreamsGroup | ShareGroup
AnyGroup: TypeAlias = Group | ModernGroup


class ListedGroup(msgspec.Struct, frozen=True):
    """A group in ListGroups."""

    group_id: str
    protocol_type: str
    state: str
    group_type: str


class Groups:
    """All groups of a cluster. ``log`` stores them; ``share_fetches`` keeps the state of share
    partitions. ``on_changed`` are called with the id of a group whose state, members or epoch
    changed, ``on_deleted`` with the id of a group that is gone."""

    def __init__(
        self,
        controller: Controller,
        configs: EffectiveConfigs,
        release: Release,
        log: GroupLog,
        topics: GroupTopics,
        share_fetches: ShareFetches,
    ) -> None:
        timers = controller.timers

        def broker_id() -> int:
            return next(iter(controller.state.brokers))

        self.classic = ClassicGroups(timers, release, lambda: group_settings(configs, broker_id()))
        self.on_changed: list[Callable[[str], None]] = self.classic.on_changed
        self.on_deleted: list[Callable[[str], None]] = self.classic.on_deleted
        StoredGroups(self.classic, log, release)
        shared = GroupDependencies(
            timers,
            release,
            topics,
            lambda group_id: self.group(group_id) is not None,
            log.store_records,
            self.on_changed,
            self.on_deleted,
        )
        self.consumer = ConsumerGroups(
            shared,
            self.classic,
            lambda: consumer_settings(configs, broker_id()),
            lambda group_id: group_times(configs, "consumer", group_id, broker_id()),
        )
        self.share = ShareGroups(
            shared,
            lambda: share_settings(configs, broker_id()),
            lambda group_id: group_times(configs, "share", group_id, broker_id()),
            share_fetches,
        )
        self.streams = StreamsGroups(
            shared,
            self.classic,
            lambda group_id: streams_settings(configs, group_id, broker_id()),
        )
        self._kinds = (self.classic, self.consumer, self.streams, self.share)

    # ---- facts -------------------------------------------------------------------------------

    @property
    def groups(self) -> Mapping[str, AnyGroup]:
        """All groups by id."""
        return {group_id: group for kind in self._kinds for group_id, group in kind.groups.items()}

    def group(self, group_id: str) -> AnyGroup | None:
        """Return a group; None if there is none of this id."""
        return self._modern(group_id) or self.classic.group(group_id)

    def view(self, group_id: str) -> GroupView | None:
        """Return a group as testers see it; None if there is none of this id."""
        group = self.group(group_id)
        if group is None or isinstance(group, Group):
            return None if group is None else view_classic_group(group)
        shares = isinstance(group, ShareGroup)
        partitions = self.share.partitions_of(group_id) if shares else None
        owner: Any = self.owner(group_id)
        return view_group(group, self.consumer.topics, owner.assignor_name(group), partitions)

    def _modern(self, group_id: str) -> ModernGroup | None:
        """The group of this id, unless it is a classic one."""
        return (
            self.consumer.group(group_id)
            or self.streams.group(group_id)
            or self.share.group(group_id)
        )

    # ---- requests of the classic protocol ----------------------------------------------------

    def join(
        self,
        request: JoinRequest,
        answer: JoinAnswer,
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """JoinGroup. An empty consumer or streams group becomes a classic one."""
        group = None if coordinator_error else self._modern(request.group_id)
        if group is None:
            self.classic.join(request, answer, coordinator_error)
        elif isinstance(group, ShareGroup):
            answer(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))
        elif not self.classic.machine.settings.allows_session(request.session_timeout_ms):
            answer(JoinResult(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id))
        elif not group.members:
            owner: Any = self.owner(request.group_id)
            owner.discard(group)
            self.classic.join(request, answer)
        elif isinstance(group, ConsumerGroup):
            answer(self.consumer.classic_members.join(group, request))
        else:
            answer(JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""))

    def sync(
        self,
        request: SyncRequest,
        answer: SyncAnswer,
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """SyncGroup."""
        group = None if coordinator_error else self._modern(request.group_id)
        if group is None:
            self.classic.sync(request, answer, coordinator_error)
        elif isinstance(group, ConsumerGroup):
            answer(self.consumer.classic_members.sync(group, request))
        else:
            answer(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))

    def heartbeat(
        self,
        group_id: str,
        member_id: str,
        instance_id: str | None,
        generation: int,
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> ErrorCode:
        """Heartbeat (12)."""
        group = None if coordinator_error else self._modern(group_id)
        if group is None:
            return self.classic.heartbeat(
                group_id, member_id, instance_id, generation, coordinator_error
            )
        if isinstance(group, ConsumerGroup):
            members = self.consumer.classic_members
            return members.heartbeat(group, member_id, instance_id, generation)
        return ErrorCode.UNKNOWN_MEMBER_ID

    def leave(
        self,
        group_id: str,
        members: Sequence[LeavingMember],
        coordinator_error: ErrorCode = ErrorCode.NONE,
    ) -> tuple[ErrorCode, tuple[ErrorCode, ...]]:
        """LeaveGroup: an error for the request, and one for each member if that is 0."""
        group = None if coordinator_error else self._modern(group_id)
        if group is None:
            return self.classic.leave(group_id, members, coordinator_error)
        if isinstance(group, ConsumerGroup):
            return self.consumer.classic_members.leave(group, members)
        return ErrorCode.NONE, tuple(ErrorCode.UNKNOWN_MEMBER_ID for _ in members)

    # ---- administration ----------------------------------------------------------------------

    def delete(self, group_id: str, coordinator_error: ErrorCode = ErrorCode.NONE) -> ErrorCode:
        """DeleteGroups, for one group: an empty group goes, with its offsets."""
        if coordinator_error or self._modern(group_id) is None:
            return self.classic.delete(group_id, coordinator_error)
        return self.owner(group_id).delete(group_id)

    def list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> Iterator[ListedGroup]:
        """ListGroups: the groups in these states and of these types, compared without case; no
        states or types mean all of them."""
        wanted_states = {state.strip().lower() for state in states}
        wanted_types = {group_type.lower() for group_type in types}
        for group_id, group in self.groups.items():
            listed = ListedGroup(
                group_id, group.protocol_type or "", str(group.state), group.group_type
            )
            if wanted_types and listed.group_type not in wanted_types:
                continue
            if not wanted_states or listed.state.lower() in wanted_states:
                yield listed

    # ---- committed offsets -------------------------------------------------------------------

    def validate_commit(self, commit: GroupCommit) -> ErrorCode:
        """Return whether a member may commit offsets, as 0 or an error code."""
        owner = self.owner(commit.group_id)
        if isinstance(owner, ShareGroups):
            return ErrorCode.GROUP_ID_NOT_FOUND
        return owner.validate_commit(commit)

    def validate_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Return the error of a fetch. Classic groups ignore member and epoch, and share groups
        have no offsets."""
        owner = self.owner(group_id)
        if isinstance(owner, ShareGroups | ClassicGroups):
            return ErrorCode.NONE
        return owner.validate_fetch(group_id, member_id, member_epoch)

    def validate_offset_delete(self, group_id: str) -> ErrorCode:
        """Groups with members keep their offsets, unless the members are consumers."""
        if self._has_offsets(group_id):
            return ErrorCode.NONE
        group = self.classic.group(group_id)
        if group is None or group.is_in(GroupState.DEAD):
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.is_in(GroupState.EMPTY) or group.is_consumer_group:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def is_subscribed(self, group_id: str, topic: str) -> bool:
        """Whether members of a group of consumers consume a topic, or may."""
        owner = self.classic if self.share.group(group_id) is not None else self.owner(group_id)
        assert not isinstance(owner, ShareGroups)
        return owner.is_subscribed(group_id, topic)

    def standing(self, group_id: str) -> GroupStanding | None:
        """Return the group's protocol type and state. The offsets of consumer and streams groups
        age from the commit on, unless a member subscribes to the topic."""
        if self._has_offsets(group_id):
            return GroupStanding(CONSUMER_TYPE, STABLE)
        group = self.classic.group(group_id)
        if group is None:
            return None
        return GroupStanding(
            group.protocol_type or "", group.state, self.classic.empty_since_ms(group_id)
        )

    def group_ids(self) -> Iterable[str]:
        """The ids of all groups."""
        return chain.from_iterable(kind.groups for kind in self._kinds)

    def offsets_gone(self, group_id: str) -> None:
        """An empty group goes with its last offset."""
        group = self._modern(group_id)
        if group is None:
            self.classic.forget_if_empty(group_id)
        elif not isinstance(group, ShareGroup) and not group.members:
            self.delete(group_id)

    # ---- moves of coordinators ---------------------------------------------------------------

    def unload(self, group_ids: Sequence[str]) -> None:
        """The coordinator of these groups lost its partition."""
        for kind in self._kinds:
            kind.unload(group_ids)

    def load(self, group_ids: Sequence[str], has_offsets: Callable[[str], bool]) -> None:
        """Another coordinator reads these groups from the log. ``has_offsets`` says whether commits
        make a group."""
        self.classic.load(group_ids, has_offsets)
        for kind in (self.consumer, self.streams, self.share):
            kind.load(group_ids)

    # ---- the groups of one kind ----------------------------------------------------------------

    def owner(self, group_id: str) -> ClassicGroups | ConsumerGroups | StreamsGroups | ShareGroups:
        """The groups of the kind that has this id; the classic ones if none has."""
        if self.share.group(group_id) is not None:
            return self.share
        return self.static_owner(group_id) if self._has_offsets(group_id) else self.classic

    def classic_owner(self, group_id: str) -> ClassicGroups:
        """The classic groups. Raises ClusterError if the group is of another kind."""
        group = self._modern(group_id)
        if group is not None:
            raise ClusterError(f"group {group_id!r} is a {group.group_type} group: it has no joins")
        return self.classic

    def modern_owner(self, group_id: str) -> ConsumerGroups | StreamsGroups | ShareGroups:
        """The groups of the newer kind that has this id; those of consumers if none has."""
        if self.share.group(group_id) is not None:
            return self.share
        return self.static_owner(group_id)

    def static_owner(self, group_id: str) -> ConsumerGroups | StreamsGroups:
        """The streams groups if they have this id, else the consumer groups."""
        return self.consumer if self.streams.group(group_id) is None else self.streams

    def _has_offsets(self, group_id: str) -> bool:
        """Whether it is a group of a newer kind that may have offsets."""
        return self.static_owner(group_id).group(group_id) is not None
