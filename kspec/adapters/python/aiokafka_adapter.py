"""Drive aiokafka's ``AIOKafkaAdminClient`` by the protocol of docs/reference/adapters.md."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.helpers import create_ssl_context

from kspec.adapters.python import aiokafka_admin, aiokafka_data
from kspec.adapters.python.aiokafka_admin import by_code
from kspec.adapters.python.lines import (
    Operation,
    Returned,
    ascending,
    client_call,
    data_operations,
    elements,
    get,
    secured,
    serve,
)

__all__ = ["Adapter"]


class Adapter:
    """One admin client on one event loop."""

    client = "aiokafka"
    version = aiokafka.__version__

    def __init__(self) -> None:
        self._runner = aiokafka_data.Runner()
        self._options: dict[str, Any] = {}
        self._timeout_ms = 0
        self._admin: AIOKafkaAdminClient | None = None
        self._data: aiokafka_data.DataClients | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self._stepped(_describe_cluster),
            "describe_topics": self._stepped(_describe_topics),
            "list_topics": self._stepped(_list_topics),
            "create_topics": self._stepped(_create_topics),
            **{name: self._stepped(call) for name, call in aiokafka_admin.CALLS.items()},
            **data_operations(lambda: self._data),
        }

    def options(self) -> Mapping[str, Any]:
        return {"request_timeout_ms": "timeout_ms", **aiokafka_data.OPTIONS}

    def connect(self, call: dict[str, Any]) -> Returned:
        self._timeout_ms = call["timeout_ms"]
        self._options = {
            "bootstrap_servers": call["bootstrap"],
            "client_id": call["client_id"],
            "security_protocol": secured(call),
            "request_timeout_ms": self._timeout_ms,
        }
        tls = call.get("tls")
        if tls is not None:
            with client_call():
                self._options["ssl_context"] = create_ssl_context(
                    cafile=tls["ca"], certfile=tls.get("certificate"), keyfile=tls.get("key")
                )
        sasl = call.get("sasl")
        if sasl is not None:
            self._options |= {
                "sasl_mechanism": sasl["mechanism"],
                "sasl_plain_username": sasl["username"],
                "sasl_plain_password": sasl["password"],
            }
        self._data = aiokafka_data.DataClients(self._runner, self._options, call)
        return Returned(None, None)

    def close(self) -> None:
        data, self._data = self._data, None
        if data is not None:
            data.close()
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(Exception):  # its state may not allow a clean close
                self._runner.run(admin.close())

    def _stepped(
        self, call: Callable[[AIOKafkaAdminClient, dict[str, Any]], Coroutine[Any, Any, Returned]]
    ) -> Operation:
        async def work(said: dict[str, Any]) -> Returned:
            if self._admin is None:
                with client_call():
                    self._admin = await self._started()
            return await call(self._admin, said)

        return lambda said: self._runner.run(work(said))

    async def _started(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(**self._options)
        try:
            await admin.start()
        except BaseException:
            with suppress(Exception):
                await admin.close()
            raise
        return admin


async def _describe_cluster(admin: AIOKafkaAdminClient, _call: dict[str, Any]) -> Returned:
    with client_call():
        cluster = await admin.describe_cluster()
    ids = [get(broker, "node_id") for broker in elements(get(cluster, "brokers"))]
    return Returned(
        cluster, {"brokers": ascending(ids), "controller": get(cluster, "controller_id")}
    )


async def _describe_topics(admin: AIOKafkaAdminClient, call: dict[str, Any]) -> Returned:
    with client_call():
        topics = await admin.describe_topics(call["topics"])
    found: dict[str, Any] = {}
    for topic in elements(topics):
        found[str(get(topic, "topic"))] = by_code(get(topic, "error_code")) or {
            str(get(row, "partition")): {
                "leader": get(row, "leader"),
                "replicas": get(row, "replicas"),
                "isr": get(row, "isr"),
            }
            for row in elements(get(topic, "partitions"))
        }
    return Returned(topics, found)


async def _list_topics(admin: AIOKafkaAdminClient, _call: dict[str, Any]) -> Returned:
    with client_call():
        names = await admin.list_topics()
    return Returned(names, ascending(elements(names)))


async def _create_topics(admin: AIOKafkaAdminClient, call: dict[str, Any]) -> Returned:
    wanted = [
        NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
        for name, each in call["topics"].items()
    ]
    with client_call():
        answer = await admin.create_topics(wanted, validate_only=call.get("validate_only", False))
    # A row is (topic, code), and from version 1 of the answer on (topic, code, message).
    return Returned(
        answer,
        {
            str(get(row, 0)): by_code(get(row, 1), get(row, 2))
            for row in elements(get(answer, "topic_errors"))
        },
    )


if __name__ == "__main__":
    serve(Adapter(), connects=["tls"])
