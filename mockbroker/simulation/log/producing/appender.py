"""Appends what producers send: checks, rewrites where contents change, and waits for replicas.

``Appender.append`` decides on one partition of a request at once. With ``acks`` -1 an answer also
needs the in-sync replicas: ``ReplicationWait`` watches the logs of a request for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from kproto.error_codes import ErrorCode
from kproto.errors import DecodeError, MissingExtraError
from kproto.records import Compression, Record, RecordBatches, TimestampType
from kproto.records.model import CODEC_MASK, NO_TIMESTAMP, TRANSACTIONAL
from kproto.records.record import RecordSurvey
from mockbroker.errors import ClusterError
from mockbroker.simulation.log.batches.batch_header import (
    HEADER_SIZE,
    BatchHeader,
    read_header,
    with_time,
)
from mockbroker.simulation.log.batches.batch_survey import (
    CompressionError,
    records_of,
    survey_batch,
)
from mockbroker.simulation.log.batches.conversion import CODECS, rebuild
from mockbroker.simulation.log.log_events import CodecMissing
from mockbroker.simulation.log.log_settings import LogSettings
from mockbroker.simulation.log.logs import InternalProducer, Logs
from mockbroker.simulation.log.partition_log import PartitionLog
from mockbroker.simulation.log.producing.produce_rules import (
    ADMIN_CLIENT,
    ALL_IN_SYNC,
    ARRIVAL_ROWS,
    BATCH_ROWS,
    FIRST_BATCH_ROWS,
    GAP_ROWS,
    PARTITION_ROWS,
    REQUEST_ROWS,
    STORED_ROWS,
    UNREADABLE_ROWS,
    Arrival,
    ArrivedBatch,
    BatchForm,
    Layout,
    Refusal,
    RequestFacts,
    RewrittenBatch,
    layout_of,
)
from mockbroker.simulation.log.producing.producer_states import (
    COORDINATOR_ROWS,
    ProducerBatch,
    SequenceCheck,
)
from mockbroker.simulation.log.producing.producer_states import ROWS as PRODUCER_ROWS
from mockbroker.simulation.log.producing.record_rules import (
    RecordChecks,
    RecordError,
    needs_records,
)
from mockbroker.simulation.log.replicas.answer_holds import AnswerHolds
from mockbroker.simulation.log.replicas.replica_wait import LogWait
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row, apply_first, first_row, refuse, rows_of_release
from mockbroker.simulation.state.cluster_parts import INTERNAL_TOPICS, Partition, TopicPartition
from mockbroker.simulation.state.controller import Controller

__all__ = ["AppendOutcome", "Appender", "ReplicationWait"]

_NEWEST_MAGIC: Final = 2
_SEQUENCES: Final = 0x7FFFFFFF


class AppendOutcome(msgspec.Struct):
    """What a producer is answered for one partition.

    ``end_offset`` is the end of what was appended, or of the batch that was a duplicate; None if
    there is an error. ``is_replicated``: the in-sync replicas had it at once, so with acks -1
    nothing is left to wait for. ``text`` and ``record_errors`` come with rejected records.
    """

    tp: TopicPartition
    error: ErrorCode = ErrorCode.NONE
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: tuple[RecordError, ...] = ()
    text: str | None = None
    end_offset: int | None = None
    is_replicated: bool = False


class Appender:
    """Appends to the logs of one cluster, by the rules of its release."""

    def __init__(self, controller: Controller, logs: Logs) -> None:
        self._controller = controller
        self._logs = logs
        self.holds = AnswerHolds()
        """The partitions whose answers a tester holds."""
        logs.release.follow(self._use_release)
        self._record_checks = RecordChecks(logs.release)

    def _use_release(self, release: Release) -> None:
        self._request_row = first_row(rows_of_release(REQUEST_ROWS, release))
        self._arrival_rows = rows_of_release(ARRIVAL_ROWS, release)
        self._partition_row = first_row(rows_of_release(PARTITION_ROWS, release))
        self._first_batch_row = first_row(rows_of_release(FIRST_BATCH_ROWS, release))
        self._later_batch_row = first_row(rows_of_release(BATCH_ROWS, release))
        self._only_batch_row = first_row(rows_of_release((*FIRST_BATCH_ROWS, *BATCH_ROWS), release))
        self._stored_row = first_row(rows_of_release(STORED_ROWS, release))
        self._gap_row = first_row(rows_of_release(GAP_ROWS, release))
        self._unreadable_row = first_row(rows_of_release(UNREADABLE_ROWS, release))
        self._producer_row = first_row(rows_of_release(PRODUCER_ROWS, release))
        checks = COORDINATOR_ROWS if release.has(facts.COORDINATOR_BATCHES_CHECKED) else ()
        self._internal_row = first_row(rows_of_release(checks, release))

    # ---- a request -----------------------------------------------------------------------------

    def refusal(self, request: RequestFacts) -> Refusal | None:
        """Return what the whole request is answered; None if its partitions decide."""
        row = self._request_row(request.form)
        if row is None:
            return None
        refusal = Refusal(request.corruption)
        row.apply(refusal)
        return refusal

    def append(
        self,
        broker_id: int,
        topic: str | None,
        index: int,
        data: bytes | None,
        request: RequestFacts,
        *,
        may_write: bool,
        is_known: bool,
        knows_topic: bool = False,
        layout: Layout | None = None,
    ) -> AppendOutcome:
        """Append one partition's data, all of it or nothing.

        ``topic`` is None if its id is unknown. ``is_known``: the receiving broker has metadata of
        the partition. ``layout`` is that of the data, if it is known.
        """
        tp = (topic or "", index)
        if layout is None:
            layout = layout_of(data)
        header = layout.header
        attributes = _first_attributes(data, layout) if header is None else header.attributes
        partition = self._partition(tp) if is_known else None
        leads = partition is not None and partition.leader == broker_id
        unverified = request.unverified.get(tp) if request.unverified else None
        batches = layout.batches
        row = self._partition_row(
            Arrival(
                request.version,
                request.acks,
                topic is not None,
                topic in INTERNAL_TOPICS,
                request.client_id == ADMIN_CLIENT,
                may_write,
                is_known,
                leads,
                len(partition.isr) if partition is not None and leads else 0,
                self._logs.min_isr(tp[0], partition)
                if partition is not None and leads and request.acks == ALL_IN_SYNC
                else 0,
                len(batches),
                batches[0][2] if batches else -1,
                layout.is_corrupt,
                attributes & CODEC_MASK,
                unverified is not None,
                partition is not None and self._logs.is_failed(tp, broker_id),
                knows_topic=knows_topic or is_known,
                newest_magic=batches[0][2]
                if len(batches) == 1
                else max((each[2] for each in batches), default=-1),
                is_null=data is None,
            )
        )
        if row is not None:
            return self._refused(tp, row, Refusal(unverified=unverified))
        assert partition is not None, "the rows refuse brokers that do not lead"
        return self._append(tp, partition, data or b"", layout, request)

    def has_valid_form(self, version: int, data: bytes | None) -> bool:
        """Whether no rule refuses the data before the partition is looked at."""
        layout = layout_of(data)
        return self._is_let_in(
            layout,
            _first_attributes(data, layout),
            version,
            ALL_IN_SYNC,
            has_topic=True,
            is_internal=False,
            by_admin=False,
            may_write=True,
            is_known=True,
        )

    def _is_let_in(
        self, layout: Layout, attributes: int, version: int, acks: int, **about: bool
    ) -> bool:
        """Whether no rule about what arrives refuses the data, at a leader whose replicas do not
        matter."""
        batches = layout.batches
        arrival = Arrival(
            version,
            acks,
            leads=True,
            in_sync=0,
            min_isr=0,
            batches=len(batches),
            magic=batches[0][2] if batches else -1,
            is_corrupt=layout.is_corrupt,
            codec=attributes & CODEC_MASK,
            **about,
        )
        return not apply_first(self._arrival_rows, arrival, Refusal())

    def transactional_sequence(
        self,
        broker_id: int,
        topic: str | None,
        index: int,
        data: bytes | None,
        request: RequestFacts,
        *,
        may_write: bool,
        is_known: bool,
    ) -> int | None:
        """The first sequence of the data if ``append`` has to know whether a transaction includes
        the partition; None if it has not."""
        layout = layout_of(data)
        attributes = _first_attributes(data, layout)
        tp = (topic or "", index)
        partition = self._partition(tp) if is_known else None
        if partition is None or partition.leader != broker_id or not attributes & TRANSACTIONAL:
            return None
        if self._logs.is_failed(tp, broker_id):
            return None
        is_let_in = self._is_let_in(
            layout,
            attributes,
            request.version,
            request.acks,
            has_topic=topic is not None,
            is_internal=topic in INTERNAL_TOPICS,
            by_admin=request.client_id == ADMIN_CLIENT,
            may_write=may_write,
            is_known=is_known,
        )
        header = layout.first_header(data) if is_let_in else None
        return header and header.base_sequence

    def _refusing_row(self, batches: Sequence[ArrivedBatch]) -> Row[BatchForm, Refusal] | None:
        if len(batches) == 1:
            return self._only_batch_row(batches[0].form)
        forms = [batch.form for batch in batches]
        rows = (
            decide(form)
            for decide in (self._first_batch_row, self._later_batch_row)
            for form in forms
        )
        return next(filter(None, rows), None)

    def _partition(self, tp: TopicPartition) -> Partition | None:
        try:
            return self._controller.partition(tp)
        except ClusterError:
            return None

    def _refused(
        self, tp: TopicPartition, row: Row[Any, Refusal], refusal: Refusal | None = None
    ) -> AppendOutcome:
        """Return the answer that a row gives."""
        refusal = refusal or Refusal()
        row.apply(refusal)
        start = self._logs.log(tp).start_offset if refusal.shows_start else -1
        return AppendOutcome(tp, refusal.error, log_start_offset=start, text=refusal.text)

    # ---- a partition ---------------------------------------------------------------------------

    def _append(
        self,
        tp: TopicPartition,
        partition: Partition,
        data: bytes,
        layout: Layout,
        request: RequestFacts,
    ) -> AppendOutcome:
        settings = self._logs.settings(tp[0])
        places = layout.batches
        if not places:  # an old message set without messages is not an error
            return AppendOutcome(tp, log_start_offset=self._logs.log(tp).start_offset)
        count, first_magic = len(places), places[0][2]
        if layout.header is not None:
            batches = [ArrivedBatch(data, places[0], layout.header, settings, first_magic, count)]
        else:
            batches = [
                ArrivedBatch(data, place, _header_at(data, place), settings, first_magic, count)
                for place in places
            ]
        row = self._refusing_row(batches)
        if row is not None:
            return self._refused(tp, row)
        header = batches[0].header
        codec = CODECS.get(settings.compression_type)
        if header is None or count > 1 or (codec is not None and codec != header.codec):
            return self._convert(tp, partition, batches, settings, request)
        if places[0][1] != len(data):
            data = data[: places[0][1]]
        now_ms = self._controller.timers.now_ms
        try:
            survey = survey_batch(data, header)
        except MissingExtraError:  # the batch is stored as it is, by what its header says
            survey = RecordSurvey(header.max_timestamp, header.max_timestamp, is_consecutive=True)
        except (DecodeError, CompressionError) as error:
            return self._unreadable(tp, error)
        if header.codec and not survey.is_consecutive:
            gap_row = self._gap_row(None)
            if gap_row is not None:
                return self._refused(tp, gap_row)
            return self._convert(tp, partition, batches, settings, request)
        if needs_records(header, survey, settings, now_ms):
            _, rejected = self._read(tp, batches, settings)
            if rejected is not None:
                return rejected
        max_timestamp = max(survey.max_timestamp, NO_TIMESTAMP)
        last_offset_delta = header.record_count - 1
        is_wrong = (
            header.max_timestamp != max_timestamp or header.last_offset_delta != last_offset_delta
        )
        if is_wrong:
            header = header._replace(last_offset_delta=last_offset_delta)
        if settings.append_time:
            data = with_time(data, header, now_ms, append_time=True)
            header = read_header(data)
        elif header.has_append_time or is_wrong:
            data = with_time(data, header, max_timestamp, append_time=False)
            header = read_header(data)
        return self._store(tp, partition, data, header, settings, request, is_rebuilt=False)

    def _convert(
        self,
        tp: TopicPartition,
        partition: Partition,
        batches: Sequence[ArrivedBatch],
        settings: LogSettings,
        request: RequestFacts,
    ) -> AppendOutcome:
        """Append batches that have to become one batch of magic 2, or have another codec."""
        records, rejected = self._read(tp, batches, settings)
        if rejected is not None:
            return rejected
        codec = _target_codec(batches, settings)
        append_time = self._controller.now_ms if settings.append_time else None
        try:
            data = rebuild(records, batches[0].header, Compression(codec), append_time)
        except MissingExtraError:
            return self._without_codec(tp, codec)
        header = read_header(data)
        return self._store(tp, partition, data, header, settings, request, is_rebuilt=True)

    def _read(
        self, tp: TopicPartition, batches: Sequence[ArrivedBatch], settings: LogSettings
    ) -> tuple[list[Record], AppendOutcome | None]:
        """Return the records, and the answer if they are refused."""
        records: list[Record] = []
        first = batches[0]
        is_partial = (
            first.header is not None
            and first.codec > 0
            and _target_codec(batches, settings) == first.codec
        )
        for arrived in batches:
            data = arrived.data[arrived.at : arrived.end]
            try:
                (batch,) = RecordBatches(data, check_crc=False)
                found = records_of(batch)
            except MissingExtraError:
                return records, self._without_codec(tp, arrived.codec)
            except (DecodeError, CompressionError) as error:
                return records, self._unreadable(tp, error)
            rejection = self._record_checks.rejection(
                found,
                tp,
                settings,
                self._controller.now_ms,
                says_append_time=batch.timestamp_type is TimestampType.LOG_APPEND_TIME,
                is_partial=is_partial,
            )
            if rejection is not None:
                start = self._logs.log(tp).start_offset if rejection.shows_start else -1
                return records, AppendOutcome(
                    tp,
                    rejection.error,
                    log_start_offset=start,
                    record_errors=rejection.record_errors,
                    text=rejection.text,
                )
            records += found
        return records, None

    def _unreadable(self, tp: TopicPartition, error: Exception) -> AppendOutcome:
        """Refuse a batch whose records cannot be read."""
        row = self._unreadable_row(isinstance(error, CompressionError))
        assert row is not None, "the last row applies always"
        return self._refused(tp, row)

    def _without_codec(self, tp: TopicPartition, codec: int) -> AppendOutcome:
        """Refuse a batch whose codec is not installed here."""
        self._logs.events.append(CodecMissing(self._controller.now_ms, tp, codec))
        start = self._logs.log(tp).start_offset
        return AppendOutcome(tp, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, log_start_offset=start)

    def _store(
        self,
        tp: TopicPartition,
        partition: Partition,
        data: bytes,
        header: BatchHeader,
        settings: LogSettings,
        request: RequestFacts,
        *,
        is_rebuilt: bool,
    ) -> AppendOutcome:
        size = len(data)
        row = self._stored_row(
            RewrittenBatch(
                is_rebuilt, size > settings.max_message_bytes, size > settings.segment_bytes
            )
        )
        if row is not None:
            return self._refused(tp, row)
        held = self._logs.data(tp)
        log = held.log
        if header.producer_id >= 0:
            check = self._check_producer(tp, log, header, request)
            if check is not None and check.code:
                return AppendOutcome(tp, check.code, log_start_offset=log.start_offset)
            if check is not None and check.duplicate is not None:
                kept = check.duplicate
                return AppendOutcome(
                    tp,
                    base_offset=kept.first_offset,
                    log_append_time_ms=kept.timestamp,
                    log_start_offset=log.start_offset,
                    end_offset=kept.last_offset + 1,
                )
        base_offset = self._logs.append_to(tp, held, partition, data, header, settings)
        end_offset = base_offset + header.last_offset_delta + 1
        return AppendOutcome(
            tp,
            ErrorCode.NONE,
            base_offset,
            self._controller.now_ms if settings.append_time else -1,
            log.start_offset,
            end_offset=end_offset,
            is_replicated=log.high_watermark >= end_offset,
        )

    def _check_producer(
        self, tp: TopicPartition, log: PartitionLog, header: BatchHeader, request: RequestFacts
    ) -> SequenceCheck | None:
        """None if no row applies."""
        guards, is_transactional = request.guards, header.is_transactional
        batch = ProducerBatch(
            log.producers.get(header.producer_id),
            header.producer_epoch,
            header.base_sequence,
            (header.base_sequence + header.last_offset_delta) & _SEQUENCES,
            is_transactional,
            log.producers.guard(header.producer_id),
            not is_transactional
            or guards is None
            or log.producers.holds(header.producer_id, guards.get(tp)),
        )
        row = self._producer_row(batch.form)
        if row is None:
            return None
        check = SequenceCheck(batch)
        row.apply(check)
        return check

    # ---- coordinators --------------------------------------------------------------------------

    def append_internal(
        self,
        broker_id: int,
        tp: TopicPartition,
        records: Iterable[Record],
        producer: InternalProducer | None = None,
    ) -> AppendOutcome:
        """Append a coordinator's records to its partition of an internal topic, as a broker does
        with acks -1. ``wait`` tells when the replicas have them. ``producer`` is that of a
        transaction to which the records belong.

        The error is UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR,
        NOT_ENOUGH_REPLICAS, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE or NONE.
        """
        partition = self._partition(tp)
        arrival = Arrival(
            version=9,
            acks=ALL_IN_SYNC,
            has_topic=True,
            is_internal=True,
            by_admin=True,
            may_write=True,
            is_known=partition is not None,
            leads=partition is not None and partition.leader == broker_id,
            in_sync=0 if partition is None else len(partition.isr),
            min_isr=0 if partition is None else self._logs.min_isr(tp[0], partition),
            batches=1,
            magic=_NEWEST_MAGIC,
            is_corrupt=False,
            codec=0,
            is_failed=partition is not None and self._logs.is_failed(tp, broker_id),
        )
        row = self._partition_row(arrival)
        if row is not None:
            return self._refused(tp, row)
        log = self._logs.log(tp)
        if producer is not None:
            check = self._check_internal(log, producer)
            if check.code:
                return AppendOutcome(tp, check.code)
        base_offset = self._logs.append_internal(tp, records, producer)
        return AppendOutcome(
            tp,
            base_offset=base_offset,
            log_start_offset=log.start_offset,
            end_offset=log.end_offset,
            is_replicated=log.high_watermark >= log.end_offset,
        )

    def _check_internal(self, log: PartitionLog, producer: InternalProducer) -> SequenceCheck:
        batch = ProducerBatch(
            log.producers.get(producer.producer_id),
            producer.epoch,
            first_sequence=0,
            last_sequence=0,
            is_transactional=True,
            is_verified=not producer.is_guarded
            or log.producers.holds(producer.producer_id, producer.guard),
        )
        check = SequenceCheck(batch)
        row = self._internal_row(batch.form)
        if row is not None:
            row.apply(check)
        return check

    # ---- acks -1 -------------------------------------------------------------------------------

    def wait(self, outcomes: Iterable[AppendOutcome]) -> ReplicationWait:
        """Watch for the replicas of what was appended."""
        return ReplicationWait(self._controller, self._logs, outcomes)


def _target_codec(batches: Sequence[ArrivedBatch], settings: LogSettings) -> int:
    """The codec to store: the topic's, or that of the last compressed batch."""
    codec = CODECS.get(settings.compression_type)
    if codec is not None:
        return codec
    for each in reversed(batches):
        if each.codec:
            return each.codec
    return 0


