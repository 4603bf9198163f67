"""Record batches of frames with holes: of random messages with random holes, exactly the batches
that no hole touches are read, in their topic and partition unless a hole has its header."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from kproto.messages import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    TopicProduceData,
    share_fetch_response,
)
from kproto.messages.fetch_response import AbortedTransaction, PartitionData
from kproto.records import Compression, Record, build_batch
from tests.support.toolchain import require_module
from tests.wiredump.rows.tabled import KAFKA, tables_of
from tests.wiredump.spark.fake_session import FakeSession, session
from tests.wiredump.spark.pipeline import load
from tests.wiredump.unread_captures import Line, merged
from wiredump import native
from wiredump.cli import cli
from wiredump.conversation import Conversation
from wiredump.model import Connection, Exchange, Item, Place
from wiredump.readers.share import Share
from wiredump.rows.fields import id_as_text
from wiredump.show.exchange_view import ExchangeView
from wiredump.show.lines import LineWriter
from wiredump.show.records import exchange_record
from wiredump.tables import jobs
from wiredump.tables.making import make
from wiredump.tables.work import Work

__all__ = ["session"]

Hole = tuple[int, int]


class Batch(NamedTuple):
    """``start`` and ``end`` are its place in the frame."""

    topic: str
    partition: int
    number: int
    start: int
    end: int


class Talk(NamedTuple):
    """``sparse`` is the frame that gets holes, of the request or of the response."""

    request: bytes
    response: bytes
    is_request: bool
    batches: list[Batch]
    fields: list[Hole]

    @property
    def sparse(self) -> bytes:
        return self.request if self.is_request else self.response


def random_field(rng: random.Random, magic: int, most: int) -> list[bytes]:
    """The batches of a partition."""
    codecs = [Compression.NONE, Compression.NONE, Compression.GZIP, Compression.LZ4]
    made = []
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        records = [
            Record(key=rng.randbytes(4), value=rng.randbytes(rng.randrange(most)), timestamp=number)
            for number in range(rng.randrange(1, 5) if magic == 2 else 1)
        ]
        # A message of magic 0 or 1 is a batch of its own. Of a compressed one the messages inside
        # are found if its header is lost and they do not get smaller.
        codec = rng.choice(codecs) if magic == 2 else Compression.NONE
        offset = rng.randrange(1 << 40) if magic else 0
        made.append(build_batch(records, magic=magic, compression=codec, base_offset=offset))
    return made


def random_talk(rng: random.Random, correlation_id: int = 7, most: int = 300) -> Talk:
    """An exchange with random batches."""
    key = rng.choice((0, 1, 1, 78))
    api = KAFKA.apis[key]
    version = rng.choice([each for each in api.valid_versions if each >= 3 or key == 78])
    magic = 2 if key == 78 or version > 3 else rng.choice((0, 1, 2))
    names = [f"topic-{number}" for number in range(rng.choice((1, 1, 2, 4)))]
    ids = {name: uuid.UUID(bytes=rng.randbytes(16), version=4) for name in names}
    said = {
        name: {number: random_field(rng, magic, most) for number in range(rng.choice((1, 2, 9)))}
        for name in names
    }
    request, response = MESSAGES[key](said, ids, version, rng)
    frames = [
        KAFKA.encode_request(
            request, api_version=version, correlation_id=correlation_id, client_id="c"
        ),
        KAFKA.encode_response(response, api_version=version, correlation_id=correlation_id),
    ]
    by_id = key == 78 or version >= 13
    batches, fields, at = [], [], 0
    sparse = frames[key != 0]
    for name, partitions in said.items():
        known = id_as_text(ids[name].bytes) if by_id else name
        for partition, field in partitions.items():
            whole = b"".join(field)
            if whole:
                at = sparse.index(whole, at)
                fields.append((at, at + len(whole)))
            for number, each in enumerate(field):
                batches.append(Batch(known, partition, number, at, at + len(each)))
                at += len(each)
    return Talk(*frames, key == 0, batches, fields)


def produced(said, ids, version, rng):
    topics = [
        TopicProduceData(
            name=name if version < 13 else "",
            topic_id=ids[name] if version >= 13 else uuid.UUID(int=0),
            partition_data=[
                PartitionProduceData(index=number, records=b"".join(field))
                for number, field in partitions.items()
            ],
        )
        for name, partitions in said.items()
    ]
    return ProduceRequest(acks=-1, timeout_ms=1, topic_data=topics), ProduceResponse()


def fetched(said, ids, version, rng):
    topics = [
        FetchableTopicResponse(
            topic=name if version < 13 else "",
            topic_id=ids[name] if version >= 13 else uuid.UUID(int=0),
            partitions=[
                PartitionData(
                    partition_index=number,
                    high_watermark=1 << 40,
                    aborted_transactions=aborted(rng, version),
                    records=b"".join(field),
                )
                for number, field in partitions.items()
            ],
        )
        for name, partitions in said.items()
    ]
    return FetchRequest(), FetchResponse(responses=topics)


def aborted(rng: random.Random, version: int):
    count = rng.choice((None, 0, 2)) if version >= 4 else None
    if count is None:
        return None
    return [
        AbortedTransaction(producer_id=rng.randrange(99), first_offset=number)
        for number in range(count)
    ]


def share_fetched(said, ids, version, rng):
    topics = [
        ShareFetchableTopicResponse(
            topic_id=ids[name],
            partitions=[
                share_fetch_response.PartitionData(
                    partition_index=number,
                    records=b"".join(field),
                    acquired_records=[
                        share_fetch_response.AcquiredRecords(
                            first_offset=0, last_offset=rng.randrange(9), delivery_count=1
                        )
                    ],
                )
                for number, field in partitions.items()
            ],
        )
        for name, partitions in said.items()
    ]
    return ShareFetchRequest(), ShareFetchResponse(responses=topics)


MESSAGES: dict[int, Callable[..., tuple[Any, Any]]] = {0: produced, 1: fetched, 78: share_fetched}


def random_holes(rng: random.Random, size: int) -> list[Hole]:
    """Holes behind the header of a frame, in order and apart."""
    found: list[Hole] = []
    at = 16
    longest = rng.choice((8, 200, 1448))
    for _ in range(rng.choice((1, 1, 2, 6))):
        start = at + rng.randrange(max(1, size - at))
        end = min(size, start + rng.randrange(1, longest))
        if start < end:
            found.append((start, end))
        at = end + 1
    return found


def with_holes(talk: Talk, holes: list[Hole]) -> list[Item]:
    """Return the items that are read from a request and its response with these holes."""
    connection = Connection(0, "10.0.0.1:50000", "10.0.0.2:9092", 0, from_start=True)
    conversation = Conversation(connection)
    items: list[Item] = []
    for forward, raw in ((True, talk.request), (False, talk.response)):
        at = 0
        for start, end in [*(holes if forward == talk.is_request else ()), (len(raw), 0)]:
            if start > at:
                items += conversation.data(forward, raw[at:start], 1, Place(0, at))
            if end:
                items += conversation.gap(forward, end - start, "lost", 1, Place(0, at))
                at = end
    return [*items, *conversation.end("the end")]


def touched(holes: list[Hole], start: int, end: int) -> bool:
    return any(a < end and start < b for a, b in holes)


@pytest.mark.slow
def test_a_hole_costs_the_batches_that_it_touches(rng: random.Random) -> None:
    placed = unplaced = 0
    for _ in range(300):
        talk = random_talk(rng)
        holes = random_holes(rng, len(talk.sparse))
        items = with_holes(talk, holes)
        tables = tables_of(items)
        whole = {each.start: each for each in talk.batches if not touched(holes, *each[-2:])}
        (frame,) = (
            item.request if talk.is_request else item.response
            for item in items
            if isinstance(item, Exchange)
        )
        assert frame is not None
        assert frame.salvaged is not None
        found = {}
        for each in frame.salvaged:
            at = each.offset
            for number in range(each.number, each.number + each.batches):
                found[at] = each.topic or each.topic_id, each.partition, number
                at = whole[at].end
            assert at == each.offset + len(each.data)
        assert found.keys() == whole.keys(), holes
        only_records = all(
            any(start <= a and b <= end for start, end in talk.fields) for a, b in holes
        )
        for at, (topic, partition, _) in found.items():
            said = whole[at]
            assert topic in (said.topic, None)
            assert partition in (said.partition, -1)
            if only_records:
                assert (topic, partition) == (said.topic, said.partition)
            placed += partition != -1
            unplaced += partition == -1
        batches = tables.get("batches", [])
        assert sorted(row["size"] for row in batches) == sorted(
            each.end - each.start for each in whole.values()
        )
        assert all(row["salvaged"] and row["crc_ok"] for row in batches)
        assert sum(row["records"] for row in batches) == len(tables.get("records", []))
        assert frame.salvaged_batches == len(batches)
        for item in items:
            if isinstance(item, Exchange):
                view = ExchangeView(item)
                side = exchange_record(view)["request" if talk.is_request else "response"]
                assert side["salvaged_batches"] == len(batches)
                text = LineWriter(styled=False).exchange(view).plain
                assert (f"{len(batches)} whole batches" in text) == bool(batches)
    assert placed > 10 * unplaced > 0


@pytest.mark.slow
def test_a_segment_of_a_response_of_60_megabytes_costs_one_batch(rng: random.Random) -> None:
    value = rng.randbytes(900)
    records = [Record(timestamp=number, value=value) for number in range(100)]
    field = b"".join(build_batch(records, base_offset=100 * place) for place in range(650))
    part = PartitionData(partition_index=3, high_watermark=1 << 20, records=field)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])
    about = {"api_version": 11, "correlation_id": 7}
    talk = Talk(
        KAFKA.encode_request(FetchRequest(), client_id="c", **about),
        KAFKA.encode_response(response, **about), False, [], [],
    )  # fmt: skip
    start = 30_000_000 // (len(field) // 650) * (len(field) // 650) + 5000  # within one batch
    tables = tables_of(with_holes(talk, [(start, start + 1448)]))
    assert len(field) > 59_000_000
    assert len(tables["batches"]) == 649
    assert len(tables["records"]) == 64_900
    assert {row["partition"] for row in tables["batches"]} == {3}


TABLES = ("batches", "records", "frames", "requests", "bodies", "anomalies")


def capture_of(rng: random.Random, count: int) -> tuple[bytes, int]:
    """Several exchanges with holes, and the number of their whole batches."""
    line, whole = Line(9092), 0
    for number in range(count):
        talk = random_talk(rng, number)
        holes = random_holes(rng, len(talk.sparse))
        whole += sum(not touched(holes, each.start, each.end) for each in talk.batches)
        for end, raw in enumerate((talk.request, talk.response)):
            at = 0
            for start, stop in [*(holes if end != talk.is_request else ()), (len(raw), 0)]:
                line.send(end, raw[at:start])
                line.skip(end, max(0, stop - start))
                at = stop
    line.finish()
    return merged(line), whole


def in_order(tables: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {name: sorted(map(str, tables[name])) for name in TABLES}


@pytest.mark.slow
def test_all_ways_read_the_same(
    rng: random.Random, tmp_path: Path, session: FakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_module("pyspark")
    from tests.wiredump.spark.rotating import follow, one_process, rotate, to_the_end
    from wiredump.spark.connections import Options
    from wiredump.spark.job import Job

    capture, whole = capture_of(rng, 30)
    (tmp_path / "a.pcap").write_bytes(capture)
    paths = {0: str(tmp_path / "a.pcap")}
    made: dict[str, dict[str, list[str]]] = {}
    for name, module in (("native", native.built()), ("python", None)):
        with native.using(module):
            make(Work(out=str(tmp_path / name), paths=paths, tables=TABLES))
        made[name] = in_order(load(tmp_path / name, TABLES))
    monkeypatch.setattr(
        jobs, "share_out",
        lambda task, count, _progress: [task(Share(each, count)) for each in range(count)],
    )  # fmt: skip
    work = Work(out=str(tmp_path / "jobs"), paths=paths, tables=TABLES)
    jobs.make_tables_in_processes(work, 3)
    made["jobs"] = in_order(load(tmp_path / "jobs", TABLES))
    options = Options(out=str(tmp_path / "spark"), paths=paths, tables=TABLES)
    Job(options=options, split_bytes=5000, partitions=2).run(session)  # type: ignore[arg-type]
    made["spark"] = in_order(load(tmp_path / "spark", TABLES))
    parts = rotate(capture, [20, 60, 61, 90], tmp_path / "in")
    to_the_end(session, follow(tmp_path / "in", tmp_path, TABLES, max_bytes=1))
    assert load(tmp_path / "out", TABLES) == one_process(parts, tmp_path / "one", TABLES)
    assert len(made["native"]["batches"]) == whole > 0
    for name, tables in made.items():
        for table in TABLES:
            assert tables[table] == made["native"][table], (name, table)
    shown = CliRunner().invoke(cli, ["show", paths[0], "--json"])
    sides = [
        side["salvaged_batches"] or 0
        for line in map(json.loads, shown.stdout.splitlines())
        if line["type"] == "exchange"
        for side in (line["request"], line["response"])
        if side is not None
    ]
    assert sum(sides) == sum("'salvaged': True" in row for row in made["native"]["batches"])
