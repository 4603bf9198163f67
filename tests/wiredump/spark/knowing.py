"""A capture in which connections say what others need: names of topic ids, fetch sessions,
reassignments."""

from __future__ import annotations

import uuid

import kproto
from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.fetch_response import PartitionData
from kproto.records import Record, build_batch
from tests.wiredump.spark import made_up

__all__ = ["knowing"]


def knowing() -> bytes:
    """A pcap. Of what is fetched, the first comes before anybody has named its topic."""
    topic = uuid.UUID(int=0xF00)
    batch = build_batch([Record(value=b"v", timestamp=5)])
    ask = FetchTopic(topic_id=topic, partitions=[FetchPartition(partition=2, fetch_offset=7)])
    begin = FetchRequest(session_id=0, session_epoch=0, topics=[ask])
    go_on = FetchRequest(session_id=9, session_epoch=1)
    partition = ReassignablePartition(partition_index=0, replicas=[4])
    alter = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="foo", partitions=[partition])]
    )
    altered = AlterPartitionReassignmentsResponse(
        responses=[
            ReassignableTopicResponse(
                name="foo", partitions=[ReassignablePartitionResponse(partition_index=0)]
            )
        ]
    )
    named = MetadataResponse(topics=[MetadataResponseTopic(name="foo", topic_id=topic)])

    def fetched(records: bytes) -> FetchResponse:
        parts = [PartitionData(partition_index=2, records=records)]
        return FetchResponse(
            session_id=9, responses=[FetchableTopicResponse(topic_id=topic, partitions=parts)]
        )

    said = [
        (0, begin, fetched(batch), 13),
        (1, MetadataRequest(topics=None), named, 12),
        (2, alter, altered, 1),
        (3, go_on, fetched(batch), 13),
        (0, begin, fetched(batch[:-3] + b"xxx"), 13),
        (4, ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse(), 0),
    ]
    codec = kproto.dialect("kafka")
    talks = [Conversation(("10.0.0.1", 40_000 + each), ("10.0.1.1", 9092)) for each in range(5)]
    packets = [packet for talk in talks for packet in talk.open()]
    for number, (which, request, response, version) in enumerate(said):
        raw = codec.encode_request(request, api_version=version, correlation_id=number)
        packets += talks[which].send(raw)
        raw = codec.encode_response(response, api_version=version, correlation_id=number)
        packets += talks[which].send(raw, from_server=True)
    records = [
        (made_up.START_NS + number * 1000, ethernet_frame(each), len(each) + 14)
        for number, each in enumerate(packets)
    ]
    return made_up.pcap(records)
