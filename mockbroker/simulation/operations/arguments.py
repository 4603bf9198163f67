"""The arguments of commands: how their values are written as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec

from mockbroker.errors import ClusterError
from mockbroker.simulation.topics.spec import parse_milliseconds, parse_topic_partition

__all__ = [
    "ADDRESS",
    "BROKER",
    "BROKER_ID",
    "CHANGES",
    "COUNT",
    "DEFAULT_BODY_BYTES",
    "DIRECTORY_PATH",
    "DURATION",
    "LEVEL",
    "LOG_DIRECTORY",
    "MAX_INTEGER",
    "MILLISECONDS",
    "PARTITION",
    "PATH",
    "SOFTWARE_LEVEL",
    "TOPIC",
    "TOPIC_PARTITION",
    "TOPIC_TEXT",
    "WORD",
    "ZNODE_PATH",
    "ZNODE_TEXT",
    "ZNODE_TEXT_OR_NULL",
    "Argument",
    "ArgumentType",
    "BrokerChoice",
    "integer_of",
    "text_of",
]

MAX_INTEGER: Final = 10**12 - 1
"""The largest number in a JSON body: no id is larger, and no test skips more milliseconds."""

DEFAULT_BODY_BYTES: Final = 64 * 1024
"""The largest JSON object for most commands."""
_ZNODE_BODY_BYTES: Final = 8 * 1024 * 1024
"""ZooKeeper stores 1 MiB per znode; JSON may need six bytes for each of them."""

BrokerChoice: TypeAlias = int | Literal["self", "other"]
"""A broker id. In a fault rule also ``self``, the broker that received the request, and ``other``,
the live broker with the lowest id among the rest."""


class ArgumentType(msgspec.Struct, frozen=True):
    """How a value is written. ``schema`` describes it as JSON; ``from_json`` takes the argument's
    name and the JSON value, ``from_text`` the text. Both raise ClusterError.

    An argument ``to_end`` takes the rest of the command's text, spaces included; every other one
    takes a word. ``max_body_bytes`` bounds the JSON object that holds it.
    """

    metavar: str
    schema: Mapping[str, Any]
    from_json: Callable[[str, Any], Any]
    from_text: Callable[[str], Any]
    to_text: Callable[[Any], str] = str
    to_end: bool = False
    max_body_bytes: int = DEFAULT_BODY_BYTES


class Argument(msgspec.Struct, frozen=True):
    """``name`` is the member of the JSON object; ``metavar`` stands for it in usage lines.

    An ``optional`` argument may be left out of a text, where all arguments behind it are optional
    too, and of a JSON object, where it may be null as well. Its value is then None.
    """

    name: str
    type: ArgumentType
    help: str = ""
    optional: bool = False

    @property
    def metavar(self) -> str:
        return self.type.metavar or self.name.upper().replace("_", "-")

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of its value."""
        schema = self.type.schema
        return {**schema, "type": [schema["type"], "null"]} if self.optional else schema

    def from_json(self, name: str, value: Any) -> Any:
        """Read a JSON value. Raises ClusterError."""
        return None if self.optional and value is None else self.type.from_json(name, value)


def integer_of(name: str, value: Any) -> int:
    """A JSON integer. Raises ClusterError."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ClusterError(f'"{name}" must be an integer, not {value!r:.80}')
    if abs(value) > MAX_INTEGER:
        raise ClusterError(f'"{name}" is too large; the maximum is {MAX_INTEGER}')
    return value


def text_of(name: str, value: Any) -> str:
    """A JSON string. Raises ClusterError."""
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be a string, not {value!r:.80}')
    return value


def _text_or_null(name: str, value: Any) -> str | None:
    return None if value is None else text_of(name, value)


def _milliseconds(name: str, value: Any) -> int:
    return parse_milliseconds(value) if isinstance(value, str) else integer_of(name, value)


def _partition(name: str, value: Any) -> tuple[str, int]:
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be a string such as "foo-0", not {value!r:.80}')
    return parse_topic_partition(value)


def _level(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ClusterError(f'"{name}" must be a string such as "4=0-2", not {value!r:.80}')
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


BROKER_ID: Final = ArgumentType("BROKER", {"type": "integer"}, integer_of, _broker_word)
TOPIC_PARTITION: Final = ArgumentType(
    "TOPIC-PARTITION",
    {"type": "string", "pattern": "-[0-9]+$", "examples": ["foo-0"]},
    _partition,
    parse_topic_partition,
    lambda partition: f"{partition[0]}-{partition[1]}",
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
)
COUNT: Final = ArgumentType("", {"type": "integer", "minimum": 0}, integer_of, _count_word)
WORD: Final = ArgumentType("", {"type": "string"}, text_of, str)
ZNODE_PATH: Final = ArgumentType(
    "PATH", {"type": "string", "examples": ["/admin/reassign_partitions"]}, text_of, str
)
ZNODE_TEXT: Final = ArgumentType(
    "TEXT", {"type": "string"}, text_of, str, to_end=True, max_body_bytes=_ZNODE_BODY_BYTES
)
ZNODE_TEXT_OR_NULL: Final = ArgumentType(
    "TEXT", {"type": ["string", "null"]}, _text_or_null, str, to_end=True,
    max_body_bytes=_ZNODE_BODY_BYTES,
)  # fmt: skip
TOPIC_TEXT: Final = ArgumentType(
    "TOPIC", {"type": "string", "examples": ["foo:2:3", "foo=1,2,3/2,3,4"]}, text_of, str
)
SOFTWARE_LEVEL: Final = ArgumentType(
    "LEVEL",
    {"type": "string", "examples": ["kafka-2.3", "4=0-2,45=off", "cluster"]},
    _level,
    str,
)
DIRECTORY_PATH: Final = ArgumentType(
    "DIRECTORY", {"type": "string", "examples": ["/var/lib/kafka/data"]}, text_of, str
)
ADDRESS: Final = ArgumentType(
    "HOST:PORT", {"type": "string", "examples": ["localhost:32768"]}, text_of, str
)

BROKER: Final = Argument("broker", BROKER_ID, "The broker's id.")
PARTITION: Final = Argument("partition", TOPIC_PARTITION)
DURATION: Final = Argument("duration", MILLISECONDS)
PATH: Final = Argument("path", ZNODE_PATH)
LEVEL: Final = Argument(
    "level",
    SOFTWARE_LEVEL,
    "A release (kafka-2.3), the API versions that differ from the cluster's (4=0-2,45=off), or "
    "`cluster` for none.",
)
TOPIC: Final = Argument(
    "topic",
    TOPIC_TEXT,
    "NAME:PARTITIONS:REPLICAS, or NAME= and the replicas of each partition.",
)
LOG_DIRECTORY: Final = Argument(
    "directory",
    DIRECTORY_PATH,
    "A directory of the broker's `log.dirs`. Default: all of them.",
    optional=True,
)
CHANGES: Final = Argument("changes", COUNT, "How many more changes the controller completes.")
