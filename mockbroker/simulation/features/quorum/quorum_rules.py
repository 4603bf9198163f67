"""What AddRaftVoter, RemoveRaftVoter, UnregisterBroker and UnregisterController refuse, as rows in
the order in which Kafka checks."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.releases.rows import Row, refuse_with_text
from mockbroker.simulation.state.cluster_parts import Voter

__all__ = ["ADD_ROWS", "CONTROLLER_ROWS", "REMOVE_ROWS", "QuorumChange"]

CONTROLLER_LISTENER: Final = "CONTROLLER"
_UNREGISTRATION_SINCE: Final = 33
"""The level of metadata.version with which controllers can be unregistered."""


class QuorumChange(msgspec.Struct):
    """A request about one controller. ``voters`` are those of the quorum."""

    node_id: int
    cluster_id: str | None = None
    wanted_cluster: str | None = None
    directory_id: uuid.UUID = ZERO_UUID
    listeners: tuple[tuple[str, str, int], ...] = ()
    voters: tuple[Voter, ...] = ()
    kraft_level: int = 0
    metadata_level: int = 0
    controller_id: int = -1
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None

    @property
    def names_no_voter(self) -> bool:
        return self.node_id < 0 or self.directory_id == ZERO_UUID

    @property
    def lacks_listener(self) -> bool:
        return all(name != CONTROLLER_LISTENER for name, _, _ in self.listeners)

    @property
    def known_id(self) -> bool:
        return any(voter.voter_id == self.node_id for voter in self.voters)

    @property
    def removable(self) -> bool:
        known = any(
            (voter.voter_id, voter.directory_id) == (self.node_id, self.directory_id)
            for voter in self.voters
        )
        return known and len(self.voters) > 1

    @property
    def voter_text(self) -> str:
        return _key_text(self.node_id, self.directory_id)

    @property
    def voters_text(self) -> str:
        return f"[{', '.join(_key_text(each.voter_id, each.directory_id) for each in self.voters)}]"

    @property
    def endpoints_text(self) -> str:
        shown = (
            f"ListenerName({name})={host}/<unresolved>:{port}"
            for name, host, port in self.listeners
        )
        return f"Endpoints(endpoints={{{', '.join(shown)}}})"


def _key_text(voter_id: int, directory_id: uuid.UUID) -> str:
    text = base64.urlsafe_b64encode(directory_id.bytes).decode().rstrip("=")
    return f"ReplicaKey(id={voter_id}, directoryId={text})"


QuorumRow: TypeAlias = Row[QuorumChange, QuorumChange]


def _other_cluster(change: QuorumChange) -> bool:
    return change.wanted_cluster is not None and change.wanted_cluster != change.cluster_id


_OTHER_CLUSTER: Final = refuse_with_text(
    'The given id "{subject.wanted_cluster}" doesn\'t match the cluster id "{subject.cluster_id}"',
    ErrorCode.INCONSISTENT_CLUSTER_ID,
)

ADD_ROWS: Final[Sequence[QuorumRow]] = (
    Row("QUORUM-01", _other_cluster, (_OTHER_CLUSTER,)),
    Row(
        "QUORUM-02",
        lambda change: change.names_no_voter,
        (
            refuse_with_text(
                "Add voter request didn't include a valid voter", ErrorCode.INVALID_REQUEST
            ),
        ),
    ),
    Row(
        "QUORUM-03",
        lambda change: change.lacks_listener,
        (
            refuse_with_text(
                "Add voter request didn't include the endpoint ({subject.endpoints_text}) for the "
                f"default listener ListenerName({CONTROLLER_LISTENER})",
                ErrorCode.INVALID_REQUEST,
            ),
        ),
    ),
    Row(
        "QUORUM-04",
        lambda change: change.kraft_level < 1,
        (
            refuse_with_text(
                "Cluster doesn't support adding voter because the kraft.version feature is "
                "{subject.kraft_level}",
                ErrorCode.UNSUPPORTED_VERSION,
            ),
        ),
    ),
    Row(
        "QUORUM-05",
        lambda change: change.known_id,
        (
            refuse_with_text(
                "The voter id for {subject.voter_text} is already part of the set of voters "
                "{subject.voters_text}.",
                ErrorCode.DUPLICATE_VOTER,
            ),
        ),
    ),
)

REMOVE_ROWS: Final[Sequence[QuorumRow]] = (
    Row("QUORUM-01", _other_cluster, (_OTHER_CLUSTER,)),
    Row(
        "QUORUM-02",
        lambda change: change.names_no_voter,
        (
            refuse_with_text(
                "Remove voter request didn't include a valid voter", ErrorCode.INVALID_REQUEST
            ),
        ),
    ),
    Row(
        "QUORUM-04",
        lambda change: change.kraft_level < 1,
        (
            refuse_with_text(
                "Cluster doesn't support removing voter because the kraft.version feature is "
                "{subject.kraft_level}",
                ErrorCode.UNSUPPORTED_VERSION,
            ),
        ),
    ),
    Row(
        "QUORUM-06",
        lambda change: not change.removable,
        (
            refuse_with_text(
                "Cannot remove voter {subject.voter_text} from the set of voters "
                "{subject.voters_text}",
                ErrorCode.VOTER_NOT_FOUND,
            ),
        ),
    ),
)

CONTROLLER_ROWS: Final[Sequence[QuorumRow]] = (
    Row(
        "QUORUM-09",
        lambda change: change.node_id == change.controller_id,
        (
            refuse_with_text(
                "Controller cannot unregister itself while it is active.", ErrorCode.INVALID_REQUEST
            ),
        ),
    ),
    Row(
        "QUORUM-09",
        lambda change: change.metadata_level < _UNREGISTRATION_SINCE,
        (
            refuse_with_text(
                "The current MetadataVersion is too old to support controller unregistration.",
                ErrorCode.UNSUPPORTED_VERSION,
            ),
        ),
    ),
    Row(
        "QUORUM-09",
        lambda change: not change.known_id,
        (
            refuse_with_text(
                "Controller ID {subject.node_id} is not currently registered.",
                ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            ),
        ),
    ),
)
