"""Write captures of the same shapes as those of ``traffic``, with ``kproto.capture``: no client, no
clock.

They are for machines that cannot capture real traffic, and for tests: the number of frames and
records is known. Nothing is lost or repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import kproto
from kproto.capture import Conversation
from kproto.capture.container import ETHERNET, pcap_header, pcap_record
from kproto.capture.packets import ethernet_frame
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.heartbeat_response import HeartbeatResponse
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kproto.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kproto.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kproto.messages.produce_response import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kproto.records import Compression, Record, build_batch

__all__ = [
    "BEGAN_NS",
    "BIG",
    "PORT",
    "SEGMENT",
    "STEP_NS",
    "Exchange",
    "exchanges",
    "write_big",
    "write_small",
]

PORT = 9092
SEGMENT = 1448
BEGAN_NS = 1_767_225_600 * 10**9
STEP_NS = 20_000
"""Between two packets."""
BLOB = bytes((place * place * 7 + place) % 95 + 32 for place in range(4096))


class Exchange(NamedTuple):
    request: bytes
    response: bytes
    records: int = 0


class Shape(NamedTuple):
    """``kinds`` in their turn; ``records`` a batch, of values ``least`` to ``most`` bytes."""

    kinds: tuple[str, ...]
    connections: int
    records: int
    least: int
    most: int
    codecs: tuple[Compression, ...] = (Compression.NONE,)


SMALL = Shape(
    ("produce", "metadata", "heartbeat", "fetch", "heartbeat"), 12, 4, 20, 80,
    (Compression.NONE, Compression.GZIP),
)  # fmt: skip
BIG = Shape(("produce", "fetch"), 6, 26, 50, 1150)


def exchanges(shape: Shape) -> Iterator[Exchange]:
    """Without end. Correlation ids count up from 1, and record values change."""
    for number in count():
        kind = shape.kinds[number % len(shape.kinds)]
        request, response, version = _bodies(kind, number, shape)
        correlation_id = 1 + number % (2**31 - 1)
        yield Exchange(
            kproto.encode_request(
                request, api_version=version, correlation_id=correlation_id,
                client_id=f"client-{number % 7}",
            ),
            kproto.encode_response(response, api_version=version, correlation_id=correlation_id),
            shape.records if kind in ("produce", "fetch") else 0,
        )  # fmt: skip


def _bodies(kind: str, number: int, shape: Shape) -> tuple[Any, Any, int]:
    topic, partition = f"t{number % 3}", number % 6
    match kind:
        case "produce":
            data = PartitionProduceData(index=partition, records=_batch(number, shape))
            answer = PartitionProduceResponse(index=partition, base_offset=number * shape.records)
            return (
                ProduceRequest(
                    acks=-1, timeout_ms=1000,
                    topic_data=[TopicProduceData(name=topic, partition_data=[data])],
                ),
                ProduceResponse(
                    responses=[TopicProduceResponse(name=topic, partition_responses=[answer])]
                ),
                7,
            )  # fmt: skip
        case "fetch":
            asked = FetchPartition(partition=partition, fetch_offset=number)
            given = PartitionData(partition_index=partition, records=_batch(number, shape))
            return (
                FetchRequest(topics=[FetchTopic(topic=topic, partitions=[asked])]),
                FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[given])]),
                11,
            )
        case "metadata":
            return (
                MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
                MetadataResponse(
                    brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=PORT)],
                    topics=[MetadataResponseTopic(name=topic)],
                ),
                9,
            )
    return (
        HeartbeatRequest(group_id="g1", generation_id=number % 100, member_id="m"),
        HeartbeatResponse(),
        4,
    )


def _batch(number: int, shape: Shape) -> bytes:
    span = shape.most - shape.least
    records = []
    for each in range(shape.records):
        size = shape.least + (number * 131 + each * 373) % (span + 1)
        start = (number * 17 + each) % (len(BLOB) - size)
        records.append(
            Record(each, BEGAN_NS // 10**6 + number, b"key-%d" % each, BLOB[start : start + size])
        )
    return build_batch(records, compression=shape.codecs[number % len(shape.codecs)])


def write_small(path: Path, size: int) -> dict[str, Any]:
    return _write(path, size, SMALL)


def write_big(path: Path, size: int) -> dict[str, Any]:
    return _write(path, size, BIG)


def _write(path: Path, size: int, shape: Shape) -> dict[str, Any]:
    """At least ``size`` bytes, connections one exchange each in turn; what is in them."""
    talks = [
        Conversation(
            (f"10.0.0.{2 + number}", 40_000 + number), ("10.0.0.1", PORT),
            client_isn=number << 24, server_isn=number << 20, segment_size=SEGMENT,
        )
        for number in range(shape.connections)
    ]  # fmt: skip
    times = count(BEGAN_NS, STEP_NS)
    frames = records = 0
    with path.open("wb") as file:
        file.write(pcap_header(ETHERNET))

        def put(packets: list[bytes]) -> None:
            for packet in packets:
                file.write(pcap_record(next(times), ethernet_frame(packet)))

        for talk in talks:
            put(talk.open())
        for number, exchange in enumerate(exchanges(shape)):
            if file.tell() >= size:
                break
            talk = talks[number % len(talks)]
            put([*talk.send(exchange.request), talk.acknowledge(from_server=True)])
            put([*talk.send(exchange.response, from_server=True), talk.acknowledge()])
            frames += 2
            records += exchange.records
        for talk in talks:
            put(talk.close())
    return {"ports": [PORT], "frames": frames, "records": records}
