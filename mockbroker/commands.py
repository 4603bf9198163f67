"""The commands a tester gives to a running cluster, in one table.

``mockbroker ctl``, the control port's routes and their OpenAPI document, the steps of fault rules,
scenarios and kspec cases are all derived from ``COMMANDS``: a new command is one entry here.

A command is written as text (``join-isr foo-0 4``) or sent as a JSON object
(``{"partition": "foo-0", "broker": 4}``). Nothing here knows sockets or HTTP; whatever a command
needs besides the simulated cluster is listed in ``CommandTarget``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from mockbroker.errors import ClusterError
from mockbroker.topics.spec import parse_milliseconds, parse_topic_partition

if TYPE_CHECKING:
    from mockbroker.cluster import Cluster

__all__ = [
    "COMMANDS",
    "DEFAULT_BODY_BYTES",
    "MAX_INTEGER",
    "MILLISECONDS",
    "Argument",
    "ArgumentType",
    "BrokerChoice",
    "Command",
    "CommandCall",
    "CommandTarget",
    "integer_of",
    "parse_command",
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


class CommandTarget(Protocol):
    """What commands act on: the simulated cluster, and what only a running one has.

    Commands on listeners and on software may return an awaitable that completes them.
    """

    @property
    def cluster(self) -> Cluster: ...
    def advance(self, milliseconds: int) -> object: ...
    def stop_broker(self, broker_id: int) -> object: ...
    def start_broker(self, broker_id: int) -> object: ...
    def close_listener(self, broker_id: int) -> object: ...
    def open_listener(self, broker_id: int) -> object: ...
    def set_level(self, broker_id: int, level: str) -> object: ...
    def advertise(self, broker_id: int, address: str) -> object: ...


# ---- arguments -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArgumentType:
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


@dataclass(frozen=True, slots=True)
class Argument:
    """``name`` is the member of the JSON object; ``metavar`` stands for it in usage lines."""

    name: str
    type: ArgumentType
    help: str = ""

    @property
    def metavar(self) -> str:
        return self.type.metavar or self.name.upper()


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
            {"type": "string", "pattern": "^[0-9]{1,12}(ms|s|m)?$"},
        ],
    },
    _milliseconds,
    parse_milliseconds,
    lambda milliseconds: f"{milliseconds}ms",
)
COUNT: Final = ArgumentType("", {"type": "integer", "minimum": 0}, integer_of, _count_word)
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
CHANGES: Final = Argument("changes", COUNT, "How many more changes the controller completes.")


# ---- commands ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """``run`` is given the target and the arguments by name; it may return an awaitable.

    ``help`` is one sentence, ``details`` what ``mockbroker ctl COMMAND --help`` adds to it.
    """

    name: str
    help: str
    run: Callable[[CommandTarget, Mapping[str, Any]], object]
    arguments: tuple[Argument, ...] = ()
    details: str = ""

    @property
    def usage(self) -> str:
        """``join-isr TOPIC-PARTITION BROKER``"""
        return " ".join([self.name, *(each.metavar for each in self.arguments)])


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command with its arguments. ``str`` gives the text that ``parse_command`` reads."""

    command: Command
    values: Mapping[str, Any]

    def __str__(self) -> str:
        words = [each.type.to_text(self.values[each.name]) for each in self.command.arguments]
        return " ".join([self.command.name, *words])

    def run(self, target: CommandTarget) -> object:
        """Raises ClusterError if the cluster cannot carry it out."""
        return self.command.run(target, self.values)

    def with_broker(self, choose: Callable[[BrokerChoice], int]) -> CommandCall:
        """The same call with ``self`` and ``other`` replaced by broker ids."""
        if "broker" not in self.values:
            return self
        return CommandCall(self.command, {**self.values, "broker": choose(self.values["broker"])})


def parse_command(text: str, *, relative_brokers: bool = False) -> CommandCall:
    """``failover 2``, ``join-isr foo-0 4``, ``advance 500ms``. Raises ClusterError.

    ``relative_brokers``: ``self`` and ``other`` may stand for a broker id.
    """
    name, rest = _first_word(text)
    command = COMMANDS.get(name)
    if command is None:
        raise ClusterError(f"{text!r} is not a command; the commands are {', '.join(COMMANDS)}")
    values: dict[str, Any] = {}
    for argument in command.arguments:
        word, rest = (rest, "") if argument.type.to_end else _first_word(rest)
        if not word and not argument.type.to_end:
            raise ClusterError(f"{text!r} lacks an argument; use `{command.usage}`")
        try:
            value = argument.type.from_text(word)
        except ClusterError as error:
            raise ClusterError(f"{text!r}: {error}") from None
        if argument.type is BROKER_ID and isinstance(value, str) and not relative_brokers:
            raise ClusterError(f"{text!r}: {value!r} has a meaning in fault rules only")
        values[argument.name] = value
    if rest:
        raise ClusterError(f"{text!r} has too many arguments; use `{command.usage}`")
    return CommandCall(command, values)


def _first_word(text: str) -> tuple[str, str]:
    word, *rest = text.split(maxsplit=1) or [""]
    return word, rest[0].rstrip() if rest else ""


