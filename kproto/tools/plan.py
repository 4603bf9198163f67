"""The JSON files of the tools: reassignment plans, topics to move, partitions to elect. Pure.

This module checks everything that needs no cluster, and errors state the place in the file. It does
not know which brokers and partitions exist. Errors that Kafka's tools have too use their texts
(``AdminCommandFailedException``, ``AdminOperationException``; Kafka 3.9 and 4.x).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from kproto.client.values import TopicPartition
from kproto.safe_text import json_text
from kproto.tools.errors import ToolError
from kproto.tools.texts import java_list, show_partition, show_partitions

__all__ = [
    "ANY_LOG_DIR",
    "Plan",
    "Replica",
    "format_plan",
    "parse_broker_list",
    "parse_election_partitions",
    "parse_plan",
    "parse_topics_to_move",
    "write_proposal",
    "write_rollback",
]

Replica: TypeAlias = tuple[str, int, int]
"""A topic, a partition index, a broker id."""

ANY_LOG_DIR: Final = "any"
_VERSION: Final = 1
_INT32: Final = range(-(2**31), 2**31)


class Plan(msgspec.Struct, frozen=True):
    """The content of a ``--reassignment-json-file``, in its order and with its duplicates.

    ``log_dirs`` holds the replicas with a directory other than "any".
    """

    partitions: Sequence[tuple[TopicPartition, tuple[int, ...]]]
    log_dirs: Mapping[Replica, str] = msgspec.field(default_factory=dict)

    @property
    def topics(self) -> set[str]:
        return {partition.topic for partition, _ in self.partitions}

    def without_replicas(self) -> list[TopicPartition]:
        """Partitions with null or empty replicas, which the older draft of KIP-455 cancels."""
        return [partition for partition, replicas in self.partitions if not replicas]

    def restricted_to(self, partitions: Iterable[TopicPartition]) -> Plan:
        """Return the plan for these partitions only, without log directories."""
        kept = set(partitions)
        return Plan([(p, replicas) for p, replicas in self.partitions if p in kept])

    def executable(
        self, *, empty: str = "Partition reassignment list cannot be empty"
    ) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the target replicas of each partition. Raises ToolError if the plan cannot be
        executed.

        These are Kafka's checks in Kafka's order: no partitions (with the text ``empty``), an empty
        replica list, a duplicate partition, a duplicate broker.
        """
        if not self.partitions:
            raise _refused(empty)
        if not all(replicas for _, replicas in self.partitions):
            raise _refused("Partition replica list cannot be empty")
        twice = _duplicates(partition for partition, _ in self.partitions)
        if twice:
            raise _refused(
                "Partition reassignment contains duplicate topic partitions: "
                + show_partitions(twice)
            )
        repeated = [
            f"{show_partition(partition)} contains multiple entries for "
            + ",".join(map(str, _duplicates(replicas)))
            for partition, replicas in self.partitions
            if _duplicates(replicas)
        ]
        if repeated:
            raise _refused(
                "Partition replica lists may not contain duplicate entries: " + ". ".join(repeated)
            )
        return dict(self.partitions)


def parse_plan(text: str, source: str = "the plan", *, null_replicas: bool = False) -> Plan:
    """Parse a reassignment plan. ``source`` is its name in errors.

    The form is ``{"version": 1, "partitions": [{"topic": "foo", "partition": 0, "replicas": [1, 2],
    "log_dirs": ["any", "/data"]}]}``; ``version`` and ``log_dirs`` may be absent. With
    ``null_replicas``, replicas may be null, which means none. Raises ToolError.
    """
    document = _document(text, source)
    partitions: list[tuple[TopicPartition, tuple[int, ...]]] = []
    log_dirs: dict[Replica, str] = {}
    for where, row in _rows(document, "partitions", source):
        partition = _topic_partition(row, where)
        missing = null_replicas and "replicas" in row and row["replicas"] is None
        replicas = () if missing else _integers(row, "replicas", where)
        if "log_dirs" in row:
            directories = _strings(row, "log_dirs", where)
            if len(directories) != len(replicas):
                raise _refused(
                    f"Size of replicas list {java_list(replicas)} is different from size of log "
                    f"dirs list {java_list(directories)} for partition " + show_partition(partition)
                )
            for broker_id, directory in zip(replicas, directories, strict=True):
                if directory != ANY_LOG_DIR:
                    log_dirs[(*partition, broker_id)] = directory
        partitions.append((partition, replicas))
    return Plan(partitions, log_dirs)


