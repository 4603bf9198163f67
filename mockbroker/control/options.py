"""``ClusterOptions`` as JSON: the body of ``POST /clusters``.

Options that are Python objects or that only a Python caller can use are left out: ``journal``,
``tls``, ``strict_faults``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kproto.dialects import DIALECTS
from kproto.framing import DEFAULT_MAX_SIZE
from mockbroker.control.routes import (
    BOOLEAN,
    TEXT,
    Member,
    Schema,
    choice,
)
from mockbroker.control.schemas import array_of, ref
from mockbroker.errors import ClusterError
from mockbroker.faults import faults_of
from mockbroker.serving.endpoints import parse_endpoint
from mockbroker.serving.served_versions import parse_api_override
from mockbroker.simulation.operations import MAX_INTEGER, integer_of, text_of
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.state.cluster_parts import Broker
from mockbroker.simulation.topics.spec import parse_brokers

__all__ = ["CLUSTER_OPTIONS"]

_MOST_TOPICS: Final = 10_000


def _between(lowest: int, highest: int) -> tuple[Schema, Callable[[str, Any], int]]:
    def read(name: str, value: Any) -> int:
        number = integer_of(name, value)
        if not lowest <= number <= highest:
            raise ClusterError(f'"{name}" is {number}; it must be between {lowest} and {highest}')
        return number

    return {"type": "integer", "minimum": lowest, "maximum": highest}, read


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ClusterError(f'"{name}" must be true or false, not {value!r:.80}')
    return value


def _nullable(
    described: tuple[Schema, Callable[[str, Any], Any]],
) -> tuple[Schema, Callable[[str, Any], Any]]:
    schema, read = described
    return (
        {**schema, "type": [schema["type"], "null"]},
        lambda name, value: None if value is None else read(name, value),
    )


def _texts(name: str, value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > _MOST_TOPICS:
        raise ClusterError(f'"{name}" must be a list of strings, not {value!r:.80}')
    return [text_of(name, each) for each in value]


def _map(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ClusterError(f'"{name}" must be an object, not {value!r:.80}')
    return {key: text_of(f"{name}.{key}", each) for key, each in value.items()}


def _by_broker(name: str, value: Any) -> dict[int, str]:
    found = {}
    for key, text in _map(name, value).items():
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise ClusterError(f'"{name}" has the member {key!r:.80}, which is not a broker id')
        found[int(key)] = text
    return found


def _own_configs(name: str, value: Any) -> dict[int, dict[str, str]]:
    if not isinstance(value, dict):
        raise ClusterError(f'"{name}" must be an object, not {value!r:.80}')
    ids = _by_broker(name, dict.fromkeys(value, ""))
    return {
        broker_id: _map(f"{name}.{key}", value[key])
        for broker_id, key in zip(ids, value, strict=True)
    }


def _levels(name: str, value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise ClusterError(f'"{name}" must be an object, not {value!r:.80}')
    return {key: integer_of(f"{name}.{key}", each) for key, each in value.items()}


def _brokers(name: str, value: Any) -> list[Broker]:
    text = value if isinstance(value, str) else str(integer_of(name, value))
    try:
        return parse_brokers(text)
    except ClusterError as error:
        raise ClusterError(f'"{name}": {error}') from None


def _apis(name: str, value: Any) -> dict[int, Any]:
    return dict(parse_api_override(f"{key}={text}") for key, text in _map(name, value).items())


def _external(name: str, value: Any) -> dict[int, tuple[str, int]]:
    found = {}
    for broker_id, text in _by_broker(name, value).items():
        host, port = parse_endpoint(text)
        if not port:
            raise ClusterError(f'"{name}": {text!r} has no port')
        found[broker_id] = (host, port)
    return found


def _dialect(name: str, value: Any) -> str:
    """Only by name: a folder would be one on the server."""
    if value not in DIALECTS:
        raise ClusterError(f'"{name}" must be one of {", ".join(DIALECTS)}, not {value!r:.80}')
    return str(value)


def _authorizer(name: str, value: Any) -> Authorizer:
    known = {"super_users", "allow_everyone_if_no_acl_found"}
    if not isinstance(value, dict) or not value.keys() <= known:
        raise ClusterError(f'"{name}" must be an object with {", ".join(sorted(known))}')
    users = _texts(f"{name}.super_users", value.get("super_users", []))
    open_otherwise = value.get("allow_everyone_if_no_acl_found", False)
    return Authorizer(frozenset(users), _flag(name, open_otherwise))


def _rules(_name: str, value: Any) -> Any:
    return faults_of(value)


_FLAG: Final = (BOOLEAN, _flag)
_MAP_OF_TEXT: Final[Schema] = {"type": "object", "additionalProperties": TEXT}

_TABLE: Final[dict[str, tuple[Schema, Callable[[str, Any], Any], str]]] = {
    "brokers": (
        {"type": ["integer", "string"], "minimum": 1, "examples": [3, "0-2"]},
        _brokers,
        "The number of brokers (ids 1 to N), or their first and last id. The first is the "
        "controller.",
    ),
    "topics": (
        {**array_of(TEXT), "examples": [["foo:2:3", "bar=1,2,3/2,3,4"]]},
        _texts,
        "NAME:PARTITIONS:REPLICAS, or NAME= and the replicas of each partition.",
    ),
    "profile": (TEXT, text_of, "The release to behave as; `mockbroker profiles` lists them."),
    "host": (TEXT, text_of, "The listening address; 127.0.0.1 by default."),
    "port": (*_between(0, 65535), "The port of broker 1; the others follow. 0 takes free ports."),
    "advertise": (
        {**TEXT, "examples": ["broker.test:9092"]},
        lambda name, value: parse_endpoint(text_of(name, value)),
        "The HOST[:PORT] of broker 1 in Metadata.",
    ),
    "apis": (
        {**_MAP_OF_TEXT, "examples": [{"45": "0-0", "46": "off"}]},
        _apis,
        "API versions that differ from the profile's, by API key.",
    ),
    "implemented_only": (*_FLAG, "Hide APIs without a handler."),
    "dialect": (
        {"type": "string", "enum": list(DIALECTS)},
        _dialect,
        "Replaces the profile's dialect.",
    ),
    "auto_progress_ms": (
        *_nullable(_between(1, 10**9)),
        "The interval at which one replica joins an ISR.",
    ),
    "clock": (*choice("wall", "manual"), "manual: only `advance` moves the simulated time."),
    "auto_create_topics": (*_FLAG, "Metadata creates unknown topics if the client allows."),
    "broker_configs": (_MAP_OF_TEXT, _map, "Static configs of every broker, by Kafka's names."),
    "own_broker_configs": (
        {"type": "object", "additionalProperties": _MAP_OF_TEXT},
        _own_configs,
        "Static configs that single brokers have instead, by id.",
    ),
    "racks": (
        {**_MAP_OF_TEXT, "examples": [{"1": "a", "2": "b"}]},
        _by_broker,
        "The racks of brokers, by id.",
    ),
    "features": (
        {
            "type": "object",
            "additionalProperties": {"type": "integer", "minimum": 0},
            "examples": [{"transaction.version": 1}],
        },
        _levels,
        "Levels of features that differ from the profile's.",
    ),
    "client_telemetry": (*_FLAG, "Take the metrics that clients push (KIP-714)."),
    "reply35": (*_FLAG, "Answer unsupported versions with error 35."),
    "log_bytes": (
        *_between(1, MAX_INTEGER),
        "The most bytes of record batches in all logs; past it the oldest go.",
    ),
    "data_actions": (*_between(1, MAX_INTEGER), "The most events of logs that are kept."),
    "auto_retention_ms": (
        *_nullable(_between(1, 10**9)),
        "The interval at which retention is applied to all logs.",
    ),
    "data_waits": (
        *choice("real", "virtual"),
        "virtual: long polls and produce requests wait by the simulated time.",
    ),
    "cut_last_batch": (*_FLAG, "The limits of a fetch may cut its last batch, as Kafka does."),
    "max_frame_bytes": (*_between(1, DEFAULT_MAX_SIZE), "The largest request."),
    "max_connections": (*_between(1, 1_000_000), "The most connections of one broker."),
    "max_buffered_bytes": (
        *_between(1, MAX_INTEGER),
        "The most bytes of pending requests and unread answers, over all connections.",
    ),
    "idle_timeout_ms": (
        *_nullable(_between(1, MAX_INTEGER)),
        "Close connections that are idle for this long; null for never.",
    ),
    "journal_entries": (*_between(1, MAX_INTEGER), "The most entries the journal keeps."),
    "journal_bytes": (*_between(0, MAX_INTEGER), "The most bytes the journal keeps."),
    "sasl": (
        array_of(TEXT),
        _texts,
        "MECHANISM:USER:PASSWORD or OAUTHBEARER; requires clients to authenticate.",
    ),
    "oauth_clients": (
        array_of(TEXT),
        _texts,
        "ID:SECRET or ID:SECRET:SCOPE ... of clients that get signed tokens at /oauth/token.",
    ),
    "scram_iterations": (
        *_nullable(_between(1, 2**31 - 1)),
        "A false iteration count for SCRAM's first answer.",
    ),
    "scram_final": (
        *_nullable((TEXT, text_of)),
        "Replaces the server's proof at the end of SCRAM.",
    ),
    "authorizer": (
        {
            "type": "object",
            "properties": {
                "super_users": array_of(TEXT),
                "allow_everyone_if_no_acl_found": BOOLEAN,
            },
            "additionalProperties": False,
        },
        _authorizer,
        "Enforces access rules.",
    ),
    "zookeeper": (TEXT, text_of, "HOST:PORT[/CHROOT] of the ZooKeeper server to use."),
    "zxid": (
        *_between(0, 2**63 - 1),
        "The last zxid before the cluster's first, without `zookeeper`.",
    ),
    "propagation_ms": (
        *_between(0, 10**9),
        "How long changes take to reach each broker's metadata.",
    ),
    "busy_elections_fail": (*_FLAG, "KIP-183: a second concurrent election fails with error 7."),
    "inter_broker": (*_nullable(_FLAG), "Whether the controller sends requests to its brokers."),
    "external_brokers": (
        _MAP_OF_TEXT,
        _external,
        "HOST:PORT of brokers in other processes, by id.",
    ),
    "broker_levels": (_MAP_OF_TEXT, _by_broker, "The software of brokers that differ, by id."),
    "faults": (array_of(ref("Fault")), _rules, "Fault rules to add before the cluster starts."),
}

CLUSTER_OPTIONS: Final = tuple(
    Member(name, schema, read, text, required=False)
    for name, (schema, read, text) in _TABLE.items()
)
