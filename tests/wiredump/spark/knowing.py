"""A capture in which connections say what others need: names of topic ids, fetch sessions,
reassignments, rebalances, transactions."""

from __future__ import annotations

import random
import uuid
from typing import Any

import msgspec

import kproto
from kproto.capture import Conversation
from kproto.capture.packets import ethernet_frame
from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    EndTxnRequest,
    EndTxnResponse,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    ProduceRequest,
    ProduceResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.fetch_response import PartitionData
from kproto.messages.leader_and_isr_request import LeaderAndIsrTopicState
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import Record, build_batch
from tests.wiredump.spark import made_up

__all__ = ["knowing", "naming"]


def knowing() -> bytes:
    """A pcap. Of what is fetched, the first comes before anybody has named its topic. No two
    requests have the same latency."""
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
        *_of_a_group(),
        *_of_a_transaction(topic),
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
        (made_up.START_NS + number * (1_000 + number), ethernet_frame(each), len(each) + 14)
        for number, each in enumerate(packets)
    ]
    return made_up.pcap(records)


def _of_a_group() -> list[tuple[int, Any, Any, int]]:
    """Two members of one group, on connections of their own, and a member of another."""
    joined = JoinGroupResponse(generation_id=3, protocol_name="range", member_id="a", leader="a")
    other = msgspec.structs.replace(joined, member_id="b")
    return [
        (0, JoinGroupRequest(group_id="g", member_id="a", reason="why"), joined, 9),
        (1, JoinGroupRequest(group_id="g", member_id="b"), other, 9),
        (1, SyncGroupRequest(group_id="g", member_id="b", generation_id=3), SyncGroupResponse(), 5),
        (0, SyncGroupRequest(group_id="g", member_id="a", generation_id=3), SyncGroupResponse(), 5),
        (
            2,
            ConsumerGroupHeartbeatRequest(group_id="h", member_id="c", member_epoch=0),
            ConsumerGroupHeartbeatResponse(member_id="c", member_epoch=1),
            1,
        ),
    ]


def _of_a_transaction(topic: uuid.UUID) -> list[tuple[int, Any, Any, int]]:
    """One that is committed by the response on another connection, and one that is open."""
    data = TopicProduceData(topic_id=topic, partition_data=[PartitionProduceData(index=2)])
    produced = ProduceRequest(transactional_id="t", acks=-1, topic_data=[data])
    end = EndTxnRequest(transactional_id="t", producer_id=7, producer_epoch=1, committed=True)
    return [
        (3, produced, ProduceResponse(), 13),
        (4, end, EndTxnResponse(), 4),
        (3, msgspec.structs.replace(produced, transactional_id="u"), ProduceResponse(), 13),
    ]


def naming(seed: int, *, share: float, connections: int = 5, exchanges: int = 5) -> bytes:
    """A pcap: topics are fetched by their ids on some connections and named on others, in requests
    that may have no answer, too. ``share`` of the packets is lost, late, cut or there twice, and
    many have the same time. Each connection has at most so many exchanges."""
    rng = random.Random(seed)
    codec = kproto.dialect("kafka")
    topics = [(uuid.UUID(int=0xF00 + each), f"topic-{each}") for each in range(3)]
    batch = build_batch(
        [Record(value=b"v" * rng.randrange(200), timestamp=5)] * rng.choice((1, 40))
    )

    def fetch() -> tuple[Any, Any, int]:
        topic, _ = rng.choice(topics)
        ask = FetchTopic(topic_id=topic, partitions=[FetchPartition(partition=2, fetch_offset=7)])
        records = rng.choice((batch, batch[:-3] + b"xxx"))
        parts = [PartitionData(partition_index=2, records=records)]
        answer = FetchableTopicResponse(topic_id=topic, partitions=parts)
        request = rng.choice(
            (
                FetchRequest(session_id=0, session_epoch=0, topics=[ask]),
                FetchRequest(session_id=9, session_epoch=1),
                FetchRequest(session_id=0, session_epoch=-1, topics=[ask]),
            )
        )
        return request, FetchResponse(session_id=9, responses=[answer]), 13

    def metadata() -> tuple[Any, Any, int]:
        topic, name = rng.choice(topics)
        told = MetadataResponse(topics=[MetadataResponseTopic(name=name, topic_id=topic)])
        return MetadataRequest(topics=None), told, 12

    def leaders() -> tuple[Any, Any, int]:
        topic, name = rng.choice(topics)
        state = LeaderAndIsrTopicState(topic_name=name, topic_id=topic)
        return LeaderAndIsrRequest(topic_states=[state]), LeaderAndIsrResponse(), 5

    talks = []
    for number in range(connections):
        talk = Conversation(("10.0.0.1", 40_000 + number), ("10.0.1.1", 9092), segment_size=60)
        packets = talk.open()
        for correlation_id in range(rng.randint(1, exchanges)):
            request, response, version = rng.choice((fetch, fetch, metadata, leaders))()
            about = {"api_version": version, "correlation_id": correlation_id}
            packets += talk.send(codec.encode_request(request, **about))
            if rng.random() < 0.8:
                packets += talk.send(codec.encode_response(response, **about), from_server=True)
        talks.append(packets)
    taken = made_up.torn(made_up.mixed(rng, talks), rng, share)
    now, records = made_up.START_NS, []
    for data, length in taken:
        now += rng.choice((0, 0, 1_000, 300_000_000))
        records.append((now, data, length))
    return made_up.pcap(records)
