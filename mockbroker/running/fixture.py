"""The fixture ``mock_kafka``: a cluster on its own thread for one test."""

from __future__ import annotations

from typing import Any, Protocol

from mockbroker.options import takes_cluster_options
from mockbroker.running.threaded import ThreadedCluster

__all__ = ["MockKafka", "MockKafkaFactory"]


class MockKafka(ThreadedCluster):
    """A ``ThreadedCluster`` that the fixtures start and stop::

    def test_reassignment(mock_kafka):
        admin = KafkaAdminClient(bootstrap_servers=mock_kafka.bootstrap)
        ...
        mock_kafka.assert_requested("AlterPartitionReassignments", times=1, version=0)
    """


class MockKafkaFactory(Protocol):
    """What the fixture ``mock_kafka_factory`` gives: called with the arguments of
    ``ClusterOptions``, it starts a cluster."""

    @takes_cluster_options
    def __call__(self, *arguments: Any, **options: Any) -> MockKafka: ...
