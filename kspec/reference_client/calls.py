"""The calls of the reference client: the requests they send and the meaning of the answers.

docs/reference/adapters.md documents each call's arguments and result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from kproto.dialects import dialect
from kspec.reference_client.link import Link
from kspec.reference_client.rules import ClientRules, outcome

__all__ = ["CALLS"]

_ELECT_LEADERS: Final = 43
_ALTER_REASSIGNMENTS: Final = 45
_DESCRIBE_CLUSTER: Final = 60
_GUARD_SINCE: Final = 1
_TYPES_SINCE: Final = 1

Arguments = Mapping[str, Any]


def _message(name: str) -> Any:
    return dialect("kafka").message(name)


def _top(answer: Any) -> int:
    return int(answer.error_code)


def _none(_answer: Any) -> int:
    return 0


async def describe_cluster(client: ClientRules, _arguments: Arguments) -> dict[str, Any]:
    link = await client.any_link()
    if _DESCRIBE_CLUSTER in link.versions:
        answer = await client.ask(client.any_link, _message("DescribeClusterRequest")(), _top)
        client.learn_brokers(
            {each.broker_id: (each.host, each.port) for each in answer.brokers},
            answer.controller_id,
        )
        brokers = [each.broker_id for each in answer.brokers]
        return {"brokers": sorted(brokers), "controller": answer.controller_id}
    answer = await client.ask(client.any_link, _message("MetadataRequest")(topics=[]), _none)
    client.learn(answer)
    brokers = [each.node_id for each in answer.brokers]
    return {"brokers": sorted(brokers), "controller": answer.controller_id}


async def describe_topics(client: ClientRules, arguments: Arguments) -> dict[str, Any]:
    topic = _message("MetadataRequest.MetadataRequestTopic")
    request = _message("MetadataRequest")(
        topics=[topic(name=name) for name in arguments["topics"]], allow_auto_topic_creation=False
    )
    answer = await client.ask(client.any_link, request, _first_retriable)
    found: dict[str, Any] = {
        name: outcome(-1, "the broker gave no outcome") for name in arguments["topics"]
    }
    for each in answer.topics:
        found[each.name] = (
            outcome(each.error_code, None) if each.error_code else _partitions(each.partitions)
        )
    return found


def _first_retriable(answer: Any) -> int:
    codes = (each.error_code for each in answer.topics)
    leaderless = 5
    return next((code for code in codes if code == leaderless), 0)


def _partitions(rows: Any) -> dict[str, Any]:
    return {
        str(row.partition_index): {
            "leader": row.leader_id,
            "replicas": list(row.replica_nodes),
            "isr": list(row.isr_nodes),
        }
        for row in rows
    }


async def list_topics(client: ClientRules, _arguments: Arguments) -> list[str]:
    answer = await client.ask(client.any_link, _message("MetadataRequest")(topics=None), _none)
    return sorted(each.name for each in answer.topics)


async def alter_reassignments(client: ClientRules, arguments: Arguments) -> dict[str, Any]:
    wanted: Mapping[str, list[int] | None] = arguments["assignments"]
    guarded = arguments.get("allow_replication_factor_change") is False
    topic = _message("AlterPartitionReassignmentsRequest.ReassignableTopic")
    partition = _message("AlterPartitionReassignmentsRequest.ReassignablePartition")
    request = _message("AlterPartitionReassignmentsRequest")(
        timeout_ms=int(client.timeout * 1000),
        allow_replication_factor_change=not guarded,
        topics=[
            topic(
                name=name,
                partitions=[
                    partition(partition_index=index, replicas=wanted[f"{name}-{index}"])
                    for index in indexes
                ],
            )
            for name, indexes in _by_topic(wanted).items()
        ],
    )

    def check(link: Link) -> None:
        if guarded:
            problem = "The broker does not support the AllowReplicationFactorChange option"
            client.require(link, _ALTER_REASSIGNMENTS, _GUARD_SINCE, problem)

    answer = await client.ask(client.controller_link, request, _top, check)
    rows = {
        f"{each.name}-{row.partition_index}": (row.error_code, row.error_message)
        for each in answer.responses
        for row in each.partitions
    }
    return client.outcomes(list(wanted), rows)


def _by_topic(keys: Any) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for key in keys:
        name, _, index = key.rpartition("-")
        found.setdefault(name, []).append(int(index))
    return found


async def list_reassignments(client: ClientRules, arguments: Arguments) -> dict[str, Any]:
    topic = _message("ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics")
    wanted = arguments.get("partitions")
    topics = None if wanted is None else [
        topic(name=name, partition_indexes=indexes) for name, indexes in _by_topic(wanted).items()
    ]  # fmt: skip
    request = _message("ListPartitionReassignmentsRequest")(
        timeout_ms=int(client.timeout * 1000), topics=topics
    )
    answer = await client.ask(client.controller_link, request, _top)
    return {
        f"{each.name}-{row.partition_index}": {
            "replicas": list(row.replicas),
            "adding": list(row.adding_replicas),
            "removing": list(row.removing_replicas),
        }
        for each in answer.topics
        for row in each.partitions
    }


async def elect_leaders(client: ClientRules, arguments: Arguments) -> dict[str, Any]:
    topic = _message("ElectLeadersRequest.TopicPartitions")
    wanted = arguments.get("partitions")
    unclean = arguments.get("type", "preferred") == "unclean"
    topics = None if wanted is None else [
        topic(topic=name, partitions=indexes) for name, indexes in _by_topic(wanted).items()
    ]  # fmt: skip
    request = _message("ElectLeadersRequest")(
        election_type=int(unclean), topic_partitions=topics, timeout_ms=int(client.timeout * 1000)
    )

    def check(link: Link) -> None:
        if unclean:
            problem = "The broker only elects preferred leaders"
            client.require(link, _ELECT_LEADERS, _TYPES_SINCE, problem)

    answer = await client.ask(
        client.controller_link, request, lambda body: getattr(body, "error_code", 0), check
    )
    rows = {
        f"{each.topic}-{row.partition_id}": (row.error_code, row.error_message)
        for each in answer.replica_election_results
        for row in each.partition_result
    }
    return client.outcomes(list(rows) if wanted is None else list(wanted), rows)


CALLS: Final[Mapping[str, Callable[[ClientRules, Arguments], Awaitable[Any]]]] = {
    "describe_cluster": describe_cluster,
    "describe_topics": describe_topics,
    "list_topics": list_topics,
    "alter_reassignments": alter_reassignments,
    "list_reassignments": list_reassignments,
    "elect_leaders": elect_leaders,
}
