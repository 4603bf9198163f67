"""The share coordinator (KIP-932): its answers to leaders of partitions and to administrators.

It keeps the state of each share partition: where the group begins, and what became of the records
behind that offset. Brokers of the mock read that state directly; other brokers, and tests, send
requests.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from kproto.error_codes import ErrorCode, message
from mockbroker.simulation.groups.modern.group_topics import GroupTopics
from mockbroker.simulation.groups.modern.partitions import TopicIdPartition
from mockbroker.simulation.groups.share.share_fetches import ShareFetches
from mockbroker.simulation.groups.share.share_partition import SharePartition
from mockbroker.simulation.groups.share.share_state_log import LoggedState, ShareStateLog
from mockbroker.simulation.groups.share.stored_batches import StateBatch, WrittenState
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, apply_first, rows_of_release, with_arguments
from mockbroker.simulation.state.controller import Controller

__all__ = ["ANY_EPOCH", "STATE_ROWS", "ShareStateError", "ShareStates", "StateQuery", "StoredState"]

ANY_EPOCH: Final = -1
"""Until 4.3, an epoch that is not checked, but that of a leader that reads in 4.0 to 4.2."""


class ShareStateError(NamedTuple):
    """Why a request gets nothing of a partition."""

    code: ErrorCode
    text: str | None


class StoredState(NamedTuple):
    """The state of a share partition. ``start_offset`` -1: the first fetch decides on it.
    ``complete`` counts the records behind it that need no more delivery."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    complete: int
    batches: Sequence[StateBatch]


class StateQuery(msgspec.Struct, eq=False):
    """A request for the state of one partition. ``leader_epoch`` and ``state_epoch`` are those that
    the request has, if any, ``newest_leader`` is the newest epoch of a leader that has asked, and
    ``newest_state`` that of a state that there has been.
    ``verb`` names the operation if it needs a state that is there."""

    index: int
    stored: SharePartition | None
    is_known: bool
    leader_epoch: int | None = None
    state_epoch: int | None = None
    newest_leader: int = 0
    newest_state: int = 0
    verb: str = ""
    error: ShareStateError | None = None


@with_arguments
def _fail(query: StateQuery, code: ErrorCode, text: str = "") -> None:
    query.error = ShareStateError(code, text.format(verb=query.verb) or message(code))


def _is_older(epoch: int | None, stored: int) -> bool:
    return epoch not in (None, ANY_EPOCH) and epoch < stored


def _has_older_state_epoch(query: StateQuery) -> bool:
    return query.stored is not None and _is_older(query.state_epoch, query.newest_state)


