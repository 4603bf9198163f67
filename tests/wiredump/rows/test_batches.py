"""Batches and records of Produce and Fetch: what was built is what the rows say."""

from __future__ import annotations

import uuid
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    TopicProduceData,
    share_fetch_response,
)
from kproto.messages.fetch_response import PartitionData
from kproto.records import Compression, Record, build_batch
from tests.wiredump.rows.tabled import exchange, tables_of

FOO = uuid.UUID(int=0xF00)


def produce(data: bytes, version: int = 7, at: int = 1):
    if version >= 13:
        topic = TopicProduceData(
            topic_id=FOO, partition_data=[PartitionProduceData(index=2, records=data)]
        )
    else:
        topic = TopicProduceData(
            name="foo", partition_data=[PartitionProduceData(index=2, records=data)]
        )
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[topic])
    return exchange(request, ProduceResponse(), version, at=at)


def fetched(data: bytes, version: int = 11, at: int = 1):
    part = [PartitionData(partition_index=2, records=data)]
    topic = (
        FetchableTopicResponse(topic_id=FOO, partitions=part)
        if version >= 13
        else FetchableTopicResponse(topic="foo", partitions=part)
    )
    return exchange(FetchRequest(), FetchResponse(responses=[topic]), version, at=at)


def metadata(at: int):
    topic = MetadataResponseTopic(name="foo", topic_id=FOO)
    return exchange(MetadataRequest(topics=None), MetadataResponse(topics=[topic]), 12, at=at)


records = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(0, 2**40),
        key=st.none() | st.binary(max_size=9),
        value=st.none() | st.binary(max_size=99),
    ),
    min_size=1,
    max_size=5,
)


@given(
    records,
    st.sampled_from([0, 1, 2]),
    st.sampled_from([Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.LZ4]),
    st.booleans(),
)
def test_what_was_built_is_what_the_rows_say(built, magic, codec, asked) -> None:
    data = build_batch(built, magic=magic, compression=codec, base_offset=0)
    tables = tables_of([(produce if asked else fetched)(data)], values=True)
    rows = tables["records"]
    assert [(row["key"], row["value"]) for row in rows] == [
        (each.key, each.value) for each in built
    ]
    assert [row["offset"] for row in rows] == list(range(len(built)))
    assert [row["timestamp_ms"] for row in rows] == [
        None if magic == 0 else each.timestamp for each in built
    ]
    for row, each in zip(rows, built, strict=True):
        value = each.value
        assert row["value_size"] == (None if value is None else len(value))
        digest = None if value is None else blake2b(value, digest_size=16).digest()
        assert row["value_hash"] == digest
        assert (row["topic"], row["partition"]) == ("foo", 2)
        assert row["direction"] == ("request" if asked else "response")
    batches = tables["batches"]
    assert sum(row["size"] for row in batches) == len(data)
    assert sum(row["records"] for row in batches) == len(built)
    assert {row["magic"] for row in batches} == {magic}
    assert {row["codec"] for row in batches} == {codec.name.lower()}
    assert all(row["crc_ok"] for row in batches)
    assert "anomalies" not in tables


def test_values_are_kept_where_asked_for_only() -> None:
    (row,) = tables_of([produce(build_batch([Record(value=b"v", timestamp=0)]))])["records"]
    assert row["value"] is None
    assert row["value_size"] == 1


def test_who_produced() -> None:
    data = build_batch(
        [Record(value=b"v", timestamp=5)], producer_id=9, producer_epoch=3, base_sequence=0,
        is_transactional=True,
    )  # fmt: skip
    (row,) = tables_of([produce(data)])["batches"]
    assert (row["producer_id"], row["producer_epoch"], row["base_sequence"]) == (9, 3, 0)
    assert row["transactional"]
    assert not row["control"]
    assert row["leader_epoch"] is None


@given(st.data())
def test_every_damage_is_told_and_what_came_before_is_kept(data) -> None:
    first = build_batch([Record(value=b"first", timestamp=0)])
    second = build_batch([Record(value=b"second" * 9, timestamp=0)], compression=Compression.GZIP)
    at = data.draw(st.integers(0, len(second) - 1))
    bit = data.draw(st.integers(0, 7))
    damaged = bytearray(second)
    damaged[at] ^= 1 << bit
    tables = tables_of([produce(first + bytes(damaged))], values=True)
    assert tables["records"][0]["value"] == b"first"
    told = [row for row in tables["anomalies"] if row["kind"] == "undecodable-batch"]
    unchecked = at < 8 or 12 <= at < 16  # its offset, and its leader epoch
    assert unchecked or told
    for row in told:
        assert "foo-2" in row["reason"]
        assert (row["connection"], row["direction"], row["offset"]) == (0, "request", 1000)
    (counted,) = tables["connections"]
    assert counted["anomalies"] == len(tables.get("anomalies", []))


def test_a_fetch_is_cut_where_the_broker_filled_it_up() -> None:
    batch = build_batch([Record(value=b"v", timestamp=0)])
    tables = tables_of([fetched(batch + batch[:-1])])
    assert len(tables["batches"]) == 1
    assert "anomalies" not in tables
    (told,) = tables_of([produce(batch + batch[:-1])])["anomalies"]
    assert "batch 1 and what follows" in told["reason"]


@pytest.mark.parametrize(("make", "version"), [(produce, 13), (fetched, 13)])
def test_topic_ids_have_the_name_that_was_told_before(make, version: int) -> None:
    data = build_batch([Record(value=b"v", timestamp=0)])
    items = [make(data, version, at=1), metadata(at=3), make(data, version, at=5)]
    tables = tables_of(items)
    assert [row["topic"] for row in tables["batches"]] == [None, "foo"]
    assert len({row["topic_id"] for row in tables["records"]}) == 1
    (topic,) = tables["topics"]
    assert topic["topic_id"] == tables["batches"][0]["topic_id"]
    assert (topic["topic"], topic["first_ns"]) == ("foo", 4 * 10**9)


def test_share_fetches_have_records_too() -> None:
    data = build_batch([Record(value=b"v", timestamp=7)])
    part = share_fetch_response.PartitionData(partition_index=2, records=data)
    topic = ShareFetchableTopicResponse(topic_id=FOO, partitions=[part])
    item = exchange(ShareFetchRequest(), ShareFetchResponse(responses=[topic]), 1, at=5)
    tables = tables_of([metadata(at=1), item])
    (batch,), (record,) = tables["batches"], tables["records"]
    assert (batch["api_key"], batch["topic"], batch["partition"]) == (78, "foo", 2)
    assert (record["topic"], record["timestamp_ms"]) == ("foo", 7)
