"""One change to a valid request: a leaf, an array, tags of an object, or the end of the body."""

from __future__ import annotations

import copy
import itertools
import random
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from kproto.schema.model import Field, Struct
from mockbroker.simulation.configs.broker_facts import BROKER_FACTS
from mockbroker.simulation.configs.definitions import config_definitions
from mockbroker.simulation.releases.release import Release
from tests.real.data.batches import changed
from tests.real.search.encode import BYTES, TAGS, default_of, field_name
from tests.real.search.requests import batch_text, row_of, schema

__all__ = ["Change", "apply", "changes", "draw_change"]

Path = tuple[str | int, ...]

_LIMITS: Final = {
    "int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63, "uint16": 2**16, "uint32": 2**32,
}  # fmt: skip
UNKNOWN_ID: Final = "CCCCCCCCCCCCCCCCCCCCCA"
INTERNAL_TOPIC: Final = "__consumer_offsets"
_WITH_INTERNAL_TOPICS: Final = frozenset({3, 19, 29, 30, 31})
"""APIs for which it counts that a topic is internal, and not what all programs have put there."""
LEAST_WAIT_MS: Final = 1000
CONFIGS: Final = 0.4
"""How many changes of requests with configs are of a config."""
KNOWN_CONFIGS: Final = 0.6
"""How many of these are of any config that Kafka has for the type of resource."""
_CREATE_TOPICS: Final = 19
_PRODUCERS: Final = "producerId"
"""A type of entities."""
LONG: Final = "l" * 300
LONGEST: Final = "L" * 5000

_SHARED_TEXTS: Final = ("-1", "NONE")
_TEXTS: Final = (
    "", "$a b", ".", "$none", f"${LONG}", f"${LONGEST}", "$é", "$t", "$g", INTERNAL_TOPIC,
    *_SHARED_TEXTS,
)  # fmt: skip
"""Those with a dollar are the program's own: groups and topics of others would change."""
_ENDS: Final = (-1, -2, -7)
_TAGS: Final = ({"99": "0102"}, {"1000000": ""}, {"0": "00"})


_CONFIG_NAMES: Final = (
    "retention.ms", "segment.bytes", "cleanup.policy", "compression.type", "min.insync.replicas",
    "message.timestamp.type", "max.message.bytes", "flush.ms", "unclean.leader.election.enable",
    "internal.segment.bytes", "remote.storage.enable", "local.retention.ms", "num.io.threads",
    "message.format.version", "follower.replication.throttled.replicas", "segment.jitter.ms",
    "log.retention.ms", "advertised.listeners", "max.connections", "log.cleaner.threads",
    "share.auto.offset.reset", "consumer.session.timeout.ms", "share.record.lock.duration.ms",
    "streams.num.standby.replicas", "interval.ms", "metrics", "match",
)  # fmt: skip
_CONFIG_VALUES: Final = (
    "", " 1 ", "x", "-1", "0", "1", "100", "1.5", "a,b", "compact", "compact,delete", "delete,x",
    "gzip", "zstd", "true", "TRUE", "yes", "9223372036854775807", "9223372036854775808",
    "LogAppendTime", "4.0", "0:1,1:1", "*", "earliest", "by_duration:PT1H", "by_duration:x", None,
)  # fmt: skip
_LATEST: Final = config_definitions(Release((99, 0)))
_OF_TOPICS: Final = (*_LATEST.topic, "message.format.version", "message.downconversion.enable")
_OF_GROUPS: Final = tuple(_LATEST.group)
_OF_BROKERS: Final = tuple(dict.fromkeys(each[0] for each in BROKER_FACTS))
_ITEMS: Final = ("", "", " ", "x", "*", "0:1")
_LISTS: Final = {
    name: (*_ITEMS, *each.choices, *filter(None, (each.default or "").split(",")))
    for group in (_LATEST.topic, _LATEST.broker, _LATEST.group)
    for name, each in group.items()
    if each.type == "LIST"
}
"""Configs that are lists, with items that each may have or not."""
LISTS: Final = 0.6
"""How many values of lists are made of these items."""
_LOGGERS: Final = ("kafka", "kafka.controller", "org.apache.kafka", "root", "no.such", "ROOT")
_LEVELS: Final = ("INFO", "debug", "OFF", "x", "", None)
_KINDS: Final = (
    (2, "$t", (_OF_TOPICS, _CONFIG_VALUES)),
    (4, "1", (_OF_BROKERS, _CONFIG_VALUES)),
    (4, "", (_OF_BROKERS, _CONFIG_VALUES)),
    (32, "$s", (_OF_GROUPS, _CONFIG_VALUES)),
    (8, "1", (_LOGGERS, _LEVELS)),
)
"""Types of resources with a name, and configs and values of the type."""
_RESOURCES: Final[Sequence[dict[str, Any]]] = (
    {},
    {"resourceType": 4, "resourceName": "1"},
    {"resourceType": 4, "resourceName": ""},
    {"resourceType": 16, "resourceName": "$metrics"},
    {"resourceType": 32, "resourceName": "$s"},
)
"""The request's own, a broker, all brokers, a subscription to metrics, and a group."""
_WITH_CONFIGS: Final = (19, 33, 44)

