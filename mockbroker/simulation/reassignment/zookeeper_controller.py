"""The base of all controllers that keep their metadata in ZooKeeper.

Brokers, the controller and its epoch, topics, partition states and configs are written before the
change that they record is made, and read when a cluster comes up or another broker takes over.
Subclasses define how partitions are reassigned and what else their texts hold. ``znode_watches``
handles what users request through znodes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from kproto.znodes import MalformedZnodeError, WatchedEvent
from kproto.znodes.kafka_znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    TOPICS,
    BrokerRegistration,
    Endpoint,
    PartitionState,
    TopicAssignment,
    broker_path,
    config_path,
    decode_config,
    decode_controller_epoch,
    decode_partition_state,
    decode_topic,
    encode_broker,
    encode_config,
    encode_controller,
    encode_controller_epoch,
    encode_partition_state,
    encode_topic,
    partition_state_path,
    topic_path,
)
from kproto.znodes.plan_znodes import delete_topic_path
from mockbroker.simulation.configs.effective import UNCLEAN_ELECTION
from mockbroker.simulation.reassignment import broker_notifications as announce
from mockbroker.simulation.reassignment.identities import ReassignmentIdentity, identities_in_log
from mockbroker.simulation.reassignment.reassignment_controller import HOOKED_CHANGES, Dependencies
from mockbroker.simulation.reassignment.transitions import (
    Table,
    leader_and_isr,
    run_first,
    untargeted,
    update_metadata,
)
from mockbroker.simulation.reassignment.unclean_elections import BY_TOPIC, ON_UNCLEAN_ALLOWED
from mockbroker.simulation.reassignment.znode_watches import COMMON_WATCHES, ZnodeWatch, watch_all
from mockbroker.simulation.state.actions import (
    BrokerChanged,
    BrokerRegistered,
    Change,
    ConfigChanged,
    ControllerChanged,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    Warned,
)
from mockbroker.simulation.state.cluster_parts import (
    NO_CONTROLLER,
    Broker,
    Partition,
    Topic,
    TopicPartition,
    find_partition,
)
from mockbroker.simulation.state.cluster_state import TOPIC
from mockbroker.simulation.state.controller import Controller

__all__ = ["ZooKeeperController", "warn"]

_log = logging.getLogger("mockbroker")


class ZooKeeperController:
    """What all controllers that keep their metadata in ZooKeeper share."""

    keeps_znodes = True
    topic_version = 1
    """Version of the text of ``/brokers/topics/T``: 2 has reassignments (Kafka 2.4), 3 topic ids
    (2.8)."""
    broker_version = 4
    controller_version = 1
    unreadable_state = "taken as no reassignment"
    """What the log says of a partition whose state znode cannot be read."""
    on_unclean_allowed = ON_UNCLEAN_ALLOWED
    """The rows of this controller's release."""
    recovery_recorded = False
    """Whether a state znode says that an unclean election chose the leader (Kafka 3.2)."""
    leaders_write_isr = True
    """Whether leaders write their ISR to the state znode, with the controller epoch of the election
    that made them leaders. Since Kafka 2.7 they ask the controller to (KIP-497)."""
    watches: Sequence[ZnodeWatch] = COMMON_WATCHES

    def __init__(self, dependencies: Dependencies) -> None:
        self.controller = dependencies.controller
        self.controller.add_hooks(HOOKED_CHANGES, before=self.store, after=self.announce)
        self.turns = self.controller.turns
        self.turns.reactions.insert(0, self._process_watch_events)
        self.dependencies = dependencies
        self.run_first = partial(run_first, self.controller, writer=self)
        """``transitions.run_first`` for rows that may write this controller's znodes."""

    def retire(self) -> None:
        """React to nothing from now on: another controller has taken over."""
        self.controller.drop_hooks(self)
        self.turns.reactions.remove(self._process_watch_events)

    def identities(self) -> Mapping[TopicPartition, ReassignmentIdentity]:
        """Return the identity of every reassignment in progress, by topic and partition."""
        return identities_in_log(self.controller.log)

    # ---- start -------------------------------------------------------------------------------

    def start(self) -> None:
        """Create the znodes of a broker's first start, and load the topics on record."""
        for path in ("/admin/delete_topics", "/brokers/topics", "/config/topics",
                     "/config/brokers", "/config/changes", "/isr_change_notification",
                     "/log_dir_event_notification"):  # fmt: skip
            self.controller.znodes.touch(path)
        announce.send_live_brokers(self.controller, "start")
        for name in self.controller.znodes.children(TOPICS):
            self.load_topic("start", name)
        self.resume("start")
        watch_all(self, self.watches)

    def last_epoch(self) -> int:
        text = self.controller.znodes.read(CONTROLLER_EPOCH)
        if text is None:
            return 0
        return decode_controller_epoch(CONTROLLER_EPOCH, text)

    def load_topic(self, cause: str, name: str) -> bool:
        """Load a topic that is on record and not known yet. Returns whether it could be read. A
        partition without a state znode is new, and gets its first leader."""
        path = topic_path(name)
        text = self.controller.znodes.read(path, watch=True)
        if (
            text is None
            or name in self.controller.state.topics
            or name in self.controller.state.deleting
        ):
            return False
        try:
            assignment = _checked(path, decode_topic(path, text))
            topic_id = _topic_id(name, assignment)
            partitions = tuple(self._found(cause, name, assignment))
        except MalformedZnodeError as error:
            warn(self.controller, cause, f"{error}; the topic is left out")
            return False
        if not partitions:
            warn(self.controller, cause, f"{path}: no partitions in it; the topic is left out")
            return False
        self.controller.record(cause, TopicCreated(Topic(name, topic_id, partitions)))
        self.load_configs(cause, TOPIC, name)
        return True

    def _found(self, cause: str, name: str, assignment: TopicAssignment) -> Iterator[Partition]:
        for index, replicas in enumerate(_in_sequence(name, assignment)):
            isr = tuple(filter(partial(self.controller.is_online, (name, index)), replicas))
            leader = isr[0] if isr else -1
            new = Partition(index, tuple(replicas), isr or tuple(replicas[:1]), leader)
            found = self.recovered(cause, (name, index), new, assignment)
            yield self.to_be_written(name, found)

    def to_be_written(self, name: str, new: Partition) -> Partition:
        """A partition that is new to this controller, with the epoch its state znode will have. A
        controller that died may have left that znode, which is then overwritten."""
        path = partition_state_path(name, new.index)
        text = self.controller.znodes.read(path)
        if text is None:
            return new
        same = text == self.state_text(new, self.controller.state.controller_epoch)
        version = self.controller.state.znode_stats[path].version
        return replace(new, partition_epoch=version + (not same))

    def load_configs(self, cause: str, resource_type: int, name: str) -> None:
        """Adopt the configs on record where they differ from the known ones."""
        path = config_path(resource_type, name)
        text = self.controller.znodes.read(path)
        try:
            found = {} if text is None else decode_config(path, text)
        except MalformedZnodeError as error:
            warn(self.controller, cause, f"{error}; taken as no configs")
            found = {}
        known = dict(self.controller.state.configs.get((resource_type, name), {}))
        for key in {**known, **found}:
            before, after = known.get(key), found.get(key)
            if before != after:
                self.controller.record(
                    cause, ConfigChanged(resource_type, name, key, before, after)
                )

    # ---- take-over ---------------------------------------------------------------------------

    def take_over(self, cause: str) -> None:
        """Adopt what the znodes hold; what the last controller remembered beyond that is lost."""
        announce.send_live_brokers(self.controller, cause)
        for name, topic in sorted(self.controller.state.topics.items()):
            assignment = self._assignment(cause, name)
            for partition in topic.partitions:
                tp = (name, partition.index)
                found = self.recovered(cause, tp, partition, assignment)
                if found != partition:
                    self.controller.record(cause, PartitionChanged(name, partition, found))
        announce.resend_all(self.controller, cause)
        self.resume(cause)
        watch_all(self, self.watches)

    def resume(self, cause: str) -> None:
        """Resume the reassignments in progress, before anything is read that users have written
        meanwhile. Subclasses define this."""

    def broker_started(self, cause: str, broker_id: int) -> None:
        """Called when a broker has started. Subclasses define what continues."""

    def _assignment(self, cause: str, name: str) -> TopicAssignment:
        path = topic_path(name)
        text = self.controller.znodes.read(path, watch=True)
        try:
            if text is not None:
                return _checked(path, decode_topic(path, text))
        except MalformedZnodeError as error:
            warn(self.controller, cause, f"{error}; the replicas stay as they were known")
        return TopicAssignment(partitions={})

    def recovered(
        self, cause: str, tp: TopicPartition, known: Partition, assignment: TopicAssignment
    ) -> Partition:
        """The partition as the znodes have it. What they lack stays as in ``known``, except for the
        target of a reassignment, which only the last controller remembered. A leader on record that
        is not live is left to an election."""
        known = replace(untargeted(known), vacated=False)
        path = partition_state_path(*tp)
        text = self.controller.znodes.read(path)
        found = known
        if tp[1] in assignment.partitions:
            found = replace(
                known,
                replicas=tuple(assignment.partitions[tp[1]]),
                adding=tuple(assignment.adding_replicas.get(tp[1], ())),
                removing=tuple(assignment.removing_replicas.get(tp[1], ())),
            )
        if text is None:
            return found
        try:
            state = decode_partition_state(path, text)
            stat = self.controller.state.znode_stats.get(path)
            on_record = replace(
                found,
                leader=state.leader
                if self.controller.is_online(tp, state.leader)
                else known.leader,
                leader_epoch=state.leader_epoch,
                isr=tuple(state.isr) or known.isr,
                partition_epoch=known.partition_epoch if stat is None else stat.version,
            )
            return self.with_state(path, on_record, state)
        except MalformedZnodeError as error:
            warn(self.controller, cause, f"{error}; {self.unreadable_state}")
            return found

    def with_state(self, path: str, partition: Partition, state: PartitionState) -> Partition:
        """Add what the state znode says beyond leader and ISR. Raises MalformedZnodeError."""
        return replace(partition, recovering=bool(state.leader_recovery_state))

    # ---- on record before it is made ---------------------------------------------------------

    def store(self, cause: str, change: Change) -> None:
        """Write or delete the znodes of topics, brokers, controllers and configs."""
        match change:
            case BrokerRegistered(broker) | BrokerChanged(_, broker):
                self._store_broker(cause, broker)
                self._finish_deletions(cause, broker)
            case ControllerChanged(_, after, epoch):
                self._store_controller(cause, after, epoch)
            case TopicCreated(topic):
                self._store_partitions(cause, topic, topic.partitions)
            case PartitionsAdded(name, added):
                topic = self.controller.state.topics[name]
                grown = Topic(name, topic.topic_id, topic.partitions + added)
                self._store_partitions(cause, grown, added)
            case TopicDeleted(name):
                topic = self.controller.state.topics[name]
                # First, as brokers do: a successor continues the deletion.
                self.controller.znodes.put(cause, delete_topic_path(name), "")
                announce.send_topic_deletion(self.controller, cause, topic)
                if not _stopped_hosts(self.controller, topic):
                    self._remove_topic(cause, topic)
                    self.controller.znodes.put(cause, delete_topic_path(name), None)
            case ConfigChanged():
                self._store_config(cause, change)

    def _store_broker(self, cause: str, broker: Broker) -> None:
        path = broker_path(broker.broker_id)
        if not broker.live:
            self.controller.znodes.put(cause, path, None)
            return
        endpoints = tuple(
            Endpoint(each.listener, each.host, each.port, each.protocol)
            for each in broker.endpoints
        ) or (Endpoint("PLAINTEXT", broker.host, broker.port),)
        text = encode_broker(
            BrokerRegistration(
                endpoints=endpoints, timestamp=self.controller.now_ms, rack=broker.rack
            ),
            self.broker_version,
        )
        self.controller.znodes.put(cause, path, text.decode(), ephemeral=True)

    def _store_controller(self, cause: str, broker_id: int, epoch: int) -> None:
        text = encode_controller(broker_id, self.controller.now_ms, self.controller_version)
        self.controller.znodes.put(cause, CONTROLLER, None)
        if broker_id == NO_CONTROLLER:
            return
        self.controller.znodes.put(cause, CONTROLLER, text.decode(), ephemeral=True)
        self.controller.znodes.put(cause, CONTROLLER_EPOCH, encode_controller_epoch(epoch).decode())

    def _store_partitions(self, cause: str, topic: Topic, new: Sequence[Partition]) -> None:
        """Write a topic, and the state of its new partitions."""
        self.store_topic(cause, topic)
        for partition in new:
            self.store_state(cause, topic.name, partition)

    def _finish_deletions(self, cause: str, started: Broker) -> None:
        """Finish deleting topics that waited for this broker and wait for no other."""
        for name, topic in list(self.controller.state.deleting.items()):
            if started.live and _stopped_hosts(self.controller, topic) <= {started.broker_id}:
                self._remove_topic(cause, topic)
                self.controller.znodes.put(cause, delete_topic_path(name), None)

    def _remove_topic(self, cause: str, topic: Topic) -> None:
        name = topic.name
        for partition in topic.partitions:
            path = partition_state_path(name, partition.index)
            self.controller.znodes.put(cause, path, None)
            self.controller.znodes.remove_empty(path.removesuffix("/state"))
        self.controller.znodes.remove_empty(f"{topic_path(name)}/partitions")
        self.controller.znodes.put(cause, topic_path(name), None)
        self.controller.znodes.put(cause, config_path(TOPIC, name), None)

    def _store_config(self, cause: str, change: ConfigChanged) -> None:
        key = (change.resource_type, change.resource_name)
        values = dict(self.controller.state.configs.get(key, {}))
        if change.after is None:
            values.pop(change.name, None)
        else:
            values[change.name] = change.after
        self.controller.znodes.put(cause, config_path(*key), encode_config(values).decode())

    def store_state(self, cause: str, name: str, partition: Partition) -> bool:
        """Write a partition's state znode. Returns whether its text changed."""
        path = partition_state_path(name, partition.index)
        epoch = self.controller.state.controller_epoch
        if self.leaders_write_isr and _same_leader_epoch(self.controller, name, partition):
            epoch = self._epoch_of_leader(path)
        return self.controller.znodes.put(cause, path, self.state_text(partition, epoch))

    def _epoch_of_leader(self, path: str) -> int:
        """The controller epoch that the leader writes: that of the controller that elected it."""
        text = self.controller.state.znodes.get(path)
        if text is not None:
            with contextlib.suppress(MalformedZnodeError):  # the write repairs it
                return decode_partition_state(path, text).controller_epoch
        return self.controller.state.controller_epoch

    def store_topic(self, cause: str, topic: Topic) -> None:
        """Write ``/brokers/topics/T``."""
        self.controller.znodes.put(cause, topic_path(topic.name), self.topic_text(topic))

    def topic_text(self, topic: Topic) -> str:
        """The text of ``/brokers/topics/T``."""
        assignment = TopicAssignment(
            partitions={partition.index: partition.replicas for partition in topic.partitions},
            adding_replicas={each.index: each.adding for each in topic.partitions},
            removing_replicas={each.index: each.removing for each in topic.partitions},
            topic_id=base64.urlsafe_b64encode(topic.topic_id.bytes).decode().rstrip("="),
        )
        return encode_topic(assignment, self.topic_version).decode()

    def state_text(self, partition: Partition, controller_epoch: int) -> str:
        """The text of ``/brokers/topics/T/partitions/P/state``."""
        return encode_partition_state(
            PartitionState(
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                controller_epoch=controller_epoch,
                isr=partition.isr,
                leader_recovery_state=int(self.recovery_recorded and partition.recovering),
            )
        ).decode()

    # ---- announcements to brokers ------------------------------------------------------------

    def announce(self, cause: str, change: Change) -> None:
        """Send new partitions to their replicas, and starts and stops of brokers to the others.
        What a deleted topic's replicas are sent precedes the deletion, in ``store``."""
        match change:
            case TopicCreated(Topic(name, _, partitions)) | PartitionsAdded(name, partitions):
                self.controller.znodes.read(topic_path(name), watch=True)
                announce.send_new_partitions(self.controller, cause, name, partitions)
            case BrokerChanged():
                announce.broker_changed(self.controller, cause, change)
            case ConfigChanged(_, _, name, _, "true") if name == UNCLEAN_ELECTION:
                self._elect_offline(cause, change)

    def settle(self, cause: str, tp: TopicPartition) -> Partition:
        """Continue the partition's reassignment; each controller has its own way."""
        raise NotImplementedError

    def after_election(self, cause: str, tp: TopicPartition) -> None:
        """The controller wrote the state znode, which it watches during a reassignment."""
        self.settle(cause, tp)

    def _elect_offline(self, cause: str, change: ConfigChanged) -> None:
        """Apply ``on_unclean_allowed`` to the topics that the config concerns: one topic, or all if
        it is a default of the controller's broker."""
        named, state = change.resource_name, self.controller.state
        by_topic = change.resource_type == TOPIC
        if state.controller_id == NO_CONTROLLER:
            return
        if not by_topic and named not in ("", str(state.controller_id)):
            return
        for name in [named] if by_topic else sorted(state.topics):
            unclean = self.dependencies.configs.unclean_election_enabled(name)
            facts = {BY_TOPIC: by_topic, UNCLEAN_ELECTION: unclean}
            for partition in state.topics[name].partitions:
                tp = (name, partition.index)
                if self.run_first(cause, tp, self.on_unclean_allowed, facts=facts):
                    self.after_election(cause, tp)

    def change_partition(self, cause: str, change: PartitionChanged) -> None:
        """Write the state znode, as a leader does for its ISR, and send a new leader as the
        controller."""
        name, after = change.topic, change.after
        self.store_state(cause, name, after)
        self.controller.record(cause, change)
        if after.leader != change.before.leader:
            to = tuple(each for each in after.hosts if self.controller.is_live(each))
            if to:
                self.controller.record(cause, leader_and_isr(to, name, after))
        live = self.controller.live_ids()
        if live:
            self.controller.record(cause, update_metadata(live, name, after))

    # ---- rows --------------------------------------------------------------------------------

    def run_until_none(self, cause: str, tp: TopicPartition, rows: Table) -> None:
        """Apply the first row that matches, and repeat until none does."""
        while self.run_first(cause, tp, rows):
            pass

    def plan_removed(self) -> None:
        """Called when a row has deleted ``/admin/reassign_partitions``."""

    # ---- watches -----------------------------------------------------------------------------

    def _process_watch_events(self) -> bool:
        """React to znodes that changed, until there are none, before elections are processed.
        Without a controller nothing reacts; the next one reads all znodes when it takes over."""
        while (events := self.controller.znodes.take_events()) != []:
            if events is None:
                # Whatever else happened, the next controller reads all znodes.
                self.dependencies.brokers.session_expired()
                continue
            for event in events:
                if self.controller.state.controller_id != NO_CONTROLLER:
                    self._react(event)
        return False

    def _react(self, event: WatchedEvent) -> None:
        """Call the reaction of each row of ``watches`` that concerns the event's path."""
        for row in self.watches:
            if row.concerns(event.path):
                row.reaction(self, event)


