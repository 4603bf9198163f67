"""Transactions as tables have them, of exchanges with coordinators and leaders."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kproto.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnTopicResult,
)
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.wiredump.rows.tabled import connection, exchange, tables_of
from wiredump.body_texts import texts_of
from wiredump.knowledge.excerpts import excerpt_of
from wiredump.knowledge.transactions import Transactions
from wiredump.model import Exchange

SECOND = 10**9
PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE = 90, 51, 48
INVALID_PRODUCER_EPOCH = 47
TOPIC_ID = uuid.UUID(int=0xF00)


def rows(items: list[Exchange]) -> list[dict[str, Any]]:
    found = tables_of(items, tables=["transactions"])["transactions"]
    shuffled = random.Random(3).sample(items, len(items))
    assert tables_of(shuffled, tables=["transactions"])["transactions"] == found
    return found


def brief(items: list[Exchange], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows(items)]


def init(at: int, epoch: int = 0, *, sent: int = -1, error: int = 0, tid: str = "t") -> Exchange:
    request = InitProducerIdRequest(transactional_id=tid, producer_id=sent)
    answer = InitProducerIdResponse(error_code=error, producer_id=7, producer_epoch=epoch)
    return exchange(request, answer, 4, at=at)


def add(at: int, *, epoch: int = 0, error: int = 0, partitions: int = 1) -> Exchange:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t", v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnTopic(name="foo", partitions=list(range(partitions)))
        ],
    )  # fmt: skip
    results = [
        AddPartitionsToTxnPartitionResult(partition_index=n, partition_error_code=error)
        for n in range(partitions)
    ]
    answer = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(name="foo", results_by_partition=results)
        ]
    )
    return exchange(request, answer, 3, at=at, client_id=f"producer-{epoch}")


def produce(at: int, *, error: int = 0, version: int = 13, tid: str | None = "t") -> Exchange:
    """To a leader that is not the coordinator."""
    about: dict[str, Any] = {"topic_id": TOPIC_ID} if version >= 13 else {"name": "bar"}
    data = [PartitionProduceData(index=3, records=b"records")]
    request = ProduceRequest(
        transactional_id=tid, acks=-1, topic_data=[TopicProduceData(**about, partition_data=data)]
    )
    results = [PartitionProduceResponse(index=3, error_code=error)]
    answer = ProduceResponse(responses=[TopicProduceResponse(**about, partition_responses=results)])
    leader = connection(1, broker="10.0.0.3:9092")
    return exchange(request, answer, version, at=at, on=leader)


def offsets(at: int, *, epoch: int = 0, error: int = 0) -> list[Exchange]:
    request = AddOffsetsToTxnRequest(
        transactional_id="t", producer_id=7, producer_epoch=epoch, group_id="g"
    )
    commit = TxnOffsetCommitRequest(
        transactional_id="t", producer_id=7, producer_epoch=epoch, group_id="g",
        topics=[
            TxnOffsetCommitRequestTopic(
                name="in",
                partitions=[TxnOffsetCommitRequestPartition(partition_index=n) for n in (0, 1)],
            )
        ],
    )  # fmt: skip
    results = [TxnOffsetCommitResponsePartition(partition_index=0, error_code=error)]
    answer = TxnOffsetCommitResponse(
        topics=[TxnOffsetCommitResponseTopic(name="in", partitions=results)]
    )
    return [
        exchange(request, AddOffsetsToTxnResponse(), 3, at=at),
        exchange(commit, answer, 3, at=at + 1),
    ]


def end(
    at: int, commit: bool = True, *, epoch: int = 0, error: int = 0, answered: bool = True,
    version: int = 3,
) -> Exchange:  # fmt: skip
    request = EndTxnRequest(
        transactional_id="t", producer_id=7, producer_epoch=epoch, committed=commit
    )
    answer = EndTxnResponse(error_code=error)
    if version >= 5:
        answer.producer_id, answer.producer_epoch = 7, epoch + 1
    return exchange(request, answer if answered else None, version, at=at)


def test_a_transaction_is_a_row() -> None:
    items = [init(1), add(3, partitions=2), produce(5, version=12), *offsets(7), end(11)]
    (row,) = rows(items)
    assert row == {
        "transactional_id": "t", "producer_id": 7, "producer_epoch": 0, "outcome": "committed",
        "coordinator": "10.0.0.2:9092", "client_id": "producer-0", "software_name": "acc",
        "software_version": "1.0", "began_ns": 3 * SECOND, "ended_ns": 12 * SECOND,
        "duration_ns": 9 * SECOND, "topics": ["bar", "foo"], "partitions": 3, "groups": ["g"],
        "offsets": 2, "requests": 5, "errors": [], "connection": 0, "request_offset": 3000,
    }  # fmt: skip


@pytest.mark.parametrize(("commit", "outcome"), [(True, "committed"), (False, "aborted")])
def test_one_after_the_other(commit: bool, outcome: str) -> None:
    items = [add(1), end(3, commit), add(5, error=CONCURRENT_TRANSACTIONS), add(7), end(9)]
    assert brief(items, "outcome", "began_ns", "requests", "errors") == [
        (outcome, SECOND, 2, []),
        ("committed", 5 * SECOND, 3, ["CONCURRENT_TRANSACTIONS"]),
    ]


def test_producing_alone_adds_partitions() -> None:
    """KIP-890: then each transaction has its own epoch, which the response to EndTxn has."""
    items = [init(1), produce(3), produce(4), end(6, version=5), produce(8)]
    assert brief(items, "outcome", "producer_epoch", "topics", "partitions", "coordinator") == [
        ("committed", 0, ["AAAAAAAAAAAAAAAAAAAPAA"], 1, "10.0.0.2:9092"),
        ("open", 1, ["AAAAAAAAAAAAAAAAAAAPAA"], 1, None),
    ]


def test_another_producer_fences_and_the_same_recovers() -> None:
    assert brief([init(1), add(3), init(5, 1)], "outcome", "ended_ns") == [("fenced", 6 * SECOND)]
    again = [init(1), add(3), init(5, 1, sent=7), add(7, epoch=1), end(9, epoch=1)]
    assert brief(again, "outcome", "producer_epoch") == [("aborted", 0), ("committed", 1)]
    assert rows([init(1), init(5, 1)]) == []


def test_the_fenced_producer_does_not_disturb_the_other() -> None:
    items = [
        init(1), add(3), init(5, 1), add(7, epoch=1),
        add(8, error=PRODUCER_FENCED), end(9, error=PRODUCER_FENCED), end(11, epoch=1),
    ]  # fmt: skip
    assert brief(items, "outcome", "producer_epoch", "began_ns", "requests") == [
        ("fenced", 0, 3 * SECOND, 1),
        ("committed", 1, 7 * SECOND, 2),
        ("fenced", 0, 8 * SECOND, 1),
        ("fenced", 0, None, 1),
    ]


@pytest.mark.parametrize(
    "refused",
    [
        [add(5, error=PRODUCER_FENCED)],
        [end(5, error=INVALID_PRODUCER_EPOCH)],
        [init(5, sent=7, error=PRODUCER_FENCED)],
        [produce(5, error=INVALID_PRODUCER_EPOCH)],
        offsets(5, error=PRODUCER_FENCED),
    ],
)
def test_every_api_can_fence(refused: list[Exchange]) -> None:
    ((outcome, errors),) = brief([add(3), *refused], "outcome", "errors")
    assert outcome == "fenced"
    assert set(errors) <= {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"}
    assert errors


def test_a_transaction_that_fails() -> None:
    items = [add(1), end(3, error=CONCURRENT_TRANSACTIONS), end(5, error=INVALID_TXN_STATE)]
    assert brief(items, "outcome", "errors", "ended_ns") == [
        ("failed", ["CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE"], 6 * SECOND)
    ]


def test_a_response_that_was_not_captured() -> None:
    items = [add(1), end(3, False, answered=False)]
    assert brief(items, "outcome", "ended_ns") == [("open", None)]
    for next_one in (add(5), produce(5), init(5, 1)):
        assert brief([*items, next_one], "outcome", "ended_ns")[0] == ("aborted", None)
    retried = [*items, end(5, False)]
    assert brief(retried, "outcome", "ended_ns", "requests") == [("aborted", 6 * SECOND, 3)]
    late = [end(3, answered=False), end(5)]
    assert brief(late, "outcome", "began_ns", "requests") == [("committed", None, 2)]


def test_a_transaction_from_before_the_capture() -> None:
    assert brief([end(5)], "outcome", "began_ns", "ended_ns", "duration_ns") == [
        ("committed", None, 6 * SECOND, None)
    ]


def test_what_belongs_to_no_transaction() -> None:
    of_brokers = AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction(transactional_id="t", verify_only=True)]
    )
    items = [
        produce(1, tid=None), init(3), exchange(of_brokers, AddPartitionsToTxnResponse(), 5, at=5),
    ]  # fmt: skip
    assert rows(items) == []


@given(st.integers(1, 60))
def test_what_is_kept_is_bounded(count: int) -> None:
    transactions = Transactions(most_weight=200)
    found = []
    for number in range(count):
        item = produce(number + 1, tid=f"t{number}")
        excerpt = excerpt_of(item, texts_of(item))
        assert excerpt is not None
        found += list(transactions.feed(excerpt))
        assert number < 10 or found
    found += list(transactions.end())
    assert [row[0] for _, row in found] == [f"t{number}" for number in range(count)]
    assert {row[3] for _, row in found} == {"open"}
