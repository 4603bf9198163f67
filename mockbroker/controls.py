"""The controls of a simulated cluster: what a person or a test does to it, no client of Kafka's.

``Cluster`` is these and what its clients can ask. Every control is one step: it happens, and so
does all that follows from it, before the call returns.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from kproto.schema.versions import Versions
from kproto.znodes import Stat, ZnodeError
from mockbroker import steps
from mockbroker.errors import ClusterError, ControllerDiedError, NotControllerError
from mockbroker.inter_broker.software_versions import own_apis
from mockbroker.state.actions import (
    AutoProgressChanged,
    BrokerChanged,
    ElectionsHeld,
    ElectionsReleased,
    MetadataHeld,
    MetadataReleased,
    PropagationChanged,
)
from mockbroker.state.controller import ClusterState, Controller
from mockbroker.state.model import NO_CONTROLLER, Broker, Partition, Topic, TopicPartition
from mockbroker.topics import administration as topic_rules
from mockbroker.topics import spec as topic_spec

__all__ = ["Controls"]


class Controls:
    _controller: Controller
    _auto_progress: steps.AutoProgress
    _new_topic_id: Callable[[], uuid.UUID]

    when_due: Callable[[int | None], None] = staticmethod(lambda _due: None)
    """Called with when, on the virtual clock, somebody should ``advance`` it to at the latest, as
    callers wait for that; None if nobody does. For who moves the clock to set, and an alarm by."""

    on_death: Callable[[int], None] = staticmethod(lambda broker_id: None)
    """Told which broker has died, after another became the controller."""

    on_step: Callable[[], None] = staticmethod(lambda: None)
    """Called when a step, with all that follows from it, is on record."""

    turn: Callable[..., contextlib.AbstractContextManager[None]] = staticmethod(
        lambda **_: contextlib.nullcontext()
    )
    """Around each step: see ``serving.operations``, where steps may have to wait."""

    @property
    def _state(self) -> ClusterState:
        return self._controller.state

    @contextlib.contextmanager
    def _acting(self, *, by_controller: bool = False, first: bool = False) -> Iterator[None]:
        """Around everything that may change the cluster: what watches see is acted on after it,
        and a controller that dies on the way is succeeded. Raises NotControllerError for what is
        the controller's (``by_controller``) while there is none."""
        with self.turn(by_controller=by_controller, first=first):
            if by_controller and self._state.controller_id == NO_CONTROLLER:
                raise NotControllerError("there is no controller")
            try:
                yield
                self._settle()
            except ControllerDiedError as death:
                steps.bury(self._controller, death.broker_id)
                self._settle()
                self.on_death(death.broker_id)
                raise
            finally:
                self.when_due(self._controller.elections.next_due())
                self.on_step()

    def _settle(self) -> None:
        """An election changes znodes, and a znode may ask for an election."""
        self._controller.react()
        while self._controller.elections.settle():
            self._controller.react()

    def broker(self, broker_id: int) -> Broker:
        """Raises UnknownBrokerError."""
        return steps.find_broker(self._controller, broker_id)

    # ---- topics, brokers, replicas -----------------------------------------------------------

    @staticmethod
    def parse_topic(
        text: str, broker_ids: Sequence[int] = (1, 2, 3)
    ) -> tuple[str, list[list[int]]]:
        """``foo:2:3`` or ``foo=1,2,3/2,3,4`` -> name, broker ids of each partition."""
        return topic_spec.parse_topic(text, broker_ids)

    def add_topic(self, topic: str | tuple[str, Sequence[Sequence[int]]]) -> Topic:
        """A topic from ``--topic``: created as it is told, without the limits of CreateTopics."""
        if isinstance(topic, str):
            name, assignment = self.parse_topic(topic, tuple(self._state.brokers))
        else:
            name, assignment = topic[0], [list(ids) for ids in topic[1]]
        with self._acting():
            return topic_rules.add(self._controller, name, assignment, self._new_topic_id)

    def set_endpoint(self, broker_id: int, host: str, port: int) -> None:
        """Where Metadata and DescribeCluster send clients for this broker."""
        before = self.broker(broker_id)
        after = replace(before, host=host, port=port)
        if after != before:
            with self._acting():
                self._controller.record("set_endpoint", BrokerChanged(before, after))

    def join_isr(self, tp: TopicPartition, broker_id: int) -> Partition:
        """The replica has caught up. Raises ClusterError if it is no replica or not live, or if
        the partition is offline."""
        with self._acting():
            return steps.join_isr(self._controller, tp, broker_id)

    def leave_isr(self, tp: TopicPartition, broker_id: int) -> Partition:
        """The replica fell behind. Raises ClusterError for the leader and for no replica."""
        with self._acting():
            return steps.leave_isr(self._controller, tp, broker_id)

    def stop_broker(self, broker_id: int) -> None:
        """The broker is gone: it leaves ISRs, its partitions get other leaders or go offline."""
        with self._acting():
            steps.stop_broker(self._controller, broker_id)

    def start_broker(self, broker_id: int) -> None:
        """The broker is back; offline partitions it can lead come online."""
        with self._acting():
            steps.start_broker(self._controller, broker_id)

    def set_level(self, broker_id: int, apis: Mapping[int, Versions | None]) -> None:
        """From now on the broker serves these versions where it differs from the cluster's: None
        hides a key; an empty mapping makes it like the others. The controller resends nothing
        (K455-64), unless it is the broker itself."""
        with self._acting():
            steps.set_level(self._controller, broker_id, own_apis(apis))

    def failover(self, to: int) -> None:
        """Another live broker becomes the controller; the controller epoch rises by one."""
        with self._acting():
            steps.fail_over(self._controller, to)

    def resign_controller(self) -> None:
        """Leave the cluster without a controller until ``failover``, or until a broker starts. What
        others write to znodes meanwhile is the next controller's to find. ZooKeeper only."""
        with self._asking_zookeeper(), self._acting():
            steps.resign(self._controller)

    def expire_session(self, broker_id: int) -> None:
        """The broker's ZooKeeper session expires: the others see it go, and it registers anew, out
        of the ISRs it was in. If it was the controller, another broker is. ZooKeeper only."""
        with self._asking_zookeeper(), self._acting():
            steps.expire_session(self._controller, broker_id)

    def kill_controller_after(self, changes: int) -> None:
        """The controller dies in the midst of what it does, once it has made this many more
        changes (each one an entry of the log); the call that meets its death raises
        ControllerDiedError, and another broker takes over with what it finds on record."""
        if changes < 0:
            raise ClusterError(f"after {changes} changes: 0 at least")
        self._controller.die_after(changes)

    # ---- znodes ------------------------------------------------------------------------------

    @property
    def znodes(self) -> Mapping[str, str]:
        """What is known to be in ZooKeeper, text by path; empty for a KRaft controller. What
        others wrote there is known once the controller has seen it."""
        return MappingProxyType(self._state.znodes)

    def read_znode(self, path: str) -> tuple[str, Stat] | None:
        """Text and stat as they are now, None where there is no such znode."""
        with self._asking_zookeeper(), self.turn():
            text = self._controller.znodes.read(path)
            return None if text is None else (text, self._state.znode_stats[path])

    def znode_children(self, path: str) -> list[str]:
        """Names, sorted."""
        with self._asking_zookeeper(), self.turn():
            return self._controller.znodes.children(path)

    def write_znode(self, path: str, text: str | None) -> None:
        """Create or change a znode as any client of ZooKeeper can; None deletes it. A controller
        acts at once on those it watches, and reads the others when it takes over."""
        with self._asking_zookeeper(), self._acting():
            self._controller.znodes.read(path)
            self._controller.spend_life()
            self._controller.znodes.set("write_znode", path, text)

    def append_znode(self, prefix: str, text: str) -> str:
        """Create a sequence znode; returns its path."""
        with self._asking_zookeeper(), self._acting():
            return self._controller.znodes.append("write_znode", prefix, text)

    def react(self) -> None:
        """Act on what others have written to a ZooKeeper that is not this process's own, and on
        the end of the session there."""
        with self._acting(first=True):
            pass

    @contextlib.contextmanager
    def _asking_zookeeper(self) -> Iterator[None]:
        if not self._controller.keeps_znodes:
            name = self._controller.machine.name
            raise ClusterError(f"a controller of the kind {name!r} keeps nothing in ZooKeeper")
        try:
            yield
        except ZnodeError as error:
            raise ClusterError(str(error)) from None

    # ---- what brokers know, and time ---------------------------------------------------------

    def hold_metadata(self, broker_id: int) -> None:
        """From now on this broker answers from what it knows at this moment."""
        self.broker(broker_id)
        if broker_id in self._state.held:
            raise ClusterError(f"the metadata of broker {broker_id} is held already")
        with self._acting():
            self._controller.record("hold_metadata", MetadataHeld(broker_id))

    def release_metadata(self, broker_id: int) -> None:
        """The broker catches up at once."""
        self.broker(broker_id)
        if broker_id not in self._state.held:
            raise ClusterError(f"the metadata of broker {broker_id} is not held")
        with self._acting():
            self._controller.record("release_metadata", MetadataReleased(broker_id))

    def set_propagation(self, delay_ms: int) -> None:
        """From now on brokers hear of every change that much later; 0 for at once."""
        if delay_ms < 0:
            raise ClusterError(f"no broker knows what is to come: {delay_ms} ms of propagation")
        with self._acting():
            self._controller.record("set_propagation", PropagationChanged(delay_ms))

    @property
    def propagation_ms(self) -> int:
        """How long brokers take to hear of a change."""
        return self._state.propagation_ms

    @property
    def next_due_ms(self) -> int | None:
        """What ``when_due`` was told last."""
        return self._controller.elections.next_due()

    def hold_elections(self) -> None:
        """From now on the controller enqueues elections and does not get to them; callers wait."""
        if not self._controller.elections.era.queued:
            raise ClusterError("a KRaft controller holds elections at once; there is no queue")
        if self._state.elections_held:
            raise ClusterError("elections are held back already")
        with self._acting():
            self._controller.record("hold_elections", ElectionsHeld())

    def release_elections(self) -> None:
        """The controller gets to its queue: what lies there is done now, in order."""
        if not self._state.elections_held:
            raise ClusterError("elections are not held back")
        with self._acting():
            self._controller.record("release_elections", ElectionsReleased())

    def advance(self, milliseconds: int) -> None:
        """Let time pass; what falls due happens, in order: ticks of auto-progress, news that
        reach brokers, time-outs of elections."""
        if milliseconds < 0:
            raise ClusterError(f"time does not go back: advance by {milliseconds} ms")
        with self._acting():
            self._advance_to(self._controller.now_ms + milliseconds)

    def follow(self, clock: Callable[[], int]) -> None:
        """Let the time pass until what ``clock`` says, once it is this step's turn."""
        with self._acting():
            self._advance_to(max(clock(), self._controller.now_ms))

    def _advance_to(self, end: int) -> None:
        while (due := self._controller.elections.next_due()) is not None and due < end:
            self._auto_progress.advance(max(due - self._controller.now_ms, 0))
            self._settle()
        self._auto_progress.advance(end - self._controller.now_ms)

    def set_auto_progress(self, interval_ms: int | None) -> None:
        """One replica joins an ISR every ``interval_ms`` from now on; None switches it off."""
        if interval_ms is not None and interval_ms < 1:
            raise ClusterError(f"auto-progress every {interval_ms} ms: at least 1 is needed")
        with self._acting():
            self._controller.record("set_auto_progress", AutoProgressChanged(interval_ms))
            self._auto_progress.restart()
