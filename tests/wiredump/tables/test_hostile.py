"""Damaged and hostile traffic: no row is too much for its table, and nothing raises."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.messages import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.records import Record, build_batch
from tests.wiredump import talk
from tests.wiredump.rows.tabled import connections_of, exchange
from wiredump.model import Item
from wiredump.rows.schema import TABLES
from wiredump.tables.arrow import to_table
from wiredump.tables.table_rows import TableRows

LISTENED_TO = [0, 1, 3, 4, 6, 19, 20, 43, 45, 46, 60, 69, 75, 77, 78]


def arrow(items: list[Item]):
    rows = TableRows(values=True)
    found = [row for item in items for row in rows.add(item)]
    found += rows.end(connections_of(items), [(0, "\udcff.pcap", "capture", 1, 2**70, 0)], {})
    return {name: to_table(name, [row for each, row in found if each == name]) for name in TABLES}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what more than frames and bodies is made of."""
    monkeypatch.setattr(talk, "KEYS", LISTENED_TO)


@given(st.integers(0, 2**40), st.integers(1, 6))
def test_any_byte_may_be_wrong_and_any_piece_missing(seed: int, most: int) -> None:
    rng = random.Random(seed)
    said = [talk.say(rng, number) for number in range(most)]
    pieces = talk.chopped(talk.delivered(said), rng, 60)
    pieces = talk.torn(pieces, rng, rng.choice([0, 0, 0.1]))
    damaged = []
    for piece in pieces:
        raw = bytearray(piece.raw)
        if raw and rng.random() < 0.3:
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        damaged.append(piece._replace(raw=bytes(raw)))
    tables = arrow(talk.listen(damaged))
    (source,) = tables["lineage"].to_pylist()
    assert (source["source"], source["first_ns"]) == ("\ufffd.pcap", 2**63 - 1)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1))
def test_offsets_and_times_may_be_anything(base: int, timestamp: int, delta: int) -> None:
    batch = bytearray(
        build_batch([Record(timestamp=timestamp, value=b"a"), Record(timestamp=0, value=b"b")])
    )
    batch[0:8] = base.to_bytes(8, "big", signed=True)
    batch[23:27] = delta.to_bytes(4, "big")
    part = PartitionProduceData(index=0, records=bytes(batch))
    request = ProduceRequest(topic_data=[TopicProduceData(name="a", partition_data=[part])])
    tables = arrow([exchange(request, None, 7, at=1)])
    told = "undecodable-batch" in tables["anomalies"]["kind"].to_pylist()
    assert told or tables["batches"].num_rows == 1
