"""Drives aiokafka's ``AIOKafkaAdminClient`` by the lines of docs/adapters.md."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

from kspec.adapters.python.lines import Failure, Operation, outcome, serve

__all__ = ["Adapter"]


class Adapter:
    """One admin client on one event loop, stepped a call at a time."""

    client = "aiokafka"
    version = aiokafka.__version__

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._options: dict[str, Any] = {}
        self._timeout_ms = 0
        self._admin: AIOKafkaAdminClient | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            "describe_cluster": self._stepped(_describe_cluster),
            "describe_topics": self._stepped(_describe_topics),
            "list_topics": self._stepped(_list_topics),
            "create_topics": self._stepped(_create_topics),
        }

    def connect(self, call: dict[str, Any]) -> None:
        self._timeout_ms = call["timeout_ms"]
        self._options = {
            "bootstrap_servers": call["bootstrap"],
            "client_id": call["client_id"],
            "request_timeout_ms": self._timeout_ms,
        }
        sasl = call.get("sasl")
        if sasl is not None:
            self._options |= {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": sasl["mechanism"],
                "sasl_plain_username": sasl["username"],
                "sasl_plain_password": sasl["password"],
            }

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            with suppress(Exception):  # it may be in no state to say goodbye
                self._runner.run(admin.close())

    def _stepped(
        self, call: Callable[[AIOKafkaAdminClient, dict[str, Any]], Coroutine[Any, Any, Any]]
    ) -> Operation:
        async def work(said: dict[str, Any]) -> Any:
            if self._admin is None:
                admin = AIOKafkaAdminClient(**self._options)
                try:
                    await admin.start()
                except BaseException:
                    with suppress(Exception):
                        await admin.close()
                    raise
                self._admin = admin
            return await call(self._admin, said)

        return lambda said: self._runner.run(work(said))


async def _describe_cluster(admin: AIOKafkaAdminClient, _call: dict[str, Any]) -> dict[str, Any]:
    cluster = await admin.describe_cluster()
    return {
        "brokers": sorted(broker["node_id"] for broker in cluster["brokers"]),
        "controller": cluster["controller_id"],
    }


async def _describe_topics(admin: AIOKafkaAdminClient, call: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for topic in await admin.describe_topics(call["topics"]):
        if topic["error_code"]:
            found[topic["topic"]] = _by_code(topic["error_code"])
            continue
        found[topic["topic"]] = {
            str(row["partition"]): {
                "leader": row["leader"],
                "replicas": list(row["replicas"]),
                "isr": list(row["isr"]),
            }
            for row in topic["partitions"]
        }
    return found


async def _list_topics(admin: AIOKafkaAdminClient, _call: dict[str, Any]) -> list[str]:
    return sorted(await admin.list_topics())


async def _create_topics(admin: AIOKafkaAdminClient, call: dict[str, Any]) -> dict[str, Any]:
    answer = await admin.create_topics(
        [
            NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
            for name, each in call["topics"].items()
        ]
    )
    return {row[0]: _by_code(row[1]) for row in answer.topic_errors}


def _by_code(code: int) -> dict[str, Any] | None:
    if not code:
        return None
    error = for_code(code)
    return outcome(Failure(error.__name__, code, error.description))


if __name__ == "__main__":
    serve(Adapter())
