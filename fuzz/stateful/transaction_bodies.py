"""Requests of transactional producers, in versions that clients send."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kproto.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.schema.model import ZERO_UUID
from mockbroker.simulation.state.cluster_parts import TopicPartition

__all__ = ["add_group", "add_partition", "commit_offset", "end", "init"]


def init(transactional_id: str, timeout_ms: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )


def add_partition(
    transactional_id: str, producer_id: int, epoch: int, tp: TopicPartition
) -> AddPartitionsToTxnRequest:
    """For version 3 and below, the newest that clients send."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=tp[0], partitions=[tp[1]])],
    )


def add_group(
    transactional_id: str, producer_id: int, epoch: int, group: str
) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=group,
    )


def commit_offset(
    transactional_id: str, producer_id: int, epoch: int, group: str, tp: TopicPartition,
    ids: Mapping[str, UUID], offset: int,
) -> TxnOffsetCommitRequest:  # fmt: skip
    part = TxnOffsetCommitRequestPartition(partition_index=tp[1], committed_offset=offset)
    topic = TxnOffsetCommitRequestTopic(
        name=tp[0], topic_id=ids.get(tp[0], ZERO_UUID), partitions=[part]
    )
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[topic],
    )


def end(transactional_id: str, producer_id: int, epoch: int, *, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=committed,
    )
