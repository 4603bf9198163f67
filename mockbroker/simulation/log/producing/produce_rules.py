"""What a broker checks before it appends, in its order. The first row that applies decides.

``REQUEST_ROWS`` look at a whole request, ``PARTITION_ROWS`` at the data of one partition,
``BATCH_ROWS`` at each batch of it, by its header alone. ``record_rules`` looks at records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from kproto.records.crc import crc32, crc32c
from kproto.records.model import CODEC_MASK, CONTROL, TRANSACTIONAL, Compression
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE, BatchHeader, read_header
from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.log.producing.producer_states import Guard
from mockbroker.simulation.releases.release import EVER, ReleaseNumber
from mockbroker.simulation.releases.rows import Row, always, with_arguments
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = [
    "ADMIN_CLIENT",
    "ALL_IN_SYNC",
    "ARRIVAL_ROWS",
    "BATCH_ROWS",
    "FIRST_BATCH_ROWS",
    "GAP_ROWS",
    "PARTITION_ROWS",
    "REQUEST_ROWS",
    "STORED_ROWS",
    "UNREADABLE_ROWS",
    "Arrival",
    "ArrivedBatch",
    "BatchForm",
    "Layout",
    "Refusal",
    "RequestFacts",
    "RequestForm",
    "RewrittenBatch",
    "disconnect",
    "has_unknown_codec",
    "layout_of",
    "refuse_corrupt",
    "refuse_data",
]

ADMIN_CLIENT: Final = "__admin_client"
"""The client id whose requests may write to internal topics."""
ALL_IN_SYNC: Final = -1
"""The ``acks`` of a producer that waits for all in-sync replicas."""

_SIZE_AT: Final = 8
_ENTRY_HEADER: Final = 12
_LEAST_MESSAGE: Final = 14
_MAGIC_AT: Final = 16
_UP_TO_MAGIC: Final = 17
_CODEC_AT: Final = 22
_CHECKED_AT: Final = 21
_CRC_OF_MESSAGE_AT: Final = 12
_INT: Final = struct.Struct(">i")
_UNSIGNED: Final = struct.Struct(">I")
_NEWEST_MAGIC: Final = 2


class Refusal:
    """The error that a row decided on. ``shows_start``: the answer has the log's start offset.
    ``disconnects`` is the reason why the connection is closed instead; empty if it is not."""

    __slots__ = ("corruption", "disconnects", "error", "shows_start", "text", "unverified")

    def __init__(
        self, corruption: str = "", unverified: tuple[ErrorCode, str | None] | None = None
    ) -> None:
        self.corruption = corruption
        self.unverified = unverified
        self.error = ErrorCode.NONE
        self.shows_start = False
        self.text: str | None = None
        self.disconnects = ""


@with_arguments
def refuse_data(
    refusal: Refusal, error: ErrorCode, *, shows_start: bool = False, text: str | None = None
) -> None:
    """Nothing of the partition's data is appended. ``text`` is the error's message."""
    refusal.error = error
    refusal.shows_start = shows_start
    refusal.text = text


_INVALID: Final = refuse_data(ErrorCode.INVALID_RECORD, shows_start=True)


def refuse_corrupt(refusal: Refusal) -> None:
    """The request is refused as the broker reads the size or the magic of a batch."""
    refusal.error = ErrorCode.CORRUPT_MESSAGE
    refusal.text = refusal.corruption


@with_arguments
def disconnect(refusal: Refusal, reason: str) -> None:
    """The connection is closed, as if the request could not be read."""
    refusal.disconnects = reason


# ---- the request ---------------------------------------------------------------------------------


class RequestFacts(msgspec.Struct):
    """``data`` are the records of all partitions, ``producers`` the (producer id, epoch) of
    transactional batches. ``is_transactional``: there is such a batch, maybe without a producer id.
    ``may_write_id``: the caller may write the request's transactional id, or an empty one in its
    place. ``has_authorizer``: it is an authorizer that says so.
    ``may_be_idempotent``: the caller has IdempotentWrite on the cluster. ``layouts`` are those of
    ``data``, in its order.
    ``names_unknown_codec``: the first batch of a partition that the broker knows has a codec that
    does not exist.

    ``unverified`` are the errors of partitions that the transaction coordinator does not confirm,
    None if it was not asked. ``guards`` stand for its confirmations; None if none are needed."""

    acks: int
    version: int
    client_id: str | None = None
    transactional_id: str | None = None
    producers: frozenset[tuple[int, int]] = frozenset()
    is_transactional: bool = False
    is_idempotent: bool = False
    may_write_id: bool = True
    may_be_idempotent: bool = True
    has_authorizer: bool = False
    data: Sequence[bytes | None] = ()
    unverified: Mapping[TopicPartition, tuple[ErrorCode, str | None]] | None = None
    guards: Mapping[TopicPartition, Guard] | None = None
    layouts: Sequence[Layout] = ()
    names_unknown_codec: bool = False

    def __post_init__(self) -> None:
        self.layouts = [layout_of(each) for each in self.data]

    @property
    def corruption(self) -> str:
        """What is wrong with the first batch of a partition that cannot be one; empty if nothing
        is."""
        for data, layout in zip(self.data, self.layouts, strict=True):
            if data is None or layout.batches or not layout.is_corrupt:
                continue
            (size,) = _INT.unpack_from(data, _SIZE_AT)
            if size < _LEAST_MESSAGE:
                return f"Record size {size} is less than the minimum record overhead (14)"
            if data[_MAGIC_AT] > _NEWEST_MAGIC:
                magic = (data[_MAGIC_AT] ^ 0x80) - 0x80  # an int8
                return f"Invalid magic found in record: {magic}"
        return ""

    @property
    def adds_partitions(self) -> bool:
        """Whether a transactional batch adds its partition to the transaction (KIP-890)."""
        return self.version >= 12

    @property
    def form(self) -> RequestForm:
        is_usual = None not in [layout.header for layout in self.layouts]
        return RequestForm(
            self.version,
            is_usual or all(each.is_one_batch and not each.is_corrupt for each in self.layouts),
            is_usual or all(layout.batches for layout in self.layouts),
            not is_usual and bool(self.corruption),
            self.names_unknown_codec,
            len(self.producers),
            self.is_transactional,
            self.is_idempotent,
            self.transactional_id is not None,
            self.may_write_id,
            self.may_be_idempotent,
            self.has_authorizer,
        )


class RequestForm(msgspec.Struct, frozen=True):
    """What decides about a whole request. ``is_one_batch_each``: the data of every partition is one
    batch of magic 2. ``has_batches``: it begins with a whole batch. ``producers`` is how many write
    transactions, and ``may_write_id`` says whether the caller may write the request's transactional
    id, or an empty one in its place."""

    version: int
    is_one_batch_each: bool
    has_batches: bool
    is_corrupt: bool
    names_unknown_codec: bool
    producers: int
    is_transactional: bool
    is_idempotent: bool
    has_id: bool
    may_write_id: bool
    may_be_idempotent: bool
    has_authorizer: bool


REQUEST_ROWS: Final[Sequence[Row[RequestForm, Refusal]]] = (
    Row(
        "DP-VER-01",
        lambda request: request.version < 3,
        (disconnect("versions 0 to 2 are listed for the sake of librdkafka, and not served"),),
        since=(4, 0),
    ),
    Row(
        "DP-PRODUCE-08",
        lambda request: request.version >= 3 and not request.is_one_batch_each,
        (disconnect("the data of a partition is not one batch of magic 2"),),
        since=(0, 11),
        until=(2, 1),
    ),
    Row(
        "DP-PRODUCE-08",
        lambda request: not request.has_batches,
        (disconnect("the data of a partition begins with no whole batch"),),
        since=(2, 1),
        until=(2, 8),
    ),
    Row("DP-PRODUCE-18", lambda request: request.is_corrupt, (refuse_corrupt,), since=(2, 8)),
    Row(
        "DP-PRODUCE-09",
        lambda request: 3 <= request.version < 7 and request.names_unknown_codec,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR),),
        since=(2, 1),
    ),
    # By bytecode 2.0.1 gives its authorizer the null, which fails; 2.1.1 looks for it before.
    Row(
        "DP-PRODUCE-02",
        lambda request: request.is_transactional and not request.has_id and request.has_authorizer,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR),),
        since=(2, 0),
        until=(2, 1),
    ),
    Row(
        "DP-PRODUCE-02",
        lambda request: request.is_transactional and not request.has_id,
        (refuse_data(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),),
        since=(2, 1),
    ),
    Row(
        "DP-PRODUCE-02",
        lambda request: request.is_transactional and not request.may_write_id,
        (refuse_data(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),),
        since=(0, 11),
    ),
    Row(
        "DP-PRODUCE-03",
        lambda request: (
            request.is_idempotent and not request.is_transactional and not request.may_be_idempotent
        ),
        (refuse_data(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),),
        since=(0, 11),
        until=(2, 8),
    ),
    Row(
        "DP-PRODUCE-11",
        lambda request: request.producers > 1,
        (
            refuse_data(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                text="Transactional records contained more than one producer ID",
            ),
        ),
        since=(3, 6),
    ),
)
"""These decide for every partition."""


# ---- a partition ---------------------------------------------------------------------------------


class Layout(msgspec.Struct, frozen=True):
    """The whole batches of one partition's data: where each begins and ends, and its magic.
    ``is_corrupt``: no batch can begin behind them. A batch that is cut off is ignored, as in
    Kafka. ``header`` is that of the batch if the data is one batch of magic 2, and nothing else."""

    batches: tuple[tuple[int, int, int], ...]
    is_corrupt: bool
    header: BatchHeader | None = None

    @property
    def is_one_batch(self) -> bool:
        """Whether there is one batch, of magic 2."""
        return len(self.batches) == 1 and self.batches[0][2] == _NEWEST_MAGIC

    def first_header(self, data: bytes | None) -> BatchHeader | None:
        """The header of the data's first whole batch, if it is of magic 2."""
        if self.header is not None or data is None or not self.batches:
            return self.header
        at, end, magic = self.batches[0]
        return read_header(data) if magic == _NEWEST_MAGIC and end - at >= HEADER_SIZE else None


