"""Drive kafka-python's ``KafkaAdminClient`` by the protocol of docs/reference/adapters.md."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import kafka
from kafka.admin import KafkaAdminClient

from kspec.adapters.python import kafka_python_admin, kafka_python_data
from kspec.adapters.python.kafka_python_admin import by_code, key_of
from kspec.adapters.python.lines import (
    Failure,
    Operation,
    Returned,
    Unsupported,
    ascending,
    by_topic,
    client_call,
    data_operations,
    elements,
    get,
    secured,
    serve,
)

__all__ = ["Adapter"]


class Adapter:
    """One admin client, made at the first call so that its first error is an answer."""

    client = "kafka-python"
    version = kafka.__version__

    def __init__(self) -> None:
        self._options: dict[str, Any] = {}
        self._timeout_ms = 0
        self._admin: KafkaAdminClient | None = None
        self._data: kafka_python_data.DataClients | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self.describe_cluster,
            "describe_topics": self.describe_topics,
            "list_topics": self.list_topics,
            "create_topics": self.create_topics,
            "alter_reassignments": self.alter_reassignments,
            "list_reassignments": self.list_reassignments,
            "elect_leaders": self.elect_leaders,
            **{name: self._administration(name) for name in kafka_python_admin.CALLS},
            **data_operations(lambda: self._data),
        }

    def options(self) -> Mapping[str, Any]:
        calls = {"timeout_ms of each call": "timeout_ms", "raise_errors of create_topics": False,
                 "raise_errors of elect_leaders": False}  # fmt: skip
        more = {**kafka_python_admin.OPTIONS, **kafka_python_data.OPTIONS}
        return {**_time_outs("timeout_ms"), **calls, **more}

    def connect(self, call: dict[str, Any]) -> Returned:
        self._timeout_ms = call["timeout_ms"]
        self._options = {
            "bootstrap_servers": call["bootstrap"].split(","),
            "client_id": call["client_id"],
            "security_protocol": secured(call),
            **_time_outs(self._timeout_ms),
        }
        tls = call.get("tls")
        if tls is not None:
            self._options |= {
                "ssl_cafile": tls["ca"],
                "ssl_certfile": tls.get("certificate"),
                "ssl_keyfile": tls.get("key"),
            }
        sasl = call.get("sasl")
        if sasl is not None:
            self._options |= {
                "sasl_mechanism": sasl["mechanism"],
                "sasl_plain_username": sasl["username"],
                "sasl_plain_password": sasl["password"],
            }
        self._data = kafka_python_data.DataClients(self._options, call)
        return Returned(None, None)

    def close(self) -> None:
        data, self._data = self._data, None
        if data is not None:
            data.close()
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(Exception):  # its state may not allow a clean close
                admin.close()

    @property
    def admin(self) -> KafkaAdminClient:
        """The client, which is made here. Only for use inside ``client_call``."""
        if self._admin is None:
            self._admin = KafkaAdminClient(**self._options)
        return self._admin

    def _administration(self, name: str) -> Operation:
        def perform(call: dict[str, Any]) -> Returned:
            given = {**call, "timeout_ms": self._timeout_ms}
            return kafka_python_admin.CALLS[name](lambda: self.admin, given)

        return perform

    def describe_cluster(self, _call: dict[str, Any]) -> Returned:
        with client_call():
            cluster = self.admin.describe_cluster()
        ids = [
            get(row, "broker_id") if get(row, "node_id") is None else get(row, "node_id")
            for row in elements(get(cluster, "brokers"))
        ]
        return Returned(
            cluster, {"brokers": ascending(ids), "controller": get(cluster, "controller_id")}
        )

    def describe_topics(self, call: dict[str, Any]) -> Returned:
        with client_call():
            topics = self.admin.describe_topics(call["topics"])
        found: dict[str, Any] = {}
        for topic in elements(topics):
            name = str(get(topic, "name"))
            found[name] = by_code(topic) or {
                str(get(row, "partition_index")): {
                    "leader": get(row, "leader_id"),
                    "replicas": get(row, "replica_nodes"),
                    "isr": get(row, "isr_nodes"),
                }
                for row in elements(get(topic, "partitions"))
            }
        return Returned(topics, found)

    def list_topics(self, _call: dict[str, Any]) -> Returned:
        with client_call():
            names = self.admin.list_topics()
        return Returned(names, ascending(elements(names)))

    def create_topics(self, call: dict[str, Any]) -> Returned:
        wanted = {
            name: {
                "num_partitions": each.get("partitions", 1),
                "replication_factor": each.get("replication_factor", 1),
            }
            for name, each in call["topics"].items()
        }
        with client_call():
            answer = self.admin.create_topics(
                wanted,
                timeout_ms=self._timeout_ms,
                validate_only=call.get("validate_only", False),
                raise_errors=False,
            )
        return Returned(
            answer,
            {str(get(row, "name")): by_code(row) for row in elements(get(answer, "topics"))},
        )

    def alter_reassignments(self, call: dict[str, Any]) -> Returned:
        if call.get("allow_replication_factor_change") is False:
            raise Unsupported("alter_partition_reassignments has no such option")
        wanted = {
            kafka.TopicPartition(topic, partition): call["assignments"][f"{topic}-{partition}"]
            for topic, partitions in by_topic(call["assignments"]).items()
            for partition in partitions
        }
        with client_call():
            results = self.admin.alter_partition_reassignments(wanted, timeout_ms=self._timeout_ms)
        return Returned(
            results,
            {
                key_of(partition): None
                if error is None
                else {
                    "error": get(error, "__name__") or type(error).__name__,
                    "code": get(error, "errno"),
                    "message": get(error, "description") or "",
                }
                for partition, error in results.items()
            },
        )

    def list_reassignments(self, call: dict[str, Any]) -> Returned:
        asked = call.get("partitions")
        wanted = None if asked is None else by_topic(asked)
        with client_call():
            ongoing = self.admin.list_partition_reassignments(wanted, timeout_ms=self._timeout_ms)
        return Returned(
            ongoing,
            {
                key_of(partition): {
                    "replicas": get(state, "replicas"),
                    "adding": get(state, "adding_replicas"),
                    "removing": get(state, "removing_replicas"),
                }
                for partition, state in ongoing.items()
            },
        )

    def elect_leaders(self, call: dict[str, Any]) -> Returned:
        asked = call.get("partitions")
        kind = int(call.get("type") == "unclean")
        wanted = None if asked is None else by_topic(asked)
        with client_call():
            response = self.admin.elect_leaders(
                kind, wanted, timeout_ms=self._timeout_ms, raise_errors=False
            )
        code = get(response, "error_code")
        if code:
            raise Failure("error_code", code, repr(response))
        return Returned(
            response,
            {
                f"{get(topic, 'topic')}-{get(row, 'partition_id')}": by_code(row)
                for topic in elements(get(response, "replica_election_results"))
                for row in elements(get(topic, "partition_result"))
            },
        )


def _time_outs(timeout_ms: Any) -> dict[str, Any]:
    return {"request_timeout_ms": timeout_ms, "bootstrap_timeout_ms": timeout_ms}


if __name__ == "__main__":
    serve(Adapter(), connects=["tls"])
