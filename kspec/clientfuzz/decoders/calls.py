"""One call per API, with its true answer, which is then mutated.

The values are small and plain, so that results can be compared between clients. None is an error,
since some clients report one error for all partitions. A broker's address in an answer is ``HOST``
and ``PORT``, which ``proxy`` replaces by its own as long as both are intact, so that a mutated
address alone sends a client elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kproto import Dialect
from kproto.codec.message import Message
from kproto.messages import (
    AlterPartitionReassignmentsResponse,
    CreatableTopicResult,
    CreateTopicsResponse,
    DescribeClusterBroker,
    DescribeClusterResponse,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
    ReplicaElectionResult,
)
from kproto.messages.elect_leaders_response import PartitionResult
from kspec.clientfuzz.bases import Base
from kspec.vectors.frames import CORRELATION_ID

__all__ = ["ADDRESS", "CALLS", "HOST", "PORT", "SampleCall", "base_of"]

HOST: Final = "127.0.0.1"
PORT: Final = 48_879
ADDRESS: Final = HOST.encode() + PORT.to_bytes(4, "big")
"""The address in its wire format, behind the host's length."""


class SampleCall(NamedTuple):
    """A call of docs/reference/adapters.md, the only version that is served by default, and the
    true answer."""

    call: str
    arguments: Mapping[str, Any]
    version: int
    answer: Message


CALLS: Final[Mapping[int, SampleCall]] = {
    3: SampleCall(
        "describe_topics",
        {"topics": ["foo"]},
        5,
        MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=HOST, port=PORT)],
            cluster_id="c",
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name="foo",
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                        )
                        for index in range(2)
                    ],
                )
            ],
        ),
    ),
    19: SampleCall(
        "create_topics",
        {"topics": {"foo": {"partitions": 1, "replication_factor": 1}}},
        4,
        CreateTopicsResponse(topics=[CreatableTopicResult(name="foo")]),
    ),
    43: SampleCall(
        "elect_leaders",
        {"type": "preferred", "partitions": ["foo-0", "foo-1"]},
        2,
        ElectLeadersResponse(
            replica_election_results=[
                ReplicaElectionResult(
                    topic="foo",
                    partition_result=[
                        PartitionResult(partition_id=0),
                        PartitionResult(partition_id=1),
                    ],
                )
            ]
        ),
    ),
    45: SampleCall(
        "alter_reassignments",
        {"assignments": {"foo-0": [1], "foo-1": [1]}},
        0,
        AlterPartitionReassignmentsResponse(
            responses=[
                ReassignableTopicResponse(
                    name="foo",
                    partitions=[
                        ReassignablePartitionResponse(partition_index=0),
                        ReassignablePartitionResponse(partition_index=1),
                    ],
                )
            ]
        ),
    ),
    46: SampleCall(
        "list_reassignments",
        {"partitions": ["foo-0", "foo-1"]},
        0,
        ListPartitionReassignmentsResponse(
            topics=[
                OngoingTopicReassignment(
                    name="foo",
                    partitions=[
                        OngoingPartitionReassignment(
                            partition_index=0,
                            replicas=[1, 2, 3],
                            adding_replicas=[3],
                            removing_replicas=[1],
                        ),
                        OngoingPartitionReassignment(partition_index=1, replicas=[2, 3]),
                    ],
                )
            ]
        ),
    ),
    60: SampleCall(
        "describe_cluster",
        {},
        1,
        DescribeClusterResponse(
            cluster_id="c",
            controller_id=1,
            brokers=[DescribeClusterBroker(broker_id=1, host=HOST, port=PORT)],
        ),
    ),
}
"""Calls by API key."""


def base_of(dialect: Dialect, api_key: int, version: int | None = None) -> Base:
    """Return the true answer as a frame. Raises KeyError for an API without a call here."""
    call = CALLS[api_key]
    chosen = call.version if version is None else version
    frame = dialect.encode_response(call.answer, api_version=chosen, correlation_id=CORRELATION_ID)
    return Base(api_key, chosen, "response", "answer", bytes(frame))