def has_unknown_codec(data: bytes | None) -> bool:
    """Whether the first batch is of magic 2, with a codec that does not exist."""
    return (
        data is not None
        and len(data) > _CODEC_AT
        and data[_MAGIC_AT] == _NEWEST_MAGIC
        and data[_CODEC_AT] & CODEC_MASK > Compression.ZSTD
    )


def layout_of(data: bytes | None) -> Layout:
    """Find the batches by their sizes."""
    at, end = 0, 0 if data is None else len(data)
    if data is not None and end >= HEADER_SIZE:
        header = read_header(data)
        if header.magic == _NEWEST_MAGIC and header.length + _ENTRY_HEADER == end:
            return Layout(((0, end, _NEWEST_MAGIC),), False, header)
    batches: list[tuple[int, int, int]] = []
    while data is not None and end - at >= _ENTRY_HEADER:
        (size,) = _INT.unpack_from(data, at + _SIZE_AT)
        if size < _LEAST_MESSAGE:
            return Layout(tuple(batches), is_corrupt=True)
        if end - at < _UP_TO_MAGIC:
            break
        magic = data[at + _MAGIC_AT]
        if magic > _NEWEST_MAGIC:
            return Layout(tuple(batches), is_corrupt=True)
        behind = at + _ENTRY_HEADER + size
        if behind > end:
            break
        batches.append((at, behind, magic))
        at = behind
    return Layout(tuple(batches), is_corrupt=False)


