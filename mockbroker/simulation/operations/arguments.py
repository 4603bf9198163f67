"""The arguments of operations: how their values are written in Python, as text and as JSON.

A parameter of an operation is annotated with one of the types at the end of this module, such as
``BrokerArgument``, or with ``Annotated[int, Argument(...)]``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

from kproto.schema.versions import Versions
from mockbroker.errors import ClusterError
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.log.batches.corruption_names import CORRUPTIONS
from mockbroker.simulation.log.batches.record_documents import parse_batch
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.state.option_types import integer_of, parse_milliseconds, text_of
from mockbroker.simulation.topics.spec import parse_topic_partition

__all__ = [
    "BROKER_ID",
    "CONFIG_VALUE",
    "COUNT",
    "DEFAULT_BODY_BYTES",
    "MILLISECONDS",
    "TOPIC_PARTITION",
    "WORD",
    "ZNODE_BODY_BYTES",
    "AnyPartitionArgument",
    "AnyTransactionArgument",
    "Argument",
    "ArgumentType",
    "BrokerArgument",
    "BrokerChoice",
    "CorruptionArgument",
    "DirectoryArgument",
    "DurationArgument",
    "FollowerArgument",
    "GroupArgument",
    "KeyArgument",
    "KindArgument",
    "Level",
    "LevelArgument",
    "MemberArgument",
    "OffsetArgument",
    "PartitionArgument",
    "PathArgument",
    "Place",
    "PlaceArgument",
    "RecordsArgument",
    "ReleaseArgument",
    "TargetArgument",
    "TopicNameArgument",
    "TransactionArgument",
]

DEFAULT_BODY_BYTES: Final = 64 * 1024
"""The largest JSON object for most operations."""
ZNODE_BODY_BYTES: Final = 8 * 1024 * 1024
"""ZooKeeper stores 1 MiB per znode; JSON may need six bytes for each of them."""
_RECORDS_BODY_BYTES: Final = 8 * 1024 * 1024

BrokerChoice: TypeAlias = int | Literal["self", "other"]
"""A broker id. In a fault rule also ``self``, the broker that received the request, and ``other``,
the live broker with the lowest id among the rest."""

Level: TypeAlias = str | Mapping[int, Versions | None]
"""A broker's software: a release (``"kafka-2.3"``), the API versions that differ from the
cluster's (``"4=0-2,45=off"``, or by API key, where None hides one), or ``"cluster"`` for none."""


class Place(msgspec.Struct, frozen=True):
    """A broker, the listeners of a name, or one listener of a broker."""

    broker_id: int | None = None
    listener: str | None = None

    def has(self, broker_id: int, listener: str) -> bool:
        """Whether the listener of this broker is there."""
        return self.broker_id in (None, broker_id) and self.listener in (None, listener)

    def __str__(self) -> str:
        return "/".join(str(each) for each in (self.broker_id, self.listener) if each is not None)


class ArgumentType(msgspec.Struct, frozen=True):
    """How a value is written. ``schema`` describes it as JSON; ``from_json`` takes the argument's
    name and the JSON value, ``from_text`` the text. Both raise ClusterError.

    ``accepts`` is the type that Python methods take: text is read with ``from_text``, anything else
    with ``from_value``, by default as JSON is. An argument ``to_end`` takes the rest of the
    operation's text, spaces included; every other one takes a word. ``max_body_bytes`` bounds the
    JSON object that holds it.
    """

    metavar: str
    schema: Mapping[str, Any]
    from_json: Callable[[str, Any], Any]
    from_text: Callable[[str], Any]
    to_text: Callable[[Any], str] = str
    accepts: Any = str
    from_value: Callable[[str, Any], Any] | None = None
    to_end: bool = False
    max_body_bytes: int = DEFAULT_BODY_BYTES