def format_plan(assignment: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return the JSON of a plan on one line, partitions in order, keys in Kafka's order.

    Every log directory is "any", as in Kafka 3.9. The tool of 4.3 queries the present directories,
    so that its rollback also moves log directories.
    """
    return _compact(
        {
            "version": _VERSION,
            "partitions": [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "replicas": list(assignment[partition]),
                    "log_dirs": [ANY_LOG_DIR] * len(assignment[partition]),
                }
                for partition in sorted(assignment)
            ],
        }
    )


def write_proposal(
    write: Callable[[str], None],
    current: Mapping[TopicPartition, Sequence[int]],
    proposed: Mapping[TopicPartition, Sequence[int]],
) -> None:
    """Write the assignment that there is and the one to replace it."""
    write("Current partition replica assignment\n")
    write(f"{format_plan(current)}\n")
    write("\n")
    write("Proposed partition reassignment configuration\n")
    write(f"{format_plan(proposed)}\n")


def write_rollback(
    write: Callable[[str], None], current: Mapping[TopicPartition, Sequence[int]]
) -> None:
    """Write the assignment before a plan is executed."""
    write("Current partition replica assignment\n")
    write("\n")
    write(f"{format_plan(current)}\n")
    write("\n")
    write("Save this to use as the --reassignment-json-file option during rollback\n")


def parse_topics_to_move(text: str, source: str = "the topics file") -> list[str]:
    """Parse ``{"version": 1, "topics": [{"topic": "foo"}]}``. A duplicate topic is an error."""
    rows = _rows(_document(text, source), "topics", source)
    topics = [_string(row, "topic", where) for where, row in rows]
    if twice := _duplicates(topics):
        raise _refused(f"List of topics to reassign contains duplicate entries: {java_list(twice)}")
    return topics


def parse_broker_list(text: str) -> list[int]:
    """Parse ``--broker-list``: ids separated by commas. A duplicate id is an error."""
    try:
        brokers = [int(part) for part in text.split(",")]
    except ValueError:
        raise _refused(f'--broker-list wants broker ids as in "0,1,2", not "{text}"') from None
    if twice := _duplicates(brokers):
        raise _refused(f"Broker list contains duplicate entries: {java_list(twice)}")
    return brokers


def parse_election_partitions(
    text: str, source: str = "the partitions file"
) -> set[TopicPartition]:
    """Parse ``{"partitions": [{"topic": "foo", "partition": 1}]}``.

    Raises ToolError as Kafka's ``LeaderElectionCommand`` does for a file without that field and for
    a duplicate partition.
    """
    document = _parse(text, source)
    if "partitions" not in document:
        raise ToolError('Replica election data is missing "partitions" field')
    rows = _rows(document, "partitions", source)
    partitions = [_topic_partition(row, where) for where, row in rows]
    if twice := _duplicates(partitions):
        raise ToolError(
            "Replica election data contains duplicate partitions: "
            + java_list(show_partition(each) for each in twice)
        )
    return set(partitions)


# ---- reading JSON ------------------------------------------------------------------------------


def _document(text: str, source: str) -> dict[str, Any]:
    document = _parse(text, source)
    version = _integer(document, "version", source) if "version" in document else _VERSION
    if version != _VERSION:
        raise _refused(f"Not supported version field value {version}")
    return document


def _parse(text: str, source: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise _refused(
            f"{source}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise _refused(f"{source}: not a file of this kind: nested too deeply") from None
    return _object(document, source)


def _rows(
    document: Mapping[str, Any], name: str, source: str
) -> list[tuple[str, Mapping[str, Any]]]:
    """Yield each object of an array with its place, for errors. An absent array is an empty one."""
    rows = document.get(name, [])
    if not isinstance(rows, list):
        raise _wrong(f"{source}: {name}", "an array", rows)
    places = [f"{source}: {name}[{number}]" for number in range(len(rows))]
    return [(where, _object(row, where)) for where, row in zip(places, rows, strict=True)]


def _topic_partition(row: Mapping[str, Any], where: str) -> TopicPartition:
    return TopicPartition(_string(row, "topic", where), _integer(row, "partition", where))


def _object(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    return value


def _member(row: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in row:
        raise _refused(f'{where}: "{name}" is missing')
    return row[name]


def _string(row: Mapping[str, Any], name: str, where: str) -> str:
    value = _member(row, name, where)
    if not isinstance(value, str):
        raise _wrong(f"{where}.{name}", "a string", value)
    return value


def _integer(row: Mapping[str, Any], name: str, where: str) -> int:
    return _checked_integer(_member(row, name, where), f"{where}.{name}")


def _checked_integer(value: object, where: str) -> int:
    # Python considers a bool an int; JSON does not.
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(where, "an integer", value)
    if value not in _INT32:
        raise _refused(f"{where}: {value} does not fit in 32 bits")
    return value


def _integers(row: Mapping[str, Any], name: str, where: str) -> tuple[int, ...]:
    values = _list(row, name, where)
    places = (f"{where}.{name}[{number}]" for number in range(len(values)))
    return tuple(_checked_integer(each, at) for each, at in zip(values, places, strict=True))


def _strings(row: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    values = _list(row, name, where)
    for number, value in enumerate(values):
        if not isinstance(value, str):
            raise _wrong(f"{where}.{name}[{number}]", "a string", value)
    return tuple(values)


def _list(row: Mapping[str, Any], name: str, where: str) -> list[Any]:
    values = _member(row, name, where)
    if not isinstance(values, list):
        raise _wrong(f"{where}.{name}", "an array", values)
    return values


def _wrong(where: str, expected: str, value: object) -> ToolError:
    return _refused(f"{where}: expected {expected}, not {_compact(value)}")


def _refused(message: str) -> ToolError:
    return ToolError(message, printed=f"Error: {message}")


def _duplicates(values: Iterable[Any]) -> list[Any]:
    """Return the elements that occur more than once, in order."""
    return sorted(value for value, times in Counter(values).items() if times > 1)


def _compact(value: object) -> str:
    return json_text(value, compact=True)