class Arrival(msgspec.Struct, frozen=True):
    """One partition's data, and what the receiving broker knows of the partition.

    ``has_topic`` is False if the topic id is unknown. ``in_sync`` and ``min_isr`` are 0 on brokers
    that do not lead, ``min_isr`` also without acks -1. ``batches`` is the number of batches,
    ``magic`` that of the first one, -1 without one, and ``codec`` its codec. ``is_unverified``: the
    transaction coordinator has not confirmed that the partition is part of the transaction.
    ``is_failed``: the log directory of the broker's replica has failed. ``knows_topic``: the broker
    has metadata of the topic, if not of the partition. ``newest_magic`` is the largest of all
    batches.
    """

    version: int
    acks: int
    has_topic: bool
    is_internal: bool
    by_admin: bool
    may_write: bool
    is_known: bool
    leads: bool
    in_sync: int
    min_isr: int
    batches: int
    magic: int
    is_corrupt: bool
    codec: int
    is_unverified: bool = False
    is_failed: bool = False
    knows_topic: bool = False
    newest_magic: int = -1
    is_null: bool = False

    @property
    def has_valid_acks(self) -> bool:
        return self.acks in (ALL_IN_SYNC, 0, 1)

    @property
    def has_formats_of_now(self) -> bool:
        """Whether Produce is of a version that allows one batch of magic 2 only."""
        return self.version >= 3


