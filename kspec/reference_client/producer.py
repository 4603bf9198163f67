"""The reference producer: batches, sequences, retries and outcomes, each rule in a method.

It works in rounds: each sends what is outstanding, up to five batches of a partition at once, and
waits for the answers. An idempotent producer sends a batch again as it was; one that is not keeps a
single batch of a partition in flight, so that order is kept either way. Calls are delivered one
after the other, so that each round sees every outstanding batch of its partitions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from kproto import error_codes
from kproto.errors import DecodeError, RemoteProtocolError
from kproto.records import Compression, Record, build_batch
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.murmur2 import murmur2
from kspec.reference_client.rules import ClientRules, outcome
from kspec.reference_client.topics import TopicPartition, Topics, message

__all__ = ["OutgoingBatch", "Producer", "Request"]

_MESSAGE_TOO_LARGE: Final = 10
_OUT_OF_ORDER: Final = 45
_DUPLICATE: Final = 46
_INVALID_PRODUCER_EPOCH: Final = 47
_UNKNOWN_PRODUCER_ID: Final = 59
_UNSUPPORTED_COMPRESSION_TYPE: Final = 76
_PRODUCE: Final = 0
_ZSTD_SINCE: Final = 7
_IN_FLIGHT: Final = 5
_BATCH_BYTES: Final = 16_384
_LAST_EPOCH: Final = 32_767


@dataclass(slots=True, eq=False)
class OutgoingBatch:
    """Records of one partition, and what became of them. ``sequence`` is -1 before the first
    attempt. ``created_ms`` is the records' timestamp, which an attempt does not change."""

    tp: TopicPartition
    records: list[dict[str, Any]]
    sequence: int = -1
    identity: tuple[int, int] = (-1, -1)
    attempts: int = 0
    done: bool = False
    base_offset: int = -1
    error: dict[str, Any] | None = None
    parts: list[OutgoingBatch] = field(default_factory=list)
    created_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    def fail(self, code: int, text: str | None = None) -> None:
        self.done, self.error = True, outcome(code, text)

    def outcomes(self) -> list[dict[str, Any]]:
        """Return an outcome per record."""
        if self.parts:
            return [each for part in self.parts for each in part.outcomes()]
        if self.error is not None:
            return [self.error] * len(self.records)
        topic, index = self.tp
        return [
            {"topic": topic, "partition": index, "offset": self.offset_of(number)}
            for number in range(len(self.records))
        ]

    def offset_of(self, number: int) -> int:
        return self.base_offset + number if self.base_offset >= 0 else -1


Request = Mapping[TopicPartition, OutgoingBatch]


