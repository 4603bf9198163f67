"""``kafka-topics``: create, delete, list and alter topics; ``topic_table`` describes them.

Follows Kafka's ``TopicCommand``. Names given with ``--topic`` are regular expressions except for
``--create``. A failure raises ToolError, or an error of the admin client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kproto.client import NewTopic, TopicAlreadyExistsError
from kproto.tools.access import Access
from kproto.tools.errors import ToolError
from kproto.tools.texts import java_list, joined

__all__ = [
    "add_partitions",
    "create",
    "delete",
    "find_topics",
    "list_topics",
    "parse_configs",
    "parse_replica_assignment",
]

Write = Callable[[str], None]

_INTERNAL: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_INT16_MAX: Final = 2**15 - 1


async def create(
    access: Access,
    write: Write,
    topic: str,
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    assignment: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str] | None = None,
    if_not_exists: bool = False,
) -> None:
    """Create a topic. None leaves a number to the cluster."""
    if {".", "_"} & {*topic}:
        write(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore "
            "('_') could collide. To avoid issues it is best to use either, but not both.\n"
        )
    if replication_factor is not None and not 1 <= replication_factor <= _INT16_MAX:
        raise _failed(f"The replication factor must be between 1 and {_INT16_MAX} inclusive")
    if partitions is not None and partitions < 1:
        raise _failed("The partitions must be greater than 0")
    requested = NewTopic(
        topic,
        num_partitions=partitions,
        replication_factor=replication_factor,
        replica_assignments=(
            None if assignment is None else {index: [*ids] for index, ids in assignment.items()}
        ),
        configs=dict(configs or {}),
    )
    try:
        await access.create_topic(requested)
    except TopicAlreadyExistsError:
        if not if_not_exists:
            raise
    else:
        write(f"Created topic {topic}.\n")


async def list_topics(
    access: Access, write: Write, pattern: str | None, *, exclude_internal: bool = False
) -> None:
    """Print the names in ascending order, and an empty line if there are none, as Kafka's tool
    does."""
    found = await find_topics(access, pattern, exclude_internal=exclude_internal)
    for name in found or [""]:
        write(f"{name}\n")


async def add_partitions(
    access: Access,
    pattern: str,
    partitions: int,
    *,
    assignment: Mapping[int, Sequence[int]] | None = None,
    if_exists: bool = False,
) -> None:
    """Raise the number of partitions of every matching topic to ``partitions``.

    ``assignment`` covers all of a topic's partitions; the entries of existing ones are ignored.
    """
    topics = await find_topics(access, pattern, must_exist=not if_exists)
    counts: dict[str, tuple[int, list[list[int]] | None]] = {}
    present = await access.topics_or_errors(topics) if assignment is not None else {}
    for topic in topics:
        new: list[list[int]] | None = None
        if assignment is not None:
            description = present[topic]
            if isinstance(description, Exception):
                raise description
            existing = len(description.partitions)
            new = [[*ids] for index, ids in assignment.items() if index >= existing]
        counts[topic] = (partitions, new)
    if counts:
        await access.create_partitions(counts)


async def delete(access: Access, pattern: str, *, if_exists: bool = False) -> None:
    """Delete every matching topic."""
    topics = await find_topics(access, pattern, must_exist=not if_exists)
    if topics:
        await access.remove_topics(topics)


async def find_topics(
    access: Access, pattern: str | None, *, exclude_internal: bool = False, must_exist: bool = False
) -> list[str]:
    """Return matching topics in ascending order; None matches all. Optionally raises ToolError if
    there are none."""
    names = await access.topic_names()
    if exclude_internal:
        names = [name for name in names if name not in _INTERNAL]
    if pattern is None:
        return names
    requested = _compiled(pattern)
    found = [name for name in names if requested.fullmatch(name)]
    if must_exist and pattern and not found:
        raise _failed(f"Topic '{pattern}' does not exist as expected")
    return found


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern as Kafka's ``TopicFilter`` does: a comma means "or"; blanks and outer
    quotes are ignored."""
    text = pattern.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(text)
    except re.error:
        raise _failed(f"{text} is an invalid regex.") from None


def parse_configs(pairs: Sequence[str]) -> dict[str, str]:
    """Parse ``retention.ms=5`` and the like. The last value of a name counts."""
    configs: dict[str, str] = {}
    for pair in pairs:
        parts = re.split(r"\s*=\s*", pair)
        if len(parts) != 2 or not parts[1]:
            raise _failed(
                "requirement failed: Invalid topic config: all configs to be added must be in the "
                'format "key=val".'
            )
        configs[parts[0].strip()] = parts[1].strip()
    return configs


def parse_replica_assignment(text: str) -> dict[int, list[int]]:
    """Parse ``1:2,2:3``: brokers of partition 0, brokers of partition 1. All lists have equal
    length."""
    assignment: dict[int, list[int]] = {}
    for index, part in enumerate(text.split(",")):
        try:
            brokers = [int(each) for each in part.split(":")]
        except ValueError:
            raise _failed(
                f'--replica-assignment wants broker ids as in "1:2,2:3", not "{part}"'
            ) from None
        if twice := sorted({each for each in brokers if brokers.count(each) > 1}):
            raise _failed(
                f"Partition replica lists may not contain duplicate entries: {joined(twice)}"
            )
        assignment[index] = brokers
        if len(brokers) != len(assignment[0]):
            raise _failed(
                f"Partition {index} has different replication factor: {java_list(brokers)}"
            )
    return assignment


def _failed(message: str) -> ToolError:
    return ToolError(message, printed=f"Error while executing topic command : {message}")
