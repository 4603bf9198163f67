"""Drives kafka-python's ``KafkaAdminClient`` for the demo: ``BOOTSTRAP TIMEOUT_MS`` on the line."""

from __future__ import annotations

import sys
from typing import Any

import kafka
from kafka.admin import KafkaAdminClient
from kafka.errors import for_code

from demo.clients.python.line_protocol import Failure, Unsupported, serve


class Driver:
    """One admin client, made at the first call so that its first error is an answer."""

    def __init__(self, bootstrap: str, timeout_ms: int) -> None:
        self._bootstrap = bootstrap.split(",")
        self._timeout_ms = timeout_ms
        self._admin: KafkaAdminClient | None = None

    @property
    def admin(self) -> KafkaAdminClient:
        if self._admin is None:
            self._admin = KafkaAdminClient(
                bootstrap_servers=self._bootstrap,
                client_id="demo-kafka-python",
                request_timeout_ms=self._timeout_ms,
                bootstrap_timeout_ms=self._timeout_ms,
            )
        return self._admin

    def describe_cluster(self, _call: dict[str, Any]) -> dict[str, Any]:
        cluster = self.admin.describe_cluster()
        return {
            "brokers": sorted(
                broker.get("broker_id", broker.get("node_id")) for broker in cluster["brokers"]
            ),
            "controller": cluster["controller_id"],
        }

    def alter(self, call: dict[str, Any]) -> None:
        if call.get("allow_replication_factor_change") is False:
            raise Unsupported("alter_partition_reassignments has no such option")
        partition = kafka.TopicPartition(call["topic"], call["partition"])
        results = self.admin.alter_partition_reassignments(
            {partition: call["replicas"]}, timeout_ms=self._timeout_ms
        )
        error = results[partition]
        if error is not None:
            raise Failure(error.__name__, error.errno, error.description)

    def list_reassignments(self, _call: dict[str, Any]) -> dict[str, Any]:
        ongoing = self.admin.list_partition_reassignments(timeout_ms=self._timeout_ms)
        return {
            f"{partition.topic}-{partition.partition}": {
                "replicas": state["replicas"],
                "adding": state["adding_replicas"],
                "removing": state["removing_replicas"],
            }
            for partition, state in ongoing.items()
        }

    def elect(self, call: dict[str, Any]) -> None:
        response = self.admin.elect_leaders(
            0,
            {call["topic"]: [call["partition"]]},
            timeout_ms=self._timeout_ms,
            raise_errors=False,
        )
        for topic in response.replica_election_results:
            for partition in topic.partition_result:
                error = for_code(partition.error_code)
                if partition.error_code:
                    message = partition.error_message or error.description
                    raise Failure(error.__name__, partition.error_code, message)


def main() -> None:
    driver = Driver(sys.argv[1], int(sys.argv[2]))
    serve(
        "kafka-python",
        kafka.__version__,
        {
            "describe_cluster": driver.describe_cluster,
            "alter": driver.alter,
            "list": driver.list_reassignments,
            "elect": driver.elect,
        },
    )


if __name__ == "__main__":
    main()