class Argument(msgspec.Struct, frozen=True):
    """An argument of an operation, whose value has the type ``type``.

    ``name`` is its member of the JSON object, by default that of the parameter; in Python it is
    always called like the parameter. ``metavar`` stands for it in usage lines.

    An ``optional`` argument may be left out of a text, where all arguments behind it are optional
    too, and of a JSON object, where it may be null as well. Its value is then None.
    """

    type: ArgumentType
    help: str = ""
    name: str = ""
    parameter: str = ""
    optional: bool = False

    @property
    def metavar(self) -> str:
        return self.type.metavar or self.name.upper().replace("_", "-")

    @property
    def accepts(self) -> Any:
        """The type that Python methods take."""
        return self.type.accepts | None if self.optional else self.type.accepts

    def from_json(self, name: str, value: Any) -> Any:
        """Read a JSON value. Raises ClusterError."""
        return None if self.optional and value is None else self.type.from_json(name, value)

    def from_text(self, text: str, *, relative_brokers: bool = False) -> Any:
        """Read a text. Raises ClusterError, also for ``self`` and ``other`` unless brokers may be
        relative to a request."""
        value = self.type.from_text(text)
        if self.type is BROKER_ID and isinstance(value, str) and not relative_brokers:
            raise ClusterError(f"{value!r} has a meaning in fault rules only")
        return value

    def from_python(self, value: Any) -> Any:
        """Read a value that a Python method was called with. Raises ClusterError."""
        if value is None and self.optional:
            return None
        if isinstance(value, str):
            return self.from_text(value)
        return (self.type.from_value or self.type.from_json)(self.parameter, value)


# ---- values --------------------------------------------------------------------------------------


def _text_or_null(name: str, value: Any) -> str | None:
    return None if value is None else text_of(name, value)


def _milliseconds(name: str, value: Any) -> int:
    return parse_milliseconds(value) if isinstance(value, str) else integer_of(name, value)


def _partition(name: str, value: Any) -> TopicPartition:
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be a string such as "foo-0", not {value!r:.80}')
    return parse_topic_partition(value)


def _partition_value(name: str, value: Any) -> TopicPartition:
    match value:
        case (str() as topic, int() as index) if not isinstance(index, bool):
            return topic, index
    return _partition(name, value)