def _header_at(data: bytes, place: tuple[int, int, int]) -> BatchHeader | None:
    at, end, magic = place
    return read_header(data, at) if magic == _NEWEST_MAGIC and end - at >= HEADER_SIZE else None


def _first_attributes(data: bytes | None, layout: Layout) -> int:
    """The lower byte of the first batch's attributes: the codec, and bits of magic 2."""
    if data is None or not layout.batches:
        return 0
    at, end, magic = layout.batches[0]
    if magic < _NEWEST_MAGIC:
        return data[at + 17] & CODEC_MASK
    return data[at + 22] if end - at > 22 else 0


# ---- acks -1: the wait for replicas --------------------------------------------------------------


class Replicated(msgspec.Struct):
    """A partition on which an answer waits. ``leader`` led it when the data was appended."""

    outcome: AppendOutcome
    log: PartitionLog
    leader: int
    partition: Partition | None = None
    min_isr: int = 0
    is_failed: bool = False

    @property
    def is_replicated(self) -> bool:
        return self.log.high_watermark >= (self.outcome.end_offset or 0)

    @property
    def is_led(self) -> bool:
        return self.partition is not None and self.partition.leader == self.leader

    def refuse(self, code: ErrorCode) -> None:
        """Answer with this error; what was appended stays."""
        self.outcome.error = code


