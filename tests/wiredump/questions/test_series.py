"""Lag, rates, batches sent again and requests for metadata: random traffic whose figures are
known, and what the questions answer."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import kproto
from kproto.messages import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kproto.messages.fetch_response import PartitionData
from kproto.records import Record, build_batch
from tests.wiredump.unread_captures import Line, merged
from wiredump.questions.answers import answer
from wiredump.questions.database import FolderTables, require_duckdb
from wiredump.questions.partition_offsets import partition_offsets
from wiredump.questions.saved import question
from wiredump.rows.schema import TABLES
from wiredump.tables.making import make
from wiredump.tables.work import Work

KAFKA = kproto.dialect("kafka")


class Client:
    """A client that talks to the broker on a line of its own."""

    def __init__(self, number: int, client_id: str, isn: tuple[int, int] | None = None) -> None:
        own = (number << 8, number << 16)
        self.line = Line(9092, client_port=50_000 + number, isn=own if isn is None else isn)
        self.client_id = client_id
        self._next = 0

    def say(self, request: Any, response: Any, version: int) -> int:
        """Returns when the request was sent."""
        self._next += 1
        about = {"api_version": version, "correlation_id": self._next}
        raw = KAFKA.encode_request(request, client_id=self.client_id, **about)
        self.line.send(0, raw, segment=60_000)
        at = self.line.now
        if response is not None:
            self.line.send(1, KAFKA.encode_response(response, **about), segment=60_000)
        return at


def fetched(partition: int, high_watermark: int, records: bytes = b"") -> FetchResponse:
    part = PartitionData(
        partition_index=partition, high_watermark=high_watermark, records=records or None
    )
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])


def committing(partition: int, offset: int) -> OffsetCommitRequest:
    part = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[part])]
    return OffsetCommitRequest(group_id="g", topics=topics)


def producing(partition: int, records: bytes) -> ProduceRequest:
    part = PartitionProduceData(index=partition, records=records)
    return ProduceRequest(
        acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=[part])]
    )


def rows(name: str, folder: Path, *clients: Client) -> list[dict[str, Any]]:
    require_duckdb()
    (folder / "a.pcap").write_bytes(merged(*(each.line for each in clients)))
    paths = {0: str(folder / "a.pcap")}
    make(Work(out=str(folder / "tables"), paths=paths, tables=tuple(TABLES)))
    return answer(FolderTables(str(folder / "tables")), question(name).query).records()


def test_lag_is_the_distance_to_the_last_known_end(rng: random.Random, tmp_path: Path) -> None:
    client, ends, committed = Client(1, "c"), Counter[int](), Counter[int]()
    commits = Counter[int]()
    lags: dict[int, list[int]] = defaultdict(list)
    for _ in range(200):
        partition = rng.randrange(3)
        if rng.random() < 0.5 or not ends[partition]:
            ends[partition] += rng.randrange(1, 100)
            client.say(FetchRequest(max_wait_ms=1), fetched(partition, ends[partition]), 11)
        else:
            committed[partition] = rng.randrange(committed[partition], ends[partition] + 1)
            client.say(committing(partition, committed[partition]), OffsetCommitResponse(), 7)
            commits[partition] += 1
            lags[partition].append(ends[partition] - committed[partition])
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows("lag", tmp_path, client):
        assert (row["group_id"], row["topic"]) == ("g", "t")
        found[row["partition"]].append(row)
    for partition, series in found.items():
        assert sum(row["commits"] for row in series) == commits[partition]
        assert max(row["longest_lag"] for row in series) == max(lags[partition])
        assert series[-1]["committed"] == committed[partition]
        assert series[-1]["lag"] == lags[partition][-1]
        assert 1 < len(series) <= 20
    assert found.keys() == commits.keys()


def test_rates_add_up_to_the_batches(rng: random.Random, tmp_path: Path) -> None:
    client = Client(1, "c")
    said: Counter[tuple[int, str]] = Counter()
    for _ in range(100):
        partition, count = rng.randrange(3), rng.randrange(1, 9)
        batch = build_batch([Record(timestamp=1, value=rng.randbytes(20)) for _ in range(count)])
        if rng.random() < 0.5:
            client.say(producing(partition, batch), ProduceResponse(), 7)
            way = "produced"
        else:
            client.say(FetchRequest(max_wait_ms=1), fetched(partition, 1 << 20, batch), 11)
            way = "fetched"
        said[partition, f"{way}_records"] += count
        said[partition, f"{way}_bytes"] += len(batch)
    found: Counter[tuple[int, str]] = Counter()
    series = rows("rates", tmp_path, client)
    for row in series:
        for way in ("produced", "fetched"):
            for what in ("records", "bytes"):
                found[row["partition"], f"{way}_{what}"] += row[f"{way}_{what}"]
    assert found == said
    assert len(series) > 20


def test_batches_that_were_sent_again_and_acknowledgements_that_were_lost(
    rng: random.Random, tmp_path: Path
) -> None:
    clients = [Client(number, f"p{number}") for number in range(3)]
    again: Counter[str] = Counter()
    for number, client in enumerate(clients):
        for sequence in range(0, 30, 3):
            records = [Record(timestamp=1, value=b"v")] * 3
            batch = build_batch(
                records, producer_id=number, producer_epoch=0, base_sequence=sequence
            )
            times = rng.choice((1, 1, 2, 3))
            for _ in range(times):
                client.say(producing(0, batch), ProduceResponse(), 7)
            again[client.client_id] += times - 1
        # A producer without sequence numbers may send the same again on purpose.
        for _ in range(3):
            plain = build_batch([Record(timestamp=1, value=b"w")])
            client.say(producing(0, plain), ProduceResponse(), 7)
        client.say(producing(0, plain), None, 7)
        client.line.finish()
    found = {row["client_id"]: row for row in rows("retries", tmp_path, *clients)}
    assert found.keys() == {each.client_id for each in clients}
    for name, row in found.items():
        assert (row["sent_again"], row["lost"]) == (again[name], 1)
        assert row["batches"] == 10 + again[name] + 4


def test_a_storm_of_metadata_is_a_finding(rng: random.Random, tmp_path: Path) -> None:
    quiet, storm = Client(1, "quiet"), Client(2, "storm")
    for number in range(200):
        storm.say(MetadataRequest(topics=None if number % 4 else []), MetadataResponse(), 5)
        if number % 20 == 0:
            quiet.line.wait(1)
            quiet.say(MetadataRequest(topics=[]), MetadataResponse(), 5)
    found = {row["client_id"]: row for row in rows("metadata-storms", tmp_path, quiet, storm)}
    assert (found["storm"]["verdict"], found["quiet"]["verdict"]) == ("storm", "usual")
    assert (found["storm"]["requests"], found["storm"]["of_all_topics"]) == (200, 150)
    assert (found["quiet"]["requests"], found["quiet"]["most_a_second"]) == (10, 1)
    findings = answer(FolderTables(str(tmp_path / "tables")), question("findings").query).records()
    assert ["storm" in row["finding"] for row in findings] == [True]


def test_offsets_in_a_body() -> None:
    body = {"topics": [{"name": "t", "partitions": [
        {"partitionIndex": 1, "committedOffset": 7}, {"partitionIndex": 2, "committedOffset": -1}
    ]}]}  # fmt: skip
    assert partition_offsets(json.dumps(body)) == ["t/1/7"]
    assert partition_offsets("{") == partition_offsets(None) == []


@pytest.mark.parametrize(("isn", "number"), [((1_000, 2_000), 2), ((1 << 30, 1 << 31), 5)])
def test_numbers_that_nobody_drew_make_no_twins(
    isn: tuple[int, int], number: int, tmp_path: Path
) -> None:
    """Programs that write captures give every connection the same ones."""
    clients = [Client(each, "c", isn) for each in range(number)]
    for client in clients:
        client.say(MetadataRequest(), MetadataResponse(), 9)
    require_duckdb()
    (tmp_path / "a.pcap").write_bytes(merged(*(each.line for each in clients)))
    made = Work(
        out=str(tmp_path / "tables"), paths={0: str(tmp_path / "a.pcap")}, tables=tuple(TABLES)
    )
    make(made)
    found = answer(FolderTables(made.out), "SELECT count(*) AS requests FROM requests").records()
    assert found == [{"requests": number}]
