"""Drive kproto's own ``Admin`` by the protocol of docs/reference/adapters.md."""

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
from kspec.adapters.python.lines import (
    DONE,
    Operation,
    Returned,
    Unsupported,
    answered,
    client_call,
    outcome,
    serve,
)
from kspec.adapters.python.values import ascending, by_topic

__all__ = ["Adapter"]


class Adapter:
    """One Admin on one event loop, which runs for one call at a time."""

    client = "kproto"
    version = kproto.__version__

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._admin: Admin | None = None

    def operations(self) -> Mapping[str, Operation]:
        return {
            **{name: self._stepped(call) for name, call in _calls().items()},
            "together": lambda line: self._runner.run(self._together(line["calls"])),
        }

    def options(self) -> Mapping[str, Any]:
        return {"default_timeout_ms": "timeout_ms", "connect_timeout": "timeout_ms"}

    def connect(self, call: dict[str, Any]) -> Returned:
        self._runner.run(self._connect(call))
        return DONE

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
        self, call: Callable[[Admin, dict[str, Any]], Coroutine[Any, Any, Returned]]
    ) -> Operation:
        def step(line: dict[str, Any]) -> Returned:
            assert self._admin is not None, "connect comes first"
            return self._runner.run(call(self._admin, line))

        return step

    async def _together(self, several: list[dict[str, Any]]) -> Returned:
        answers = await asyncio.gather(*map(self._one, several))
        return Returned(None, list(answers))

    async def _one(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return the answer that the call would have by itself."""
        assert self._admin is not None, "connect comes first"
        call = _calls().get(line["op"])
        if call is None:
            return answered(_unsupported, _described)
        work = asyncio.ensure_future(call(self._admin, line))
        await asyncio.wait([work])
        return answered(work.result, _described)


def _unsupported() -> Returned:
    raise Unsupported("no public call for it")


def _described(error: BaseException) -> dict[str, Any]:
    code = error.code if isinstance(error, BrokerError) else None
    return {**outcome(error), "code": code}


async def describe_cluster(admin: Admin, _call: dict[str, Any]) -> Returned:
    with client_call():
        cluster = await admin.describe_cluster()
    ids = ascending(node.id for node in cluster.nodes)
    return Returned(cluster, {"brokers": ids, "controller": cluster.controller_id})


async def describe_topics(admin: Admin, call: dict[str, Any]) -> Returned:
    with client_call():
        futures = admin.describe_topics(call["topics"]).values
    raw: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for name, future in futures.items():
        topic, error = await _awaited(future)
        raw[name] = error or topic
        found[name] = _outcome(error) or {
            str(row.index): {
                "leader": row.leader,
                "replicas": list(row.replicas),
                "isr": list(row.isr),
            }
            for row in topic.partitions
        }
    return Returned(raw, found)


async def list_topics(admin: Admin, _call: dict[str, Any]) -> Returned:
    with client_call():
        names = await admin.list_topics()
    return Returned(names, ascending(names))


async def create_topics(admin: Admin, call: dict[str, Any]) -> Returned:
    wanted = [
        NewTopic(name, each.get("partitions", 1), each.get("replication_factor", 1))
        for name, each in call["topics"].items()
    ]
    with client_call():
        futures = admin.create_topics(wanted, validate_only=call.get("validate_only", False)).values
    return await _outcomes(futures)


async def alter_reassignments(admin: Admin, call: dict[str, Any]) -> Returned:
    wanted: dict[tuple[str, int], list[int] | None] = {
        TopicPartition(topic, index): call["assignments"][f"{topic}-{index}"]
        for topic, indexes in by_topic(call["assignments"]).items()
        for index in indexes
    }
    allow = call.get("allow_replication_factor_change", True)
    with client_call():
        result = admin.alter_partition_reassignments(wanted, allow_replication_factor_change=allow)
    return await _outcomes(result.values)


async def list_reassignments(admin: Admin, call: dict[str, Any]) -> Returned:
    keys = call.get("partitions")
    wanted = () if keys is None else (_partitions(keys),)
    with client_call():
        ongoing = await admin.list_partition_reassignments(*wanted)
    return Returned(
        ongoing,
        {
            str(partition): {
                "replicas": list(state.replicas),
                "adding": list(state.adding_replicas),
                "removing": list(state.removing_replicas),
            }
            for partition, state in ongoing.items()
        },
    )


async def elect_leaders(admin: Admin, call: dict[str, Any]) -> Returned:
    kind = ElectionType.UNCLEAN if call.get("type") == "unclean" else ElectionType.PREFERRED
    keys = call.get("partitions")
    wanted = None if keys is None else _partitions(keys)
    with client_call():
        results = await admin.elect_leaders(kind, wanted).partitions()
    return Returned(results, {str(key): _outcome(error) for key, error in results.items()})


def _partitions(keys: list[str]) -> list[TopicPartition]:
    return [
        TopicPartition(topic, index)
        for topic, indexes in by_topic(keys).items()
        for index in indexes
    ]


def _outcome(error: BaseException | None) -> dict[str, Any] | None:
    return None if error is None else _described(error)


async def _awaited(future: asyncio.Future[Any]) -> tuple[Any, BrokerError | None]:
    """Raise an error that is not the outcome of one partition or topic, such as a lost
    connection."""
    with client_call():
        try:
            return await future, None
        except BrokerError as error:
            return None, error


async def _outcomes(futures: Mapping[Any, asyncio.Future[Any]]) -> Returned:
    """Return outcomes by partition or topic."""
    answers = {str(key): await _awaited(future) for key, future in futures.items()}
    return Returned(answers, {key: _outcome(error) for key, (_, error) in answers.items()})


def _calls() -> Mapping[str, Callable[[Admin, dict[str, Any]], Coroutine[Any, Any, Returned]]]:
    calls = (describe_cluster, describe_topics, list_topics, create_topics, alter_reassignments,
             list_reassignments, elect_leaders)  # fmt: skip
    return {call.__name__: call for call in calls}


if __name__ == "__main__":
    serve(Adapter(), _described)
