"""The topics of a cluster as groups see them: what exists, and what has changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from mockbroker.simulation.groups.modern.partitions import Assignment
from mockbroker.simulation.state.actions import (
    Change,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from mockbroker.simulation.state.controller import Controller

__all__ = ["GroupTopics", "TopicFacts"]

TopicFacts: TypeAlias = tuple[str, uuid.UUID, int, tuple[tuple[str, ...], ...]]
"""Name, id, number of partitions, and the racks of each partition: if they change, a group needs
another target."""


class GroupTopics:
    """``version`` rises with each change of a topic, ``created`` with each new topic."""

    def __init__(self, controller: Controller) -> None:
        self.version = 0
        self.created = 0
        self._state = controller.state
        self._names: dict[uuid.UUID, str] = {}
        self._names_version = -1
        controller.add_hooks(
            (TopicCreated, TopicDeleted, PartitionsAdded, PartitionChanged), after=self._changed
        )

    def _changed(self, cause: str, change: Change) -> None:
        self.version += 1
        if isinstance(change, TopicCreated):
            self.created += 1

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._state.topics

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        """The name of the topic of this id; None if it does not exist."""
        if self._names_version != self.version:
            self._names = {topic.topic_id: name for name, topic in self._state.topics.items()}
            self._names_version = self.version
        return self._names.get(topic_id)

    def id_of(self, name: str) -> uuid.UUID | None:
        """The id of a topic; None if it does not exist."""
        topic = self._state.topics.get(name)
        return None if topic is None else topic.topic_id

    def counts(self, names: Iterable[str]) -> Mapping[uuid.UUID, int]:
        """The number of partitions by id, of those topics that exist, in the order of names."""
        known = self._state.topics
        return {
            known[name].topic_id: len(known[name].partitions) for name in sorted(names)
            if name in known
        }  # fmt: skip

    def facts(self, names: Iterable[str]) -> tuple[TopicFacts, ...]:
        """The facts that a target depends on, of those topics that exist, in the order of names."""
        known, brokers = self._state.topics, self._state.brokers
        facts = []
        for name in sorted(names):
            if name not in known:
                continue
            racks = tuple(
                tuple(sorted({
                    rack for replica in partition.replicas
                    if replica in brokers and (rack := brokers[replica].rack) is not None
                }))
                for partition in known[name].partitions
            )  # fmt: skip
            facts.append((name, known[name].topic_id, len(racks), racks))
        return tuple(facts)

    def assignment(self, partitions: Iterable[tuple[str, Iterable[int]]]) -> Assignment:
        """Partitions by topic name as an assignment, without topics that do not exist."""
        return frozenset(
            (topic_id, index)
            for name, indexes in partitions
            if (topic_id := self.id_of(name)) is not None
            for index in indexes
        )

    def by_name(self, assignment: Iterable[tuple[uuid.UUID, int]]) -> list[tuple[str, list[int]]]:
        """An assignment by topic name, without topics that do not exist."""
        indexes: dict[str, list[int]] = {}
        for topic_id, index in assignment:
            name = self.name_of(topic_id)
            if name is not None:
                indexes.setdefault(name, []).append(index)
        return [(name, sorted(indexes[name])) for name in sorted(indexes)]
