"""The arguments of ``MockCluster`` as JSON: the body of ``POST /clusters``.

Those that are objects of Python, or files of this machine, are left out: ``journal``, ``tls``,
``strict_faults``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kproto.dialects import DIALECTS
from kproto.framing import DEFAULT_MAX_SIZE
from mockbroker.commands import MAX_INTEGER, integer_of, text_of
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
from mockbroker.security.authorizer import Authorizer
from mockbroker.serving.endpoints import parse_endpoint
from mockbroker.serving.served_versions import parse_api_override

__all__ = ["OPTIONS"]

_MOST_BROKERS: Final = 1000
_MOST_TOPICS: Final = 10_000


def _between(lowest: int, highest: int) -> tuple[Schema, Callable[[str, Any], int]]:
    def read(name: str, value: Any) -> int:
        number = integer_of(name, value)
        if not lowest <= number <= highest:
            raise ClusterError(f'"{name}" is {number}: {lowest} to {highest} is possible')
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
        raise ClusterError(f'"{name}" must be a list of texts, not {value!r:.80}')
    return [text_of(name, each) for each in value]


def _map(name: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ClusterError(f'"{name}" must be an object, not {value!r:.80}')
    return {key: text_of(f"{name}.{key}", each) for key, each in value.items()}


def _by_broker(name: str, value: Any) -> dict[int, str]:
    found = {}
    for key, text in _map(name, value).items():
        if not (key.isascii() and key.isdigit() and len(key) < 10):
            raise ClusterError(f'"{name}" has a member {key!r:.80}, which is no broker id')
        found[int(key)] = text
    return found


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
    """By name alone: a folder would be one of the machine that serves."""
    if value not in DIALECTS:
        raise ClusterError(f'"{name}" must be one of {", ".join(DIALECTS)}, not {value!r:.80}')
    return str(value)


def _authorizer(name: str, value: Any) -> Authorizer:
    known = {"super_users", "allow_everyone_if_no_acl_found"}
    if not isinstance(value, dict) or not value.keys() <= known:
        raise ClusterError(f'"{name}" must be an object of {", ".join(sorted(known))}')
    users = _texts(f"{name}.super_users", value.get("super_users", []))
    open_otherwise = value.get("allow_everyone_if_no_acl_found", False)
    return Authorizer(frozenset(users), _flag(name, open_otherwise))


def _rules(_name: str, value: Any) -> Any:
    return faults_of(value)


_FLAG: Final = (BOOLEAN, _flag)
_MAP_OF_TEXT: Final[Schema] = {"type": "object", "additionalProperties": TEXT}

_TABLE: Final[dict[str, tuple[Schema, Callable[[str, Any], Any], str]]] = {
    "brokers": (*_between(1, _MOST_BROKERS), "How many; ids 1 to N, controller 1."),
    "topics": (
        {**array_of(TEXT), "examples": [["foo:2:3", "bar=1,2,3/2,3,4"]]},
        _texts,
        "NAME:PARTITIONS:REPLICAS, or the replicas of each partition.",
    ),
    "profile": (TEXT, text_of, "The release to behave as; `mockbroker profiles` lists them."),
    "host": (TEXT, text_of, "Where brokers listen; 127.0.0.1 unless given."),
    "port": (*_between(0, 65535), "Broker n takes the n-th from here; 0, any free ones."),
    "advertise": (
        {**TEXT, "examples": ["broker.test:9092"]},
        lambda name, value: parse_endpoint(text_of(name, value)),
        "HOST[:PORT] that Metadata gives for broker 1.",
    ),
    "apis": (
        {**_MAP_OF_TEXT, "examples": [{"45": "0-0", "46": "off"}]},
        _apis,
        "Versions of api keys where they differ from the profile's.",
    ),
    "implemented_only": (*_FLAG, "Hide the apis nobody wrote an answer for."),
    "dialect": ({"type": "string", "enum": list(DIALECTS)}, _dialect, "In place of the profile's."),
    "auto_progress_ms": (
        *_nullable(_between(1, 10**9)),
        "One replica joins an ISR each time this has passed.",
    ),
    "clock": (*choice("wall", "manual"), "manual: simulated time moves by `advance` alone."),
    "auto_create_topics": (*_FLAG, "When Metadata asks for one, and the client allows."),
    "broker_configs": (_MAP_OF_TEXT, _map, "Static configs of every broker, by Kafka's names."),
    "reply35": (*_FLAG, "Answer versions that are not served with error 35."),
    "max_frame_bytes": (*_between(1, DEFAULT_MAX_SIZE), "Of a request, at most."),
    "max_connections": (*_between(1, 1_000_000), "Of one broker, at most."),
    "max_buffered_bytes": (
        *_between(1, MAX_INTEGER),
        "Of requests not whole or not answered yet and answers unread, of all connections.",
    ),
    "idle_timeout_ms": (
        *_nullable(_between(1, MAX_INTEGER)),
        "A connection on which nothing comes or goes for so long is closed; null, never.",
    ),
    "journal_entries": (*_between(1, MAX_INTEGER), "The newest so many are kept."),
    "journal_bytes": (*_between(0, MAX_INTEGER), "Of frames, client ids and notes kept."),
    "sasl": (array_of(TEXT), _texts, "MECHANISM:USER:PASSWORD; with any, clients authenticate."),
    "scram_iterations": (
        *_nullable(_between(1, 2**31 - 1)),
        "What SCRAM's first answer claims, in place of the truth.",
    ),
    "scram_final": (*_nullable((TEXT, text_of)), "In place of the broker's proof."),
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
        "Enforce access rules.",
    ),
    "zookeeper": (TEXT, text_of, "HOST:PORT[/CHROOT] of a real one, to keep znodes in."),
    "zxid": (*_between(0, 2**63 - 1), "The last one before this cluster's, without zookeeper."),
    "propagation_ms": (*_between(0, 10**9), "How long every broker takes to hear of a change."),
    "busy_elections_fail": (*_FLAG, "KIP-183: a second election at a time is told 7 at once."),
    "inter_broker": (*_nullable(_FLAG), "Whether the controller talks to its brokers."),
    "external_brokers": (_MAP_OF_TEXT, _external, "HOST:PORT of brokers that are elsewhere."),
    "broker_levels": (_MAP_OF_TEXT, _by_broker, "Brokers that start with other software."),
    "faults": (array_of(ref("Fault")), _rules, "Rules that are in use from the start."),
}

OPTIONS: Final = tuple(
    Member(name, schema, read, text, required=False)
    for name, (schema, read, text) in _TABLE.items()
)
