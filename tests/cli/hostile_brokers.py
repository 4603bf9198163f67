"""Brokers whose names of topics, configs and log directories, and whose errors, are hostile."""

from collections.abc import Iterator
from contextlib import contextmanager

from kproto.messages import (
    AlterPartitionReassignmentsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    DescribeConfigsResponse,
    DescribeTopicPartitionsResponse,
    ElectLeadersResponse,
    ListPartitionReassignmentsResponse,
    MetadataResponse,
)
from kproto.messages.create_topics_response import CreatableTopicResult
from kproto.messages.delete_topics_response import DeletableTopicResult
from kproto.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from kproto.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from kproto.messages.elect_leaders_response import PartitionResult, ReplicaElectionResult
from kproto.messages.list_partition_reassignments_response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kproto.messages.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from mockbroker.running.threaded import ThreadedCluster
from tests.cli.hostile import WIRE

__all__ = ["broker"]

_POLICY_VIOLATION = 44


@contextmanager
def broker(*, lost: bool = False) -> Iterator[str]:
    """Yield the address of a broker. If ``lost``, the controller is another with no such host."""
    with ThreadedCluster(brokers=1, topics=["foo=1"]) as mock:
        host, port = mock.bootstrap.split(":")
        own = MetadataResponseBroker(node_id=1, host=host, port=int(port), rack=WIRE)
        topics = [
            MetadataResponseTopic(
                name=name,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                    )
                ],
            )
            for name in ("foo", WIRE)
        ]
        mock.script(
            75,
            DescribeTopicPartitionsResponse(
                topics=[
                    DescribeTopicPartitionsResponseTopic(
                        name=name,
                        partitions=[
                            DescribeTopicPartitionsResponsePartition(
                                partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                            )
                        ],
                    )
                    for name in ("foo", WIRE)
                ]
            ),
        )
        other = MetadataResponseBroker(node_id=7, host=WIRE, port=9, rack=WIRE)
        mock.script(
            3,
            MetadataResponse(
                brokers=[own, other] if lost else [own],
                controller_id=7 if lost else 1,
                topics=topics,
            ),
        )
        mock.script(
            19,
            CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(
                        name="new", error_code=_POLICY_VIOLATION, error_message=WIRE
                    )
                ]
            ),
        )
        mock.script(
            20,
            DeleteTopicsResponse(
                responses=[
                    DeletableTopicResult(
                        name="foo", error_code=_POLICY_VIOLATION, error_message=WIRE
                    )
                ]
            ),
        )
        mock.script(
            32,
            DescribeConfigsResponse(
                results=[
                    DescribeConfigsResult(
                        resource_type=2,
                        resource_name=name,
                        configs=[
                            DescribeConfigsResourceResult(name=WIRE, value=WIRE, config_source=1)
                        ],
                    )
                    for name in ("foo", WIRE)
                ]
            ),
        )
        mock.script(
            43,
            ElectLeadersResponse(
                replica_election_results=[
                    ReplicaElectionResult(
                        topic="foo",
                        partition_result=[
                            PartitionResult(
                                partition_id=0, error_code=_POLICY_VIOLATION, error_message=WIRE
                            )
                        ],
                    )
                ]
            ),
        )
        mock.script(
            45,
            AlterPartitionReassignmentsResponse(error_code=_POLICY_VIOLATION, error_message=WIRE),
        )
        mock.script(
            46,
            ListPartitionReassignmentsResponse(
                topics=[
                    OngoingTopicReassignment(
                        name=WIRE,
                        partitions=[
                            OngoingPartitionReassignment(
                                partition_index=0,
                                replicas=[1, 2],
                                adding_replicas=[2],
                                removing_replicas=[1],
                            )
                        ],
                    )
                ]
            ),
        )
        yield mock.bootstrap
