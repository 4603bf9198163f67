"""The voters of the metadata quorum (KIP-853), and the requests that change the quorum."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from mockbroker.errors import ClusterError
from mockbroker.simulation.features.quorum.quorum_rules import (
    ADD_ROWS,
    CONTROLLER_ROWS,
    REMOVE_ROWS,
    QuorumChange,
    QuorumRow,
)
from mockbroker.simulation.releases.rows import apply_first
from mockbroker.simulation.state.actions import VotersChanged
from mockbroker.simulation.state.cluster_parts import Voter
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.turns import step

__all__ = ["Outcome", "Quorum"]

_DIRECTORIES: Final = uuid.UUID("5a86b5a5-a1f9-4f0c-9d2e-3f6a3f1d0c11")


class Outcome(NamedTuple):
    """The answer to one request; ``text`` is None on success."""

    error_code: ErrorCode = ErrorCode.NONE
    text: str | None = None


class Quorum:
    """The quorum of one cluster: the controllers, and the voters that requests add. Added voters
    are not contacted. ``level`` gives the level of a feature.

    ``nodes`` are the ids of the controllers, brokers among them or not, as ``use_nodes`` says. Of
    controllers apart from brokers, another one leads after each failover. Without any, the broker
    that is the controller is the only voter. ``endpoints`` has (listener, host, port) of those that
    can be reached.
    """

    def __init__(self, controller: Controller, level: Callable[[str], int]) -> None:
        self._controller = controller
        self.turns = controller.turns
        self._level = level
        self.nodes: tuple[int, ...] = ()
        self.endpoints: dict[int, tuple[str, str, int]] = {}

    def use_nodes(self, nodes: Sequence[int]) -> None:
        """These are the controllers. Raises ClusterError for a ZooKeeper-mode cluster."""
        if self._controller.keeps_znodes:
            raise ClusterError("a cluster with ZooKeeper has no KRaft controllers")
        self.nodes = tuple(nodes)

    @property
    def leader_id(self) -> int:
        """The active controller."""
        state = self._controller.state
        if not self.nodes or state.controller_id in self.nodes:
            return state.controller_id
        return self.nodes[(state.controller_epoch - 1) % len(self.nodes)]

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voters; the first is the leader's."""
        state = self._controller.state
        if state.voters is not None:
            return state.voters
        nodes = sorted(
            self.nodes or (state.controller_id,), key=lambda each: each != self.leader_id
        )
        return tuple(Voter(each, self._directory(each)) for each in nodes)

    def _directory(self, node_id: int) -> uuid.UUID:
        if not self._level("kraft.version"):
            return ZERO_UUID
        return uuid.uuid5(_DIRECTORIES, f"{self._controller.state.cluster_id} {node_id}")

    @step()
    def add_voter(
        self,
        cluster_id: str | None,
        voter_id: int,
        directory_id: uuid.UUID,
        listeners: Sequence[tuple[str, str, int]],
    ) -> Outcome:
        change = self._change(voter_id, cluster_id, directory_id, tuple(listeners))
        outcome = _checked(ADD_ROWS, change)
        if not outcome.error_code:
            added = Voter(voter_id, directory_id, tuple(listeners))
            self._store("add_raft_voter", (*self.voters, added))
        return outcome

    @step()
    def remove_voter(
        self, cluster_id: str | None, voter_id: int, directory_id: uuid.UUID
    ) -> Outcome:
        outcome = _checked(REMOVE_ROWS, self._change(voter_id, cluster_id, directory_id))
        if not outcome.error_code:
            left = tuple(voter for voter in self.voters if voter.voter_id != voter_id)
            self._store("remove_raft_voter", left)
        return outcome

    def unregister_controller(self, controller_id: int) -> Outcome:
        """Check the request; an unregistered controller stays a voter."""
        return _checked(CONTROLLER_ROWS, self._change(controller_id))

    def _change(
        self,
        node_id: int,
        cluster_id: str | None = None,
        directory_id: uuid.UUID = ZERO_UUID,
        listeners: tuple[tuple[str, str, int], ...] = (),
    ) -> QuorumChange:
        state = self._controller.state
        return QuorumChange(
            node_id,
            state.cluster_id,
            cluster_id,
            directory_id,
            listeners,
            self.voters,
            self._level("kraft.version"),
            self._level("metadata.version"),
            self.leader_id,
        )

    def _store(self, cause: str, after: tuple[Voter, ...]) -> None:
        self._controller.record(cause, VotersChanged(self.voters, after))


def _checked(rows: Sequence[QuorumRow], change: QuorumChange) -> Outcome:
    apply_first(rows, change, change)
    return Outcome(change.code, change.text)