def _level(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be a string such as "4=0-2", not {value!r:.80}')
    return value


def _level_value(name: str, value: Any) -> Level:
    if not isinstance(value, Mapping):
        return _level(name, value)
    for api_key, versions in value.items():
        integer_of(f"a key of {name}", api_key)
        if not isinstance(versions, Versions | None):
            raise ClusterError(f'"{name}" must have Versions or None, not {versions!r:.80}')
    return value


def _broker_word(word: str) -> BrokerChoice:
    if word == "self":
        return "self"
    if word == "other":
        return "other"
    if not re.fullmatch(r"[0-9]{1,9}", word):
        raise ClusterError(f"{word!r} is not a broker id")
    return int(word)


def _count_word(word: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", word):
        raise ClusterError(f"{word!r} is not a count")
    return int(word)


def _place(text: str) -> Place:
    broker, slash, listener = text.partition("/")
    if not re.fullmatch(r"[0-9]{1,9}", broker):
        broker, slash, listener = "", "/", text
    if (slash and not listener) or "/" in listener:
        raise ClusterError(
            f"{text!r:.80} is not a broker id (2), the name of a listener (EXTERNAL), or both "
            "(2/EXTERNAL)"
        )
    return Place(int(broker) if broker else None, listener.upper() or None)


_KINDS: Final = {kind.name.lower(): kind for kind in CoordinatorKind}


def _kind(name: str, value: Any) -> CoordinatorKind:
    if not isinstance(value, str) or value.lower() not in _KINDS:
        raise ClusterError(f'"{name}" must be one of {", ".join(_KINDS)}, not {value!r:.80}')
    return _KINDS[value.lower()]


def _kind_value(name: str, value: Any) -> CoordinatorKind:
    return value if isinstance(value, CoordinatorKind) else _kind(name, value)


def _records_json(name: str, value: Any) -> str:
    text = json.dumps(value) if isinstance(value, dict | list) else text_of(name, value)
    return _records_text(text)


def _records_text(text: str) -> str:
    parse_batch(text)
    return text


def _target_json(name: str, value: Any) -> dict[str, list[TopicPartition]]:
    if isinstance(value, str):
        return _target_text(value)
    if not isinstance(value, dict) or not all(isinstance(each, list) for each in value.values()):
        raise ClusterError(
            f'"{name}" must be an object of members with lists of partitions, not {value!r:.80}'
        )
    return {
        member: [_partition(name, each) for each in partitions]
        for member, partitions in value.items()
    }


def _target_text(text: str) -> dict[str, list[TopicPartition]]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ClusterError(f"{text!r:.80} is not JSON: {error}") from None
    return _target_json("target", None if isinstance(value, str) else value)


def _target_value(name: str, value: Any) -> dict[str, list[TopicPartition]]:
    if not isinstance(value, Mapping):
        return _target_json(name, value)
    lists = {text_of(f"a member of {name}", each): given for each, given in value.items()}
    if not all(isinstance(given, Sequence) for given in lists.values()):
        raise ClusterError(f'"{name}" must have lists of partitions, not {value!r:.80}')
    return {
        member: [_partition_value(name, each) for each in given] for member, given in lists.items()
    }


def _target_words(target: Mapping[str, Sequence[TopicPartition]]) -> str:
    return json.dumps(
        {member: [f"{name}-{index}" for name, index in each] for member, each in target.items()}
    )


# ---- types ---------------------------------------------------------------------------------------

BROKER_ID: Final = ArgumentType(
    "BROKER", {"type": "integer"}, integer_of, _broker_word, accepts=int | str
)
TOPIC_PARTITION: Final = ArgumentType(
    "TOPIC-PARTITION",
    {"type": "string", "pattern": "-[0-9]+$", "examples": ["foo-0"]},
    _partition,
    parse_topic_partition,
    lambda partition: f"{partition[0]}-{partition[1]}",
    accepts=str | TopicPartition,
    from_value=_partition_value,
)
MILLISECONDS: Final = ArgumentType(
    "DURATION",
    {
        "description": "Milliseconds as an integer, or a string with a unit.",
        "examples": ["500ms", "2s", "1m", 500],
        "oneOf": [
            {"type": "integer", "minimum": 0},
            {"type": "string", "pattern": "^([0-9]{1,12}(ms|s|m|h)|0)$"},
        ],
    },
    _milliseconds,
    parse_milliseconds,
    lambda milliseconds: f"{milliseconds}ms",
    accepts=int | str,
)
COUNT: Final = ArgumentType(
    "", {"type": "integer", "minimum": 0}, integer_of, _count_word, accepts=int | str
)
WORD: Final = ArgumentType("", {"type": "string"}, text_of, str)
ZNODE_PATH: Final = ArgumentType(
    "PATH", {"type": "string", "examples": ["/admin/reassign_partitions"]}, text_of, str
)
ZNODE_TEXT: Final = ArgumentType(
    "TEXT", {"type": "string"}, text_of, str, to_end=True, max_body_bytes=ZNODE_BODY_BYTES
)
ZNODE_TEXT_OR_NULL: Final = ArgumentType(
    "TEXT", {"type": ["string", "null"]}, _text_or_null, str, accepts=str | None, to_end=True,
    max_body_bytes=ZNODE_BODY_BYTES,
)  # fmt: skip
CONFIG_VALUE: Final = ArgumentType(
    "", {"type": "string", "examples": ["compact"]}, text_of, str, to_end=True
)
TOPIC_TEXT: Final = ArgumentType(
    "TOPIC", {"type": "string", "examples": ["foo:2:3", "foo=1,2,3/2,3,4"]}, text_of, str
)
SOFTWARE_LEVEL: Final = ArgumentType(
    "LEVEL",
    {"type": "string", "examples": ["kafka-2.3", "4=0-2,45=off", "cluster"]},
    _level,
    str,
    accepts=Level,
    from_value=_level_value,
)
RELEASE_NAME: Final = ArgumentType(
    "RELEASE", {"type": "string", "examples": ["kafka-3.9", "kafka-3.9-zk"]}, text_of, str
)
PLACE: Final = ArgumentType(
    "BROKER|LISTENER",
    {"type": "string", "examples": ["2", "EXTERNAL", "2/EXTERNAL"]},
    lambda name, value: _place(text_of(name, value)),
    _place,
    accepts=int | str,
    from_value=lambda name, value: (
        value if isinstance(value, Place) else _place(str(integer_of(name, value)))
    ),
)
DIRECTORY_PATH: Final = ArgumentType(
    "DIRECTORY", {"type": "string", "examples": ["/var/lib/kafka/data"]}, text_of, str
)
ADDRESS: Final = ArgumentType(
    "HOST:PORT", {"type": "string", "examples": ["localhost:32768"]}, text_of, str
)
RECORDS_TEXT: Final = ArgumentType(
    "RECORDS",
    {
        "type": ["string", "object", "array"],
        "description": "The value of a record; a record as a JSON object with `key`, `value`, "
        "`headers` and `timestamp`; a list of records; an object with `records`, `codec`, "
        '`producer_id`, `producer_epoch`, `base_sequence`, `transactional`; or {"batch": "HEX"}.',
        "examples": ["hello", {"key": "k", "value": "v"}],
    },
    _records_json,
    _records_text,
    to_end=True,
    max_body_bytes=_RECORDS_BODY_BYTES,
)
CORRUPTION_TEXT: Final = ArgumentType(
    "HOW", {"type": "string", "enum": list(CORRUPTIONS)}, text_of, str
)
COORDINATOR_KIND: Final = ArgumentType(
    "KIND",
    {"type": "string", "enum": list(_KINDS)},
    _kind,
    lambda word: _kind("kind", word),
    lambda kind: kind.name.lower(),
    accepts=str | CoordinatorKind,
    from_value=_kind_value,
)
TARGET: Final = ArgumentType(
    "JSON",
    {
        "type": "object",
        "description": "Partitions by member.",
        "additionalProperties": {"type": "array", "items": {"type": "string"}},
        "examples": [{"one": ["foo-0", "foo-1"]}],
    },
    _target_json,
    _target_text,
    _target_words,
    accepts=str | Mapping[str, Sequence[str | TopicPartition]],
    from_value=_target_value,
    to_end=True,
)

# ---- parameters ----------------------------------------------------------------------------------

BrokerArgument = Annotated[int, Argument(BROKER_ID, "The broker's id.", "broker")]
FollowerArgument = Annotated[int | None, Argument(BROKER_ID, "The follower; none for all.")]
PartitionArgument = Annotated[TopicPartition, Argument(TOPIC_PARTITION)]
AnyPartitionArgument = Annotated[
    TopicPartition | None, Argument(TOPIC_PARTITION, "The partition; none for all.")
]
TopicNameArgument = Annotated[str, Argument(WORD, "The name of a topic.")]
OffsetArgument = Annotated[int, Argument(COUNT, "An offset.")]
RecordsArgument = Annotated[str, Argument(RECORDS_TEXT)]
CorruptionArgument = Annotated[str, Argument(CORRUPTION_TEXT, "What to damage.")]
DurationArgument = Annotated[int, Argument(MILLISECONDS, name="duration")]
DirectoryArgument = Annotated[
    str | None,
    Argument(DIRECTORY_PATH, "A directory of the broker's `log.dirs`. Default: all of them."),
]
PlaceArgument = Annotated[
    Place | None,
    Argument(
        PLACE,
        "A broker's id, the name of a listener, or both as in 2/EXTERNAL; none for all.",
        "where",
    ),
]
ReleaseArgument = Annotated[
    str, Argument(RELEASE_NAME, "A release, as `mockbroker profiles` lists them.")
]
LevelArgument = Annotated[
    Level,
    Argument(
        SOFTWARE_LEVEL,
        "A release (kafka-2.3), the API versions that differ from the cluster's (4=0-2,45=off), or "
        "`cluster` for none.",
    ),
]
PathArgument = Annotated[str, Argument(ZNODE_PATH, name="path")]
GroupArgument = Annotated[str, Argument(WORD, "The group's id.")]
MemberArgument = Annotated[
    str,
    Argument(
        WORD,
        "A member id, the instance id of a static member, the client id of the only member that "
        "has it, in a classic group, or * for a group's only member.",
    ),
]
KindArgument = Annotated[
    CoordinatorKind, Argument(COORDINATOR_KIND, "group, transaction or share.")
]
KeyArgument = Annotated[str, Argument(WORD, "The group's id, or the transactional id.")]
TargetArgument = Annotated[
    Mapping[str, Sequence[TopicPartition]],
    Argument(TARGET, "Member id or instance id -> partitions."),
]
TransactionArgument = Annotated[str, Argument(WORD, "The transactional id.")]
AnyTransactionArgument = Annotated[
    str | None, Argument(WORD, "The transactional id; without it, all.")
]
