"""The reference client's calls for topics, configs, groups and offsets.

docs/reference/adapters.md documents each call's arguments and result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from kspec.reference_client.admin_rules import AdminRules, Row
from kspec.reference_client.coordinators import GROUP
from kspec.reference_client.link import BrokerError, Link
from kspec.reference_client.rules import outcome
from kspec.reference_client.topics import TopicPartition, message, split

__all__ = ["ADMIN_CALLS", "KINDS"]

KINDS: Final = {"topic": 2, "broker": 4}
"""Types of resources that have configs."""
_SET, _DELETE = 0, 1
_TIMES: Final = {"latest": -1, "earliest": -2}
_NOT_CONTROLLER: Final = 41
_LIST_GROUPS: Final = 16
_DELETE_TOPICS: Final = 20
_DELETE_STATES_SINCE: Final = 6
_STATES_SINCE, _TYPES_SINCE = 4, 5

Arguments = Mapping[str, Any]


def _topics(wanted: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, index in wanted:
        found.setdefault(topic, []).append(index)
    return found


def _partitions(
    kind: str,
    wanted: Iterable[TopicPartition],
    fields: Callable[[TopicPartition], Mapping[str, Any]],
) -> list[Any]:
    """Make the topics of a request, with what ``fields`` returns for each partition. ``kind`` is
    the beginning of the names of their structs, such as ``DeleteRecordsRequest.DeleteRecords``."""
    topic, partition = message(f"{kind}Topic"), message(f"{kind}Partition")
    return [
        topic(
            name=name,
            partitions=[
                partition(partition_index=index, **fields((name, index))) for index in indexes
            ],
        )
        for name, indexes in _topics(wanted).items()
    ]


def _outcomes(client: AdminRules, wanted: Iterable[str], rows: Mapping[str, Row]) -> dict[str, Any]:
    return client.outcomes(
        list(wanted), {name: (row.code, row.message) for name, row in rows.items()}
    )


def _key(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"


# ---- topics --------------------------------------------------------------------------------------


async def _of_topics(
    client: AdminRules,
    names: Iterable[str],
    request: Callable[[list[str]], Any],
    answered: Callable[[Any], Iterable[Any]],
) -> dict[str, Any]:
    """Return an outcome per topic of a request to the controller.

    A topic has NOT_CONTROLLER if the broker is not the controller. Those beyond the quota of
    changes are sent again after the pause that the answer asks for, and no others (KIP-599).
    """

    def code(answer: Any) -> int:
        codes = {each.error_code for each in answered(answer)}
        return _NOT_CONTROLLER if _NOT_CONTROLLER in codes else 0

    wanted = left = list(names)
    rows: dict[str, tuple[int, str | None]] = {}
    ends = asyncio.get_running_loop().time() + client.timeout
    while left:
        body = request(left)
        answer = await client.ask(client.controller_link, body, code)
        for each in answered(answer):
            rows[each.name] = each.error_code, getattr(each, "error_message", None)
        pause = answer.throttle_time_ms / 1000
        if asyncio.get_running_loop().time() + pause > ends:
            break
        left = [each for each in left if client.is_over_quota(rows.get(each, (0, None))[0])]
    return client.outcomes(wanted, rows)


async def create_topics(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    topics = arguments["topics"]
    topic = message("CreateTopicsRequest.CreatableTopic")

    def request(names: list[str]) -> Any:
        return message("CreateTopicsRequest")(
            topics=[
                topic(
                    name=name,
                    num_partitions=topics[name].get("partitions", 1),
                    replication_factor=topics[name].get("replication_factor", 1),
                )
                for name in names
            ],
            timeout_ms=int(client.timeout * 1000),
            validate_only=bool(arguments.get("validate_only")),
        )

    return await _of_topics(client, topics, request, lambda answer: answer.topics)


async def create_partitions(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    counts = arguments["counts"]
    topic = message("CreatePartitionsRequest.CreatePartitionsTopic")

    def request(names: list[str]) -> Any:
        return message("CreatePartitionsRequest")(
            topics=[topic(name=name, count=counts[name], assignments=None) for name in names],
            timeout_ms=int(client.timeout * 1000),
        )

    return await _of_topics(client, counts, request, lambda answer: answer.results)


async def delete_topics(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    state = message("DeleteTopicsRequest.DeleteTopicState")
    link = await client.controller_link()
    has_states = link.choose_version(_DELETE_TOPICS) >= _DELETE_STATES_SINCE

    def request(names: list[str]) -> Any:
        return message("DeleteTopicsRequest")(
            topics=[state(name=name) for name in names] if has_states else [],
            topic_names=names,
            timeout_ms=int(client.timeout * 1000),
        )

    return await _of_topics(client, arguments["topics"], request, lambda a: a.responses)


# ---- partitions ----------------------------------------------------------------------------------


def _by_partition(
    client: AdminRules, wanted: Iterable[TopicPartition], rows: Any
) -> dict[str, Any]:
    return _outcomes(client, map(_key, wanted), {_key(tp): row for tp, row in rows.items()})


def _rows(
    topics: Any, value: Callable[[Any], Any] = lambda _row: None
) -> dict[TopicPartition, Row]:
    return {
        (topic.name, row.partition_index): Row(row.error_code, None, value(row))
        for topic in topics
        for row in topic.partitions
    }


async def delete_records(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    offsets = {split(key): each for key, each in arguments["offsets"].items()}

    def request(mine: Iterable[TopicPartition]) -> Any:
        return message("DeleteRecordsRequest")(
            topics=_partitions(
                "DeleteRecordsRequest.DeleteRecords", mine, lambda tp: {"offset": offsets[tp]}
            ),
            timeout_ms=int(client.timeout * 1000),
        )

    rows = await client.ask_leaders(list(offsets), request, lambda answer: _rows(answer.topics))
    return _by_partition(client, offsets, rows)


async def list_offsets(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    times = {split(key): _TIMES.get(each, each) for key, each in arguments["times"].items()}

    def request(mine: Iterable[TopicPartition]) -> Any:
        return message("ListOffsetsRequest")(
            replica_id=-1,
            topics=_partitions(
                "ListOffsetsRequest.ListOffsets", mine, lambda tp: {"timestamp": times[tp]}
            ),
        )

    rows = await client.ask_leaders(
        list(times), request, lambda answer: _rows(answer.topics, lambda row: row.offset)
    )
    found = _by_partition(client, times, rows)
    return {_key(tp): found[_key(tp)] or rows[tp].value for tp in times}


# ---- configs -------------------------------------------------------------------------------------


def _by_broker(client: AdminRules, resources: Iterable[str]) -> dict[int | None, list[str]]:
    found: dict[int | None, list[str]] = {}
    for each in resources:
        found.setdefault(client.config_broker(each), []).append(each)
    return found


def _place(client: AdminRules, broker: int | None) -> Callable[[], Awaitable[Link]]:
    return client.any_link if broker is None else lambda: client.broker_link(broker)


def _resource(resource: str) -> dict[str, Any]:
    kind, _, name = resource.partition(":")
    return {"resource_type": KINDS[kind], "resource_name": name}


def _resources(rows: Any, value: Callable[[Any], Any] = lambda _row: None) -> dict[str, Row]:
    names = {number: kind for kind, number in KINDS.items()}
    return {
        f"{names[each.resource_type]}:{each.resource_name}": Row(
            each.error_code, each.error_message, value(each)
        )
        for each in rows
    }


async def describe_configs(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    resource = message("DescribeConfigsRequest.DescribeConfigsResource")
    rows: dict[str, Row] = {}
    for broker, mine in _by_broker(client, arguments["resources"]).items():
        request = message("DescribeConfigsRequest")(
            resources=[resource(**_resource(each), configuration_keys=None) for each in mine]
        )
        answer = await client.ask(_place(client, broker), request, lambda _answer: 0)
        rows |= _resources(answer.results, lambda row: {e.name: e.value for e in row.configs})
    found = _outcomes(client, arguments["resources"], rows)
    return {key: failed or rows[key].value for key, failed in found.items()}


async def alter_configs(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    configs = arguments["configs"]
    rows: dict[str, Row] = {}
    for broker, mine in _by_broker(client, configs).items():
        request = _alterations({each: configs[each] for each in mine})
        answer = await client.ask(_place(client, broker), request, lambda _answer: 0)
        rows |= _resources(answer.responses)
    return _outcomes(client, configs, rows)


def _alterations(configs: Mapping[str, Mapping[str, str | None]]) -> Any:
    resource = message("IncrementalAlterConfigsRequest.AlterConfigsResource")
    change = message("IncrementalAlterConfigsRequest.AlterableConfig")
    return message("IncrementalAlterConfigsRequest")(
        resources=[
            resource(
                **_resource(key),
                configs=[
                    change(
                        name=name, value=value, config_operation=_DELETE if value is None else _SET
                    )
                    for name, value in values.items()
                ],
            )
            for key, values in configs.items()
        ]
    )


# ---- groups --------------------------------------------------------------------------------------


async def list_groups(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    states, types = arguments.get("states", []), arguments.get("types", [])

    def check(link: Link) -> None:
        if types:
            client.require(link, _LIST_GROUPS, _TYPES_SINCE, "The broker cannot filter by type")
        if states:
            client.require(link, _LIST_GROUPS, _STATES_SINCE, "The broker cannot filter by state")

    request = message("ListGroupsRequest")(states_filter=states, types_filter=types)
    answers, errors = await client.ask_every_broker(request, lambda a: int(a.error_code), check)
    if not answers:
        raise errors[0]
    groups = sorted({each.group_id for answer in answers for each in answer.groups})
    return {"groups": groups, "errors": client.described_errors(errors)}


async def describe_groups(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    coordinators = client.coordinators()
    found: dict[str, Any] = {}
    for name in arguments["groups"]:
        request = message("DescribeGroupsRequest")(groups=[name])
        try:
            answer = await coordinators.ask(
                GROUP, name, request, lambda body: int(body.groups[0].error_code)
            )
        except BrokerError as error:
            found[name] = outcome(error.code, error.message)
            continue
        row = answer.groups[0]
        found[name] = (
            outcome(row.error_code, getattr(row, "error_message", None))
            if row.error_code
            else {"state": row.group_state, "members": len(row.members)}
        )
    return found


async def _for_group(
    client: AdminRules, name: str, request: Any, code_of: Callable[[Any], int]
) -> Any:
    """Return the coordinator's answer. Raises BrokerError for an error of FindCoordinator."""
    return await client.coordinators().ask(GROUP, name, request, code_of)


