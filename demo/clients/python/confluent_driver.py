"""Drives confluent-kafka's ``AdminClient`` (librdkafka): ``BOOTSTRAP TIMEOUT_MS`` on the line."""

from __future__ import annotations

import sys
from typing import Any

import confluent_kafka
from confluent_kafka import ElectionType, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from demo.clients.python.line_protocol import Failure, serve


class Driver:
    """One admin client. librdkafka connects in the background from the moment it is made."""

    def __init__(self, bootstrap: str, timeout_ms: int) -> None:
        self._seconds = timeout_ms / 1000
        self._admin = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "demo-confluent-kafka",
                "socket.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )

    def describe_cluster(self, _call: dict[str, Any]) -> dict[str, Any]:
        cluster = _result(self._admin.describe_cluster(request_timeout=self._seconds))
        return {
            "brokers": sorted(node.id for node in cluster.nodes),
            "controller": cluster.controller.id,
        }

    def elect(self, call: dict[str, Any]) -> None:
        partition = TopicPartition(call["topic"], call["partition"])
        results = _result(
            self._admin.elect_leaders(
                ElectionType.PREFERRED,
                [partition],
                request_timeout=self._seconds,
                operation_timeout=self._seconds,
            )
        )
        error = results[partition]
        if error is not None:
            raise _failure(error)


def _result(future: Any) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        raise _failure(error) from error


def _failure(error: KafkaException) -> Failure:
    kafka_error = error.args[0]
    code = kafka_error.code()  # negative codes are librdkafka's own, not the protocol's
    return Failure(kafka_error.name(), code if code >= 0 else None, kafka_error.str())


def main() -> None:
    driver = Driver(sys.argv[1], int(sys.argv[2]))
    library, _ = confluent_kafka.libversion()
    serve(
        "confluent-kafka",
        f"{confluent_kafka.__version__} (librdkafka {library})",
        {"describe_cluster": driver.describe_cluster, "elect": driver.elect},
    )


if __name__ == "__main__":
    main()
