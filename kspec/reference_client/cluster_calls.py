"""The reference client's calls for access rules, log directories and client quotas.

docs/reference/adapters.md documents each call's arguments and result. An access rule is a text such
as ``allow User:alice read topic:foo``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from kspec.reference_client.admin_rules import AdminRules
from kspec.reference_client.link import BrokerError, LinkClosedError, TimedOutError
from kspec.reference_client.topics import message

__all__ = ["CLUSTER_CALLS"]

_ANY: Final = "any"
_PERMISSIONS: Final = {_ANY: 1, "deny": 2, "allow": 3}
_OPERATIONS: Final = {
    name: number
    for number, name in enumerate(
        (_ANY, "all", "read", "write", "create", "delete", "alter", "describe"), start=1
    )
}
_KINDS: Final = {_ANY: 1, "topic": 2, "group": 3}
_LITERAL: Final = 3
_EVERY_HOST: Final = "*"
_EXACT, _DEFAULT, _ANY_NAME = 0, 1, 2

Arguments = Mapping[str, Any]


# ---- access rules --------------------------------------------------------------------------------


def _parts(rule: str) -> dict[str, Any]:
    permission, principal, operation, resource = rule.split()
    kind, _, name = resource.partition(":")
    return {
        "permission_type": _PERMISSIONS[permission],
        "principal": principal,
        "operation": _OPERATIONS[operation],
        "resource_type": _KINDS[kind],
        "resource_name": name,
    }


def _filter(rule: str) -> dict[str, Any]:
    parts = _parts(rule)
    return {
        "permission_type": parts["permission_type"],
        "principal_filter": None if parts["principal"] == _ANY else parts["principal"],
        "operation": parts["operation"],
        "resource_type_filter": parts["resource_type"],
        "resource_name_filter": parts["resource_name"] or None,
        "pattern_type_filter": _LITERAL,
        "host_filter": None,
    }


def _text(rule: Any, kind: int, name: str) -> str:
    names = [
        next(name for name, number in table.items() if number == wanted)
        for table, wanted in (
            (_PERMISSIONS, rule.permission_type),
            (_OPERATIONS, rule.operation),
            (_KINDS, kind),
        )
    ]
    return f"{names[0]} {rule.principal} {names[1]} {names[2]}:{name}"


async def create_acls(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    rules = arguments["acls"]
    creation = message("CreateAclsRequest.AclCreation")
    request = message("CreateAclsRequest")(
        creations=[
            creation(**_parts(each), resource_pattern_type=_LITERAL, host=_EVERY_HOST)
            for each in rules
        ]
    )
    answer = await client.ask(client.any_link, request, lambda _answer: 0)
    return client.acl_outcomes(rules, answer.results)


async def describe_acls(client: AdminRules, arguments: Arguments) -> list[str]:
    request = message("DescribeAclsRequest")(**_filter(arguments["filter"]))
    answer = await client.ask(client.any_link, request, lambda _answer: 0)
    client.check_acls(answer)
    return sorted(
        _text(rule, each.resource_type, each.resource_name)
        for each in answer.resources
        for rule in each.acls
    )


async def delete_acls(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    filters = arguments["filters"]
    wanted = message("DeleteAclsRequest.DeleteAclsFilter")
    request = message("DeleteAclsRequest")(filters=[wanted(**_filter(each)) for each in filters])
    answer = await client.ask(client.any_link, request, lambda _answer: 0)
    return client.acl_outcomes(filters, answer.filter_results)


# ---- log directories -----------------------------------------------------------------------------


async def describe_log_dirs(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for broker in arguments["brokers"]:
        request = message("DescribeLogDirsRequest")(topics=None)
        try:
            answer = await client.ask(client.log_dir_place(broker), request, lambda _answer: 0)
        except (BrokerError, LinkClosedError, TimedOutError) as error:
            (found[str(broker)],) = client.described_errors([error])
            continue
        found |= client.log_dirs(broker, answer)
    return found


async def alter_log_dirs(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    """Move replicas, given as ``1:foo-0`` with the directory, each at its broker."""
    found: dict[str, Any] = {}
    topic = message("AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic")
    directory = message("AlterReplicaLogDirsRequest.AlterReplicaLogDir")
    for replica, path in arguments["moves"].items():
        broker, _, partition = replica.partition(":")
        name, _, index = partition.rpartition("-")
        request = message("AlterReplicaLogDirsRequest")(
            dirs=[directory(path=path, topics=[topic(name=name, partitions=[int(index)])])]
        )
        answer = await client.ask(client.log_dir_place(int(broker)), request, lambda _answer: 0)
        row = answer.results[0].partitions[0]
        found[replica] = client.outcomes([replica], {replica: (row.error_code, None)})[replica]
    return found


# ---- quotas --------------------------------------------------------------------------------------


def _entity(text: str) -> tuple[str, str | None]:
    """Return the type and the name; None for the default, written ``user:``."""
    kind, _, name = text.partition(":")
    return kind, name or None


def _entity_text(parts: Sequence[Any]) -> str:
    return ",".join(f"{each.entity_type}:{each.entity_name or ''}" for each in parts)


async def alter_quotas(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    quotas = arguments["quotas"]
    entry = message("AlterClientQuotasRequest.EntryData")
    entity = message("AlterClientQuotasRequest.EntityData")
    change = message("AlterClientQuotasRequest.OpData")
    request = message("AlterClientQuotasRequest")(
        entries=[
            entry(
                entity=[entity(entity_type=kind, entity_name=name)],
                ops=[
                    change(key=key, value=value or 0, remove=value is None)
                    for key, value in quotas[text].items()
                ],
            )
            for text in quotas
            for kind, name in [_entity(text)]
        ],
        validate_only=False,
    )
    answer = await client.ask(client.any_link, request, lambda _answer: 0)
    rows = {
        _entity_text(each.entity): (each.error_code, each.error_message) for each in answer.entries
    }
    return client.outcomes(list(quotas), rows)


async def describe_quotas(client: AdminRules, arguments: Arguments) -> dict[str, Any]:
    kind, name = _entity(arguments["filter"])
    component = message("DescribeClientQuotasRequest.ComponentData")
    match = _ANY_NAME if name == "*" else _DEFAULT if name is None else _EXACT
    request = message("DescribeClientQuotasRequest")(
        components=[
            component(entity_type=kind, match_type=match, match=name if match == _EXACT else None)
        ],
        strict=True,
    )
    answer = await client.ask(client.any_link, request, lambda _answer: 0)
    client.check_quotas(answer)
    return {
        _entity_text(each.entity): {one.key: one.value for one in each.values}
        for each in answer.entries or ()
    }


CLUSTER_CALLS: Final[Mapping[str, Callable[[AdminRules, Arguments], Awaitable[Any]]]] = {
    "create_acls": create_acls,
    "describe_acls": describe_acls,
    "delete_acls": delete_acls,
    "describe_log_dirs": describe_log_dirs,
    "alter_log_dirs": alter_log_dirs,
    "alter_quotas": alter_quotas,
    "describe_quotas": describe_quotas,
}
