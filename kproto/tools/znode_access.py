"""Access to a cluster's znodes for the tools of the ZooKeeper era, which read and write them
directly.

Nothing is printed here. ``store`` is a session on the cluster's own ZooKeeper path.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from kproto.client import TopicPartition
from kproto.tools.errors import ToolError
from kproto.znodes import NodeExistsError, NoNodeError, ZnodeStore
from kproto.znodes.kafka_znodes import (
    BROKER_IDS,
    CONFIG_CHANGES,
    TOPICS,
    broker_path,
    config_path,
    decode_broker,
    decode_config,
    decode_topic,
    encode_config,
    encode_config_change,
    topic_path,
)
from kproto.znodes.plan_znodes import (
    PREFERRED_REPLICA_ELECTION,
    PlannedReplicas,
    decode_reassign_partitions,
    encode_preferred_replica_election,
    encode_reassign_partitions,
)

__all__ = ["ZnodeAccess"]

TOPIC: Final = 2
BROKER: Final = 4
_POLL_SECONDS: Final = 0.05


class ZnodeAccess:
    """Raises ``kproto.znodes.ZnodeError`` if ZooKeeper fails, and MalformedZnodeError if a znode of
    Kafka's cannot be read."""

    doing: Callable[[str], None] = staticmethod(lambda _what: None)
    """Receives a text for each wait."""

    def __init__(self, store: ZnodeStore) -> None:
        self._store = store

    # ---- what there is -----------------------------------------------------------------------

    def brokers(self) -> dict[int, str | None]:
        """Return the live brokers' racks, by id."""
        found: dict[int, str | None] = {}
        for name in self._children(BROKER_IDS):
            path = broker_path(int(name))
            data = self._data(path)
            if data is not None:
                found[int(name)] = decode_broker(path, data).rack
        return found

    def replicas(self, topics: Iterable[str]) -> dict[TopicPartition, Sequence[int]]:
        """Return the replicas of every partition of these topics. A topic that does not exist has
        none."""
        found: dict[TopicPartition, Sequence[int]] = {}
        for topic in sorted(set(topics)):
            path = topic_path(topic)
            data = self._data(path)
            if data is not None:
                for index, replicas in decode_topic(path, data).partitions.items():
                    found[TopicPartition(topic, index)] = replicas
        return found

    def plan(self, path: str) -> dict[TopicPartition, PlannedReplicas] | None:
        """Return the pending plan at ``path``; None without one."""
        data = self._data(path)
        if data is None:
            return None
        found = decode_reassign_partitions(path, data)
        return {TopicPartition(*partition): planned for partition, planned in found.items()}

    def every_partition(self) -> list[TopicPartition]:
        """Return all partitions, ordered by topic and index."""
        return sorted(self.replicas(self._children(TOPICS)))

    def is_there(self, path: str) -> bool:
        return self._store.exists(path) is not None

    # ---- what is asked for -------------------------------------------------------------------

    def submit_plan(self, path: str, plan: Mapping[TopicPartition, Sequence[int]]) -> bool:
        """Submit a plan. Returns False if another plan is pending, in which case nothing is
        submitted."""
        planned = {(each.topic, each.partition): PlannedReplicas(plan[each]) for each in plan}
        return self.create(path, encode_reassign_partitions(planned))

    def submit_election(self, partitions: Iterable[TopicPartition]) -> bool:
        pairs = [(each.topic, each.partition) for each in partitions]
        data = encode_preferred_replica_election(pairs)
        return self.create(PREFERRED_REPLICA_ELECTION, data)

    def create(self, path: str, data: bytes = b"") -> bool:
        """Create a znode. Returns False if it exists."""
        self._make_parents(path)
        try:
            self._store.create(path, data)
        except NodeExistsError:
            return False
        return True

    def delete(self, path: str) -> bool:
        """Delete a znode. Returns False if it does not exist."""
        try:
            self._store.delete(path)
        except NoNodeError:
            return False
        return True

    def wait_until_gone(self, path: str, seconds: float) -> None:
        """Wait until the controller has removed the znode. Raises ToolError after the time-out."""
        self.doing(f"waiting for the controller to remove {path}")
        deadline = time.monotonic() + seconds
        while self.is_there(path):
            if time.monotonic() > deadline:
                raise ToolError(
                    f"{path} is still there after {seconds:g} s: is there a controller?"
                )
            time.sleep(_POLL_SECONDS)

    # ---- configs -----------------------------------------------------------------------------

    def change_configs(
        self, resource_type: int, name: str, change: Callable[[dict[str, str]], dict[str, str]]
    ) -> bool:
        """Change the overrides of a topic (2) or broker (4) and notify the brokers. Returns whether
        anything changed."""
        path = config_path(resource_type, name)
        data = self._data(path)
        before = {} if data is None else decode_config(path, data)
        after = change(dict(before))
        if after == before:
            return False
        if data is None:
            self.create(path, encode_config(after))
        else:
            self._store.set(path, encode_config(after))
        prefix = f"{CONFIG_CHANGES}/config_change_"
        self._make_parents(prefix)
        self._store.create(prefix, encode_config_change(resource_type, name), sequential=True)
        return True

    # ---- znodes ------------------------------------------------------------------------------

    def _data(self, path: str) -> bytes | None:
        try:
            return self._store.get(path).data
        except NoNodeError:
            return None

    def _children(self, path: str) -> list[str]:
        try:
            return self._store.children(path)
        except NoNodeError:
            return []

    def _make_parents(self, path: str) -> None:
        made = ""
        for name in path.split("/")[1:-1]:
            made += f"/{name}"
            if self._store.exists(made) is None:
                try:
                    self._store.create(made)
                except NodeExistsError:
                    continue