REPLICATION_ROWS: Final[Sequence[Row[Replicated, Replicated]]] = (
    Row(
        "DP-PRODUCE-35",
        lambda waiting: waiting.partition is None,
        (refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),),
    ),
    Row("DP-CTL-16", lambda waiting: waiting.is_failed, (refuse(ErrorCode.KAFKA_STORAGE_ERROR),)),
    Row(
        "DP-PRODUCE-35",
        lambda waiting: not waiting.is_led,
        (refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER),),
    ),
    Row(
        "DP-PRODUCE-35",
        lambda waiting: (
            waiting.is_replicated
            and waiting.partition is not None
            and len(waiting.partition.isr) < waiting.min_isr
        ),
        (refuse(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),),
    ),
    Row("DP-PRODUCE-32", lambda waiting: waiting.is_replicated, ()),
)
"""The first row that applies ends the wait of a partition; none: it goes on."""


class ReplicationWait(LogWait[Replicated]):
    """Ends when the high watermark has reached what one request appended, in every partition, or
    when it cannot any more. ``outcomes`` with errors are decided from the start."""

    def __init__(
        self, controller: Controller, logs: Logs, outcomes: Iterable[AppendOutcome]
    ) -> None:
        self._controller = controller
        self._logs = logs
        super().__init__(
            Replicated(each, logs.log(each.tp), controller.partition(each.tp).leader)
            for each in outcomes
            if not each.error and each.end_offset is not None
        )

    def _log_of(self, part: Replicated) -> PartitionLog:
        return part.log

    def _time_out(self, part: Replicated) -> None:
        part.outcome.error = ErrorCode.REQUEST_TIMED_OUT

    def _is_decided(self, part: Replicated) -> bool:
        tp = part.outcome.tp
        try:
            part.partition = self._controller.partition(tp)
            part.min_isr = self._logs.min_isr(tp[0], part.partition)
            part.is_failed = self._logs.is_failed(tp, part.leader)
        except ClusterError:
            part.partition = None
        return apply_first(REPLICATION_ROWS, part, part)
