"""Drives kafka-python's ``KafkaAdminClient`` by the lines of docs/adapters.md."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import kafka
from kafka.admin import KafkaAdminClient
from kafka.errors import for_code

from kspec.adapters.python.lines import Failure, Operation, Unsupported, by_topic, outcome, serve

__all__ = ["Adapter"]


class Adapter:
    """One admin client, made at the first call so that its first error is an answer."""

    client = "kafka-python"
    version = kafka.__version__

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        self._timeout_ms = 0
        self._admin: KafkaAdminClient | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self.describe_cluster,
            "describe_topics": self.describe_topics,
            "list_topics": lambda _call: sorted(self.admin.list_topics()),
            "create_topics": self.create_topics,
            "alter_reassignments": self.alter_reassignments,
            "list_reassignments": self.list_reassignments,
            "elect_leaders": self.elect_leaders,
        }

    def connect(self, call: dict[str, Any]) -> None:
        self._timeout_ms = call["timeout_ms"]
        self._options = {
            "bootstrap_servers": call["bootstrap"].split(","),
            "client_id": call["client_id"],
            "request_timeout_ms": self._timeout_ms,
            "bootstrap_timeout_ms": self._timeout_ms,
        }
        sasl = call.get("sasl")
        if sasl is not None:
            self._options |= {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": sasl["mechanism"],
                "sasl_plain_username": sasl["username"],
                "sasl_plain_password": sasl["password"],
            }

    def close(self, _call: Any = None) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(Exception):  # it may be in no state to say goodbye
                admin.close()

    @property
    def admin(self) -> KafkaAdminClient:
        if self._admin is None:
            self._admin = KafkaAdminClient(**self._options)
        return self._admin

    def describe_cluster(self, _call: dict[str, Any]) -> dict[str, Any]:
        cluster = self.admin.describe_cluster()
        return {
            "brokers": sorted(
                broker.get("broker_id", broker.get("node_id")) for broker in cluster["brokers"]
            ),
            "controller": cluster["controller_id"],
        }

    def describe_topics(self, call: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for topic in self.admin.describe_topics(call["topics"]):
            if topic["error_code"]:
                found[topic["name"]] = _by_code(topic["error_code"], None)
                continue
            found[topic["name"]] = {
                str(row["partition_index"]): {
                    "leader": row["leader_id"],
                    "replicas": list(row["replica_nodes"]),
                    "isr": list(row["isr_nodes"]),
                }
                for row in topic["partitions"]
            }
        return found

    def create_topics(self, call: dict[str, Any]) -> dict[str, Any]:
        wanted = {
            name: {
                "num_partitions": each.get("partitions", 1),
                "replication_factor": each.get("replication_factor", 1),
            }
            for name, each in call["topics"].items()
        }
        answer = self.admin.create_topics(wanted, timeout_ms=self._timeout_ms, raise_errors=False)
        return {
            topic["name"]: _by_code(topic["error_code"], topic.get("error_message"))
            for topic in answer["topics"]
        }

    def alter_reassignments(self, call: dict[str, Any]) -> dict[str, Any]:
        if call.get("allow_replication_factor_change") is False:
            raise Unsupported("alter_partition_reassignments has no such option")
        wanted = {
            kafka.TopicPartition(topic, partition): call["assignments"][f"{topic}-{partition}"]
            for topic, partitions in by_topic(call["assignments"]).items()
            for partition in partitions
        }
        results = self.admin.alter_partition_reassignments(wanted, timeout_ms=self._timeout_ms)
        return {
            f"{partition.topic}-{partition.partition}": None
            if error is None
            else {"error": error.__name__, "code": error.errno, "message": error.description}
            for partition, error in results.items()
        }

    def list_reassignments(self, call: dict[str, Any]) -> dict[str, Any]:
        asked = call.get("partitions")
        ongoing = self.admin.list_partition_reassignments(
            None if asked is None else by_topic(asked), timeout_ms=self._timeout_ms
        )
        return {
            f"{partition.topic}-{partition.partition}": {
                "replicas": state["replicas"],
                "adding": state["adding_replicas"],
                "removing": state["removing_replicas"],
            }
            for partition, state in ongoing.items()
        }

    def elect_leaders(self, call: dict[str, Any]) -> dict[str, Any]:
        asked = call.get("partitions")
        response = self.admin.elect_leaders(
            int(call.get("type") == "unclean"),
            None if asked is None else by_topic(asked),
            timeout_ms=self._timeout_ms,
            raise_errors=False,
        )
        if getattr(response, "error_code", 0):
            error = for_code(response.error_code)
            raise Failure(error.__name__, response.error_code, error.description)
        return {
            f"{topic.topic}-{row.partition_id}": _by_code(row.error_code, row.error_message)
            for topic in response.replica_election_results
            for row in topic.partition_result
        }


def _by_code(code: int, message: str | None) -> dict[str, Any] | None:
    if not code:
        return None
    error = for_code(code)
    return outcome(Failure(error.__name__, code, message or error.description))


if __name__ == "__main__":
    serve(Adapter())
