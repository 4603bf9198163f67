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
from kproto.records.model import CODEC_MASK, CONTROL, Compression
from mockbroker.simulation.log.batches.batch_header import HEADER_SIZE, BatchHeader, read_header
from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.log.producing.producer_states import Guard
from mockbroker.simulation.releases.release import EVER, ReleaseNumber
from mockbroker.simulation.releases.rows import Row, always, with_arguments
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS, TopicPartition

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
    "Layout",
    "Refusal",
    "RequestFacts",
    "RewrittenBatch",
    "disconnect",
    "has_unknown_codec",
    "is_ordinary_arrival",
    "is_ordinary_batch",
    "is_ordinary_request",
    "is_ordinary_stored",
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
_CHECKED_AT: Final = {0: 16, 1: 16, 2: 21}
_CRC_AT: Final = {0: 12, 1: 12, 2: 17}
_INT: Final = struct.Struct(">i")
_UNSIGNED: Final = struct.Struct(">I")
_NEWEST_MAGIC: Final = 2
_ZSTD: Final = int(Compression.ZSTD)


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
    transactional batches. ``may_write_id``: the
    caller may write the request's transactional id. ``may_be_idempotent``: the caller has
    IdempotentWrite on the cluster. ``layouts`` are those of ``data``, in its order.
    ``names_unknown_codec``: the first batch of a partition that the broker knows has a codec that
    does not exist.

    ``unverified`` are the errors of partitions that the transaction coordinator does not confirm,
    None if it was not asked. ``guards`` stand for its confirmations; None if none are needed."""

    acks: int
    version: int
    client_id: str | None = None
    transactional_id: str | None = None
    producers: frozenset[tuple[int, int]] = frozenset()
    is_idempotent: bool = False
    may_write_id: bool = True
    may_be_idempotent: bool = True
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
    def is_one_batch_each(self) -> bool:
        """Whether the data of every partition is one batch of magic 2."""
        return all(
            len(batches) == 1 and batches[0][2] == _NEWEST_MAGIC
            for batches in (each.batches for each in self.layouts)
        )


REQUEST_ROWS: Final[Sequence[Row[RequestFacts, Refusal]]] = (
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
        until=(2, 4),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda request: bool(request.corruption),
        (refuse_corrupt,),
        since=(2, 8),
    ),
    Row(
        "DP-PRODUCE-09",
        lambda request: 3 <= request.version < 7 and request.names_unknown_codec,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR),),
        since=(2, 1),
    ),
    Row(
        "DP-PRODUCE-02",
        lambda request: (
            bool(request.producers)
            and (request.transactional_id is None or not request.may_write_id)
        ),
        (refuse_data(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),),
        since=(0, 11),
    ),
    Row(
        "DP-PRODUCE-03",
        lambda request: (
            request.is_idempotent and not request.producers and not request.may_be_idempotent
        ),
        (refuse_data(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),),
        since=(0, 11),
        until=(2, 8),
    ),
    Row(
        "DP-PRODUCE-11",
        lambda request: len(request.producers) > 1,
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


def is_ordinary_request(request: RequestFacts) -> bool:
    """Whether certainly none of ``REQUEST_ROWS`` applies, in any release. False says nothing."""
    if request.version < 3 or request.producers:
        return False
    if request.is_idempotent and not request.may_be_idempotent:
        return False
    if request.version < 7 and request.names_unknown_codec:
        return False
    return None not in [layout.header for layout in request.layouts]


# ---- a partition ---------------------------------------------------------------------------------


class Layout(msgspec.Struct, frozen=True):
    """The whole batches of one partition's data: where each begins and ends, and its magic.
    ``is_corrupt``: no batch can begin behind them. A batch that is cut off is ignored, as in
    Kafka. ``header`` is that of the batch if the data is one batch of magic 2, and nothing else."""

    batches: tuple[tuple[int, int, int], ...]
    is_corrupt: bool
    header: BatchHeader | None = None


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
    while data is not None and end - at >= _UP_TO_MAGIC:
        (size,) = _INT.unpack_from(data, at + _SIZE_AT)
        magic = data[at + _MAGIC_AT]
        if size < _LEAST_MESSAGE or magic > _NEWEST_MAGIC:
            return Layout(tuple(batches), is_corrupt=True)
        behind = at + _ENTRY_HEADER + size
        if behind > end:
            break
        batches.append((at, behind, magic))
        at = behind
    return Layout(tuple(batches), is_corrupt=False)


class Arrival(msgspec.Struct):
    """One partition's data, and what the receiving broker knows of the partition.

    ``topic`` is None if the topic id is unknown. ``in_sync`` and ``min_isr`` are 0 on brokers that
    do not lead, ``min_isr`` also without acks -1. ``codec`` is that of the first batch.
    ``unverified`` is the error with which the transaction coordinator has not confirmed that the
    partition is part of the transaction; None without one. ``is_failed``: the log directory of the
    broker's replica has failed.
    """

    request: RequestFacts
    topic: str | None
    may_write: bool
    is_known: bool
    leads: bool
    in_sync: int
    min_isr: int
    layout: Layout
    codec: int
    unverified: tuple[ErrorCode, str | None] | None = None
    is_failed: bool = False

    @property
    def has_formats_of_now(self) -> bool:
        """Whether Produce is of a version that allows one batch of magic 2 only."""
        return self.request.version >= 3


def _begins_wrong(arrival: Arrival) -> bool:
    batches = arrival.layout.batches
    return arrival.has_formats_of_now and (not batches or batches[0][2] != _NEWEST_MAGIC)


ARRIVAL_ROWS: Final[Sequence[Row[Arrival, Refusal]]] = (
    Row(
        "DP-PRODUCE-04",
        lambda arrival: arrival.topic is None,
        (refuse_data(ErrorCode.UNKNOWN_TOPIC_ID),),
    ),
    Row(
        "DP-PRODUCE-05",
        lambda arrival: not arrival.may_write,
        (refuse_data(ErrorCode.TOPIC_AUTHORIZATION_FAILED),),
    ),
    Row(
        "DP-PRODUCE-06",
        lambda arrival: not arrival.is_known,
        (refuse_data(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda arrival: (
            arrival.has_formats_of_now and arrival.layout.is_corrupt and not arrival.layout.batches
        ),
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
    ),
    Row(
        "DP-PRODUCE-07",
        _begins_wrong,
        (refuse_data(ErrorCode.INVALID_RECORD),),
    ),
    Row(
        "DP-PRODUCE-09",
        lambda arrival: arrival.codec == Compression.ZSTD and arrival.request.version < 7,
        (refuse_data(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),),
        since=(2, 1),
    ),
    Row(
        "DP-PRODUCE-07",
        lambda arrival: arrival.has_formats_of_now and len(arrival.layout.batches) > 1,
        (refuse_data(ErrorCode.INVALID_RECORD),),
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
        "DP-PRODUCE-12",
        lambda arrival: arrival.unverified is not None,
        (_refuse_unverified,),
        since=(3, 6),
    ),
    Row(
        "DP-PRODUCE-10",
        lambda arrival: arrival.request.acks not in (ALL_IN_SYNC, 0, 1),
        (refuse_data(ErrorCode.INVALID_REQUIRED_ACKS),),
    ),
    Row(
        "DP-PRODUCE-13",
        lambda arrival: (
            arrival.topic in INTERNAL_TOPICS and arrival.request.client_id != ADMIN_CLIENT
        ),
        (refuse_data(ErrorCode.INVALID_TOPIC_EXCEPTION),),
    ),
    Row(
        "DP-CTL-16",
        lambda arrival: arrival.is_failed and arrival.request.version < _KNOWS_STORAGE_ERROR,
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
        lambda arrival: arrival.request.acks == ALL_IN_SYNC and arrival.in_sync < arrival.min_isr,
        (refuse_data(ErrorCode.NOT_ENOUGH_REPLICAS, shows_start=True),),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda arrival: arrival.layout.is_corrupt,
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
    ),
)


def is_ordinary_arrival(arrival: Arrival) -> bool:
    """Whether certainly none of ``PARTITION_ROWS`` applies, in any release. False says nothing."""
    acks = arrival.request.acks
    return (
        arrival.leads
        and not arrival.is_failed
        and arrival.is_known
        and arrival.may_write
        and arrival.unverified is None
        and arrival.topic is not None
        and arrival.topic not in INTERNAL_TOPICS
        and arrival.layout.header is not None
        and arrival.codec < _ZSTD
        and (acks in (0, 1) or (acks == ALL_IN_SYNC and arrival.in_sync >= arrival.min_isr))
    )


# ---- a batch -------------------------------------------------------------------------------------


class ArrivedBatch:
    """One batch of magic 2 within the data, or a message of an older format.

    Of a message of magic 0 or 1, ``header`` is None. ``first_magic`` is that of the first batch,
    ``count`` the number of batches in the data. ``is_packed_wrongly``: its content cannot be
    decompressed.
    """

    __slots__ = (
        "at",
        "count",
        "data",
        "end",
        "first_magic",
        "header",
        "is_packed_wrongly",
        "magic",
        "settings",
    )

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
        self.is_packed_wrongly = False
        self.count = count

    @property
    def crc_is_right(self) -> bool:
        """Whether the checksum is that of the bytes."""
        (crc,) = _UNSIGNED.unpack_from(self.data, self.at + _CRC_AT[self.magic])
        start = self.at + _CHECKED_AT[self.magic]
        if self.magic == _NEWEST_MAGIC:
            computed = crc32c(self.data, start, self.end)
        else:
            computed = crc32(memoryview(self.data)[start : self.end])
        return bool(computed == crc)

    @property
    def codec(self) -> int:
        """The number of the compression codec, which may not exist."""
        if self.header is not None:
            return self.header.codec
        return self.data[self.at + 17] & CODEC_MASK


def _of_header(condition: Callable[[BatchHeader], bool]) -> Callable[[ArrivedBatch], bool]:
    """A condition on batches of magic 2."""

    def applies(batch: ArrivedBatch) -> bool:
        header = batch.header
        return header is not None and condition(header)

    return applies


def _has_wrong_count(header: BatchHeader) -> bool:
    delta, count = header.last_offset_delta, header.record_count
    return delta < 0 or count <= 0 or count != delta + 1


def _is_for_other_format(batch: ArrivedBatch) -> bool:
    header = batch.header
    if header is None or batch.settings.magic == _NEWEST_MAGIC:
        return False
    return header.is_transactional or header.producer_id >= 0


def _is_invalid(
    requirement: str, when: Callable[[ArrivedBatch], bool], since: ReleaseNumber = EVER
) -> tuple[Row[ArrivedBatch, Refusal], Row[ArrivedBatch, Refusal]]:
    """INVALID_RECORD(87) came with 2.4; until then the error was CORRUPT_MESSAGE(2)."""
    return (
        Row(
            requirement, when, (refuse_data(ErrorCode.CORRUPT_MESSAGE),), since=since, until=(2, 4)
        ),
        Row(requirement, when, (_INVALID,), since=(2, 4)),
    )


FIRST_BATCH_ROWS: Final[Sequence[Row[ArrivedBatch, Refusal]]] = (
    *_is_invalid(
        "DP-PRODUCE-16", _of_header(lambda header: header.base_offset != 0), since=(0, 11)
    ),
    Row(
        "DP-PRODUCE-17",
        lambda batch: batch.end - batch.at > batch.settings.max_message_bytes,
        (refuse_data(ErrorCode.MESSAGE_TOO_LARGE),),
    ),
    Row(
        "DP-PRODUCE-18",
        lambda batch: (
            (batch.magic == _NEWEST_MAGIC and batch.end - batch.at < HEADER_SIZE)
            or not batch.crc_is_right
        ),
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
    ),
    Row(
        "DP-PRODUCE-09",
        lambda batch: batch.codec > Compression.ZSTD,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR, shows_start=True),),
    ),
)
"""All batches pass these before the first one is looked at by ``BATCH_ROWS``."""

BATCH_ROWS: Final[Sequence[Row[ArrivedBatch, Refusal]]] = (
    Row(
        "DP-PRODUCE-19",
        lambda batch: batch.magic != batch.first_magic,
        (_INVALID,),
        since=(2, 4),
    ),
    Row(
        "DP-PRODUCE-20",
        _of_header(lambda header: header.record_count == 0),
        (refuse_data(ErrorCode.CORRUPT_MESSAGE),),
        since=(0, 11),
        until=(1, 1),
    ),
    *_is_invalid("DP-PRODUCE-20", _of_header(_has_wrong_count), since=(1, 1)),
    *_is_invalid("DP-PRODUCE-21", _of_header(lambda header: header.is_control), since=(0, 11)),
    *_is_invalid(
        "DP-PRODUCE-22",
        _of_header(lambda header: header.producer_id >= 0 and header.base_sequence < 0),
        since=(0, 11),
    ),
    Row(
        "DP-PRODUCE-23",
        _is_for_other_format,
        (refuse_data(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, shows_start=True),),
        since=(0, 11),
        until=(4, 0),
    ),
    Row(
        "DP-PRODUCE-28",
        lambda batch: batch.count > 1 and batch.codec > 0,
        (_INVALID,),
        since=(2, 4),
    ),
)


def is_ordinary_batch(batch: ArrivedBatch) -> bool:
    """Whether certainly none of ``FIRST_BATCH_ROWS`` and ``BATCH_ROWS`` applies, in any release.
    False says nothing."""
    header, settings = batch.header, batch.settings
    return (
        header is not None
        and batch.count == 1
        and batch.first_magic == batch.magic == settings.magic == _NEWEST_MAGIC
        and header.base_offset == 0
        and 0 < header.record_count == header.last_offset_delta + 1
        and header.attributes & (CODEC_MASK | CONTROL) <= _ZSTD
        and (header.producer_id < 0 or header.base_sequence >= 0)
        and batch.end - batch.at <= settings.max_message_bytes
        and batch.crc_is_right
    )


UNREADABLE_ROWS: Final[Sequence[Row[ArrivedBatch, Refusal]]] = (
    Row(
        "DP-PRODUCE-44",
        lambda batch: batch.is_packed_wrongly,
        (refuse_data(ErrorCode.UNKNOWN_SERVER_ERROR, shows_start=True),),
    ),
    *_is_invalid("DP-PRODUCE-28", lambda _: True),
)
"""What a batch gets whose records cannot be read, for example because one is compressed within a
compressed one."""


GAP_ROWS: Final[Sequence[Row[ArrivedBatch, Refusal]]] = (
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

    size: int
    is_rebuilt: bool
    settings: LogSettings


def is_ordinary_stored(size: int, settings: LogSettings, *, is_rebuilt: bool) -> bool:
    """Whether certainly none of ``STORED_ROWS`` applies, in any release. False says nothing."""
    return not is_rebuilt and size <= settings.segment_bytes


STORED_ROWS: Final[Sequence[Row[RewrittenBatch, Refusal]]] = (
    Row(
        "DP-PRODUCE-29",
        lambda batch: batch.is_rebuilt and batch.size > batch.settings.max_message_bytes,
        (refuse_data(ErrorCode.MESSAGE_TOO_LARGE),),
    ),
    Row(
        "DP-PRODUCE-30",
        lambda batch: batch.size > batch.settings.segment_bytes,
        (refuse_data(ErrorCode.RECORD_LIST_TOO_LARGE),),
    ),
)
