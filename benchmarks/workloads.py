"""The five messages every codec is measured on. Sizes are part of the definition and are checked.

``a`` ApiVersionsResponse v3, 60 keys; ``b`` MetadataResponse v9, 10 brokers and 100 topics of 10
partitions with 3 replicas; ``c`` AlterPartitionReassignmentsRequest v0, as many topics, partitions
and replicas; ``d`` LeaderAndIsrRequest v3, 20 topics of 50 partitions; ``e`` HeartbeatRequest v4.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kproto.messages import (
    AlterPartitionReassignmentsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    LeaderAndIsrRequest,
    MetadataResponse,
)
from kproto.messages import alter_partition_reassignments_request as reassignments
from kproto.messages import api_versions_response as api_versions
from kproto.messages import leader_and_isr_request as leader_and_isr
from kproto.messages import metadata_response as metadata

__all__ = ["WORKLOADS", "Workload"]

SEED = 42
BROKERS = range(1, 11)
NO_OPERATIONS = -(2**31)
"""What a broker sends as authorized operations that were not asked for."""


def _topic(number: int) -> str:
    return f"payments.orders.events-{number:04d}"


def _host(broker: int) -> str:
    return f"broker-{broker}.kafka.internal.example.com"


def _api_versions(draw: random.Random) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=0,
        throttle_time_ms=0,
        api_keys=[
            api_versions.ApiVersion(api_key=key, min_version=0, max_version=draw.randrange(17))
            for key in range(60)
        ],
    )


def _metadata(draw: random.Random) -> MetadataResponse:
    def partition(index: int) -> metadata.MetadataResponsePartition:
        replicas = draw.sample(BROKERS, 3)
        return metadata.MetadataResponsePartition(
            error_code=0,
            partition_index=index,
            leader_id=replicas[0],
            leader_epoch=draw.randrange(1, 2000),
            replica_nodes=replicas,
            isr_nodes=list(replicas),
            offline_replicas=[],
        )

    return MetadataResponse(
        throttle_time_ms=0,
        brokers=[
            metadata.MetadataResponseBroker(
                node_id=broker, host=_host(broker), port=9092, rack=f"eu-west-1{'abc'[broker % 3]}"
            )
            for broker in BROKERS
        ],
        cluster_id="Mk3OEYBSD34fcwNTJENDM2Qk",
        controller_id=3,
        topics=[
            metadata.MetadataResponseTopic(
                error_code=0,
                name=_topic(number),
                is_internal=False,
                partitions=[partition(index) for index in range(10)],
                topic_authorized_operations=NO_OPERATIONS,
            )
            for number in range(100)
        ],
    )


def _reassignments(draw: random.Random) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        timeout_ms=30000,
        topics=[
            reassignments.ReassignableTopic(
                name=_topic(number),
                partitions=[
                    reassignments.ReassignablePartition(
                        partition_index=index, replicas=draw.sample(BROKERS, 3)
                    )
                    for index in range(10)
                ],
            )
            for number in range(100)
        ],
    )


def _leader_and_isr(draw: random.Random) -> LeaderAndIsrRequest:
    def partition(index: int) -> leader_and_isr.LeaderAndIsrPartitionState:
        replicas = draw.sample(BROKERS, 3)
        return leader_and_isr.LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=7,
            leader=replicas[0],
            leader_epoch=draw.randrange(1, 2000),
            isr=replicas,
            partition_epoch=draw.randrange(1, 4000),
            replicas=list(replicas),
            adding_replicas=[],
            removing_replicas=[],
            is_new=False,
        )

    return LeaderAndIsrRequest(
        controller_id=3,
        controller_epoch=7,
        broker_epoch=123456789012,
        topic_states=[
            leader_and_isr.LeaderAndIsrTopicState(
                topic_name=_topic(number),
                partition_states=[partition(index) for index in range(50)],
            )
            for number in range(20)
        ],
        live_leaders=[
            leader_and_isr.LeaderAndIsrLiveLeader(
                broker_id=broker, host_name=_host(broker), port=9092
            )
            for broker in BROKERS
        ],
    )


def _heartbeat(draw: random.Random) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id="payments-consumer-group",
        generation_id=42,
        member_id="consumer-1-5c6d1f44-3a7e-4c9e-9d0e-0c1b2a3d4e5f",
        group_instance_id=None,
    )


@dataclass(frozen=True)
class Workload:
    """One message at one version; ``size`` is that of the encoded body in bytes."""

    key: str
    title: str
    version: int
    size: int
    make: Callable[[random.Random], Any]
    large: bool

    def message(self) -> Any:
        """The same object every time: the values are drawn from a fixed seed."""
        return self.make(random.Random(SEED))

    def body(self) -> bytes:
        """The encoded body. Raises ValueError where it is not of the size it is defined by."""
        encoded: bytes = self.message().encode(self.version)
        if len(encoded) != self.size:
            raise ValueError(f"workload {self.key} is {len(encoded)} bytes, not {self.size}")
        return encoded


WORKLOADS = [
    Workload("a", "ApiVersionsResponse", 3, 428, _api_versions, large=False),
    Workload("b", "MetadataResponse", 9, 46_301, _metadata, large=True),
    Workload("c", "AlterPartitionReassignmentsRequest", 0, 21_006, _reassignments, large=True),
    Workload("d", "LeaderAndIsrRequest", 3, 62_135, _leader_and_isr, large=True),
    Workload("e", "HeartbeatRequest", 4, 78, _heartbeat, large=False),
]
