"""Topologies of Kafka Streams: which topics they need, with how many partitions, and how many tasks
that makes.

Pure functions of a topology and the topics that exist. Source topics are given; repartition topics
get as many partitions as the topics from which they are filled, or those with which they are
co-partitioned; changelog topics get one for each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from mockbroker.simulation.coordinators.coordinator_kinds import java_hash
from mockbroker.simulation.state.results import NewTopic

__all__ = [
    "BrokenTopologyError",
    "ConfiguredTopology",
    "CopartitionGroup",
    "InternalTopic",
    "InvalidTopologyError",
    "Problem",
    "Subtopology",
    "Topology",
    "configure",
    "repeats",
]

_MISSING_SOURCE: Final = 1
_INCORRECTLY_PARTITIONED: Final = 2
_MISSING_INTERNAL: Final = 3
_MOST_NAMED: Final = 3


class InternalTopic(msgspec.Struct, frozen=True):
    """``partitions`` and ``replication_factor`` are 0 where the broker decides."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str | None], ...] = ()


class CopartitionGroup(msgspec.Struct, frozen=True):
    """Topics with equal numbers of partitions, as indexes of a subtopology's topics."""

    source_topics: tuple[int, ...] = ()
    source_regexes: tuple[int, ...] = ()
    repartition_topics: tuple[int, ...] = ()


def repeats(keys: Iterable[str]) -> bool:
    """Whether there is a key twice. Kafka makes maps of such lists, which fails then."""
    listed = list(keys)
    return len(set(listed)) < len(listed)


def _all_within(indexes: Iterable[int], items: Sequence[object]) -> bool:
    return all(0 <= index < len(items) for index in indexes)


class Subtopology(msgspec.Struct, frozen=True):
    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_regexes: tuple[str, ...] = ()
    changelogs: tuple[InternalTopic, ...] = ()
    sinks: tuple[str, ...] = ()
    """Repartition topics that it writes."""
    repartitions: tuple[InternalTopic, ...] = ()
    """Repartition topics that it reads."""
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        return (*self.source_topics, *(topic.name for topic in self.repartitions))

    def copartitioned(self, group: CopartitionGroup) -> frozenset[str]:
        """The topics of a group. BrokenTopologyError if it names one that is not there."""
        names = [topic.name for topic in self.repartitions]
        if not _all_within(group.source_topics, self.source_topics) or not _all_within(
            group.repartition_topics, names
        ):
            raise BrokenTopologyError
        return frozenset(
            (
                *(self.source_topics[index] for index in group.source_topics),
                *(names[index] for index in group.repartition_topics),
            )
        )


class Topology(msgspec.Struct, frozen=True):
    epoch: int
    subtopologies: tuple[Subtopology, ...]

    @property
    def is_readable(self) -> bool:
        """Whether Kafka can read it at all: neither the epoch nor the ids prevent that."""
        return self.epoch >= 0 and not repeats(each.subtopology_id for each in self.subtopologies)

    @property
    def internal_topics(self) -> list[InternalTopic]:
        return [
            topic
            for subtopology in self.subtopologies
            for topic in (*subtopology.repartitions, *subtopology.changelogs)
        ]

    @property
    def required(self) -> frozenset[str]:
        """The topics that it reads, and its changelogs."""
        names = {name for subtopology in self.subtopologies for name in subtopology.sources}
        return frozenset(names | {topic.name for topic in self.internal_topics})

    def subtopology_of(self, source_topic: str) -> str | None:
        """The subtopology that reads a topic; None if none does."""
        for subtopology in self.subtopologies:
            if source_topic in subtopology.sources:
                return subtopology.subtopology_id
        return None


class Problem(msgspec.Struct, frozen=True):
    """Why a topology cannot run: a status of a heartbeat."""

    status: int
    detail: str


class InvalidTopologyError(Exception):
    """No topics could make it work."""


class BrokenTopologyError(Exception):
    """Kafka fails to read it, and does not say why."""


class _IncorrectlyPartitionedError(Exception):
    pass


class ConfiguredTopology(msgspec.Struct, frozen=True):
    """A topology with the topics of a cluster. ``subtopologies`` are sorted by id, their internal
    topics have numbers of partitions; None if those could not be decided. ``tasks`` are the numbers
    of tasks by subtopology, ``missing`` the internal topics that do not exist yet."""

    epoch: int
    subtopologies: tuple[Subtopology, ...] | None
    tasks: Mapping[str, int]
    missing: tuple[NewTopic, ...] = ()
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None

    @property
    def stateful(self) -> frozenset[str]:
        """Subtopologies with changelogs."""
        return frozenset(
            subtopology.subtopology_id
            for subtopology in self.subtopologies or ()
            if subtopology.changelogs
        )


def configure(topology: Topology, counts: Mapping[str, int]) -> ConfiguredTopology:
    """Decide on the internal topics and the tasks; ``counts`` are the numbers of partitions of the
    topics that exist. InvalidTopologyError if no topics would do."""
    missing = sorted(
        {name for subtopology in topology.subtopologies for name in subtopology.source_topics}
        - counts.keys()
    )
    if missing:
        detail = f"Source topics {_summary(missing)} are missing."
        return _failed(topology, Problem(_MISSING_SOURCE, detail))
    try:
        return _configured(topology, counts)
    except _IncorrectlyPartitionedError as error:
        return _failed(topology, Problem(_INCORRECTLY_PARTITIONED, str(error)))


def _failed(topology: Topology, problem: Problem) -> ConfiguredTopology:
    return ConfiguredTopology(topology.epoch, None, {}, problem=problem)


