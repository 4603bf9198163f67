"""What a partition's leader asks of a transaction coordinator, and which markers it takes, as rows.

Since 3.6 a leader asks before the first batch of a transaction (KIP-890), so that no transaction
hangs; before offsets it asks since 3.7. Producers of transaction version 2 leave it to the leader
to add the partition.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode, message
from kproto.records.model import NO_PRODUCER_ID
from mockbroker.simulation.log.producing.producer_states import Producer
from mockbroker.simulation.releases.rows import Refusable, Row, always, refuse

__all__ = [
    "ON_FIRST_BATCH",
    "ON_MARKER",
    "ON_MARKER_MADE",
    "ON_PRODUCE_REPLY",
    "ON_REPLY",
    "MarkerArrival",
    "Question",
    "Reply",
]

_VERIFIED: Final = (3, 6)
_TRANSACTION_VERSIONS: Final = (4, 0)
_MARKERS_HAVE_VERSIONS: Final = (4, 2)
_UNKNOWN_VERSION: Final = -1
"""Logs have it for batches that they replicate, and refuse it otherwise."""
_VERSION_2: Final = 2
_NO_EPOCH: Final = -1

# ---- the first batch of a transaction ------------------------------------------------------------


class Question(Refusable, msgspec.Struct):
    """A transactional batch at the leader of its partition. ``known`` is the log's state of the
    producer. ``adds``: the partition joins the transaction if need be; ``verifies`` is the config
    ``transaction.partition.verification.enable``. ``asks`` and ``code`` are the decision."""

    known: Producer | None
    epoch: int
    adds: bool
    verifies: bool
    asks: bool = False
    code: ErrorCode = ErrorCode.NONE


def _ask_coordinator(question: Question) -> None:
    """Ask the coordinator."""
    question.asks = True


def _is_open(question: Question) -> bool:
    return question.known is not None and question.known.transaction_start is not None


def _is_open_in_epoch(question: Question) -> bool:
    return (
        _is_open(question) and question.known is not None and question.known.epoch == question.epoch
    )


ON_FIRST_BATCH: Final[tuple[Row[Question, Question], ...]] = (
    Row(
        "DP-TXN-47",
        lambda question: not question.verifies and not question.adds,
        (),
        since=_VERIFIED,
    ),
    Row(
        "DP-TXN-42",
        lambda question: question.known is not None and question.epoch < question.known.epoch,
        (refuse(ErrorCode.INVALID_PRODUCER_EPOCH),),
        since=_TRANSACTION_VERSIONS,
    ),
    Row("DP-TXN-40", _is_open, (), since=_VERIFIED, until=_TRANSACTION_VERSIONS),
    Row("DP-TXN-40", _is_open_in_epoch, (), since=_TRANSACTION_VERSIONS),
    Row("DP-TXN-40", always, (_ask_coordinator,), since=_VERIFIED),
)
"""Without a row the coordinator is not consulted."""

# ---- what the coordinator says -------------------------------------------------------------------


class Reply(Refusable, msgspec.Struct):
    """The coordinator's error, which a row replaces. ``knows_abortable``: the client's version of
    its request has TRANSACTION_ABORTABLE(120). ``adds``: it is of transaction version 2."""

    code: ErrorCode
    knows_abortable: bool
    adds: bool
    text: str | None = None


def _refuse_not_added(reply: Reply) -> None:
    reply.text = "Partition was not added to the transaction"


def _explain(reply: Reply) -> None:
    reply.text = message(reply.code)


def _refuse_as_underlying_error(reply: Reply) -> None:
    """Clients that do not know the error try again after this one."""
    reply.text = (
        "Unable to verify the partition has been added to the transaction. "
        f"Underlying error: {reply.code.name}"
    )
    reply.code = ErrorCode.NOT_ENOUGH_REPLICAS


def _is_unknown_to_client(reply: Reply) -> bool:
    return reply.code == ErrorCode.TRANSACTION_ABORTABLE and not reply.knows_abortable


def _is_fenced(reply: Reply) -> bool:
    return reply.code == ErrorCode.PRODUCER_FENCED


ON_REPLY: Final[tuple[Row[Reply, Reply], ...]] = (
    Row("DP-TXN-42", _is_fenced, (refuse(ErrorCode.INVALID_PRODUCER_EPOCH),)),
    Row("DP-TXN-43", _is_unknown_to_client, (refuse(ErrorCode.INVALID_TXN_STATE),)),
)
"""Errors without a row stay as they are."""

_UNREACHABLE: Final[Collection[ErrorCode]] = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


def _is_concurrent_for_old(reply: Reply) -> bool:
    return reply.code == ErrorCode.CONCURRENT_TRANSACTIONS and not reply.adds


ON_PRODUCE_REPLY: Final[tuple[Row[Reply, Reply], ...]] = (
    Row("DP-TXN-43", lambda reply: reply.code == ErrorCode.INVALID_TXN_STATE, (_refuse_not_added,)),
    Row("DP-TXN-44", lambda reply: reply.code in _UNREACHABLE, (_refuse_as_underlying_error,)),
    Row("DP-TXN-44 DP-TXN-45", _is_concurrent_for_old, (_refuse_as_underlying_error,)),
    Row("DP-TXN-43", always, (_explain,), since=(3, 6), until=(3, 7)),
)
"""What Produce makes of it."""

# ---- markers -------------------------------------------------------------------------------------


class MarkerArrival(Refusable, msgspec.Struct):
    """A marker at a broker. ``is_hosted``: the broker has a replica of the partition; ``leads``: it
    leads it. ``is_loaded`` is False at a group coordinator that still loads its partition.
    ``version`` is the transaction version, 0 where the request has none. ``of_offsets``: the
    partition is one of committed offsets."""

    is_hosted: bool
    leads: bool
    is_loaded: bool
    has_replicas: bool
    magic: int
    known: Producer | None
    producer_id: int
    epoch: int
    coordinator_epoch: int
    version: int
    of_offsets: bool = False
    code: ErrorCode = ErrorCode.NONE


def _has_no_producer(marker: MarkerArrival) -> bool:
    return marker.epoch == _NO_EPOCH or marker.producer_id == NO_PRODUCER_ID


def _has_old_epoch(marker: MarkerArrival) -> bool:
    return marker.known is not None and marker.epoch < marker.known.epoch


def _ends_nothing_new(marker: MarkerArrival) -> bool:
    """Each end raises the epoch, so a marker of the present one must be a repetition."""
    known = marker.known
    return (
        marker.version >= _VERSION_2
        and known is not None
        and marker.epoch == known.epoch
        and known.transaction_start is not None
    )


def _has_old_coordinator(marker: MarkerArrival) -> bool:
    known = marker.known
    return marker.coordinator_epoch < (_NO_EPOCH if known is None else known.coordinator_epoch)


ON_MARKER: Final[tuple[Row[MarkerArrival, MarkerArrival], ...]] = (
    Row(
        "DP-MARK-01",
        lambda marker: not marker.is_hosted,
        (refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    ),
    Row(
        "DP-MARK-01",
        lambda marker: marker.magic < 2,
        (refuse(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),),
        until=(4, 0),
    ),
    Row("DP-MARK-01", lambda marker: not marker.leads, (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),)),
    Row(
        "DP-MARK-01",
        lambda marker: not marker.is_loaded,
        (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
        since=(4, 0),
    ),
    Row(
        "DP-MARK-01",
        lambda marker: not marker.has_replicas,
        (refuse(ErrorCode.NOT_ENOUGH_REPLICAS),),
    ),
    Row(
        "DP-MARK-01",
        lambda marker: marker.epoch < _NO_EPOCH,
        (refuse(ErrorCode.INVALID_PRODUCER_EPOCH),),
    ),
    # Kafka's own classes throw before they look at the producer.
    Row(
        "DP-MARK-01",
        _has_no_producer,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
    ),
    Row(
        "DP-MARK-01",
        lambda marker: marker.version == _UNKNOWN_VERSION,
        (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),),
        since=_MARKERS_HAVE_VERSIONS,
    ),
    # No partition keeps anything of a producer with such an id.
    Row("DP-MARK-01", lambda marker: marker.producer_id < 0, ()),
    Row("DP-MARK-01", _has_old_epoch, (refuse(ErrorCode.INVALID_PRODUCER_EPOCH),)),
    Row(
        "DP-MARK-01 DP-TXN-52",
        _ends_nothing_new,
        (refuse(ErrorCode.INVALID_PRODUCER_EPOCH),),
        since=_MARKERS_HAVE_VERSIONS,
    ),
    Row("DP-MARK-01", _has_old_coordinator, (refuse(ErrorCode.TRANSACTION_COORDINATOR_FENCED),)),
)

ON_MARKER_MADE: Final[tuple[Row[MarkerArrival, MarkerArrival], ...]] = (
    Row("DP-MARK-04", lambda marker: not marker.is_hosted, ()),
    Row("DP-MARK-04", lambda marker: marker.magic < 2, ()),
    # A group coordinator makes its own.
    Row("DP-MARK-04", lambda marker: marker.of_offsets, (), since=(4, 0)),
    Row("DP-MARK-04", _has_no_producer, (refuse(ErrorCode.UNKNOWN_SERVER_ERROR),)),
)
"""A broker makes the batches of a marker. A refusal is one of the whole request."""