class Producer:
    """A producer of one client. ``options`` are those of docs/reference/adapters.md."""

    batch: type[OutgoingBatch] = OutgoingBatch
    metadata: type[Topics] = Topics

    def __init__(self, client: ClientRules, options: Mapping[str, Any]) -> None:
        self.client = client
        self.topics = self.metadata(client, options.get("metadata_age_ms", 300_000) / 1000)
        self.acks = {"all": -1}.get(options.get("acks", "all"), options.get("acks"))
        self.idempotent = bool(options.get("idempotence", self.acks == -1))
        self.codec = Compression[options.get("compression", "none").upper()]
        self.batch_bytes = options.get("batch_bytes", _BATCH_BYTES)
        self.hashes_keys = options.get("partitioner") == "murmur2"
        self.window = options.get("max_in_flight", _IN_FLIGHT) if self.idempotent else 1
        self.delivery_seconds = options.get("delivery_timeout_ms", 5_000) / 1000
        self.identity = (-1, -1)
        self.sequences: dict[TopicPartition, int] = {}
        self.numbered_under: dict[TopicPartition, tuple[int, int]] = {}
        """The producer id and epoch that the sequences of a partition belong to."""
        self.delivering = asyncio.Lock()
        self.unsent: list[Mapping[str, Any]] = []

    # ---- records to batches ----------------------------------------------------------------------

    def hand_over(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Keep records until the end of the transaction."""
        self.unsent += records

    async def send(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send records and return an outcome per record, in their order."""
        return await self.deliver_all(records)

    async def deliver_all(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        ends = time.monotonic() + self.delivery_seconds
        if self.hashes_keys:
            records = await self.partitioned(records, ends)
        batches = self.batched(records)
        async with self.delivering:
            await self.deliver(batches, ends)
        found = {
            id(record): result
            for each in batches
            for record, result in zip(each.records, each.outcomes(), strict=True)
        }
        return [found[id(record)] for record in records]

    async def partitioned(
        self, records: Sequence[Mapping[str, Any]], ends: float
    ) -> list[Mapping[str, Any]]:
        """Choose partitions for records without one, as soon as it is known how many there are."""
        topics = {each["topic"] for each in records if each.get("partition") is None}
        attempt = 0
        while not all(self.topics.counts.get(name) for name in topics) or self.topics.are_old:
            with suppress(LinkClosedError, TimedOutError, BrokerError):
                await self.topics.refresh(topics)
            if all(self.topics.counts.get(name) for name in topics) or time.monotonic() > ends:
                break
            attempt += 1
            await asyncio.sleep(self.client.pause(attempt))
        return [
            each
            if each.get("partition") is not None
            else {**each, "partition": self.partition_of(each, self.topics.counts[each["topic"]])}
            for each in records
        ]

    def partition_of(self, record: Mapping[str, Any], count: int) -> int:
        """The partition of a key, whether it has a leader or not; any one without a key."""
        key = _bytes(record.get("key"))
        return 0 if key is None or not count else (murmur2(key) & 0x7FFFFFFF) % count

    def batched(self, records: Sequence[Mapping[str, Any]]) -> list[OutgoingBatch]:
        """Return batches that hold the records of each partition in their order."""
        found: dict[TopicPartition, list[OutgoingBatch]] = {}
        for record in records:
            tp = (record["topic"], record.get("partition", 0))
            batches = found.setdefault(tp, [])
            size = sum(len(each["value"] or "") for each in batches[-1].records) if batches else 0
            if not batches or size + len(record["value"] or "") > self.batch_bytes:
                batches.append(self.batch(tp, []))
            batches[-1].records.append(record)  # type: ignore[arg-type]
        return [batch for batches in found.values() for batch in batches]

    def encoded(self, batch: OutgoingBatch) -> bytes:
        records = [
            Record(
                timestamp=batch.created_ms,
                key=_bytes(each.get("key")),
                value=_bytes(each["value"]),
                headers=self.headers(each),
            )
            for each in batch.records
        ]
        producer_id, epoch = batch.identity
        return build_batch(
            records,
            compression=self.codec,
            base_offset=0,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=batch.sequence,
            is_transactional=self.is_in_transaction(),
        )

    def headers(self, record: Mapping[str, Any]) -> tuple[tuple[str, bytes | None], ...]:
        return tuple((name, _bytes(value)) for name, value in record.get("headers", ()))

    def is_in_transaction(self) -> bool:
        return False

    # ---- producer ids and sequences (KIP-98, KIP-360) ------------------------------------------

    async def identify(self) -> None:
        """Get a producer id. Raises BrokerError, or what a connection does."""
        if not self.idempotent or self.identity[0] >= 0:
            return
        request = message("InitProducerIdRequest")(transactional_id=None, transaction_timeout_ms=0)
        link = await self.client.any_link()
        answer = await link.ask(request)
        if answer.error_code:
            raise BrokerError(answer.error_code)
        self.identity = (answer.producer_id, answer.producer_epoch)

    def number(self, batch: OutgoingBatch) -> None:
        """Give a batch its sequence with the first attempt; it keeps it ever after. Sequences start
        at 0 in each epoch."""
        if not self.idempotent or batch.sequence >= 0:
            return
        if self.numbered_under.get(batch.tp) != self.identity:
            self.numbered_under[batch.tp], self.sequences[batch.tp] = self.identity, 0
        batch.identity = self.identity
        batch.sequence = self.sequences.get(batch.tp, 0)
        self.sequences[batch.tp] = batch.sequence + len(batch.records)

    def begin_epoch(self, refused: Sequence[OutgoingBatch]) -> None:
        """Raise the epoch and number the outstanding batches of a partition anew whose first one
        the broker refused.

        Batches of other partitions keep their numbers: they may be in the log, and under others
        they would be there twice. Without another epoch, the next attempt gets a new producer id.
        """
        producer_id, epoch = self.identity
        self.identity = (producer_id, epoch + 1) if epoch < _LAST_EPOCH else (-1, -1)
        for batch in refused:
            self.numbered_under.pop(batch.tp, None)
            batch.sequence, batch.identity = -1, (-1, -1)

    def waits_for_epoch(self, pending: Sequence[OutgoingBatch]) -> set[TopicPartition]:
        """Return the partitions with batches of an earlier epoch, behind which none of a later one
        may be sent."""
        return {
            each.tp for each in pending if each.sequence >= 0 and each.identity != self.identity
        }

    # ---- rounds ----------------------------------------------------------------------------------

    async def deliver(self, batches: list[OutgoingBatch], ends: float) -> None:
        """Send batches until each has an outcome, or time is up."""
        attempt = 0
        while pending := [each for each in _leaves(batches) if not each.done]:
            if time.monotonic() > ends:
                return self.expire(pending)
            problem = await self.attempt(pending)
            if problem is not None and not self.client.may_ask_again(problem, attempt):
                code = problem.code if isinstance(problem, BrokerError) else -1
                for each in pending:
                    each.fail(code, str(problem))
                return None
            if any(not each.done for each in pending):
                attempt += 1
                left = max(ends - time.monotonic(), 0)
                await asyncio.sleep(min(self.client.pause(attempt), left + 0.001))
        return None

    async def attempt(self, pending: Sequence[OutgoingBatch]) -> Exception | None:
        """Make a round. Return why there was none, if there was none."""
        try:
            await self.find_leaders(pending)
            await self.identify()
            left = self.without_refused(pending)
            await self.prepare(left)
            await self.round(left)
        except (LinkClosedError, TimedOutError, BrokerError) as error:
            self.topics.leaders.clear()
            return error
        return None

    async def prepare(self, pending: Sequence[OutgoingBatch]) -> None:
        """Do what has to be done before these batches are sent."""

    def produce_version(self, link: Link) -> int | None:
        """Return the version of Produce; None is the highest common one."""
        return None

    async def find_leaders(self, pending: Sequence[OutgoingBatch]) -> None:
        unknown = any(self.topics.leaders.get(each.tp, -1) < 0 for each in pending)
        if unknown or self.topics.are_old:
            await self.topics.refresh(each.tp[0] for each in pending)

    def without_refused(self, pending: Sequence[OutgoingBatch]) -> list[OutgoingBatch]:
        """Fail the batches of topics whose metadata has an error that does not pass."""
        for batch in pending:
            code = self.topics.errors.get(batch.tp[0], 0)
            if code and not error_codes.is_retriable(code):
                batch.fail(code)
        return [each for each in pending if not each.done]

    async def round(self, pending: Sequence[OutgoingBatch]) -> None:
        """Send each leader its batches: a request for the first ones of all partitions, one for
        the second ones, and so on, without waiting between them."""
        requests: dict[tuple[int, int], dict[TopicPartition, OutgoingBatch]] = {}
        depths: dict[TopicPartition, int] = {}
        waiting = self.waits_for_epoch(pending)
        for batch in pending:
            depth = depths[batch.tp] = depths.get(batch.tp, -1) + 1
            if depth < self.window and (batch.sequence >= 0 or batch.tp not in waiting):
                self.number(batch)
                leader = self.topics.leader(batch.tp)
                requests.setdefault((depth, leader), {})[batch.tp] = batch
        # Connections are opened first: requests to one broker must keep their order.
        links = {leader: await self.opened(leader) for _, leader in requests}
        await asyncio.gather(
            *(
                self.exchange(links[leader], request)
                for (_, leader), request in requests.items()
                if links[leader] is not None
            )
        )
        open_ids = {id(each) for request in requests.values() for each in request.values()}
        self.look_back([each for each in pending if id(each) in open_ids], pending)

    async def opened(self, broker: int) -> Link | None:
        """Return the connection to a broker. If there is none, its partitions get other leaders."""
        try:
            return await self.topics.link_to(broker)
        except (LinkClosedError, TimedOutError, BrokerError, DecodeError):
            self.forget_broker(broker)
            return None

    def forget_broker(self, broker: int) -> None:
        leaders = self.topics.leaders
        self.topics.leaders = {tp: each for tp, each in leaders.items() if each != broker}

    async def exchange(self, link: Link | None, request: Request) -> None:
        """Send a request and take its answer. If there is none, the batches stay outstanding."""
        assert link is not None
        if not self.can_encode(link.choose_version(_PRODUCE)):
            for batch in request.values():
                batch.fail(_UNSUPPORTED_COMPRESSION_TYPE)
            return
        body = self.body(request)
        for batch in request.values():
            batch.attempts += 1
        try:
            if self.acks == 0:
                await link.send_unanswered(body)
                for batch in request.values():
                    batch.done = True
                return
            answer = await link.ask(body, self.produce_version(link))
        except (LinkClosedError, TimedOutError, DecodeError, RemoteProtocolError):
            self.unanswered(request)
            return
        self.settle_all(request, answer)

    def can_encode(self, version: int) -> bool:
        """Whether a version of Produce takes batches of the codec (KIP-110)."""
        return self.codec is not Compression.ZSTD or version >= _ZSTD_SINCE

    def unanswered(self, request: Request) -> None:
        """The leader may be another by now."""
        for tp in request:
            self.topics.leaders.pop(tp, None)

    def body(self, request: Request) -> Any:
        topics: dict[str, list[Any]] = {}
        row = message("ProduceRequest.PartitionProduceData")
        for (name, index), batch in request.items():
            topics.setdefault(name, []).append(row(index=index, records=self.encoded(batch)))
        topic = message("ProduceRequest.TopicProduceData")
        return message("ProduceRequest")(
            acks=self.acks,
            timeout_ms=int(self.client.timeout * 1000),
            topic_data=[
                topic(name=name, topic_id=self.topics.ids[name], partition_data=rows)
                for name, rows in topics.items()
            ],
        )

    # ---- answers ---------------------------------------------------------------------------------

    def settle_all(self, request: Request, answer: Any) -> None:
        rows = {
            (self.topics.name(topic), row.index): row
            for topic in answer.responses
            for row in topic.partition_responses
        }
        for tp, batch in request.items():
            if tp not in rows:
                batch.fail(-1, "the broker gave no outcome")
            else:
                self.settle(batch, rows[tp])
                if rows[tp].error_code and not self.topics.learn_hint(
                    tp, rows[tp], getattr(answer, "node_endpoints", ())
                ):
                    self.topics.leaders.pop(tp, None)

    def settle(self, batch: OutgoingBatch, row: Any) -> None:
        """Decide what a partition's row means for its batch."""
        code = row.error_code
        if self.is_written(code):
            batch.done, batch.base_offset = True, row.base_offset
        elif code == _MESSAGE_TOO_LARGE and len(batch.records) > 1:
            self.split(batch)
        elif self.idempotent and code in (
            _OUT_OF_ORDER,
            _UNKNOWN_PRODUCER_ID,
            _INVALID_PRODUCER_EPOCH,
        ):
            batch.error = outcome(code, None)  # look_back decides
        elif not self.may_retry(code, batch):
            batch.fail(code, getattr(row, "error_message", None))

    def is_written(self, code: int) -> bool:
        """The broker has a duplicate already (KIP-98)."""
        return code in (0, _DUPLICATE)

    def may_retry(self, code: int, batch: OutgoingBatch) -> bool:
        return error_codes.is_retriable(code)

    def split(self, batch: OutgoingBatch) -> None:
        """Make two batches of one that is too large (KIP-126), under the same sequences."""
        half = len(batch.records) // 2
        for records, behind in ((batch.records[:half], 0), (batch.records[half:], half)):
            sequence = batch.sequence + behind if batch.sequence >= 0 else -1
            part = self.batch(batch.tp, records, sequence, batch.identity)
            part.created_ms = batch.created_ms
            batch.parts.append(part)

    def look_back(self, sent: Sequence[OutgoingBatch], pending: Sequence[OutgoingBatch]) -> None:
        """Handle batches whose sequences did not fit.

        That is expected behind a batch that failed or was split, and they are sent again behind
        that one. If it is the first outstanding one of its partition, those of the partition need a
        new epoch (KIP-360).
        """
        broken: set[TopicPartition] = set()
        seen: set[TopicPartition] = set()
        for batch in sent:
            if not batch.done and batch.tp not in seen:
                seen.add(batch.tp)
                if batch.error is not None:
                    broken.add(batch.tp)
        for batch in sent:
            if not batch.done:
                batch.error = None
        if broken:
            leaves = _leaves(pending)
            self.begin_epoch([each for each in leaves if not each.done and each.tp in broken])

    def expire(self, pending: Sequence[OutgoingBatch]) -> None:
        """Give up. What was sent may be written or not, so its sequences are of no more use."""
        for batch in pending:
            batch.fail(7, "not delivered in time")
        if self.idempotent and any(each.attempts for each in pending):
            self.begin_epoch([])


def _leaves(batches: Sequence[OutgoingBatch]) -> list[OutgoingBatch]:
    return [leaf for each in batches for leaf in (_leaves(each.parts) if each.parts else [each])]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