def _configured(topology: Topology, counts: Mapping[str, int]) -> ConfiguredTopology:
    decided = _repartition_counts(topology, counts)
    decided.update(_copartitioned_counts(topology, counts, decided))
    tasks: dict[str, int] = {}
    for subtopology in topology.subtopologies:
        sizes = [counts.get(name, decided.get(name, 0)) for name in subtopology.sources]
        if not sizes:
            raise InvalidTopologyError(
                f"No source topics found for subtopology {subtopology.subtopology_id}"
            )
        tasks[subtopology.subtopology_id] = max(sizes)
        decided.update((topic.name, max(sizes)) for topic in subtopology.changelogs)

    def sized(topics: Sequence[InternalTopic]) -> tuple[InternalTopic, ...]:
        if repeats(topic.name for topic in topics) or any(
            repeats(key for key, _ in topic.configs) for topic in topics
        ):
            raise BrokenTopologyError
        return tuple(
            replace(topic, partitions=topic.partitions or decided[topic.name]) for topic in topics
        )

    subtopologies = tuple(
        replace(
            subtopology,
            repartitions=sized(subtopology.repartitions),
            changelogs=sized(subtopology.changelogs),
        )
        for subtopology in sorted(topology.subtopologies, key=lambda each: each.subtopology_id)
    )
    wanted = {topic.name: topic for topic in Topology(0, subtopologies).internal_topics}
    for name in _java_order(topology.required & counts.keys() & wanted.keys()):
        if counts[name] != wanted[name].partitions:
            raise _IncorrectlyPartitionedError(
                f"Existing topic {name} has different number of partitions: expected "
                f"{wanted[name].partitions}, found {counts[name]}"
            )
    missing = _java_order(name for name in wanted if name not in counts)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {_summary(missing)}"
        problem = Problem(_MISSING_INTERNAL, detail)
    topics = tuple(_new_topic(wanted[name]) for name in missing)
    return ConfiguredTopology(topology.epoch, subtopologies, tasks, topics, problem)


def _new_topic(topic: InternalTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or -1,
        configs=topic.configs,
    )


def _repartition_counts(topology: Topology, counts: Mapping[str, int]) -> dict[str, int]:
    """As many as the largest topic that fills them; round after round, because they may fill one
    another."""
    decided = {
        topic.name: topic.partitions
        for subtopology in topology.subtopologies
        for topic in subtopology.repartitions
        if topic.partitions
    }
    while True:
        undecided = progress = False
        for subtopology in topology.subtopologies:
            for sink in subtopology.sinks:
                if sink in decided:
                    continue
                sizes = [
                    decided[one.name] for one in subtopology.repartitions if one.name in decided
                ]
                sizes += [counts[name] for name in subtopology.source_topics if name in counts]
                if sizes:
                    decided[sink] = max(sizes)
                    progress = True
                else:
                    undecided = True
        if not undecided:
            break
        if not progress:
            raise InvalidTopologyError(
                "Failed to compute number of partitions for all repartition topics. There may be "
                "loops in the topology that cannot be resolved."
            )
    if any(topic.name not in decided for subtopology in topology.subtopologies
           for topic in subtopology.repartitions):  # fmt: skip
        raise InvalidTopologyError(
            "Failed to compute number of partitions for all repartition topics, because a "
            "repartition source topic is never used as a sink topic."
        )
    return decided


def _copartitioned_counts(
    topology: Topology, counts: Mapping[str, int], decided: Mapping[str, int]
) -> dict[str, int]:
    """Those that are co-partitioned with external topics get as many; else with a topic that fixes
    its number; else as many as the largest."""
    sizes = dict(decided)
    fixed = {
        topic.name for subtopology in topology.subtopologies for topic in subtopology.repartitions
        if topic.partitions
    }  # fmt: skip
    flexible = {
        topic.name for subtopology in topology.subtopologies for topic in subtopology.repartitions
    } - fixed  # fmt: skip

    def size(name: str) -> int:
        return counts.get(name, sizes.get(name, 0))

    for subtopology in topology.subtopologies:
        for group in subtopology.copartition_groups:
            names = subtopology.copartitioned(group)
            repartitions = {name: size(name) for name in names if name in fixed | flexible}
            external = {name: size(name) for name in names - repartitions.keys()}
            if not names:
                continue
            if external:
                number = _same(external, external)
            elif fixed:
                number = _same({name: size(name) for name in fixed}, repartitions)
            else:
                number = max(repartitions.values())
            for name in _java_order(repartitions):
                sizes[name] = number
                if name in fixed and repartitions[name] != number:
                    raise _IncorrectlyPartitionedError(
                        f"Number of partitions [{repartitions[name]}] of repartition topic "
                        f"[{name}] doesn't match number of partitions [{number}] of the source "
                        "topic."
                    )
    return sizes


def _same(sizes: Mapping[str, int], shown: Mapping[str, int]) -> int:
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name}={shown[name]}" for name in sorted(shown))
        raise _IncorrectlyPartitionedError(
            f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        )
    return next(iter(sizes.values()))


def _summary(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    text = ", ".join(names[:_MOST_NAMED])
    return f"{text} and {more} additional topics" if more > 0 else text


def _java_order(names: Iterable[str]) -> list[str]:
    """The order of Java's hash tables, in which Kafka names the first topics of many."""
    unordered = list(names)
    size = 16
    while len(unordered) > size * 3 // 4:
        size *= 2

    def bucket(name: str) -> int:
        value = java_hash(name) & 0xFFFFFFFF
        return (value ^ (value >> 16)) & (size - 1)

    return sorted(sorted(unordered), key=bucket)
