"""The journal and the log share the records of large requests."""

import random
from typing import Any

import pytest

import kproto
from mockbroker.serving.delivery import _around_records
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulation.log.producing import batch
from tests.support import seeds
from tests.support.requests import request_of

LARGE = batch(b"a" * 70_000)
OTHER = batch(b"b" * 90_000)
SMALL = batch(b"c")


def request(*records: bytes | None, name: str = "foo") -> Any:
    rows = [{"index": at, "records": each} for at, each in enumerate(records)]
    return request_of("Produce", acks=1, timeout_ms=1, name=name, partition_data=rows)


def framed(body: Any, version: int, client_id: str = "me") -> bytes:
    return kproto.encode_request(body, api_version=version, correlation_id=5, client_id=client_id)


def around(frame: bytes) -> tuple[list[bytes], list[bytes]]:
    """The parts of a frame, and the records of its body that are among them."""
    body: Any
    _, body = kproto.decode_request(frame)
    parts = _around_records(frame, body)
    records = [row.records for topic in body.topic_data for row in topic.partition_data]
    return parts, [each for each in records if each and any(part is each for part in parts)]


@pytest.mark.parametrize("version", [3, 7, 9, 12])
def test_the_parts_are_the_frame(version: int) -> None:
    rng: random.Random = seeds.generator(f"around:{version}")
    for _ in range(40):
        some = [rng.choice([LARGE, OTHER, SMALL, None, b""]) for _ in range(rng.randrange(5))]
        frame = framed(request(*some), version)
        parts, shared = around(frame)
        assert b"".join(parts) == frame
        assert shared == [each for each in some if each in (LARGE, OTHER)]


def test_records_are_found_only_where_they_are_whole() -> None:
    """A client may write their beginning into a name before them."""
    data = bytes(61) + b"x" * 70_000
    frame = framed(request(data, name="\0" * 61), 9, client_id="\0" * 100)
    parts, _ = around(frame)
    assert b"".join(parts) == frame


def test_the_journal_has_the_request_as_it_came() -> None:
    broker = DirectBroker(Cluster(1, topics=["foo:2:1"]))
    answer = broker.ask(request(LARGE, SMALL), 9)
    assert [row.error_code for row in answer.responses[0].partition_responses] == [0, 0]
    (entry,) = broker.journal.select(direction="request")
    _, body = kproto.decode_request(entry.raw)
    assert body == request(LARGE, SMALL)
    (stored,) = broker.cluster.logs.log(("foo", 0)).storage.batches()
    assert bytes(stored.data[16:]) == LARGE[16:]
