"""Sessions over transactions: AddPartitionsToTxn (24), AddOffsetsToTxn (25), EndTxn (26),
WriteTxnMarkers (27), TxnOffsetCommit (28), DescribeTransactions (65), ListTransactions (66), and
what they change in Produce, Fetch, InitProducerId and DescribeProducers.

Kafka writes markers after it has answered EndTxn; ``ended`` waits for them on both sides. What a
leader answers where it only verifies, and the partition is not in the transaction, is not compared:
Kafka asks for several clients at once and gives all of them the error of one client's version.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from kproto.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkersRequest,
)
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.describe_producers_request import TopicRequest
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic
from kproto.schema.model import ZERO_UUID
from tests.real.data.batches import batch
from tests.real.data.groups import one_member
from tests.real.data.registry import session
from tests.real.data.requests import committed, fetch, fetch_row, list_offsets, produce, read_log
from tests.real.data.side import CLOSED, PATIENCE, POLL_SECONDS, Failed, Side

NEEDS: Final = (22, 24, 25, 26, 28, 65)
CONCURRENT: Final = 51
CLIENTS: Final = 3
"""The last version of AddPartitionsToTxn for clients."""
VERSION_2: Final = 5
"""The first version of EndTxn, and of TxnOffsetCommit, with transactions of version 2."""
NEWEST_PRODUCE_OF_VERSION_1: Final = 11


class Producer:
    """A transactional producer with the id and epoch of its last response."""

    def __init__(self, k: Side, name: str = "first", identifier: str | None = None) -> None:
        self.k = k
        self.name = name
        self.id = k.group if identifier is None else identifier
        self.producer_id = self.epoch = -1
        self.sequence = 0

    # ---- requests ----

    def init_body(self, timeout_ms: int = 60_000, **fields: Any) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=self.id, transaction_timeout_ms=timeout_ms, **fields
        )

    async def init(self, *, quiet: bool = True, **fields: Any) -> Producer:
        """Ask until no transaction is in the way."""
        version = self.k.version_of(22)
        deadline = time.monotonic() + PATIENCE
        while True:
            body = self.init_body(**fields)
            answer = await self.k.exchange(body, version, self.k.transactions, "main")
            if answer is CLOSED or answer.error_code != CONCURRENT:
                break
            if time.monotonic() > deadline:
                raise Failed(f"{self.id} is not initialized")
            await asyncio.sleep(POLL_SECONDS)
        if answer is CLOSED or answer.error_code:
            raise Failed(f"{self.id} is not initialized: {answer}")
        self.take(answer.producer_id, answer.producer_epoch)
        if not quiet:
            self.k.note(body, version, answer)
        return self

    def take(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.sequence = 0
        self.producer_id, self.epoch = producer_id, epoch
        self.k.names.producer(producer_id, self.name)

    def add(
        self, *partitions: int, topic: str | None = None, verify: bool = False,
        version: int | None = None, **fields: Any,
    ) -> AddPartitionsToTxnRequest:  # fmt: skip
        topics = [
            AddPartitionsToTxnTopic(name=topic or self.k.topic, partitions=list(partitions or (0,)))
        ]
        version = self.k.version_of(24) if version is None else version
        given = {"producer_id": self.producer_id, "epoch": self.epoch, "id": self.id, **fields}
        if version > CLIENTS:
            return AddPartitionsToTxnRequest(
                transactions=[
                    AddPartitionsToTxnTransaction(
                        transactional_id=given["id"], producer_id=given["producer_id"],
                        producer_epoch=given["epoch"], verify_only=verify, topics=topics,
                    )
                ]
            )  # fmt: skip
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=given["id"],
            v3_and_below_producer_id=given["producer_id"],
            v3_and_below_producer_epoch=given["epoch"],
            v3_and_below_topics=topics,
        )

    async def added(self, *partitions: int, topic: str | None = None) -> None:
        """Add partitions as a client of the first protocol does; nothing is noted."""
        body = self.add(*partitions, topic=topic, version=CLIENTS)
        await self.k.ask(body, version=CLIENTS, quiet=True)

    def end(self, *, commit: bool = True, **fields: Any) -> EndTxnRequest:
        given = {"producer_id": self.producer_id, "epoch": self.epoch, "id": self.id, **fields}
        return EndTxnRequest(
            transactional_id=given["id"], producer_id=given["producer_id"],
            producer_epoch=given["epoch"], committed=commit,
        )  # fmt: skip

    async def ended(
        self, *, commit: bool = True, version: int | None = None, keep: bool = False
    ) -> None:
        """End the transaction, note the answer, and wait until its markers are written."""
        answer = await self.k.ask(self.end(commit=commit), version=version)
        if answer is not CLOSED and not answer.error_code and answer.producer_epoch >= 0:
            if not keep:
                self.take(answer.producer_id, answer.producer_epoch)
            else:
                self.k.names.producer(answer.producer_id, self.name)
        await self.settled()

    async def settled(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            body = DescribeTransactionsRequest(transactional_ids=[self.id])
            answer = await self.k.exchange(body, 0, self.k.transactions, "main")
            if not answer.transaction_states[0].transaction_state.startswith("Prepare"):
                return
            if time.monotonic() > deadline:
                raise Failed(f"{self.id} does not end")
            await asyncio.sleep(POLL_SECONDS)

    def batch(self, *values: bytes, **fields: Any) -> bytes:
        given = {"producer_id": self.producer_id, "producer_epoch": self.epoch,
                 "base_sequence": self.sequence, "is_transactional": True, **fields}  # fmt: skip
        return batch(*(values or (b"v",)), **given)

    async def write(
        self, *values: bytes, partition: int = 0, version: int | None = None, quiet: bool = False,
        **fields: Any,
    ) -> Any:  # fmt: skip
        body = produce(
            self.k, self.batch(*values, **fields), partition, transactional_id=self.id, acks=-1
        )
        answer = await self.k.ask(body, version=version, quiet=quiet)
        if answer is not CLOSED and not answer.responses[0].partition_responses[0].error_code:
            self.sequence += len(values or (b"v",))
        return answer

    def offsets(
        self, *rows: tuple[int, int], member: str = "", generation: int = -1,
        topic: str | None = None, group: str | None = None, **fields: Any,
    ) -> TxnOffsetCommitRequest:  # fmt: skip
        name = topic or self.k.topic
        given = {"producer_id": self.producer_id, "epoch": self.epoch, **fields}
        body = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=self.k.group if group is None else group,
            producer_id=given["producer_id"],
            producer_epoch=given["epoch"],
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=name,
                    topic_id=self.k.topic_ids.get(name, ZERO_UUID),
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata="m"
                        )
                        for index, offset in rows
                    ],
                )
            ],
        )
        if self.k.version_of(28) >= 3:
            body.member_id, body.generation_id_or_member_epoch = member, generation
        return body

    def group_joins(self, **fields: Any) -> AddOffsetsToTxnRequest:
        given = {"producer_id": self.producer_id, "epoch": self.epoch, "id": self.id, **fields}
        return AddOffsetsToTxnRequest(
            transactional_id=given["id"], producer_id=given["producer_id"],
            producer_epoch=given["epoch"], group_id=self.k.group,
        )  # fmt: skip


async def described(k: Side) -> None:
    body = DescribeTransactionsRequest(transactional_ids=[k.group])
    await k.ask(body, broker=k.transactions)


# ---- 22 InitProducerId -----------------------------------------------------------------------


@session(22, needs=NEEDS)
async def init_fences(k: Side) -> None:
    """A producer whose transaction is open is fenced by the next of its id."""
    await k.create([1], [1])
    old = await Producer(k, "old").init()
    await old.added()
    await old.write(version=NEWEST_PRODUCE_OF_VERSION_1)
    new = Producer(k, "old")
    await k.ask(new.init_body())
    await new.settled()
    await described(k)
    await k.ask(new.init_body())
    for version in (3, 4):
        await k.ask(old.end(), version=version)
    await k.ask(old.add(1, version=CLIENTS), version=CLIENTS)
    await old.write(version=NEWEST_PRODUCE_OF_VERSION_1)
    await read_log(k)


@session(22, since=3, needs=NEEDS)
async def init_after_transactions(k: Side) -> None:
    await k.create()
    producer = await Producer(k).init()
    for commit in (True, False):
        await producer.added()
        await producer.write(version=NEWEST_PRODUCE_OF_VERSION_1, quiet=True)
        await producer.ended(commit=commit, version=3)
        body = producer.init_body(
            producer_id=producer.producer_id, producer_epoch=producer.epoch, timeout_ms=70_000
        )
        answer = await k.ask(body)
        producer.take(answer.producer_id, answer.producer_epoch)
        await described(k)


# ---- 24 AddPartitionsToTxn, 25 AddOffsetsToTxn -----------------------------------------------


@session(24, needs=NEEDS)
async def add_partitions(k: Side) -> None:
    await k.create([1], [1], [1])
    producer = Producer(k)
    for body in (producer.add(), producer.add(id="")):
        await k.ask(body)
    await producer.init()
    await k.ask(producer.add(producer_id=99_999))
    for epoch in (-1, 1, 9):
        await k.ask(producer.add(epoch=epoch))
    await k.ask(producer.add(9))
    await k.ask(producer.add(topic=f"{k.topic}.unknown"))
    await k.ask(producer.add(0, 9, 1))
    await described(k)
    await k.ask(producer.add(0, 1))
    await k.ask(producer.add(1, 2))
    await k.ask(producer.add(1))
    await described(k)
    await k.ask(producer.add(), broker=k.not_(k.transactions))
    await producer.ended(version=3)
    await k.ask(producer.add(2))
    await described(k)


@session(24, since=4, needs=NEEDS)
async def verify_partitions(k: Side) -> None:
    await k.create([1], [1])
    producer = Producer(k)
    await k.ask(producer.add(verify=True))
    await producer.init()
    await k.ask(producer.add(0, 1, verify=True))
    await k.ask(producer.add(1))
    await k.ask(producer.add(0, 1, verify=True))
    await k.ask(producer.add(0, 9, verify=True))
    await k.ask(producer.add(verify=True, epoch=3))
    await k.ask(producer.add(verify=True, producer_id=99_999))
    await described(k)
    await producer.ended(version=3)
    await k.ask(producer.add(1, verify=True))


@session(25, needs=NEEDS)
async def add_offsets(k: Side) -> None:
    producer = Producer(k)
    await k.ask(producer.group_joins())
    await k.ask(producer.group_joins(id=""))
    await producer.init()
    await k.ask(producer.group_joins(producer_id=99_999))
    await k.ask(producer.group_joins(epoch=5))
    await k.ask(producer.group_joins())
    await k.ask(producer.group_joins())
    await described(k)
    await k.ask(producer.group_joins(), broker=k.not_(k.transactions))
    await producer.ended(version=3)
    await described(k)


# ---- 26 EndTxn -------------------------------------------------------------------------------


@session(26, needs=NEEDS)
async def end_nothing(k: Side) -> None:
    producer = Producer(k)
    for body in (producer.end(), producer.end(id="")):
        await k.ask(body)
    await producer.init()
    await k.ask(producer.end())
    await k.ask(producer.end(), broker=k.not_(k.transactions))
    await producer.ended(commit=False)
    await described(k)
    await producer.ended(commit=False)
    await k.ask(producer.end())
    for epoch in (-1, 7):
        await k.ask(producer.end(epoch=epoch))
        await k.ask(producer.end(epoch=epoch, commit=False))
    await k.ask(producer.end(producer_id=99_999))


async def _end_transactions(k: Side, *, commit: bool) -> None:
    await k.create([1], [1])
    producer = await Producer(k).init()
    for number in range(2):
        await producer.added(0, 1)
        await producer.write(b"%d" % number, version=NEWEST_PRODUCE_OF_VERSION_1)
        await k.ask(list_offsets(k, -1, isolation=1))
        await producer.ended(commit=commit)
        await described(k)
    before = producer.epoch
    await k.ask(producer.end(commit=commit))
    await producer.settled()
    await k.ask(producer.end(commit=not commit))
    await producer.settled()
    for epoch in (before - 1, before - 2):
        await k.ask(producer.end(commit=commit, epoch=epoch))
        await k.ask(producer.end(commit=not commit, epoch=epoch))
    await described(k)
    await read_log(k)
    await read_log(k, 1)
    await k.ask(fetch(k, fetch_row(0), isolation=1))
    await k.ask(
        DescribeProducersRequest(topics=[TopicRequest(name=k.topic, partition_indexes=[0, 1])]),
        broker=1,
    )


@session(26, needs=(*NEEDS, 61))
async def end_with_commits(k: Side) -> None:
    await _end_transactions(k, commit=True)


@session(26, needs=(*NEEDS, 61))
async def end_with_aborts(k: Side) -> None:
    await _end_transactions(k, commit=False)


@session(26, since=VERSION_2, needs=NEEDS)
async def end_and_repeat(k: Side) -> None:
    await k.create()
    producer = await Producer(k).init()
    for commit in (True, False):
        await producer.write(quiet=True)
        await producer.ended(commit=commit, keep=True)
        await k.ask(producer.end(commit=commit))
        await k.ask(producer.end(commit=not commit))
        await k.ask(producer.add(version=CLIENTS), version=CLIENTS)
        await producer.write()
        producer.take(producer.producer_id, producer.epoch + 1)
    await producer.write()
    await described(k)


# ---- 0 Produce, 1 Fetch ----------------------------------------------------------------------


@session(0, since=3, needs=NEEDS)
async def produce_in_transactions(k: Side) -> None:
    await k.create([1], [1])
    producer = await Producer(k).init()
    is_chance = k.version <= NEWEST_PRODUCE_OF_VERSION_1
    await producer.write(quiet=is_chance)
    await described(k)
    await producer.write(partition=1, quiet=is_chance)
    await producer.added(0)
    await producer.write()
    await producer.write(base_sequence=7)
    await producer.write(is_transactional=False)
    await producer.write(producer_epoch=3)
    await producer.write(producer_id=99_999)
    await described(k)
    await producer.ended(version=3)
    await producer.write(quiet=is_chance)
    await read_log(k)
    await read_log(k, 1)


@session(0, since=3, needs=NEEDS)
async def produce_after_a_fence(k: Side) -> None:
    await k.create([1], [1])
    old = await Producer(k, "old").init()
    await old.added()
    await old.write()
    await k.ask(Producer(k, "old").init_body())
    await old.settled()
    await old.write()
    await old.write(partition=1)
    await read_log(k)


@session(1, since=4, needs=NEEDS)
async def fetch_of_transactions(k: Side) -> None:
    """Two producers of which one aborts, and one leaves its transaction open."""
    await k.create()
    one = await Producer(k, "one", f"{k.group}.one").init()
    two = await Producer(k, "two", f"{k.group}.two").init()
    for producer in (one, two):
        await producer.added()
        await producer.write(version=NEWEST_PRODUCE_OF_VERSION_1, quiet=True)
    for offset in range(3):
        await k.ask(fetch(k, fetch_row(0, offset), isolation=1))
    await one.ended(commit=False, version=3)
    await k.ask(fetch(k, fetch_row(0), isolation=1))
    await k.ask(fetch(k, fetch_row(0)))
    await two.ended(version=3)
    for offset in range(5):
        await k.ask(fetch(k, fetch_row(0, offset), isolation=1))
    await k.ask(list_offsets(k, -1, isolation=1))


# ---- 28 TxnOffsetCommit ----------------------------------------------------------------------


@session(28, needs=NEEDS)
async def commit_in_transactions(k: Side) -> None:
    await k.create([1], [1])
    producer = await Producer(k).init()
    for commit in (False, True):
        await k.ask(producer.offsets((0, 5)), quiet=k.version < VERSION_2)
        await k.ask(producer.group_joins(), quiet=True)
        await k.ask(producer.offsets((0, 6), (1, 7)))
        await described(k)
        await k.ask(committed(k, 0, 1))
        await k.ask(committed(k, 0, 1, stable=True))
        await producer.ended(commit=commit, version=VERSION_2 if k.version >= VERSION_2 else 3)
        await k.ask(committed(k, 0, 1, stable=True))


@session(28, needs=NEEDS)
async def commit_wrongly_in_transactions(k: Side) -> None:
    await k.create()
    producer = await Producer(k).init()
    await k.ask(producer.group_joins(), quiet=True)
    await k.ask(producer.offsets((0, 5), (9, 5)))
    await k.ask(producer.offsets((0, 5), topic=f"{k.topic}.unknown"))
    await k.ask(producer.offsets((0, 5), producer_id=99_999))
    await k.ask(producer.offsets((0, 5), epoch=7))
    await k.ask(producer.offsets((0, 5)), broker=k.other_broker)
    await k.ask(producer.offsets((0, 5), group=""))
    if k.version >= 3:
        await k.ask(producer.offsets((0, 5), member="nobody"))
        await k.ask(producer.offsets((0, 5), generation=3))
        await k.ask(producer.offsets((0, 5), generation=3, group=f"{k.group}.other"))
    await k.ask(committed(k, 0))


@session(28, since=3, needs=(*NEEDS, 11, 14))
async def commit_as_a_member(k: Side) -> None:
    await k.create()
    member, generation = await one_member(k)
    producer = await Producer(k).init()
    await k.ask(producer.group_joins(), quiet=True)
    await k.ask(producer.offsets((0, 1)))
    await k.ask(producer.offsets((0, 2), member=member, generation=generation))
    await k.ask(producer.offsets((0, 3), member=member, generation=generation + 1))
    await k.ask(producer.offsets((0, 4), member="nobody", generation=generation))
    await k.ask(committed(k, 0, stable=True))
    await producer.ended(version=VERSION_2 if k.version >= VERSION_2 else 3)
    await k.ask(committed(k, 0, stable=True))


# ---- 27 WriteTxnMarkers ----------------------------------------------------------------------


def marker(
    k: Side, producer_id: int, epoch: int, *partitions: int, coordinator_epoch: int = 0,
    commit: bool = False, topic: str | None = None,
) -> WriteTxnMarkersRequest:  # fmt: skip
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer_id,
                producer_epoch=epoch,
                coordinator_epoch=coordinator_epoch,
                transaction_result=commit,
                topics=[
                    WritableTxnMarkerTopic(
                        name=topic or k.topic, partition_indexes=list(partitions or (0,))
                    )
                ],
            )
        ]
    )


@session(27, needs=(*NEEDS, 61))
async def write_markers(k: Side) -> None:
    await k.create([1], [1])
    producer = await Producer(k).init()
    await producer.added()
    await producer.write(version=NEWEST_PRODUCE_OF_VERSION_1)
    known = producer.producer_id
    await k.ask(marker(k, known, -1), broker=1)
    await k.ask(marker(k, known, 0, 0, 9), broker=1)
    await k.ask(marker(k, known, 0, coordinator_epoch=-1), broker=1)
    await k.ask(marker(k, known, 2, 0, 1, coordinator_epoch=5, commit=True), broker=1)
    await k.ask(marker(k, known, 2, coordinator_epoch=4), broker=1)
    await k.ask(marker(k, known, 1, coordinator_epoch=5), broker=1)
    await k.ask(marker(k, known, 3, topic=f"{k.topic}.unknown"), broker=1)
    await k.ask(marker(k, known, 3), broker=2)
    await k.ask(WriteTxnMarkersRequest(markers=[]), broker=1)
    await k.ask(
        DescribeProducersRequest(topics=[TopicRequest(name=k.topic, partition_indexes=[0, 1])]),
        broker=1,
    )
    await read_log(k)


# ---- 65 DescribeTransactions, 66 ListTransactions --------------------------------------------


@session(65, needs=NEEDS)
async def describe_transactions(k: Side) -> None:
    await k.create([1], [1])
    body = DescribeTransactionsRequest(transactional_ids=[k.group, "", f"{k.group}.unknown"])
    await k.ask(body, broker=k.transactions)
    producer = await Producer(k).init()
    await k.ask(body, broker=k.transactions)
    await producer.added(0)
    await producer.added(1)
    await k.ask(body, broker=k.transactions)
    await k.ask(body, broker=k.not_(k.transactions))
    await producer.ended(version=3)
    await k.ask(body, broker=k.transactions)
    await k.ask(DescribeTransactionsRequest(transactional_ids=[]), broker=k.transactions)


@session(66, needs=NEEDS)
async def list_transactions(k: Side) -> None:
    await k.create()
    one = await Producer(k, "one").init()
    two = await Producer(k, "two", f"{k.group}.two").init()
    await two.added()
    for body in (
        ListTransactionsRequest(),
        ListTransactionsRequest(state_filters=["Ongoing", "ongoing", "nothing"]),
        ListTransactionsRequest(state_filters=["Empty"]),
        ListTransactionsRequest(producer_id_filters=[one.producer_id, 99_999]),
    ):
        await k.ask(body, broker=k.transactions)
    if k.version >= 1:
        for duration in (0, 1_000_000_000_000_000, -1):
            body = ListTransactionsRequest(duration_filter=duration)
            await k.ask(body, broker=k.transactions)
    if k.version >= 2:
        for pattern in ("", f"{k.group}", f"{k.group}.+", ".*two", "(", "[z-a]"):
            body = ListTransactionsRequest(transactional_id_pattern=pattern)
            await k.ask(body, broker=k.transactions)
    await k.ask(ListTransactionsRequest(), broker=k.not_(k.transactions))
    await two.ended(commit=False, version=3)
    await k.ask(ListTransactionsRequest(), broker=k.transactions)
