"""A journal's lines show record batches in words."""

import pytest

from kproto.dialects import dialect
from kproto.journal import Entry, describe
from kproto.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.records import Compression, Record, build_batch

RECORDS = [Record(timestamp=0, key=b"k", value=b"hello"), Record(timestamp=0, value=b"\xff" * 2)]


def produced(records: bytes | None) -> str:
    partition = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="foo", partition_data=[partition])
    request = ProduceRequest(acks=1, timeout_ms=1, topic_data=[topic])
    frame = dialect("kafka").encode_request(request, api_version=9, correlation_id=1, client_id="c")
    some = Entry(
        sequence=1, timestamp_ns=0, broker_id=1, connection_id=1, direction="request",
        api_key=0, api_version=9, correlation_id=1, raw=frame,
    )  # fmt: skip
    return describe(some, width=None)


@pytest.mark.requirement("DP-CTL-57")
def test_a_request_shows_offsets_producer_keys_and_values() -> None:
    data = build_batch(
        RECORDS, producer_id=5, producer_epoch=1, base_sequence=3, compression=Compression.GZIP
    )
    assert (
        '"records":[{"offsets":"0-1","codec":"gzip","producer":"5/1","sequence":3,'
        '"records":[{"key":"k","value":"hello"},{"value":"0xffff"}]}]'
    ) in produced(data)
    damaged = bytearray(build_batch(RECORDS))
    damaged[17] ^= 1
    assert '"problem":"wrong checksum"' in produced(bytes(damaged))
    assert '"problem":"batches[1]: batch is cut off' in produced(data + data[:70])
    assert '"records":null' in produced(None)


def test_a_response_is_bounded() -> None:
    data = build_batch([Record(timestamp=0, value=b"x" * 200)] * 30) * 30
    topics = [
        FetchableTopicResponse(topic="foo", partitions=[PartitionData(records=data)]),
        FetchableTopicResponse(topic="bar", partitions=[PartitionData(records=b"")]),
    ]
    frame = dialect("kafka").encode_response(
        FetchResponse(responses=topics), api_version=11, correlation_id=1
    )
    some = Entry(
        sequence=1, timestamp_ns=0, broker_id=1, connection_id=1, direction="response",
        api_key=1, api_version=11, correlation_id=1, raw=frame,
    )  # fmt: skip
    line = describe(some, width=None)
    assert len(line) < 60_000
    assert line.count('"offsets"') == 20
    assert line.count('"more":10') == 20
