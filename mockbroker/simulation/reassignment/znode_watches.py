"""The znodes that every ZooKeeper controller watches, as a table with a reaction for each.

Controllers add rows of their own. A watch fires once, and each reaction sets it again by reading
the znode. Users may write anything there: what cannot be read is logged, and removed if it would
block what comes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import msgspec

from kproto.schema.model import ZERO_UUID
from kproto.znodes import EventType, MalformedZnodeError, WatchedEvent
from kproto.znodes.kafka_znodes import (
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES,
    CONTROLLER,
    LOG_DIR_EVENTS,
    TOPICS,
    decode_config_change,
    decode_log_dir_event,
    decode_topic,
    topic_path,
)
from kproto.znodes.plan_znodes import DELETE_TOPICS, PREFERRED_REPLICA_ELECTION, delete_topic_path
from mockbroker.errors import Refusal
from mockbroker.simulation.reassignment import broker_notifications as announce
from mockbroker.simulation.reassignment.reassignment_controller import Dependencies
from mockbroker.simulation.state.actions import PartitionsAdded, Warned
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER, Partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.controller_znodes import SEEN
from mockbroker.simulation.topics.assignments import new_partition

__all__ = ["COMMON_WATCHES", "ZnodeWatch", "watch_all"]


class TopicLoader(Protocol):
    """What the reactions need of a ZooKeeper controller."""

    @property
    def controller(self) -> Controller: ...

    @property
    def dependencies(self) -> Dependencies: ...

    def load_topic(self, cause: str, name: str) -> bool: ...

    def load_configs(self, cause: str, resource_type: int, name: str) -> None: ...

    def to_be_written(self, name: str, new: Partition) -> Partition: ...


class ZnodeWatch(msgspec.Struct, frozen=True):
    """``path`` is watched for its ``children``, or otherwise for its creation, data and deletion.

    ``reaction`` is called with each event of the znode, and with None when a controller takes over.
    It must read what it watches, which sets the watch again.
    """

    path: str
    children: bool
    reaction: Callable[[Any, WatchedEvent | None], None]
    below: bool = False
    """Whether events of the znode's children, one level down, count too."""

    def concerns(self, path: str) -> bool:
        """Whether the reaction is due. An event without a path says that the session's watches are
        lost."""
        if path in ("", self.path):
            return True
        return self.below and path.rpartition("/")[0] == self.path


def watch_all(loader: TopicLoader, rows: Sequence[ZnodeWatch]) -> None:
    """Read everything that is watched, as a controller that takes over does."""
    for row in rows:
        row.reaction(loader, None)


def _topics(loader: TopicLoader, event: WatchedEvent | None) -> None:
    """Load new topics with their partitions, and the new partitions of known topics."""
    known = loader.controller.state.topics
    if event is not None and event.path.startswith(f"{TOPICS}/"):
        name = event.path.removeprefix(f"{TOPICS}/")
        if event.type is EventType.NODE_DATA_CHANGED and name in known:
            _more_partitions(loader, name)
        return
    if event is not None and not event.path:  # watches went with the connection
        for name in sorted(known):
            _more_partitions(loader, name)
    for name in loader.controller.znodes.children(TOPICS, watch=True):
        if name not in known:
            loader.load_topic("zookeeper", name)


def _more_partitions(loader: TopicLoader, name: str) -> None:
    """Add partitions whose indexes continue the known ones. The controller ignores any other
    difference until the next take-over, since it writes the rest of the text itself."""
    controller = loader.controller
    path = topic_path(name)
    text = controller.znodes.read(path, watch=True)
    present = len(controller.state.topics[name].partitions)
    try:
        found = {} if text is None else decode_topic(path, text).partitions
        added: list[Partition] = []
        while present + len(added) in found:
            index = present + len(added)
            new = new_partition(controller, index, found[index])
            added.append(loader.to_be_written(name, new))
    except (MalformedZnodeError, Refusal) as error:
        text = error.message if isinstance(error, Refusal) else str(error)
        controller.record("zookeeper", Warned(f"{path}: {text}; no partitions added"))
        return
    if added:
        controller.record("zookeeper", PartitionsAdded(name, tuple(added)))