UNKNOWN_PRODUCER: Final = 999_983
"""Any small number may be the id of a program's producer, on one side only."""
_HEADERS: Final[Sequence[dict[str, int]]] = (
    {"producer_id": UNKNOWN_PRODUCER, "producer_epoch": 0, "base_sequence": 0},
    {"producer_id": UNKNOWN_PRODUCER, "producer_epoch": 0, "base_sequence": 3},
    {"producer_id": UNKNOWN_PRODUCER, "producer_epoch": 0, "base_sequence": 0, "attributes": 16},
    {"attributes": 16}, {"attributes": 32}, {"attributes": 8}, {"attributes": 5},
    {"base_offset": 7}, {"last_offset_delta": 5}, {"last_offset_delta": 0}, {"record_count": 1},
    {"partition_leader_epoch": 9}, {"max_timestamp": -1}, {"magic": 3}, {"batch_length": 49},
)  # fmt: skip
"""Headers of batches of two records that are otherwise whole."""


class Change(NamedTuple):
    """``path`` leads into the body; what was there becomes ``value``."""

    path: Path
    value: Any

    def __str__(self) -> str:
        shown = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in self.path)
        return f"{shown.lstrip('.')} = {str(self.value)[:60]}"


def apply(body: dict[str, Any], change: Change) -> dict[str, Any]:
    made = copy.deepcopy(body)
    inner: Any = made
    for each in change.path[:-1]:
        inner = inner[each]
    inner[change.path[-1]] = copy.deepcopy(change.value)
    return made


def draw_change(draw: random.Random, api_key: int, version: int, body: dict[str, Any]) -> Change:
    """Fields first, then one of a field's changes, so that long lists of values weigh no more."""
    if api_key in _WITH_CONFIGS and draw.random() < CONFIGS:
        config = _draw_config(draw, body)
        if config is not None:
            return config
    fields = list(_fields(api_key, version, body))
    while True:
        found = list(draw.choice(fields))
        if found:
            return draw.choice(found)


def changes(api_key: int, version: int, body: dict[str, Any]) -> list[list[Change]]:
    """Every change that is tried, by field."""
    return [found for each in _fields(api_key, version, body) if (found := list(each))]


def _fields(api_key: int, version: int, body: dict[str, Any]) -> Iterator[Iterable[Change]]:
    """The changes of each field. Only those of the one that is drawn are made."""
    kind = schema(api_key)
    for field in _object(api_key, kind.root, version, body, ()):
        yield (
            each
            for each in field
            if api_key in _WITH_INTERNAL_TOPICS or INTERNAL_TOPIC not in str(each.value)
        )
    yield [Change((BYTES,), each) for each in _ENDS]
    if version in kind.flexible_versions:
        yield [Change((TAGS,), each) for each in _TAGS]


def _draw_config(draw: random.Random, body: dict[str, Any]) -> Change | None:
    """A row with another config, whose value may be of another type; None where there is no row."""
    path: Path = ()
    row: Any = body
    for name in ("resources", "topics"):
        if row.get(name):
            path, row = (name, 0), row[name][0]
    if not row.get("configs"):
        return None
    given: dict[str, Any]
    if draw.random() < KNOWN_CONFIGS:
        kinds = _KINDS if "resourceType" in row else _KINDS[:1]
        kind, resource, (names, values) = draw.choice(kinds)
        given = {"name": draw.choice(names), "value": draw.choice(values)}
        of_kind = {"resourceType": kind, "resourceName": resource}
    else:
        given = {"name": draw.choice(_CONFIG_NAMES), "value": draw.choice(_CONFIG_VALUES)}
        of_kind = draw.choice(_RESOURCES)
    if given["name"] in _LISTS and draw.random() < LISTS:
        items = draw.choices(_LISTS[given["name"]], k=draw.randrange(4))
        given["value"] = ",".join(items)
        if "configOperation" in row["configs"][0]:
            given["configOperation"] = draw.randrange(4)
    changed = {**row, "configs": [{**row["configs"][0], **given}]}
    if "resourceType" in row:
        changed.update(of_kind)
    return Change(path, changed)


def _object(
    api_key: int, kind: Struct, version: int, value: dict[str, Any], path: Path
) -> Iterator[Iterator[Change]]:
    for field in kind.fields:
        if version not in field.versions:
            continue
        name = field_name(field)
        yield _of_field(api_key, field, version, value.get(name, default_of(field)), (*path, name))
        inner = field.type.inner_struct
        if inner is None or not value.get(name):
            continue
        if field.type.kind == "array":
            for place, row in enumerate(value[name]):
                yield from _object(api_key, inner, version, row, (*path, name, place))
        else:
            yield from _object(api_key, inner, version, value[name], (*path, name))


