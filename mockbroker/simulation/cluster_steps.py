"""What a tester does to topics, brokers, replicas, znodes, metadata and time. Each method is one
step of the cluster; the rules are in ``steps``, ``elections`` and ``reassignment``.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec.structs import replace

from kproto.schema.versions import Versions
from kproto.znodes import Stat, ZnodeError
from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.auto_progress import AutoProgress
from mockbroker.simulation.brokers.inter_broker.software_versions import own_apis
from mockbroker.simulation.brokers.log_dir_failures import LogDirFailures
from mockbroker.simulation.clients.quotas.throttling import Throttles
from mockbroker.simulation.data_steps import DataSteps
from mockbroker.simulation.state.actions import (
    AutoProgressChanged,
    BrokerChanged,
    ElectionsHeld,
    ElectionsReleased,
    MetadataHeld,
    MetadataReleased,
    PropagationChanged,
)
from mockbroker.simulation.state.cluster_parts import Partition, Topic, TopicPartition
from mockbroker.simulation.topics import spec as topic_spec

__all__ = ["ClusterSteps"]


class ClusterSteps(DataSteps):
    """The steps on one cluster, those on its data included. All of them raise ClusterError for what
    the cluster cannot do."""

    throttles: Throttles
    """The clients that a tester has throttled."""
    log_dir_failures: LogDirFailures
    auto_progress: AutoProgress

    # ---- topics, brokers, replicas ---------------------------------------------------------------

    def add_topic(
        self, topic: str | tuple[str, Sequence[Sequence[int]]], topic_id: uuid.UUID | None = None
    ) -> Topic:
        """Create a topic from the text of ``--topic``, without the limits of CreateTopics. Without
        ``topic_id`` it gets a new one."""
        if isinstance(topic, str):
            name, assignment = topic_spec.parse_topic(topic, tuple(self.state.brokers))
        else:
            name, assignment = topic[0], [list(ids) for ids in topic[1]]
        with self.turns.step():
            return self.topics.add(name, assignment, topic_id)

    def set_endpoint(self, broker_id: int, host: str, port: int) -> None:
        """Set the endpoint of this broker in Metadata and DescribeCluster."""
        before = self.controller.broker(broker_id)
        after = replace(before, host=host, port=port)
        if after != before:
            with self.turns.step():
                self.controller.record("set_endpoint", BrokerChanged(before, after))

    def join_isr(self, tp: TopicPartition, broker_id: int) -> Partition:
        """Let a replica join the ISR. Raises ClusterError if the broker is no replica or not live,
        or if the partition is offline."""
        with self.turns.step():
            return self.brokers.join_isr(tp, broker_id)

    def leave_isr(self, tp: TopicPartition, broker_id: int) -> Partition:
        """Remove a follower from the ISR. Raises ClusterError for the leader and for
        non-replicas."""
        with self.turns.step():
            return self.brokers.leave_isr(tp, broker_id)

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker: it leaves ISRs, and its partitions get other leaders or go offline."""
        with self.turns.step():
            self.brokers.stop(broker_id)

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker; offline partitions that it can lead come online."""
        with self.turns.step():
            self.brokers.start(broker_id)

    def fail_log_dir(self, broker_id: int, directory: str | None = None) -> None:
        """Fail a log directory of a live broker, None: every one. Its replicas are not served,
        and leaders move if the broker reports it to the controller. Before Kafka 1.0 the broker
        stops."""
        with self.turns.step():
            self.log_dir_failures.fail(broker_id, directory)

    def mend_log_dir(self, broker_id: int, directory: str | None = None) -> None:
        """Let a failed log directory work again, None: every one, and restart a live broker, which
        takes it back only then."""
        with self.turns.step():
            self.log_dir_failures.mend(broker_id, directory)

    def set_level(self, broker_id: int, apis: Mapping[int, Versions | None]) -> None:
        """Change the version ranges in which a broker differs from the cluster; None hides an API.

        The controller resends nothing (K455-64), unless it is the broker itself.
        """
        with self.turns.step():
            self.brokers.set_software(broker_id, own_apis(apis))

    def failover(self, to: int) -> None:
        """Make another live broker the controller; the controller epoch rises by one."""
        with self.turns.step():
            self.brokers.fail_over(to)

    def resign_controller(self) -> None:
        """Leave the cluster without a controller until ``failover``, or until a broker starts. The
        next controller reads what was written to znodes until then. ZooKeeper mode only."""
        with self._in_zookeeper(), self.turns.step():
            self.brokers.resign()

    def expire_session(self, broker_id: int) -> None:
        """Expire a broker's ZooKeeper session: it leaves its ISRs and registers again. If it was
        the controller, another broker takes over. ZooKeeper mode only."""
        with self._in_zookeeper(), self.turns.step():
            self.brokers.expire_session(broker_id)

    def kill_controller_after(self, changes: int) -> None:
        """Let the controller die once it has recorded this many more changes.

        The call during which it dies raises ControllerDiedError, and another broker takes over with
        what is recorded.
        """
        if changes < 0:
            raise ClusterError(f"the number of changes must be 0 or more, not {changes}")
        self.controller.die_after(changes)

    def throttle_client(self, client_id: str, milliseconds: int) -> None:
        """Give every answer to a client this throttle time, and mute its connections for as long;
        0 ends it."""
        self.throttles.set(client_id, milliseconds)

    # ---- znodes ----------------------------------------------------------------------------------

    @property
    def znodes(self) -> Mapping[str, str]:
        """The texts of znodes by path, as the controller last read or wrote them; empty in KRaft
        mode."""
        return MappingProxyType(self.state.znodes)

    def read_znode(self, path: str) -> tuple[str, Stat] | None:
        """Return the current text and stat of a znode; None if it does not exist."""
        with self._in_zookeeper(), self.turns.reading():
            text = self.controller.znodes.read(path)
            return None if text is None else (text, self.state.znode_stats[path])

    def znode_children(self, path: str) -> list[str]:
        """Return the names of a znode's children, sorted."""
        with self._in_zookeeper(), self.turns.reading():
            return self.controller.znodes.children(path)

    def write_znode(self, path: str, text: str | None) -> None:
        """Create or change a znode as any client of ZooKeeper can; None deletes it. The controller
        reacts at once to znodes that it watches, and reads the others when it takes over."""
        with self._in_zookeeper(), self.turns.step():
            self.controller.znodes.read(path)
            self.controller.count_change()
            self.controller.znodes.set("write_znode", path, text)

    def append_znode(self, prefix: str, text: str) -> str:
        """Create a sequence znode and return its path."""
        with self._in_zookeeper(), self.turns.step():
            return self.controller.znodes.append("write_znode", prefix, text)

    def react(self) -> None:
        """React to changes that other processes made in a shared ZooKeeper, and to the end of the
        session there."""
        with self.turns.step(first=True):
            pass

    @contextlib.contextmanager
    def _in_zookeeper(self) -> Iterator[None]:
        if not self.controller.keeps_znodes:
            name = self.reassignments.name
            raise ClusterError(f"a controller of the kind {name!r} does not use ZooKeeper")
        try:
            yield
        except ZnodeError as error:
            raise ClusterError(str(error)) from None

    # ---- metadata, elections, time ---------------------------------------------------------------

    def hold_metadata(self, broker_id: int) -> None:
        """Freeze the metadata of this broker."""
        self.controller.broker(broker_id)
        if broker_id in self.state.held_views:
            raise ClusterError(f"the metadata of broker {broker_id} is already held")
        with self.turns.step():
            self.controller.record("hold_metadata", MetadataHeld(broker_id))

    def release_metadata(self, broker_id: int) -> None:
        """Let the metadata of this broker follow the cluster again, at once."""
        self.controller.broker(broker_id)
        if broker_id not in self.state.held_views:
            raise ClusterError(f"the metadata of broker {broker_id} is not held")
        with self.turns.step():
            self.controller.record("release_metadata", MetadataReleased(broker_id))

    def set_propagation(self, delay_ms: int) -> None:
        """Delay the propagation of every change to brokers; 0 switches the delay off."""
        if delay_ms < 0:
            raise ClusterError(f"the propagation delay must be 0 ms or more, not {delay_ms} ms")
        with self.turns.step():
            self.controller.record("set_propagation", PropagationChanged(delay_ms))

    def hold_elections(self) -> None:
        """Let elections stay in the controller's queue; their requests wait."""
        if not self.elections.answers.queued:
            raise ClusterError("a KRaft controller elects at once and has no queue of elections")
        if self.state.elections_held:
            raise ClusterError("elections are already held back")
        with self.turns.step():
            self.controller.record("hold_elections", ElectionsHeld())

    def release_elections(self) -> None:
        """Process the controller's queue of elections, in order."""
        if not self.state.elections_held:
            raise ClusterError("elections are not held back")
        with self.turns.step():
            self.controller.record("release_elections", ElectionsReleased())

    def set_auto_progress(self, interval_ms: int | None) -> None:
        """Let one replica join an ISR every ``interval_ms`` from now on; None switches this off."""
        if interval_ms is not None and interval_ms < 1:
            raise ClusterError(
                f"the interval of auto-progress must be 1 ms or more, not {interval_ms} ms"
            )
        with self.turns.step():
            self.controller.record("set_auto_progress", AutoProgressChanged(interval_ms))
            self.auto_progress.restart()