def _deletions(loader: TopicLoader, _: WatchedEvent | None) -> None:
    """Delete the topics that the children name. A child goes with its topic, or if there is no such
    topic; while a stopped broker has replicas of the topic, both stay."""
    controller = loader.controller
    for name in controller.znodes.children(DELETE_TOPICS, watch=True):
        if name in controller.state.deleting:
            continue
        path = delete_topic_path(name)
        controller.znodes.read(path)
        (result,) = loader.dependencies.topics.delete([(name, ZERO_UUID)])
        if result.error_code:
            text = f"{path}: {result.error_message}"
            controller.record("zookeeper", Warned(text))
        if name not in controller.state.deleting:
            controller.znodes.put("zookeeper", path, None)


def _config_changes(loader: TopicLoader, _: WatchedEvent | None) -> None:
    """Reload the configs that each new child names. Kafka deletes these znodes after 15 minutes;
    here they stay."""
    controller = loader.controller
    for name in controller.znodes.changes(CONFIG_CHANGES, CONFIG_CHANGE_PREFIX):
        path = f"{CONFIG_CHANGES}/{name}"
        text = controller.znodes.read(path) or ""
        try:
            about = decode_config_change(path, text)
        except MalformedZnodeError as error:
            controller.record("zookeeper", Warned(f"{error}; passed over"))
            continue
        if about is not None:
            loader.load_configs("zookeeper", *about)


def _controller(loader: TopicLoader, event: WatchedEvent | None) -> None:
    """Elect a controller when the znode is deleted. In Kafka the former controller takes part in
    the race; here it wins only if no other broker is live."""
    controller = loader.controller
    gone = controller.znodes.read(CONTROLLER, watch=True) is None
    before = controller.state.controller_id
    if event is None or not gone or before == NO_CONTROLLER:
        return
    live = controller.live_ids()
    others = [broker for broker in live if broker != before]
    if live:
        loader.dependencies.brokers.move_controller((others or live)[0], SEEN)


def _preferred_replicas(loader: TopicLoader, _: WatchedEvent | None) -> None:
    """Hold an election when the znode is created; its deletion is the answer."""
    if loader.controller.znodes.read(PREFERRED_REPLICA_ELECTION, watch=True) is not None:
        loader.dependencies.elections.start_from_znode()


def _log_dir_events(loader: TopicLoader, event: WatchedEvent | None) -> None:
    """Ask the brokers that announce a failed log directory for their replicas. A controller that
    takes over asks every broker anyway. The znodes are deleted."""
    controller = loader.controller
    brokers = list(controller.live_ids()) if event is None else []
    for name in controller.znodes.children(LOG_DIR_EVENTS, watch=True):
        path = f"{LOG_DIR_EVENTS}/{name}"
        text = controller.znodes.read(path) or ""
        try:
            brokers.append(decode_log_dir_event(path, text))
        except MalformedZnodeError as error:
            controller.record("zookeeper", Warned(f"{error}; passed over"))
        controller.znodes.put("zookeeper", path, None)
    for broker_id in dict.fromkeys(brokers):
        if controller.is_live(broker_id):
            if event is not None:
                announce.send_replicas(controller, "zookeeper", broker_id)
            loader.dependencies.log_dir_failures.report("zookeeper", broker_id)


COMMON_WATCHES: Final = (
    ZnodeWatch(CONTROLLER, False, _controller),
    ZnodeWatch(TOPICS, True, _topics, below=True),
    ZnodeWatch(DELETE_TOPICS, True, _deletions),
    ZnodeWatch(CONFIG_CHANGES, True, _config_changes),
    ZnodeWatch(PREFERRED_REPLICA_ELECTION, False, _preferred_replicas),
    ZnodeWatch(LOG_DIR_EVENTS, True, _log_dir_events),
)
"""Watched by every ZooKeeper controller. Each reacts to ``/admin/reassign_partitions`` in a way of
its own."""