def _stopped_hosts(controller: Controller, topic: Topic) -> set[int]:
    """Stopped brokers that host the topic, and cannot delete it now."""
    stopped = {each.broker_id for each in controller.state.brokers.values() if not each.live}
    return {broker for partition in topic.partitions for broker in partition.hosts} & stopped


def _same_leader_epoch(controller: Controller, name: str, partition: Partition) -> bool:
    """Whether the leader makes this change: the controller raises the leader epoch with each of
    its own, and it creates partitions."""
    known = find_partition(controller.state.topics, (name, partition.index))
    return known is not None and known.leader_epoch == partition.leader_epoch


def warn(controller: Controller, cause: str, text: str) -> None:
    """Warn in the controller's own log and in this process's."""
    _log.warning("%s", text)
    controller.record(cause, Warned(text))


def _checked(path: str, assignment: TopicAssignment) -> TopicAssignment:
    for index, replicas in assignment.partitions.items():
        if len(set(replicas)) != len(replicas):
            raise MalformedZnodeError(path, f"partition {index} names a broker twice")
        if not set(replicas) - set(assignment.removing_replicas.get(index, ())):
            raise MalformedZnodeError(path, f"partition {index} has no replicas")
    return assignment


def _in_sequence(name: str, assignment: TopicAssignment) -> list[Sequence[int]]:
    indexes = sorted(assignment.partitions)
    if indexes != list(range(len(indexes))):
        listed = json.dumps(indexes)
        reason = f"partitions are numbered from 0 without gaps, not {listed}"
        raise MalformedZnodeError(topic_path(name), reason)
    return [assignment.partitions[index] for index in indexes]


def _topic_id(name: str, assignment: TopicAssignment) -> uuid.UUID:
    """The id on record; for a topic from before ids, one derived from its name, which is
    never sent."""
    text = assignment.topic_id
    try:
        if text is not None:
            return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    except ValueError as error:
        raise MalformedZnodeError(topic_path(name), f"topic_id: {error}") from None
    return uuid.uuid5(uuid.NAMESPACE_OID, name)