def _of_field(api_key: int, field: Field, version: int, value: Any, path: Path) -> Iterator[Change]:
    options: Sequence[Any]
    if field.type.kind == "array":
        options = _arrays(api_key, field, version, value, path)
    elif field.type.struct is not None:
        options = [None] if field.is_nullable(version) else []
        options += _whole(api_key, field.type.struct, version, path)
    else:
        options = _values(api_key, field, field.type.kind, value)
    seen: list[Any] = [value]
    timed = field_name(field).endswith("imeoutMs") or field_name(field) == "maxWaitMs"
    for each in options:
        if timed and isinstance(each, int) and 0 < each < LEAST_WAIT_MS:
            continue  # whether the broker is faster is chance
        if each not in seen:
            seen.append(each)
            yield Change(path, each)


_VARIED: Final = (0, 1, 4)
"""Of a text null, the empty one and an unknown one."""


def _whole(api_key: int, kind: Struct, version: int, path: Path) -> list[dict[str, Any]]:
    """A valid object, and others that differ from it in one place."""
    name = "".join("[]" if isinstance(each, int) else f".{each}" for each in path).lstrip(".")
    valid = row_of(api_key, version, kind, name)
    return [valid, *_varied(api_key, kind, version, valid)]


def _varied(
    api_key: int, kind: Struct, version: int, row: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """``row`` with one part changed, a few of each field's changes."""
    for field in _object(api_key, kind, version, row, ()):
        for place, change in enumerate(itertools.islice(field, max(_VARIED) + 1)):
            if place in _VARIED:
                yield apply(row, change)


def _arrays(api_key: int, field: Field, version: int, value: Any, path: Path) -> list[Any]:
    element = field.type.element
    assert element is not None
    rows: list[Any] = list(value or ())
    options: list[Any] = [[], None]
    if element.struct is None:
        row = rows[0] if rows else {"string": "", "uuid": UNKNOWN_ID}.get(element.kind, 0)
        values = _values(api_key, field, element.kind, row)
        options += [[row], [row, row]]
        options += [[each] for each in values if each is not None]
        options += [[row, each] for each in values[:3] if each is not None]
        return options
    if not rows:
        empty = {field_name(each): _plain(each) for each in element.struct.fields
                 if version in each.versions and not each.is_tagged(version)}  # fmt: skip
        whole = _whole(api_key, element.struct, version, (*path, 0))
        return [*options, [empty], [empty, empty], *([each] for each in whole)]
    others = _varied(api_key, element.struct, version, rows[0])
    return [*options, [*rows, rows[0]], rows[:1] * 3, *([*rows, each] for each in others)]


def _plain(field: Field) -> Any:
    if field.type.kind == "array":
        return []
    if field.type.struct is not None:
        return {field_name(each): _plain(each) for each in field.type.struct.fields}
    return {
        "string": "x",
        "uuid": UNKNOWN_ID,
        "bytes": "eA==",
        "records": "eA==",
        "bool": False,
    }.get(field.type.kind, 0)


def _values(api_key: int, field: Field, kind: str, value: Any) -> Sequence[Any]:
    """What stands in place of a leaf, or of an element of an array of them."""
    if api_key == _CREATE_TOPICS and field.entity_type == "topicName":
        return [each for each in _leaves(kind, value) if each not in _SHARED_TEXTS]
    if field.entity_type == _PRODUCERS:
        return [-1, -2, UNKNOWN_PRODUCER, -_LIMITS[kind], _LIMITS[kind] - 1]
    return _leaves(kind, value)


def _leaves(kind: str, value: Any) -> Sequence[Any]:
    if kind == "bool":
        return [not value]
    if kind == "float64":
        return [0.0, -1.0, 0.5, 1e308]
    if kind in _LIMITS:
        limit = _LIMITS[kind]
        low, high = (0, limit - 1) if kind.startswith("u") else (-limit, limit - 1)
        near = [value - 1, value + 1] if isinstance(value, int) else []
        return [
            each
            for each in (0, 1, -1, -2, 2, 3, 4, 5, 8, 16, 32, 99, low, high, *near)
            if low <= each <= high
        ]
    if kind == "uuid":
        return ["A" * 22, UNKNOWN_ID, "AAAAAAAAAAAAAAAAAAAAAQ", "$tid"]
    if kind == "string":
        return [None, *_TEXTS, *([f"{value}.x", value.upper()] if value else [])]
    if kind == "bytes":
        return [None, "", "eA==", b64encode(bytes(1000)).decode()]
    return _records(value if isinstance(value, str) else batch_text())


@cache
def _records(value: str) -> list[Any]:
    data = b64decode(value or "")
    damaged = bytearray(data)
    if len(damaged) > 21:
        damaged[20] ^= 1
    raw = [b"", data[:11], data[:12], data[:17], data[:-1], data[:61], data + bytes(12),
           data + bytes(16), data + bytes(61), data + b"\xff" * 12, data + data,
           bytes(damaged)]  # fmt: skip
    made = [batch_text(magic=magic) for magic in (0, 1, 2)]
    for codec in ("GZIP", "SNAPPY", "LZ4", "ZSTD"):
        made.append(batch_text(codec=codec))
    whole = b64decode(batch_text())
    for fields in _HEADERS:
        made.append(b64encode(changed(whole, **fields)).decode())
    return [None, *(b64encode(each).decode() for each in raw), *made]
