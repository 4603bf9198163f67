"""Produce and InitProducerId, request by request."""

from __future__ import annotations

import pytest

from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.records import Record, build_batch
from mockbroker.cluster import Cluster
from tests.mockbroker.broker import DirectBroker


def request(data: bytes | None, *, acks: int = 1, topic: str = "foo") -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=data)
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[partition])],
    )


def batch(*values: bytes, **settings: int) -> bytes:
    return build_batch([Record(timestamp=1, value=value) for value in values], **settings)


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.requirement("DP-PRODUCE-34")
def test_batches_get_offsets(acks: int) -> None:
    broker = DirectBroker(Cluster(3, topics=["foo=1,2,3"]))
    for expected in (0, 2):
        answer = broker.ask(request(batch(b"a", b"b"), acks=acks), 9)
        found = answer.responses[0].partition_responses[0]
        assert (found.error_code, found.base_offset) == (0, expected)
        assert (found.log_append_time_ms, found.log_start_offset) == (-1, 0)


@pytest.mark.requirement("DP-INIT-04", "DP-INIT-08")
def test_producer_ids() -> None:
    broker = DirectBroker(Cluster(2))
    ids = [
        broker.ask(InitProducerIdRequest(transactional_id=None), 4, broker_id=each).producer_id
        for each in (1, 1, 2)
    ]
    assert ids == [1000, 1001, 2000]
