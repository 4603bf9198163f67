"""Ask the adapter of a real client what its client made of answers that are fixed byte for byte.

The adapter's line comes back as it was, but for what differs from run to run: ``raw``, and ``at``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pytest

from kspec.errors import AdapterFault
from kspec.results import Greeting
from kspec.runner.adapters import ProcessAdapter
from kspec.runner.clients import Program
from mockbroker import MockCluster

__all__ = ["FIXED_CALLS", "Fixed", "FixedCall", "play_fixed", "raw_line", "stripped"]

_MOVE: Final = {"assignments": {"foo-0": [3, 2, 1], "foo-1": [3, 2, 1]}}
_ROW: Final = {"errorCode": 0, "errorMessage": None}
_REFUSED: Final = {"errorCode": 85, "errorMessage": "not this one"}


class FixedCall(NamedTuple):
    """A call, and the rule of the mock cluster that fixes the answer to it; without a rule it is
    that of the cluster. ``before`` are calls that come first."""

    call: str
    arguments: Mapping[str, Any]
    rule: Mapping[str, Any]
    before: Sequence[tuple[str, Mapping[str, Any]]] = ()


def _moved(*rows: Mapping[str, Any]) -> dict[str, Any]:
    partitions = [{"partitionIndex": index, **row} for index, row in enumerate(rows)]
    return {"api": 45, "reply": {"responses": [{"name": "foo", "partitions": partitions}]}}


def _listed(topics: Any) -> dict[str, Any]:
    return {"api": 46, "reply": {"topics": topics}}


_MOVING: Final = {
    "partitionIndex": 1, "replicas": [3, 2, 1], "addingReplicas": [], "removingReplicas": [2],
}  # fmt: skip
_LIST: Final = {"partitions": ["foo-1"]}
_RULES: Final = ["allow User:alice read topic:foo", "deny User:bob write topic:foo"]
_NO_CONFIGS: Final = {"errorMessage": "no such topic", "resourceType": 2, "configs": []}
_CONFIG: Final = {
    "name": "retention.ms", "value": "1000", "readOnly": False, "configSource": 1,
    "isSensitive": False, "synonyms": [], "configType": 5, "documentation": None,
}  # fmt: skip
_CONFIGS: Final = {
    "api": 32,
    "reply": {
        "results": [
            {**_NO_CONFIGS, "errorCode": 0, "resourceName": "foo", "configs": [_CONFIG]},
            {**_NO_CONFIGS, "errorCode": 3, "resourceName": "bar"},
        ]
    },
}
_ASSIGNED: Final = (("assign", {"offsets": {"foo-0": 0}}),)
_DATA: Final = {
    "producer": {"acks": "all", "delivery_timeout_ms": 40_000, "linger_ms": 50},
    "consumer": {"max_wait_ms": 100},
}

FIXED_CALLS: Final[Mapping[str, FixedCall]] = {
    "move: success": FixedCall("alter_reassignments", _MOVE, _moved(_ROW, _ROW)),
    "move: partial": FixedCall("alter_reassignments", _MOVE, _moved(_ROW, _REFUSED)),
    "move: one is left out": FixedCall("alter_reassignments", _MOVE, _moved(_ROW)),
    "move: error": FixedCall(
        "alter_reassignments",
        _MOVE,
        {"api": 45, "reply": {"errorCode": 31, "errorMessage": "not you", "responses": []}},
    ),
    "list: success": FixedCall(
        "list_reassignments", _LIST, _listed([{"name": "foo", "partitions": [_MOVING]}])
    ),
    "list: error": FixedCall(
        "list_reassignments",
        _LIST,
        {"api": 46, "reply": {"errorCode": 31, "errorMessage": "not you", "topics": []}},
    ),
    "create: success": FixedCall("create_topics", {"topics": {"a": {}}}, {}),
    "create: error": FixedCall(
        "create_topics",
        {"topics": {"b": {}}},
        {"api": 19, "error": 37, "error_message": "too many"},
    ),
    "topics: success": FixedCall("list_topics", {}, {}),
    "describe: partial": FixedCall("describe_topics", {"topics": ["foo", "no-such-topic"]}, {}),
    "produce: partial": FixedCall(
        "produce",
        {"records": [{"topic": "foo", "partition": n, "value": "a", "key": "k"} for n in (0, 1)]},
        {"api": 0, "topic": "foo", "partition": 1, "error": 29},
    ),
    "poll: success": FixedCall("poll", {"records": 1, "ms": 20_000}, {}, _ASSIGNED),
    "poll: error": FixedCall(
        "poll", {"records": 1, "ms": 20_000}, {"api": 1, "topic": "foo", "error": 29}, _ASSIGNED
    ),
    "list offsets: success": FixedCall(
        "list_offsets", {"times": {"foo-0": "latest", "foo-1": "earliest"}}, {}
    ),
    "delete records: partial": FixedCall(
        "delete_records", {"offsets": {"foo-0": 0, "foo-1": 99}}, {}
    ),
    "describe configs: partial": FixedCall(
        "describe_configs", {"resources": ["topic:foo", "topic:bar"]}, _CONFIGS
    ),
    "alter configs: partial": FixedCall(
        "alter_configs",
        {"configs": {each: {"retention.ms": "1000"} for each in ("topic:foo", "topic:bar")}},
        {},
    ),
    "log dirs: success": FixedCall("describe_log_dirs", {"brokers": [1]}, {}),
    "log dirs: error": FixedCall(
        "describe_log_dirs",
        {"brokers": [1]},
        {"api": 35, "broker": 1, "set": {"results[0].error_code": 56}},
    ),
    "move log dir: error": FixedCall("alter_log_dirs", {"moves": {"1:foo-0": "/nowhere"}}, {}),
    "list groups: success": FixedCall("list_groups", {}, {}),
    "describe groups: unknown": FixedCall("describe_groups", {"groups": ["g"]}, {}),
    "delete groups: error": FixedCall("delete_groups", {"groups": ["g"]}, {}),
    "delete offsets: error": FixedCall(
        "delete_offsets", {"group": "g", "partitions": ["foo-0"]}, {}
    ),
    "alter offsets: partial": FixedCall(
        "alter_offsets", {"group": "g", "offsets": {"foo-0": 0, "foo-9": 0}}, {}
    ),
    "create partitions: error": FixedCall("create_partitions", {"counts": {"foo": 1}}, {}),
    "delete topics: partial": FixedCall("delete_topics", {"topics": ["a", "no-such-topic"]}, {}),
    "create acls: partial": FixedCall(
        "create_acls",
        {"acls": _RULES},
        {"api": 30, "set": {"results[1].error_code": 42, "results[1].error_message": "not this"}},
    ),
    "describe acls: success": FixedCall("describe_acls", {"filter": "any any any topic:foo"}, {}),
    "describe acls: error": FixedCall(
        "describe_acls", {"filter": "any any any any"}, {"api": 29, "error": 54}
    ),
    "delete acls: partial": FixedCall(
        "delete_acls", {"filters": _RULES}, {"api": 31, "set": {"filter_results[1].error_code": 42}}
    ),
    "alter quotas: success": FixedCall(
        "alter_quotas", {"quotas": {"user:alice": {"producer_byte_rate": 1000}}}, {}
    ),
    "alter quotas: error": FixedCall(
        "alter_quotas", {"quotas": {"user:bob": {"no_such_quota": 1}}}, {}
    ),
    "describe quotas: success": FixedCall("describe_quotas", {"filter": "user:alice"}, {}),
    "describe quotas: error": FixedCall(
        "describe_quotas", {"filter": "user:*"}, {"api": 48, "error": 31}
    ),
    # Last: it is not an answer that Kafka can give, and some clients do not survive it.
    "list: null": FixedCall("list_reassignments", _LIST, {"api": 46, "set": {"topics": None}}),
}

SENSELESS: Final[Mapping[str, Mapping[str, Any]]] = {
    "alter_reassignments": {"assignments": {"foo-x": [1]}},
    "create_topics": {"topics": 5},
    "describe_topics": {"topics": 5},
    "produce": {"records": 5},
}
"""Only an adapter can notice it: its client never sees the call."""


def stripped(said: Any) -> Any:
    """Without what differs from run to run."""
    if isinstance(said, dict):
        return {
            key: stripped(each)
            for key, each in said.items()
            if key not in ("at", "raw", "timestamp")
            and not (key in ("code", "errors") and each is None)
            and not (key == "headers" and each == [])
        }
    if isinstance(said, str):
        return re.sub("0x[0-9a-f]{8,}", "0x", said)  # where Python has an object
    return [stripped(each) for each in said] if isinstance(said, list) else said


async def raw_line(adapter: ProcessAdapter, op: str, **members: Any) -> dict[str, Any]:
    """The line of the adapter, which ``ProcessAdapter.call`` would read."""
    assert adapter._process.stdin is not None
    adapter._process.stdin.write(json.dumps({"op": op, **members}).encode() + b"\n")
    await adapter._process.stdin.drain()
    return await adapter._line(60, f"an answer to {op}")


class Fixed(NamedTuple):
    """``answers`` are those to the questions that the client has a call for; ``own`` that to a call
    which makes no sense, so that the adapter itself fails."""

    greeting: Greeting
    answers: dict[str, Any]
    own: dict[str, Any]


async def play_fixed(program: Program) -> Fixed:
    """Each question in a new client of one process, on a healthy cluster but for its rule."""
    found: dict[str, Any] = {}
    async with MockCluster(topics=["foo=1,2,3/1,2,3"]) as mock:
        connect = {"bootstrap": ",".join(mock.addresses.values()), "timeout_ms": 20000}
        adapter = await program.start()
        assert isinstance(adapter, ProcessAdapter)
        try:
            for name, asked in FIXED_CALLS.items():
                needed = {asked.call, *(op for op, _ in asked.before)}
                if not needed <= set(adapter.greeting.capabilities):
                    continue
                if asked.rule:
                    mock.fault(**asked.rule, times=1)
                await raw_line(adapter, "connect", **connect, **_DATA, client_id="fixed")
                for op, arguments in asked.before:
                    await raw_line(adapter, op, **arguments)
                found[name] = await raw_line(adapter, asked.call, **asked.arguments)
                await raw_line(adapter, "close")
            await raw_line(adapter, "connect", **connect, client_id="fixed")
            calls = [op for op in SENSELESS if op in adapter.greeting.capabilities]
            own = await raw_line(adapter, calls[0], **SENSELESS[calls[0]])
            with pytest.raises(AdapterFault, match="the adapter failed: "):
                await adapter.call(calls[0], SENSELESS[calls[0]])
        finally:
            await adapter.stop()
    return Fixed(adapter.greeting, found, own)