ARRIVAL_ROWS: Final[Sequence[Row[Arrival, Refusal]]] = (
    Row(
        "DP-PRODUCE-04",
        lambda arrival: not arrival.has_topic,
        (refuse_data(ErrorCode.UNKNOWN_TOPIC_ID),),
    ),
    Row(
        "DP-PRODUCE-05",
        lambda arrival: not arrival.may_write,
        (refuse_data(ErrorCode.TOPIC_AUTHORIZATION_FAILED),),
    ),
    Row(
        "DP-PRODUCE-10",
        lambda arrival: arrival.knows_topic and not arrival.has_valid_acks,
        (refuse_data(ErrorCode.INVALID_REQUIRED_ACKS),),
        until=(2, 0),
    ),
    Row(
        "DP-PRODUCE-06",
        lambda arrival: not arrival.is_known,
        (refuse_data(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda arrival: arrival.has_formats_of_now and arrival.is_corrupt and not arrival.batches,
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
    ),
    Row(
        "DP-PRODUCE-07",
        lambda arrival: arrival.has_formats_of_now and arrival.magic != _NEWEST_MAGIC,
        (refuse_data(ErrorCode.INVALID_RECORD),),
    ),
    Row(
        "DP-PRODUCE-09",
        lambda arrival: arrival.codec == Compression.ZSTD and 3 <= arrival.version < 7,
        (refuse_data(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),),
        since=(2, 1),
    ),
    Row(
        "DP-PRODUCE-07",
        lambda arrival: arrival.has_formats_of_now and arrival.batches > 1,
        (refuse_data(ErrorCode.INVALID_RECORD),),
    ),
    Row(
        "DP-PRODUCE-10",
        lambda arrival: not arrival.has_valid_acks,
        (refuse_data(ErrorCode.INVALID_REQUIRED_ACKS),),
        since=(3, 6),
        until=(3, 8),
    ),
)
"""The transaction coordinator is asked about partitions to which none of these applies."""


def _refuse_unverified(refusal: Refusal) -> None:
    """The transaction coordinator does not confirm that the partition is in the transaction."""
    assert refusal.unverified is not None, "the row's condition found it"
    refusal.error, refusal.text = refusal.unverified


_KNOWS_STORAGE_ERROR: Final = 4
"""The version of Produce from which on clients know error 56."""

PARTITION_ROWS: Final[Sequence[Row[Arrival, Refusal]]] = (
    *ARRIVAL_ROWS,
    Row(
        "DP-PRODUCE-12", lambda arrival: arrival.is_unverified, (_refuse_unverified,), since=(3, 6)
    ),
    Row(
        "DP-PRODUCE-10",
        lambda arrival: not arrival.has_valid_acks,
        (refuse_data(ErrorCode.INVALID_REQUIRED_ACKS),),
    ),
    Row(
        "DP-PRODUCE-13",
        lambda arrival: arrival.is_internal and not arrival.by_admin,
        (refuse_data(ErrorCode.INVALID_TOPIC_EXCEPTION),),
    ),
    Row(
        "DP-CTL-16",
        lambda arrival: arrival.is_failed and arrival.version < _KNOWS_STORAGE_ERROR,
        (refuse_data(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
        until=(2, 8),
    ),
    Row(
        "DP-CTL-16",
        lambda arrival: arrival.is_failed,
        (refuse_data(ErrorCode.KAFKA_STORAGE_ERROR),),
    ),
    Row(
        "DP-PRODUCE-14",
        lambda arrival: not arrival.leads,
        (refuse_data(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
    ),
    Row(
        "DP-PRODUCE-15",
        lambda arrival: arrival.acks == ALL_IN_SYNC and arrival.in_sync < arrival.min_isr,
        (refuse_data(ErrorCode.NOT_ENOUGH_REPLICAS, shows_start=True),),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda arrival: arrival.is_corrupt,
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
    ),
    Row(
        "DP-PRODUCE-45",
        lambda arrival: arrival.is_null and not arrival.has_formats_of_now,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR),),
        since=(2, 8),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda arrival: arrival.newest_magic == _NEWEST_MAGIC,
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
        until=(0, 11),
    ),
)


# ---- a batch -------------------------------------------------------------------------------------


class ArrivedBatch:
    """One batch of magic 2 within the data, or a message of an older format.

    Of a message of magic 0 or 1, ``header`` is None. ``first_magic`` is that of the first batch,
    ``count`` the number of batches in the data.
    """

    __slots__ = ("at", "count", "data", "end", "first_magic", "header", "magic", "settings")

    def __init__(
        self,
        data: bytes,
        place: tuple[int, int, int],
        header: BatchHeader | None,
        settings: LogSettings,
        first_magic: int,
        count: int,
    ) -> None:
        self.data = data
        self.at, self.end, self.magic = place
        self.header = header
        self.settings = settings
        self.first_magic = first_magic
        self.count = count

    @property
    def form(self) -> BatchForm:
        header, settings, magic = self.header, self.settings, self.magic
        is_too_large = self.end - self.at > settings.max_message_bytes
        is_one_of_many = self.count > 1
        if header is None:
            is_intact = magic != _NEWEST_MAGIC and self._crc_of_message_is_right
            return BatchForm(
                magic, self.first_magic, is_one_of_many, is_too_large, is_intact, self.codec
            )
        base_offset, _, _, _, crc, attributes, delta, _, _, producer_id, _, sequence, count = header
        return BatchForm(
            magic,
            self.first_magic,
            is_one_of_many,
            is_too_large,
            crc32c(self.data, self.at + _CHECKED_AT, self.end) == crc,
            attributes & CODEC_MASK,
            base_offset != 0,
            count == 0,
            not 0 < count == delta + 1,
            bool(attributes & CONTROL),
            producer_id >= 0 and sequence < 0,
            settings.magic != _NEWEST_MAGIC
            and (producer_id >= 0 or bool(attributes & TRANSACTIONAL)),
        )

    @property
    def _crc_of_message_is_right(self) -> bool:
        """Whether the checksum of a message of magic 0 or 1 is that of its bytes."""
        (crc,) = _UNSIGNED.unpack_from(self.data, self.at + _CRC_OF_MESSAGE_AT)
        start = self.at + _CRC_OF_MESSAGE_AT + _UNSIGNED.size
        return bool(crc32(memoryview(self.data)[start : self.end]) == crc)

    @property
    def codec(self) -> int:
        """The number of the compression codec, which may not exist."""
        if self.header is not None:
            return self.header.codec
        return self.data[self.at + 17] & CODEC_MASK


class BatchForm(msgspec.Struct, frozen=True):
    """What decides about a batch. ``is_intact``: it is whole, and its checksum is right. The fields
    from ``has_base_offset`` on are of the headers that batches of magic 2 have."""

    magic: int
    first_magic: int
    is_one_of_many: bool
    is_too_large: bool
    is_intact: bool
    codec: int
    has_base_offset: bool = False
    is_empty: bool = False
    has_wrong_count: bool = False
    is_control: bool = False
    lacks_sequence: bool = False
    is_for_other_format: bool = False

    @property
    def is_wrongly_one_of_many(self) -> bool:
        return self.is_one_of_many and (self.codec > 0 or self.first_magic == _NEWEST_MAGIC)


def _is_invalid(
    requirement: str, when: Callable[[BatchForm], bool], since: ReleaseNumber = EVER
) -> tuple[Row[BatchForm, Refusal], Row[BatchForm, Refusal]]:
    """INVALID_RECORD(87) came with 2.4; until then the error was CORRUPT_MESSAGE(2)."""
    return (
        Row(
            requirement, when, (refuse_data(ErrorCode.CORRUPT_MESSAGE),), since=since, until=(2, 4)
        ),
        Row(requirement, when, (_INVALID,), since=(2, 4)),
    )


FIRST_BATCH_ROWS: Final[Sequence[Row[BatchForm, Refusal]]] = (
    *_is_invalid("DP-PRODUCE-16", lambda batch: batch.has_base_offset, since=(0, 11)),
    Row(
        "DP-PRODUCE-17",
        lambda batch: batch.is_too_large,
        (refuse_data(ErrorCode.MESSAGE_TOO_LARGE),),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda batch: not batch.is_intact,
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
    ),
    Row(
        "DP-PRODUCE-09",
        lambda batch: batch.codec > Compression.ZSTD,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR, shows_start=True),),
    ),
)
"""All batches pass these before the first one is looked at by ``BATCH_ROWS``."""

BATCH_ROWS: Final[Sequence[Row[BatchForm, Refusal]]] = (
    Row("DP-PRODUCE-19", lambda batch: batch.magic != batch.first_magic, (_INVALID,), since=(2, 4)),
    Row(
        "DP-PRODUCE-20",
        lambda batch: batch.is_empty,
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
        since=(0, 11),
        until=(1, 1),
    ),
    *_is_invalid("DP-PRODUCE-20", lambda batch: batch.has_wrong_count, since=(1, 1)),
    *_is_invalid("DP-PRODUCE-21", lambda batch: batch.is_control, since=(0, 11)),
    *_is_invalid("DP-PRODUCE-22", lambda batch: batch.lacks_sequence, since=(0, 11)),
    Row(
        "DP-PRODUCE-23",
        lambda batch: batch.is_for_other_format,
        (refuse_data(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, shows_start=True),),
        since=(0, 11),
        until=(4, 0),
    ),
    Row("DP-PRODUCE-28", lambda batch: batch.is_wrongly_one_of_many, (_INVALID,), since=(2, 4)),
)


UNREADABLE_ROWS: Final[Sequence[Row[bool, Refusal]]] = (
    Row(
        "DP-PRODUCE-44",
        lambda is_packed_wrongly: is_packed_wrongly,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR, shows_start=True),),
    ),
    Row("DP-PRODUCE-28", always, (refuse_data(ErrorCode.CORRUPT_MESSAGE),), until=(2, 4)),
    Row("DP-PRODUCE-28", always, (_INVALID,), since=(2, 4)),
)
"""What a batch gets whose records cannot be read, for example because one is compressed within a
compressed one. Its context is whether the content cannot be decompressed."""


GAP_ROWS: Final[Sequence[Row[None, Refusal]]] = (
    Row(
        "DP-PRODUCE-44",
        always,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR, shows_start=True),),
        since=(2, 4),
    ),
)
"""What a compressed batch gets whose offsets are not consecutive. It has to be built anew, for
which Kafka lacks the keys and values: since 2.4 it skips them while it reads."""


class RewrittenBatch(msgspec.Struct, frozen=True):
    """A batch as it would be stored. ``is_rebuilt``: its size may have changed."""

    is_rebuilt: bool
    is_too_large: bool
    exceeds_segment: bool


STORED_ROWS: Final[Sequence[Row[RewrittenBatch, Refusal]]] = (
    Row(
        "DP-PRODUCE-29",
        lambda batch: batch.is_rebuilt and batch.is_too_large,
        (refuse_data(ErrorCode.MESSAGE_TOO_LARGE),),
    ),
    Row(
        "DP-PRODUCE-30",
        lambda batch: batch.exceeds_segment,
        (refuse_data(ErrorCode.RECORD_LIST_TOO_LARGE),),
    ),
)
