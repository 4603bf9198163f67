"""Drives kproto's own ``Admin`` by the lines of docs/adapters.md."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import kproto
from kproto.client import (
    Admin,
    BrokerError,
    ElectionType,
    NewTopic,
    SaslPlain,
    SaslScram,
    TopicPartition,
)
from kspec.adapters.python.lines import Operation, by_topic, failed, outcome, serve

__all__ = ["Adapter"]


class Adapter:
    """One Admin on one event loop, stepped a call at a time."""

    client = "kproto"
    version = kproto.__version__

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._admin: Admin | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            **{name: self._stepped(call) for name, call in _calls().items()},
            "together": lambda said: self._runner.run(self._together(said["calls"])),
        }

    def connect(self, call: dict[str, Any]) -> None:
        self._runner.run(self._connect(call))

    async def _connect(self, call: dict[str, Any]) -> None:
        sasl = call.get("sasl")
        mechanism: SaslPlain | SaslScram | None = None
        if sasl is not None and sasl["mechanism"] == "PLAIN":
            mechanism = SaslPlain(sasl["username"], sasl["password"])
        elif sasl is not None:
            mechanism = SaslScram(sasl["mechanism"], sasl["username"], sasl["password"])
        self._admin = Admin(
            call["bootstrap"],
            client_id=call["client_id"],
            default_timeout_ms=call["timeout_ms"],
            connect_timeout=call["timeout_ms"] / 1000,
            sasl=mechanism,
        )

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            self._runner.run(admin.close())

    def _stepped(
        self, call: Callable[[Admin, dict[str, Any]], Coroutine[Any, Any, Any]]
    ) -> Operation:
        def step(said: dict[str, Any]) -> Any:
            assert self._admin is not None, "connect comes first"
            return self._runner.run(_named(call(self._admin, said)))

        return step

    async def _together(self, several: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*map(self._one, several)))

    async def _one(self, said: dict[str, Any]) -> dict[str, Any]:
        assert self._admin is not None, "connect comes first"
        try:
            return {"ok": True, "result": await _named(_calls()[said["op"]](self._admin, said))}
        except Exception as error:  # as of a call that is asked alone
            return failed(error)


async def _named(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except BrokerError as error:
        raise _WithCode(error) from error


class _WithCode(Exception):
    """A BrokerError as ``lines`` reads errors: the code is ``errno``."""

    def __init__(self, error: BrokerError) -> None:
        super().__init__(str(error))
        self.errno = error.code


async def describe_cluster(admin: Admin, _call: dict[str, Any]) -> dict[str, Any]:
    cluster = await admin.describe_cluster()
    return {
        "brokers": sorted(node.id for node in cluster.nodes),
        "controller": cluster.controller_id,
    }


async def describe_topics(admin: Admin, call: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, future in admin.describe_topics(call["topics"]).values.items():
        try:
            topic = await future
        except BrokerError as error:
            found[name] = outcome(_WithCode(error))
            continue
        found[name] = {
            str(row.index): {
                "leader": row.leader,
                "replicas": list(row.replicas),
                "isr": list(row.isr),
            }
            for row in topic.partitions
        }
    return found


async def list_topics(admin: Admin, _call: dict[str, Any]) -> list[str]:
    return sorted(await admin.list_topics())


async def create_topics(admin: Admin, call: dict[str, Any]) -> dict[str, Any]:
    wanted = [
        NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
        for name, each in call["topics"].items()
    ]
    return await _outcomes(admin.create_topics(wanted).values)


async def alter_reassignments(admin: Admin, call: dict[str, Any]) -> dict[str, Any]:
    wanted: dict[tuple[str, int], list[int] | None] = {
        TopicPartition(topic, index): call["assignments"][f"{topic}-{index}"]
        for topic, indexes in by_topic(call["assignments"]).items()
        for index in indexes
    }
    result = admin.alter_partition_reassignments(
        wanted,
        allow_replication_factor_change=call.get("allow_replication_factor_change", True),
    )
    return await _outcomes(result.values)


async def list_reassignments(admin: Admin, call: dict[str, Any]) -> dict[str, Any]:
    asked = call.get("partitions")
    if asked is None:
        ongoing = await admin.list_partition_reassignments()
    else:
        ongoing = await admin.list_partition_reassignments(_partitions(asked))
    return {
        str(partition): {
            "replicas": list(state.replicas),
            "adding": list(state.adding_replicas),
            "removing": list(state.removing_replicas),
        }
        for partition, state in ongoing.items()
    }


async def elect_leaders(admin: Admin, call: dict[str, Any]) -> dict[str, Any]:
    kind = ElectionType.UNCLEAN if call.get("type") == "unclean" else ElectionType.PREFERRED
    asked = call.get("partitions")
    result = admin.elect_leaders(kind, None if asked is None else _partitions(asked))
    return {
        str(partition): None if error is None else outcome(_coded(error))
        for partition, error in (await result.partitions()).items()
    }


def _partitions(keys: list[str]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, index)
        for topic, indexes in by_topic(keys).items()
        for index in indexes
    ]


def _coded(error: BaseException) -> BaseException:
    return _WithCode(error) if isinstance(error, BrokerError) else error


async def _outcomes(futures: Mapping[Any, asyncio.Future[Any]]) -> dict[str, Any]:
    """By partition or topic. What is no outcome of one, a connection's end, is the call's."""
    found: dict[str, Any] = {}
    for key, future in futures.items():
        try:
            await future
            found[str(key)] = None
        except BrokerError as error:
            found[str(key)] = outcome(_WithCode(error))
    return found


def _calls() -> Mapping[str, Callable[[Admin, dict[str, Any]], Coroutine[Any, Any, Any]]]:
    calls = (describe_cluster, describe_topics, list_topics, create_topics, alter_reassignments,
             list_reassignments, elect_leaders)  # fmt: skip
    return {call.__name__: call for call in calls}


if __name__ == "__main__":
    serve(Adapter())