STATE_ROWS: Final[Sequence[Row[StateQuery, StateQuery]]] = (
    Row(
        "DP-SHARE-40",
        lambda query: query.index < 0,
        (_fail(ErrorCode.INVALID_REQUEST, "The partition id cannot be a negative number."),),
    ),
    Row(
        "DP-SHARE-41",
        lambda query: query.leader_epoch is not None and query.leader_epoch < 0,
        (_fail(ErrorCode.INVALID_REQUEST, "The leader epoch cannot be a negative number."),),
        since=(4, 4),
    ),
    Row(
        "DP-SHARE-41",
        lambda query: query.state_epoch is not None and query.state_epoch < 0,
        (_fail(ErrorCode.INVALID_REQUEST, "The state epoch cannot be a negative number."),),
        since=(4, 4),
    ),
    Row(
        "DP-SHARE-40",
        lambda query: query.verb != "" and query.stored is None,
        (
            _fail(
                ErrorCode.INVALID_REQUEST,
                "{verb} operation on uninitialized share partition not allowed.",
            ),
        ),
    ),
    Row(
        "DP-SHARE-41",
        lambda query: query.verb == "Read" and query.leader_epoch == ANY_EPOCH,
        (_fail(ErrorCode.FENCED_LEADER_EPOCH),),
        until=(4, 3),
    ),
    Row(
        "DP-SHARE-41",
        lambda query: _is_older(query.leader_epoch, query.newest_leader),
        (_fail(ErrorCode.FENCED_LEADER_EPOCH),),
    ),
    Row(
        "DP-SHARE-41",
        _has_older_state_epoch,
        (
            _fail(
                ErrorCode.FENCED_STATE_EPOCH,
                "The share coordinator rejected the request because the share-group state epoch "
                "did not match.",
            ),
        ),
        until=(4, 4),
    ),
    Row(
        "DP-SHARE-41", _has_older_state_epoch, (_fail(ErrorCode.FENCED_STATE_EPOCH),), since=(4, 4)
    ),
    Row(
        "DP-SHARE-40",
        lambda query: not query.is_known,
        (_fail(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    ),
)


class ShareStates:
    """The states of the share partitions of a cluster, as the share coordinators have them."""

    def __init__(
        self,
        controller: Controller,
        topics: GroupTopics,
        fetches: ShareFetches,
        log: ShareStateLog,
        release: Release,
    ) -> None:
        self._controller = controller
        self._topics = topics
        self._fetches = fetches
        self._log = log
        self._newest_leaders: dict[tuple[str, TopicIdPartition], int] = {}
        """The newest epoch of a leader that has read a state, which a new state does not end."""
        self._newest_states: dict[tuple[str, TopicIdPartition], int] = {}
        """The newest epoch of states that were begun, until they are deleted."""
        release.follow(self._use_release)

    def _use_release(self, release: Release) -> None:
        self._rows = rows_of_release(STATE_ROWS, release)

    def initialize(
        self, group_id: str, topic_id: uuid.UUID, index: int, state_epoch: int, start_offset: int
    ) -> ShareStateError | None:
        """Begin a state, in place of one that there may be."""
        query = self._query(group_id, topic_id, index, state_epoch=state_epoch)
        if query.error is None:
            key = (topic_id, index)
            self._newest_states[group_id, key] = max(query.newest_state, state_epoch)
            self._fetches.initialize(group_id, frozenset((key,)), state_epoch, start_offset)
        return query.error

    def read(
        self, group_id: str, topic_id: uuid.UUID, index: int, leader_epoch: int
    ) -> StoredState | ShareStateError:
        """Return a state to a leader, whose epoch it has from then on."""
        query = self._query(group_id, topic_id, index, leader_epoch=leader_epoch, verb="Read")
        if query.error is not None:
            return query.error
        assert query.stored is not None, "rows refuse a state that is not there"
        if leader_epoch > query.newest_leader:
            self._newest_leaders[group_id, (topic_id, index)] = leader_epoch
            query.stored.leader_epoch = leader_epoch
            self._log.lead(group_id, (topic_id, index), leader_epoch)
        return self._stored(group_id, (topic_id, index))

    def write(
        self,
        group_id: str,
        topic_id: uuid.UUID,
        index: int,
        leader_epoch: int,
        state_epoch: int,
        written: WrittenState,
    ) -> ShareStateError | None:
        """Store what a leader knows. Another leader that has loaded the state goes on with its
        copy."""
        query = self._query(
            group_id,
            topic_id,
            index,
            leader_epoch=leader_epoch,
            state_epoch=state_epoch,
            verb="Write",
        )
        if query.error is not None:
            return query.error
        key = (topic_id, index)
        self._log.write(group_id, key, written)
        state = self._logged(group_id, key)
        self._fetches.replace(group_id, key, state.start_offset, state.complete, state.batches)
        return None

    def delete(self, group_id: str, topic_id: uuid.UUID, index: int) -> ShareStateError | None:
        """Forget a state, if there is one."""
        query = self._query(group_id, topic_id, index)
        if query.error is None:
            key = (group_id, (topic_id, index))
            self._newest_leaders.pop(key, None)
            self._newest_states.pop(key, None)
            self._fetches.forget(group_id, frozenset(((topic_id, index),)))
        return query.error

    def summary(
        self, group_id: str, topic_id: uuid.UUID, index: int
    ) -> StoredState | ShareStateError | None:
        """Return a state without changing it; None if there is none."""
        query = self._query(group_id, topic_id, index)
        if query.error is not None or query.stored is None:
            return query.error
        return self._stored(group_id, (topic_id, index))

    def _logged(self, group_id: str, key: TopicIdPartition) -> LoggedState:
        state = self._log.state(group_id, key)
        assert state is not None, "every state is logged from its beginning"
        return state

    def _stored(self, group_id: str, key: TopicIdPartition) -> StoredState:
        state = self._logged(group_id, key)
        return StoredState(
            state.state_epoch,
            state.leader_epoch,
            state.start_offset,
            state.complete,
            list(state.batches),
        )

    def _query(
        self,
        group_id: str,
        topic_id: uuid.UUID,
        index: int,
        *,
        leader_epoch: int | None = None,
        state_epoch: int | None = None,
        verb: str = "",
    ) -> StateQuery:
        topic = self._controller.state.topics.get(self._topics.name_of(topic_id) or "")
        key = (topic_id, index)
        stored = self._fetches.partition(group_id, key)
        newest_leader = self._newest_leaders.get((group_id, key), 0)
        newest_state = self._newest_states.get((group_id, key), 0)
        if stored is not None:
            newest_leader = max(newest_leader, stored.leader_epoch)
            newest_state = max(newest_state, stored.state_epoch)
        query = StateQuery(
            index,
            stored,
            topic is not None and topic.partition(index) is not None,
            leader_epoch,
            state_epoch,
            newest_leader,
            newest_state,
            verb,
        )
        apply_first(self._rows, query, query)
        return query
