"""The clients of the benchmark of scale see every record, and would see one that is lost."""

import dataclasses

import pytest

from benchmarks.bench_scale import (
    TOPIC,
    LargeCluster,
    Traffic,
    _client_marks,
    _cluster_marks,
    _end_of,
    drive,
)
from kproto.records import Record, build_batch
from mockbroker import MockCluster

LARGE = LargeCluster(4_999, 1_000, 1, 1, 20_000, 100)


def batch(base_offset: int, records: int) -> bytes:
    built = build_batch([Record(timestamp=1, value=b"x") for _ in range(records)])
    return base_offset.to_bytes(8, "big") + built[8:]


async def test_many_clients_produce_and_consume() -> None:
    async with MockCluster(brokers=3, topics=[f"{TOPIC}:20:3"], log_bytes=20_000) as mock:
        addresses = {}
        for broker_id, address in mock.addresses.items():
            host, _, port = address.rpartition(":")
            addresses[broker_id] = (host, int(port))
        leaders = [each.leader for each in mock.cluster.topics[TOPIC].partitions]
        traffic = await drive(addresses, leaders, seconds=1.0, interval=0.05)
        assert mock.cluster.logs.bytes <= 20_000
    assert traffic.problems == []
    assert traffic.produced == traffic.consumed == len(traffic.pauses) >= 20


@pytest.mark.parametrize(
    ("records", "end"),
    [
        (b"", 5),
        (batch(5, 1), 6),
        (batch(5, 3) + batch(8, 2), 10),
        (batch(4, 3), -1),
        (batch(5, 3) + batch(9, 2), -1),
    ],
)
def test_a_gap_between_batches_is_found(records: bytes, end: int) -> None:
    assert _end_of(records, 5) == end


def test_targets_are_judged() -> None:
    traffic = Traffic(produced=10, consumed=10)
    marks = [*_cluster_marks(LARGE, 199), *_client_marks(traffic, [100, 104])]
    assert [mark.aim for mark in marks if not mark.met] == []
    slower = dataclasses.replace(LARGE, start=5_001)
    fewer = dataclasses.replace(traffic, consumed=9)
    marks = [*_cluster_marks(slower, 201), *_client_marks(fewer, [100, 106])]
    assert [mark.aim for mark in marks if mark.met] == []
    refused = dataclasses.replace(traffic, problems=["refused"])
    assert [mark.met for mark in _client_marks(refused, [100])] == [False, True]