async def delete_groups(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    rows: dict[str, tuple[int, str | None]] = {}
    for name in arguments["groups"]:
        request = message("DeleteGroupsRequest")(groups_names=[name])
        try:
            answer = await _for_group(
                client, name, request, lambda body: int(body.results[0].error_code)
            )
            rows |= {each.group_id: (each.error_code, None) for each in answer.results}
        except BrokerError as error:
            rows[name] = error.code, error.message
    return client.outcomes(list(arguments["groups"]), rows)


async def delete_offsets(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    wanted = [split(each) for each in arguments["partitions"]]
    request = message("OffsetDeleteRequest")(
        group_id=arguments["group"],
        topics=_partitions("OffsetDeleteRequest.OffsetDeleteRequest", wanted, lambda _tp: {}),
    )
    answer = await _for_group(
        client, arguments["group"], request, lambda body: int(body.error_code)
    )
    if answer.error_code:
        raise BrokerError(answer.error_code)
    return _by_partition(client, wanted, _rows(answer.topics))


async def alter_offsets(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    offsets = {split(key): each for key, each in arguments["offsets"].items()}
    request = message("OffsetCommitRequest")(
        group_id=arguments["group"],
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=_partitions(
            "OffsetCommitRequest.OffsetCommitRequest",
            offsets,
            lambda tp: {"committed_offset": offsets[tp], "committed_metadata": ""},
        ),
    )

    def code(answer: Any) -> int:
        return next((row.code for row in _rows(answer.topics).values() if row.code), 0)

    coordinators = client.coordinators()
    # From version 10 on a topic has its id alone, and this request has its name.
    answer = await coordinators.ask(
        GROUP, arguments["group"], request, code, lambda link: min(9, link.choose_version(8))
    )
    return _by_partition(client, offsets, _rows(answer.topics))


ADMIN_CALLS: Final[Mapping[str, Callable[[AdminRules, Arguments], Awaitable[Any]]]] = {
    "create_topics": create_topics,
    "create_partitions": create_partitions,
    "delete_topics": delete_topics,
    "delete_records": delete_records,
    "list_offsets": list_offsets,
    "describe_configs": describe_configs,
    "alter_configs": alter_configs,
    "list_groups": list_groups,
    "describe_groups": describe_groups,
    "delete_groups": delete_groups,
    "delete_offsets": delete_offsets,
    "alter_offsets": alter_offsets,
}
