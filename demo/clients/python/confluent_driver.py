"""Drives confluent-kafka's ``AdminClient`` (librdkafka): ``BOOTSTRAP TIMEOUT_MS`` on the line."""

from __future__ import annotations

import sys
from typing import Any

import confluent_kafka
from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicPartition
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
            # No time-out here: 2.16.1 fails on either, documented though they are. The
            # socket's holds.
            self._admin.elect_leaders(ElectionType.PREFERRED, [partition])
        )
        error = results[partition]
        if error is not None:
            raise _failure(error)  # a KafkaError here, where a future raises KafkaException


def _result(future: Any) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        raise _failure(error.args[0]) from error


def _failure(error: KafkaError) -> Failure:
    code = error.code()  # negative codes are librdkafka's own, not the protocol's
    return Failure(error.name(), code if code >= 0 else None, error.str())


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
