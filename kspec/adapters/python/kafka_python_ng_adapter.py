"""Drive kafka-python-ng by the protocol of docs/reference/adapters.md.

Its package is ``kafka`` too, with the API of kafka-python 2: what that has in common with the one
of kafka-python 3 is the adapter's of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import kafka
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import (
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewPartitions,
    NewTopic,
)
from kafka.structs import OffsetAndMetadata

from kspec.adapters.python import kafka_python_adapter, kafka_python_admin
from kspec.adapters.python.kafka_python_data import KafkaPythonDataClients
from kspec.adapters.python.lines import Operation, Returned, Unsupported, client_call, serve
from kspec.adapters.python.values import ascending, elements, get

__all__ = ["Adapter"]

Call = dict[str, Any]

RETRIES: Final = 3
_LONGER_MS: Final = 1000
_TRANSACTIONS: Final = {
    "begin_transaction", "send_offsets", "commit_transaction", "abort_transaction",
}  # fmt: skip


def _without_error(answer: Any, names: Any) -> Returned:
    """The client raises the first error of an answer, so that what it returns has none."""
    return Returned(answer, dict.fromkeys(names))


def _describe_cluster(admin: KafkaAdminClient, _call: Call) -> Returned:
    with client_call():
        cluster = admin.describe_cluster()
    ids = [get(row, "node_id") for row in elements(get(cluster, "brokers"))]
    return Returned(
        cluster, {"brokers": ascending(ids), "controller": get(cluster, "controller_id")}
    )


def _describe_topics(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        topics = admin.describe_topics(call["topics"])
    found: dict[str, Any] = {}
    for topic in elements(topics):
        found[str(get(topic, "topic"))] = kafka_python_admin.by_code(topic) or {
            str(get(row, "partition")): {
                name: get(row, name) for name in ("leader", "replicas", "isr")
            }
            for row in elements(get(topic, "partitions"))
        }
    return Returned(topics, found)


def _create_topics(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = [
        NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
        for name, each in call["topics"].items()
    ]
    with client_call():
        answer = admin.create_topics(
            wanted, timeout_ms=call["timeout_ms"], validate_only=call.get("validate_only", False)
        )
    return _without_error(answer, call["topics"])


def _create_partitions(admin: KafkaAdminClient, call: Call) -> Returned:
    wanted = {name: NewPartitions(count) for name, count in call["counts"].items()}
    with client_call():
        answer = admin.create_partitions(wanted, timeout_ms=call["timeout_ms"])
    return _without_error(answer, call["counts"])


def _delete_topics(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        answer = admin.delete_topics(call["topics"], timeout_ms=call["timeout_ms"])
    return _without_error(answer, call["topics"])


def _resource(text: str, configs: Any = None) -> ConfigResource:
    kind, _, name = text.partition(":")
    return ConfigResource(ConfigResourceType[kind.upper()], name, configs=configs)


def _kind_and_name(kind: int, name: str) -> str:
    return f"{ConfigResourceType(kind).name.lower()}:{name}"


def _describe_configs(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        answers = admin.describe_configs([_resource(each) for each in call["resources"]])
    found: dict[str, Any] = {}
    for answer in elements(answers):
        for code, message, kind, name, configs in elements(get(answer, "resources")):
            found[_kind_and_name(kind, name)] = kafka_python_admin.by_code(
                {"error_code": code, "error_message": message}
            ) or {config[0]: config[1] for config in configs}
    return Returned(answers, found)


def _alter_configs(_admin: KafkaAdminClient, _call: Call) -> Returned:
    raise Unsupported("alter_configs replaces all configs of a resource")


def _list_groups(admin: KafkaAdminClient, call: Call) -> Returned:
    if call.get("states") or call.get("types"):
        raise Unsupported("list_consumer_groups has no filters")
    with client_call():
        found = admin.list_consumer_groups()
    return Returned(
        found, {"groups": ascending(get(each, 0) for each in elements(found)), "errors": []}
    )


def _describe_groups(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.describe_consumer_groups(call["groups"])
    return Returned(
        found,
        {
            str(get(row, "group")): {
                "state": get(row, "state"),
                "members": len(elements(get(row, "members"))),
            }
            for row in elements(found)
        },
    )


def _delete_groups(admin: KafkaAdminClient, call: Call) -> Returned:
    with client_call():
        found = admin.delete_consumer_groups(call["groups"])
    return Returned(
        found,
        {str(get(row, 0)): kafka_python_admin.by_class(get(row, 1)) for row in elements(found)},
    )


_CALLS: Final[Mapping[str, Callable[[KafkaAdminClient, Call], Returned]]] = {
    "describe_cluster": _describe_cluster,
    "describe_topics": _describe_topics,
    "create_topics": _create_topics,
    "create_partitions": _create_partitions,
    "delete_topics": _delete_topics,
    "describe_configs": _describe_configs,
    "alter_configs": _alter_configs,
    "list_groups": _list_groups,
    "describe_groups": _describe_groups,
    "delete_groups": _delete_groups,
    **{
        name: kafka_python_admin.CALLS[name]
        for name in ("list_topics", "create_acls", "describe_acls", "delete_acls")
    },
}
"""Without describe_log_dirs, which chooses the broker itself."""


def _but(given: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """Without an option whose value is what the client does, though it has no such option."""
    return {each: other for each, other in given.items() if (each, other) != (name, value)}


class _DataClients(KafkaPythonDataClients):
    """Without idempotence, transactions and isolation. Calls of a consumer have no time-outs."""

    producer_options: ClassVar[Mapping[str, str]] = {
        ours: theirs
        for ours, theirs in KafkaPythonDataClients.producer_options.items()
        if theirs in KafkaProducer.DEFAULT_CONFIG
    }
    consumer_options: ClassVar[Mapping[str, str]] = {
        ours: theirs
        for ours, theirs in KafkaPythonDataClients.consumer_options.items()
        if theirs in KafkaConsumer.DEFAULT_CONFIG
    }
    ignored_options = (*KafkaPythonDataClients.ignored_options, "delivery_timeout_ms")

    def __init__(self, options: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        super().__init__(options, call)
        self.limit = {}
        self.for_producer = _but(self.for_producer, "idempotence", False)
        self.for_consumer = _but(self.for_consumer, "isolation", "read_uncommitted")

    def new_producer(self, options: dict[str, Any]) -> KafkaProducer:
        limits = {"max_block_ms": self.timeout_ms, "retries": RETRIES}
        return KafkaProducer(**self.options, **limits, **options)

    def new_consumer(self, options: dict[str, Any]) -> KafkaConsumer:
        longest = {**KafkaConsumer.DEFAULT_CONFIG, **options}["session_timeout_ms"] + _LONGER_MS
        if options.get("group_id") is not None and self.timeout_ms < longest:
            options = {"request_timeout_ms": longest, **options}
        return super().new_consumer(options)

    def abandon(self, producer: Any, consumer: Any) -> None:
        if producer is not None:
            producer.close(timeout=0.2)
        if consumer is not None:
            consumer.close(autocommit=False)

    def offsets(self, given: Mapping[str, int]) -> Any:
        return {self.partition(key): OffsetAndMetadata(each, "") for key, each in given.items()}


class Adapter(kafka_python_adapter.Adapter):
    client = "kafka-python-ng"
    version = kafka.__version__
    admin_calls = _CALLS
    time_outs = ("request_timeout_ms", "api_version_auto_timeout_ms")
    data_clients = _DataClients

    def operations(self) -> Mapping[str, Operation]:
        found = super().operations()
        return {name: each for name, each in found.items() if name not in _TRANSACTIONS}

    def options(self) -> Mapping[str, Any]:
        return {
            **self.limits("timeout_ms"),
            "request_timeout_ms of KafkaConsumer in a group": "a second more than the session's, "
            "which it has to exceed, or timeout_ms",
            "timeout_ms of each call about topics": "timeout_ms",
            "max_block_ms of KafkaProducer": "timeout_ms",
            "retries of KafkaProducer": RETRIES,
            "enable_auto_commit of KafkaConsumer": "False, but with auto_commit_ms",
        }


if __name__ == "__main__":
    serve(Adapter(), connects=["tls", "oauthbearer"], records=["headers"])
