"""Drive confluent-kafka's ``AdminClient`` by the protocol of docs/reference/adapters.md."""

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

from kspec.adapters.python import confluent_admin, confluent_data
from kspec.adapters.python.confluent_admin import awaited, shown
from kspec.adapters.python.lines import (
    Operation,
    Returned,
    ascending,
    by_topic,
    client_call,
    data_operations,
    outcome,
    secured,
    serve,
)

__all__ = ["Adapter"]

_LIBRARY, _ = confluent_kafka.libversion()


class Adapter:
    """One admin client. librdkafka connects in the background as soon as it is made."""

    client = "confluent-kafka"
    version = f"{confluent_kafka.__version__} (librdkafka {_LIBRARY})"

    def __init__(self) -> None:
        self._seconds = 0.0
        self._admin: AdminClient | None = None
        self._data: confluent_data.DataClients | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self.describe_cluster,
            "describe_topics": self.describe_topics,
            "list_topics": self.list_topics,
            "create_topics": self.create_topics,
            "elect_leaders": self.elect_leaders,
            **{name: self._administration(name) for name in confluent_admin.CALLS},
            **data_operations(lambda: self._data),
        }

    def options(self) -> Mapping[str, Any]:
        return {**_time_outs("timeout_ms"), "log_level": 0, "request_timeout of each call":
                "timeout_ms, but for elect_leaders", **confluent_data.OPTIONS}  # fmt: skip

    def connect(self, call: dict[str, Any]) -> Returned:
        self._seconds = call["timeout_ms"] / 1000
        options = {
            "bootstrap.servers": call["bootstrap"],
            "client.id": call["client_id"],
            "security.protocol": secured(call),
            **_time_outs(call["timeout_ms"]),
            "log_level": 0,
        }
        tls = call.get("tls")
        if tls is not None:
            options["ssl.ca.location"] = tls["ca"]
            if "certificate" in tls:
                options["ssl.certificate.location"] = tls["certificate"]
                options["ssl.key.location"] = tls["key"]
        sasl = call.get("sasl")
        if sasl is not None:
            options |= {
                "sasl.mechanism": sasl["mechanism"],
                "sasl.username": sasl["username"],
                "sasl.password": sasl["password"],
            }
        self._data = confluent_data.DataClients(options, call, _described)
        with client_call():
            self._admin = AdminClient(options)
        return Returned(None, None)

    def close(self) -> None:
        data, self._data = self._data, None
        if data is not None:
            data.close()
        self._admin = None  # librdkafka frees everything with the last reference

    @property
    def admin(self) -> AdminClient:
        assert self._admin is not None, "connect comes first"
        return self._admin

    def _administration(self, name: str) -> Operation:
        def perform(call: dict[str, Any]) -> Returned:
            given = {**call, "seconds": self._seconds}
            return confluent_admin.CALLS[name](self.admin, given, _described)

        return perform

    def describe_cluster(self, _call: dict[str, Any]) -> Returned:
        admin = self.admin
        with client_call():
            cluster = admin.describe_cluster(request_timeout=self._seconds).result()
        ids = [None if node is None else node.id for node in cluster.nodes or ()]
        controller = -1 if cluster.controller is None else cluster.controller.id
        raw = {"nodes": cluster.nodes, "controller": cluster.controller}
        return Returned(shown(raw), {"brokers": ascending(ids), "controller": controller})

    def describe_topics(self, call: dict[str, Any]) -> Returned:
        admin = self.admin
        with client_call():
            futures = admin.describe_topics(
                TopicCollection(call["topics"]), request_timeout=self._seconds
            )
        found: dict[str, Any] = {}
        raw: dict[str, Any] = {}
        for name, future in futures.items():
            topic, error = awaited(future)
            raw[name] = error or shown(topic)
            found[name] = _outcome(error) or {
                str(row.id): {
                    "leader": -1 if row.leader is None else row.leader.id,
                    "replicas": [node.id for node in row.replicas],
                    "isr": [node.id for node in row.isr],
                }
                for row in topic.partitions
            }
        return Returned(raw, found)

    def list_topics(self, _call: dict[str, Any]) -> Returned:
        admin = self.admin
        with client_call():
            metadata = admin.list_topics(timeout=self._seconds)
        return Returned(metadata.topics, ascending(metadata.topics))

    def create_topics(self, call: dict[str, Any]) -> Returned:
        admin = self.admin
        wanted = [
            NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
            for name, each in call["topics"].items()
        ]
        with client_call():
            futures = admin.create_topics(
                wanted,
                request_timeout=self._seconds,
                validate_only=call.get("validate_only", False),
            )
        answers = {name: awaited(future) for name, future in futures.items()}
        return Returned(answers, {name: _outcome(error) for name, (_, error) in answers.items()})

    def elect_leaders(self, call: dict[str, Any]) -> Returned:
        admin = self.admin
        kind = ElectionType.UNCLEAN if call.get("type") == "unclean" else ElectionType.PREFERRED
        asked = call.get("partitions")
        partitions = None if asked is None else [
            TopicPartition(topic, index)
            for topic, indexes in by_topic(asked).items()
            for index in indexes
        ]  # fmt: skip
        # No timeout here: 2.16.1 fails on either option, although both are documented. The socket
        # timeout applies.
        with client_call():
            results = admin.elect_leaders(kind, partitions).result()
        return Returned(
            results,
            {
                f"{partition.topic}-{partition.partition}": _outcome(error)
                for partition, error in results.items()
            },
        )


def _time_outs(timeout_ms: Any) -> dict[str, Any]:
    """The second one cannot be less than a second."""
    setup = max(timeout_ms, 1000) if isinstance(timeout_ms, int) else timeout_ms
    return {"socket.timeout.ms": timeout_ms, "socket.connection.setup.timeout.ms": setup}


def _outcome(error: KafkaException | KafkaError | None) -> dict[str, Any] | None:
    return None if error is None else _described(error)


def _described(error: Any) -> dict[str, Any]:
    """Return the class, and for a KafkaError its name, code and text; an exception has one as
    argument.

    Negative codes are librdkafka's own, except -1, which is Kafka's.
    """
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if not isinstance(inner, KafkaError):
        return outcome(error)
    code = inner.code()
    return {
        "error": type(error).__name__,
        "code": code if code >= -1 else None,
        "message": f"{inner.name()}: {inner.str()}",
    }


if __name__ == "__main__":
    serve(Adapter(), described=_described, connects=["tls"])
