"""Drives confluent-kafka's ``AdminClient`` (librdkafka) by the lines of docs/adapters.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import (
    ElectionType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kspec.adapters.python.lines import Failure, Operation, by_topic, outcome, serve

__all__ = ["Adapter"]

_LIBRARY, _ = confluent_kafka.libversion()


class Adapter:
    """One admin client. librdkafka connects in the background from the moment it is made."""

    client = "confluent-kafka"
    version = f"{confluent_kafka.__version__} (librdkafka {_LIBRARY})"

    def __init__(self) -> None:
        self._seconds = 0.0
        self._admin: AdminClient | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self.describe_cluster,
            "describe_topics": self.describe_topics,
            "list_topics": self.list_topics,
            "create_topics": self.create_topics,
            "elect_leaders": self.elect_leaders,
        }

    def connect(self, call: dict[str, Any]) -> None:
        self._seconds = call["timeout_ms"] / 1000
        options = {
            "bootstrap.servers": call["bootstrap"],
            "client.id": call["client_id"],
            "socket.timeout.ms": call["timeout_ms"],
            "socket.connection.setup.timeout.ms": max(call["timeout_ms"], 1000),
            "log_level": 0,
        }
        sasl = call.get("sasl")
        if sasl is not None:
            options |= {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": sasl["mechanism"],
                "sasl.username": sasl["username"],
                "sasl.password": sasl["password"],
            }
        self._admin = AdminClient(options)

    def close(self) -> None:
        self._admin = None  # librdkafka lets go of everything with the last reference

    @property
    def admin(self) -> AdminClient:
        assert self._admin is not None, "connect comes first"
        return self._admin

    def describe_cluster(self, _call: dict[str, Any]) -> dict[str, Any]:
        cluster = _result(self.admin.describe_cluster(request_timeout=self._seconds))
        return {
            "brokers": sorted(node.id for node in cluster.nodes),
            "controller": -1 if cluster.controller is None else cluster.controller.id,
        }

    def describe_topics(self, call: dict[str, Any]) -> dict[str, Any]:
        futures = self.admin.describe_topics(
            TopicCollection(call["topics"]), request_timeout=self._seconds
        )
        found: dict[str, Any] = {}
        for name, future in futures.items():
            try:
                topic = future.result()
            except KafkaException as error:
                found[name] = outcome(_failure(error.args[0]))
                continue
            found[name] = {
                str(row.id): {
                    "leader": -1 if row.leader is None else row.leader.id,
                    "replicas": [node.id for node in row.replicas],
                    "isr": [node.id for node in row.isr],
                }
                for row in topic.partitions
            }
        return found

    def list_topics(self, _call: dict[str, Any]) -> list[str]:
        try:
            return sorted(self.admin.list_topics(timeout=self._seconds).topics)
        except KafkaException as error:
            raise _failure(error.args[0]) from error

    def create_topics(self, call: dict[str, Any]) -> dict[str, Any]:
        futures = self.admin.create_topics(
            [
                NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
                for name, each in call["topics"].items()
            ],
            request_timeout=self._seconds,
        )
        found: dict[str, Any] = {}
        for name, future in futures.items():
            try:
                future.result()
                found[name] = None
            except KafkaException as error:
                found[name] = outcome(_failure(error.args[0]))
        return found

    def elect_leaders(self, call: dict[str, Any]) -> dict[str, Any]:
        kind = ElectionType.UNCLEAN if call.get("type") == "unclean" else ElectionType.PREFERRED
        asked = call.get("partitions")
        partitions = None if asked is None else [
            TopicPartition(topic, index)
            for topic, indexes in by_topic(asked).items()
            for index in indexes
        ]  # fmt: skip
        # No time-out here: 2.16.1 fails on either, documented though they are. The socket's holds.
        results = _result(self.admin.elect_leaders(kind, partitions))
        return {
            f"{partition.topic}-{partition.partition}": None
            if error is None
            else outcome(_failure(error))  # a KafkaError here, where a future raises KafkaException
            for partition, error in results.items()
        }


def _result(future: Any) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        raise _failure(error.args[0]) from error


def _failure(error: KafkaError) -> Failure:
    code = error.code()  # negative codes are librdkafka's own, but for Kafka's -1
    return Failure(error.name(), code if code >= -1 else None, error.str())


if __name__ == "__main__":
    serve(Adapter())