_ALL: Final = (
    Command(
        "join-isr",
        "Let a replica catch up and join the ISR.",
        lambda on, given: on.cluster.join_isr(given["partition"], given["broker"]),
        (PARTITION, BROKER),
    ),
    Command(
        "leave-isr",
        "Let a follower fall behind and leave the ISR.",
        lambda on, given: on.cluster.leave_isr(given["partition"], given["broker"]),
        (PARTITION, BROKER),
    ),
    Command(
        "create-topic",
        "Create a topic.",
        lambda on, given: on.cluster.add_topic(given["topic"]),
        (TOPIC,),
        details="TOPIC is foo:2:3 for two partitions with three replicas each, or "
        "foo=1,2,3/2,3,4, which lists the replicas of each partition.",
    ),
    Command(
        "failover",
        "Make another live broker the controller.",
        lambda on, given: on.cluster.failover(given["broker"]),
        (BROKER,),
    ),
    Command(
        "stop-broker",
        "Stop a broker and close its connections.",
        lambda on, given: on.stop_broker(given["broker"]),
        (BROKER,),
        details="The broker leaves its ISRs, and its partitions get other leaders. Its port "
        "refuses connections until `start-broker`.",
    ),
    Command(
        "start-broker",
        "Restart a stopped broker on the same port.",
        lambda on, given: on.start_broker(given["broker"]),
        (BROKER,),
    ),
    Command(
        "close-listener",
        "Close the listener of a live broker.",
        lambda on, given: on.close_listener(given["broker"]),
        (BROKER,),
        details="The broker's connections break and its port refuses new ones, but the cluster "
        "still considers the broker live.",
    ),
    Command(
        "open-listener",
        "Reopen a broker's listener on the same port.",
        lambda on, given: on.open_listener(given["broker"]),
        (BROKER,),
    ),
    Command(
        "set-level",
        "Upgrade or downgrade a broker's software.",
        lambda on, given: on.set_level(given["broker"], given["level"]),
        (BROKER, LEVEL),
        details="LEVEL is a release such as kafka-2.3; or the API versions that differ from the "
        "other brokers', such as 4=0-2,45=off; or `cluster`, which makes the broker like the "
        "others. The broker's connections break. The controller resends nothing to the broker. If "
        "the broker is the controller, it is elected again.",
    ),
    Command(
        "advertise",
        "Change the address of a broker in Metadata.",
        lambda on, given: on.advertise(given["broker"], given["address"]),
        (BROKER, Argument("address", ADDRESS, "Where clients reach the broker.")),
        details="The broker keeps listening where it does. This is for clients that reach it "
        "through a forwarded port that is known only once the cluster runs, such as a port that a "
        "container publishes.",
    ),
    Command(
        "hold-metadata",
        "Freeze the metadata that a broker serves.",
        lambda on, given: on.cluster.hold_metadata(given["broker"]),
        (BROKER,),
    ),
    Command(
        "release-metadata",
        "Bring a broker's frozen metadata up to date.",
        lambda on, given: on.cluster.release_metadata(given["broker"]),
        (BROKER,),
    ),
    Command(
        "advance",
        "Advance the simulated clock.",
        lambda on, given: on.advance(given["duration"]),
        (DURATION,),
        details="Whatever is due until then happens at once, in order. DURATION has a unit, as "
        "in 500ms, 2s or 1m.",
    ),
    Command(
        "propagation",
        "Delay the metadata of every broker.",
        lambda on, given: on.cluster.set_propagation(given["duration"]),
        (DURATION,),
        details="From now on every change reaches the brokers this much later. DURATION has a "
        "unit, as in 200ms; 0ms removes the delay.",
    ),
    Command(
        "hold-elections",
        "Stop processing the queue of elections.",
        lambda on, _: on.cluster.hold_elections(),
        details="Elections wait in the controller's queue, and their callers with them (ZooKeeper "
        "mode, KIP-183).",
    ),
    Command(
        "release-elections",
        "Process the queue of elections again.",
        lambda on, _: on.cluster.release_elections(),
    ),
    Command(
        "write-znode",
        "Create or change a znode.",
        lambda on, given: on.cluster.write_znode(given["path"], given["text"]),
        (PATH, Argument("text", ZNODE_TEXT_OR_NULL, "The content; null deletes the znode.")),
    ),
    Command(
        "append-znode",
        "Create a sequential znode.",
        lambda on, given: on.cluster.append_znode(given["path"], given["text"]),
        (PATH, Argument("text", ZNODE_TEXT, "The content.")),
        details="ZooKeeper appends ten digits to PATH.",
    ),
    Command(
        "delete-znode",
        "Delete a znode.",
        lambda on, given: on.cluster.write_znode(given["path"], None),
        (PATH,),
    ),
    Command(
        "resign-controller",
        "Leave the cluster without a controller.",
        lambda on, _: on.cluster.resign_controller(),
        details="There is none until `failover`, or until a broker starts (ZooKeeper mode).",
    ),
    Command(
        "expire-session",
        "Expire a broker's ZooKeeper session.",
        lambda on, given: on.cluster.expire_session(given["broker"]),
        (BROKER,),
        details="The broker registers again. If it was the controller, another broker becomes the "
        "controller.",
    ),
    Command(
        "kill-controller-after",
        "Kill the controller during an operation.",
        lambda on, given: on.cluster.kill_controller_after(given["changes"]),
        (CHANGES,),
        details="The controller dies once it has made CHANGES more changes; another broker takes "
        "over from what is on record.",
    ),
)

COMMANDS: Final[Mapping[str, Command]] = {each.name: each for each in _ALL}
"""By name."""
