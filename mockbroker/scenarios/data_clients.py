"""Small producers, consumers and group members for scenarios: each request is one call.

They retry nothing and look nothing up by themselves, so that a story shows every step of a client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kproto.client import Connection
from kproto.errors import DecodeError
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kproto.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.produce_response import PartitionProduceResponse
from kproto.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kproto.records import Record, RecordBatches, build_batch
from kproto.records.batch import Batch
from mockbroker.running.mock_cluster import MockCluster

__all__ = [
    "GroupMember",
    "add_partition",
    "commit",
    "coordinator_of",
    "end_transaction",
    "fetch",
    "init_producer",
    "opened",
    "produce",
]

_PRODUCE, _FETCH, _FIND, _COMMIT = 9, 12, 3, 7
"""The versions of requests: by topic name, and in every release since 2.7."""
_JOIN, _SYNC, _HEARTBEAT = 5, 3, 3
_INIT_PRODUCER, _ADD_PARTITIONS, _END = 3, 3, 3
"""Of producers that know nothing of KIP-890."""
_LONG_MS = 30_000


@asynccontextmanager
async def opened(
    mock: MockCluster, broker: int, client_id: str = "story"
) -> AsyncIterator[Connection]:
    """A connection to a broker."""
    host, _, port = mock.addresses[broker].rpartition(":")
    async with await Connection.open(host, int(port), client_id=client_id) as connection:
        yield connection


async def produce(
    connection: Connection,
    topic: str,
    value: str,
    *,
    producer_id: int = -1,
    producer_epoch: int = 0,
    sequence: int = -1,
    transactional_id: str | None = None,
) -> PartitionProduceResponse:
    """Produce one record to partition 0 with acks -1."""
    data = build_batch(
        [Record(timestamp=0, value=value.encode())],
        producer_id=producer_id,
        producer_epoch=producer_epoch if producer_id >= 0 else -1,
        base_sequence=sequence,
        is_transactional=transactional_id is not None,
    )
    request = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=_LONG_MS,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=0, records=data)]
            )
        ],
    )
    answer: Any = await connection.request(request, _PRODUCE)
    found: PartitionProduceResponse = answer.responses[0].partition_responses[0]
    return found


async def fetch(
    connection: Connection,
    topic: str,
    offset: int,
    *,
    epoch: int = -1,
    read_epoch: int = -1,
    read_committed: bool = False,
) -> tuple[Any, list[bytes | None]]:
    """Fetch partition 0 without a wait: its part of the response, and the values from the offset
    on. ``epoch`` is the leader epoch that the consumer knows, ``read_epoch`` that of the last
    record that it has read. With ``read_committed`` those of aborted transactions are left out.
    Raises DecodeError for a batch that is damaged."""
    part = FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=epoch,
        last_fetched_epoch=read_epoch,
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=int(read_committed),
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )
    answer: Any = await connection.request(request, _FETCH)
    found = answer.responses[0].partitions[0]
    batches = RecordBatches(found.records or b"", check_crc=True)
    records = [each for batch in _decided(batches, found) for each in batch.records()]
    return found, [each.value for each in records if each.offset >= offset]


def _decided(batches: Iterable[Batch], found: Any) -> Iterator[Batch]:
    """Yield the batches without markers and without those of the aborted transactions that the
    response lists."""
    aborted = sorted(found.aborted_transactions or (), key=lambda each: int(each.first_offset))
    open_ids = set()
    for batch in batches:
        while aborted and aborted[0].first_offset <= batch.last_offset:
            open_ids.add(aborted.pop(0).producer_id)
        if batch.is_control:
            open_ids.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in open_ids):
            yield batch


async def init_producer(connection: Connection, transactional_id: str) -> Any:
    """Initialise a transactional producer at its coordinator."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=_LONG_MS
    )
    return await connection.request(request, _INIT_PRODUCER)


async def add_partition(
    connection: Connection, transactional_id: str, topic: str, producer: Any
) -> int:
    """Add partition 0 to the transaction of a producer; the error code."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    answer: Any = await connection.request(request, _ADD_PARTITIONS)
    return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)


async def end_transaction(
    connection: Connection, transactional_id: str, producer: Any, *, committed: bool
) -> int:
    """Commit or abort the transaction of a producer; the error code."""
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=committed,
    )
    answer = await connection.request(request, _END)
    return int(answer.error_code)


async def coordinator_of(connection: Connection, group: str) -> int:
    """The broker id of the coordinator; -1 if there is none yet."""
    answer = await connection.request(FindCoordinatorRequest(key=group), _FIND)
    return answer.node_id


async def commit(
    connection: Connection, group: str, topic: str, offset: int, member: GroupMember | None = None
) -> int:
    """Commit an offset of partition 0, for a member or without a group; its error code."""
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1 if member is None else member.generation,
        member_id="" if member is None else member.member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
    )
    answer = await connection.request(request, _COMMIT)
    return answer.topics[0].partitions[0].error_code


class GroupMember:
    """A member of a group of consumers. The leader gives each member one partition of ``topic``."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._connection = connection
        self._group = group
        self._topic = topic
        self.member_id = ""
        self.generation = -1
        self.members: Sequence[str] = ()

    async def join(self) -> int:
        """Join, a second time with the id that the first try was given; the error code."""
        for _ in range(2):
            request = JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                member_id=self.member_id,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            )
            answer = await self._connection.request(request, _JOIN)
            self.member_id = answer.member_id
            if not answer.error_code:
                self.generation = answer.generation_id
                self.members = [each.member_id for each in answer.members]
                break
        return answer.error_code

    async def sync(self) -> list[int]:
        """The partitions that the member is given; none with an error."""
        assignments = [
            SyncGroupRequestAssignment(member_id=each, assignment=self._assignment(index))
            for index, each in enumerate(self.members)
        ]
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=assignments,
        )
        answer = await self._connection.request(request, _SYNC)
        if answer.error_code or len(answer.assignment) < 2:
            return []
        try:
            assigned = ConsumerProtocolAssignment.decode(answer.assignment[2:], 0)
        except DecodeError:
            return []
        return [index for each in assigned.assigned_partitions for index in each.partitions]

    def _assignment(self, index: int) -> bytes:
        assigned = ConsumerProtocolAssignment(
            assigned_partitions=[TopicPartition(topic=self._topic, partitions=[index])]
        )
        return b"\x00\x00" + assigned.encode(0)

    async def heartbeat(self) -> int:
        """Say that the member lives; the error code."""
        request = HeartbeatRequest(
            group_id=self._group, generation_id=self.generation, member_id=self.member_id
        )
        answer = await self._connection.request(request, _HEARTBEAT)
        return answer.error_code
