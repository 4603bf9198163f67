"""A response counts as delivered when the packet that fills its last hole was captured, as worked
out here byte by byte; on either engine, within TLS, and where a hole is never filled."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import kproto
from kproto.messages import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tests.wiredump.quickly import require_quick
from tests.wiredump.readers.conversations import (
    MILLISECOND,
    START_NS,
    Connection,
    Sent,
    cut,
    handshake,
)
from tests.wiredump.rows.tabled import named
from tests.wiredump.spark.made_up import pcap
from wiredump import native
from wiredump.sources import open_sources
from wiredump.tables.table_rows import TableRows


@dataclass
class Delivered:
    """When each byte of a direction was captured, and when all before it were, too."""

    captured: dict[int, int]
    in_order: int = 0
    """How many bytes a receiver has without a hole."""

    def add(self, segment: Sent, now: int) -> None:
        for at in range(segment.start, segment.end):
            self.captured.setdefault(at, now)
        while self.in_order in self.captured:
            self.in_order += 1

    def by(self, end: int) -> int:
        return max(self.captured[at] for at in range(end))


def exchanges(rng: random.Random, count: int) -> tuple[list[bytes], list[bytes]]:
    """Frames of either direction."""
    asked, answered = [], []
    for number in range(count):
        topics = [MetadataResponseTopic(name="t" * rng.randrange(1, 200)) for _ in range(3)]
        sides = MetadataRequest(topics=None), MetadataResponse(topics=topics)
        asked.append(kproto.encode_request(sides[0], api_version=9, correlation_id=number))
        answered.append(kproto.encode_response(sides[1], api_version=9, correlation_id=number))
    return asked, answered


def in_flight(rng: random.Random, segments: list[Sent], late: float) -> list[Sent]:
    """Some segments are lost in front of the capture, and come again later."""
    order = [
        (at + (rng.randrange(2, 12) if rng.random() < late else 0), at)
        for at in range(len(segments))
    ]
    return [segments[at] for _, at in sorted(order)]


def conversation(seed: int, late: float) -> tuple[bytes, list[tuple[int, int, int]]]:
    """A capture, and of each exchange when it was asked, its response delivered, and its last byte
    captured."""
    rng = random.Random(seed)
    asked, answered = exchanges(rng, 8)
    streams = [b"".join(asked), b"".join(answered)]
    cuts = [[rng.randrange(len(each)) for _ in range(len(each) // 40)] for each in streams]
    flights = [
        in_flight(rng, cut(each, cuts[side], side), late) for side, each in enumerate(streams)
    ]
    connection, seen = Connection(), [Delivered({}), Delivered({})]
    now, packets = START_NS, []
    # Requests come first, so that their bytes are there when answers are.
    for segment in [*handshake(), *flights[0], *flights[1]]:
        now += rng.randrange(1, 30) * MILLISECOND
        if segment.data:
            segment = replace(segment, acked=seen[1 - segment.direction].in_order)
            seen[segment.direction].add(segment, now)
        packets += [(now, *each) for each in connection.frames(segment)]
    expected, ends = [], [0, 0]
    for request, response in zip(asked, answered, strict=True):
        first = seen[0].captured[ends[0]]
        ends = [ends[0] + len(request), ends[1] + len(response)]
        expected.append((first, seen[1].by(ends[1]), seen[1].captured[ends[1] - 1]))
    return pcap(packets), expected


def latencies(path: Path) -> list[tuple[int, int, int]]:
    """As the table ``requests`` has it."""
    sources, rows = open_sources([str(path)]), TableRows(bodies=False)
    made = named(row for item in sources for row in rows.add(item))["requests"]
    for row in made:
        assert row["latency_ns"] == row["responded_ns"] - row["requested_ns"]
    made.sort(key=lambda row: row["correlation_id"])
    return [(row["requested_ns"], row["responded_ns"], row["response_last_ns"]) for row in made]


@given(seed=st.integers(0, 2**32), late=st.sampled_from([0, 0.1, 0.4]))
def test_a_response_is_delivered_when_its_last_hole_is_filled(tmp_path_factory, seed, late) -> None:
    data, expected = conversation(seed, late)
    path = tmp_path_factory.mktemp("capture") / "late.pcap"
    path.write_bytes(data)
    for engine in {None, native.built()}:
        with native.using(engine):
            assert latencies(path) == expected


def test_some_are_later_than_their_last_byte() -> None:
    """The property above is not about nothing."""
    _, expected = conversation(1, 0.4)
    assert any(delivered > last for _, delivered, last in expected)


def test_the_extension_was_among_them() -> None:
    require_quick()
