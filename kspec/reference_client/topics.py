"""What producers and consumers know of topics: ids, leaders and leader epochs, by Metadata."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from kproto.dialects import dialect
from kspec.reference_client.link import BrokerError, Link, LinkClosedError
from kspec.reference_client.rules import ClientRules

__all__ = ["Offsets", "TopicPartition", "Topics", "message", "split"]

TopicPartition = tuple[str, int]
Offsets = Mapping[TopicPartition, tuple[int, int]]
"""Offsets to commit, each with the leader epoch of what was read."""
_LEADER_NOT_AVAILABLE: Final = 5
_METADATA_SECONDS: Final = 300.0
_METADATA: Final = 3
_CREATION_IS_CHOSEN_SINCE: Final = 4


def message(name: str) -> Any:
    """Return a class of Kafka's messages."""
    return dialect("kafka").message(name)


def split(text: str) -> TopicPartition:
    """Parse ``"foo-0"``."""
    topic, _, index = text.rpartition("-")
    return topic, int(index)


class Topics:
    """The topics that a client uses. ``longest_age`` is the maximum age of metadata, in seconds."""

    def __init__(self, client: ClientRules, longest_age: float = _METADATA_SECONDS) -> None:
        self.client = client
        self.leaders: dict[TopicPartition, int] = {}
        self.epochs: dict[TopicPartition, int] = {}
        self.ids: dict[str, UUID] = {}
        self.errors: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self._longest_age = longest_age
        self._refreshed = time.monotonic()

    @property
    def are_old(self) -> bool:
        """Whether the metadata has reached its maximum age."""
        return time.monotonic() - self._refreshed >= self._longest_age

    def wanted(self, topics: Iterable[str]) -> list[Any] | None:
        """Return the topics of a request, and no others."""
        topic = message("MetadataRequest.MetadataRequestTopic")
        return [topic(name=name) for name in sorted(set(topics))]

    async def refresh(self, topics: Iterable[str]) -> None:
        """Ask any broker for the topics. Raises what opening a connection does."""
        await self._ask(self.wanted(topics))

    async def refresh_all(self) -> None:
        """Ask any broker for every topic."""
        self.counts = {}
        await self._ask(None)

    async def _ask(self, topics: list[Any] | None) -> None:
        link = await self.client.any_link()
        # Before version 4 the brokers' config alone decides whether a topic is made.
        may_create = link.choose_version(_METADATA) < _CREATION_IS_CHOSEN_SINCE
        request = message("MetadataRequest")(topics=topics, allow_auto_topic_creation=may_create)
        answer = await link.ask(request)
        await self.client.check_metadata(answer)
        self._refreshed = time.monotonic()
        self.client.learn(answer)
        self.take(answer)

    def take(self, answer: Any) -> None:
        for each in answer.topics:
            if each.name is None:
                continue  # allowed where a topic was requested by its id, which none is here
            self.errors[each.name] = each.error_code
            self.counts[each.name] = len(each.partitions)
            if each.error_code:
                continue
            if self.ids.get(each.name, each.topic_id) != each.topic_id:
                self.forget(each.name)
            self.ids[each.name] = each.topic_id
            for row in each.partitions:
                self.learn((each.name, row.partition_index), row.leader_id, row.leader_epoch)

    def forget(self, name: str) -> None:
        """A topic with another id is another topic, and its epochs start anew (KIP-516)."""
        for tp in [each for each in self.epochs if each[0] == name]:
            self.leaders.pop(tp, None)
            del self.epochs[tp]

    def learn(self, tp: TopicPartition, leader: int, epoch: int) -> None:
        """Keep a leader, unless what is known is newer (KIP-320)."""
        if epoch < 0 or epoch >= self.epochs.get(tp, -1):
            self.leaders[tp], self.epochs[tp] = leader, epoch

    def learn_hint(self, tp: TopicPartition, row: Any, endpoints: Any) -> bool:
        """Take the leader that an answer with an error names (KIP-951); return whether it names
        one that is news."""
        hint = getattr(row, "current_leader", None)
        if hint is None or hint.leader_id < 0 or hint.leader_epoch <= self.epochs.get(tp, -1):
            return False
        for each in endpoints or ():
            self.client.brokers[each.node_id] = (each.host, each.port)
        self.learn(tp, hint.leader_id, hint.leader_epoch)
        return hint.leader_id in self.client.brokers

    async def link_to(self, broker: int) -> Link:
        """Raises LinkClosedError for a broker that is not known."""
        if broker not in self.client.brokers:
            raise LinkClosedError(f"broker {broker} is not known")
        return await self.client.link_to(self.client.brokers[broker])

    def leader(self, tp: TopicPartition) -> int:
        """Raises BrokerError if the partition has no leader, or is not known."""
        code = self.errors.get(tp[0], 0)
        if self.leaders.get(tp, -1) < 0:
            raise BrokerError(code or _LEADER_NOT_AVAILABLE)
        return self.leaders[tp]

    def name(self, topic: Any) -> str:
        """Return the name of a topic in an answer, which has a name or an id."""
        named = getattr(topic, "name", "") or getattr(topic, "topic", "")
        if named:
            return str(named)
        return next((name for name, each in self.ids.items() if each == topic.topic_id), "")
