"""What happens to brokers and replicas, and how the cluster reacts: replicas catch up or fall
behind, brokers stop and start, the controller moves.

Each step is an event that a real cluster could see, followed at once by the controller's reaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import ClusterError
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.elections.partition_change import (
    CompletionRows,
    Election,
    next_partition,
)
from mockbroker.simulation.features.quorum.voters import Outcome
from mockbroker.simulation.state.actions import (
    BrokerChanged,
    BrokerRegistered,
    ControllerChanged,
    PartitionChanged,
    ZnodeWritten,
)
from mockbroker.simulation.state.cluster_parts import (
    NO_CONTROLLER,
    NO_LEADER,
    Broker,
    BrokerEndpoint,
    Partition,
    TopicPartition,
)
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.controller_znodes import SEEN

__all__ = ["Brokers"]


class Brokers(Mapping[int, Broker]):
    """All registered brokers of one cluster, live or not, by id ascending."""

    def __init__(
        self, controller: Controller, configs: EffectiveConfigs, completion: CompletionRows
    ) -> None:
        self._controller = controller
        self._brokers = controller.state.brokers
        self._configs = configs
        self._completion = completion
        self._resigned = False
        self.turns = controller.turns
        self.turns.on_death.append(self._replace_dead_controller)

    def __getitem__(self, broker_id: int) -> Broker:
        return self._brokers[broker_id]

    def __iter__(self) -> Iterator[int]:
        return iter(self._brokers)

    def __len__(self) -> int:
        return len(self._brokers)

    def set_endpoint(
        self, broker_id: int, host: str, port: int, endpoints: Sequence[BrokerEndpoint] = ()
    ) -> None:
        """Set the endpoint of this broker in Metadata and DescribeCluster, and those of all its
        listeners."""
        before = self._controller.broker(broker_id)
        after = replace(before, host=host, port=port, endpoints=tuple(endpoints))
        if after != before:
            with self.turns.step():
                self._controller.record("set_endpoint", BrokerChanged(before, after))

    def join_isr(self, tp: TopicPartition, broker_id: int, *, cause: str = "join_isr") -> Partition:
        """Let a live replica that caught up join the ISR; do nothing if it is in the ISR
        already."""
        partition = self._replica_of(tp, broker_id)
        if broker_id in partition.isr:
            return partition
        self._check_controller(tp)
        if not self._controller.is_live(broker_id):
            raise ClusterError(
                f"broker {broker_id} is stopped and cannot join the ISR of {_name(tp)}"
            )
        if not self._controller.is_served(tp, broker_id):
            raise ClusterError(
                f"the log directory of {_name(tp)} on broker {broker_id} has failed, so that the "
                "replica cannot join the ISR"
            )
        if partition.leader == NO_LEADER:
            raise ClusterError(
                f"{_name(tp)} is offline: no leader can add broker {broker_id} to its ISR"
            )
        if not self._controller.state.known_targets.fetches(broker_id, tp, partition):
            raise ClusterError(
                f"broker {broker_id} does not fetch {_name(tp)}: it received no LeaderAndIsr with "
                "the target replicas at a version that it knows; a new controller sends them again"
            )
        return self._change_isr(cause, tp, partition, (*partition.isr, broker_id))

    def leave_isr(
        self, tp: TopicPartition, broker_id: int, *, cause: str = "leave_isr"
    ) -> Partition:
        """Remove a follower that fell behind from the ISR; do nothing if it is not in the ISR."""
        partition = self._replica_of(tp, broker_id)
        if broker_id not in partition.isr:
            return partition
        self._check_controller(tp)
        if broker_id == partition.leader:
            raise ClusterError(
                f"broker {broker_id} is the leader of {_name(tp)} and stays in its ISR; "
                "stop the broker instead"
            )
        if partition.isr == (broker_id,):
            raise ClusterError(f"broker {broker_id} is the last replica in the ISR of {_name(tp)}")
        isr = tuple(replica for replica in partition.isr if replica != broker_id)
        return self._change_isr(cause, tp, partition, isr)

    def _change_isr(
        self, cause: str, tp: TopicPartition, partition: Partition, isr: tuple[int, ...]
    ) -> Partition:
        """Change the ISR as the leader does, which ends its recovery."""
        return self._apply(cause, tp, replace(partition, recovering=False), isr)

    def _replica_of(self, tp: TopicPartition, broker_id: int) -> Partition:
        partition = self._controller.partition(tp)
        self._controller.broker(broker_id)
        if broker_id not in partition.hosts:
            replicas = ", ".join(map(str, partition.hosts))
            raise ClusterError(
                f"broker {broker_id} has no replica of {_name(tp)} (its replicas are {replicas})"
            )
        return partition

    def _check_controller(self, tp: TopicPartition) -> None:
        if self._controller.state.controller_id == NO_CONTROLLER:
            raise ClusterError(f"there is no controller to change the ISR of {_name(tp)}")

    def _apply(
        self, cause: str, tp: TopicPartition, partition: Partition, isr: tuple[int, ...]
    ) -> Partition:
        after = next_partition(
            partition,
            partial(self._controller.is_online, tp),
            isr=isr,
            election=self._election(tp[0]),
            completion=self._completion,
        )
        self._controller.change_partition(cause, tp[0], after)
        return self._controller.reactions.settle(cause, tp)

    def _election(self, topic: str) -> Election:
        unclean = self._configs.unclean_election_enabled(topic)
        return Election.UNCLEAN if unclean else Election.ONLINE

    def stop(self, broker_id: int) -> None:
        """Stop a live broker, which leaves every ISR in which it is not the last replica.

        Partitions that it led get another leader from the ISR, in replica order, or go offline. If
        it was the controller, the live broker with the lowest id takes over; in ZooKeeper mode
        there is no controller once the last broker has stopped.
        """
        broker = self._controller.broker(broker_id)
        if not broker.live:
            raise ClusterError(f"broker {broker_id} is already stopped")
        self._controller.record("stop_broker", BrokerChanged(broker, replace(broker, live=False)))
        self._handle_end(broker_id)

    def _handle_end(self, broker_id: int) -> None:
        """Handle the end of a broker, as far as that has not been done yet."""
        live = self._controller.live_ids()
        was_controller = self._controller.state.controller_id == broker_id
        if self._controller.state.controller_id == NO_CONTROLLER:
            return  # the next controller deals with it
        if was_controller and live:
            # First, since whatever the stopped controller had not recorded is lost.
            self.move_controller(live[0], "stop_broker")
        self.leave_isrs(broker_id, "stop_broker")
        if was_controller and not live and self._controller.keeps_znodes:
            self._vacate("stop_broker")

    def leave_isrs(
        self,
        broker_id: int,
        cause: str,
        concerns: Callable[[TopicPartition], bool] = lambda tp: True,
    ) -> None:
        """Remove a broker from the ISRs of the partitions that are concerned. Those that it led get
        another leader or go offline."""
        for name, partition in self._controller.partitions():
            if broker_id in partition.isr and concerns((name, partition.index)):
                isr = tuple(replica for replica in partition.isr if replica != broker_id)
                self._apply(cause, (name, partition.index), partition, isr)
        self._elect_vacated(cause)

    def _elect_vacated(self, cause: str) -> None:
        """Elect leaders that a ZooKeeper controller misses only when it handles a failed broker."""
        for name, partition in self._controller.partitions():
            if partition.vacated:
                offline = replace(partition, vacated=False)
                self._controller.record(cause, PartitionChanged(name, partition, offline))
                self._apply(cause, (name, partition.index), offline, offline.isr)

    def unregister(self, broker_id: int) -> Outcome:
        """Forget a broker of a KRaft cluster, which leaves its partitions as if it had stopped,
        until it starts again."""
        if not self._controller.state.is_registered(broker_id):
            return Outcome(
                ErrorCode.BROKER_ID_NOT_REGISTERED,
                f"Broker ID {broker_id} is not currently registered",
            )
        with self.turns.step():
            broker = self[broker_id]
            after = replace(broker, live=False, unregistered=True)
            self._controller.record("unregister_broker", BrokerChanged(broker, after))
            self.leave_isrs(broker_id, "unregister_broker")
        return Outcome()

    def start(self, broker_id: int) -> None:
        """Start a stopped broker, which leads the offline partitions that it can lead.

        It joins ISRs only by ``join_isr`` or auto-progress. If no broker was live in ZooKeeper
        mode, this one becomes the controller anew and knows only what is recorded.
        """
        broker = self._controller.broker(broker_id)
        if broker.live:
            raise ClusterError(f"broker {broker_id} is already running")
        forgotten = self._controller.keeps_znodes and not self._controller.live_ids()
        self._controller.record(
            "start_broker", BrokerChanged(broker, replace(broker, live=True, unregistered=False))
        )
        succeeds = forgotten or not self._controller.is_live(self._controller.state.controller_id)
        if succeeds:
            self.move_controller(broker_id, "start_broker")
        self._handle_start(broker_id, "start_broker", new_controller=succeeds)

    def _handle_start(self, broker_id: int, cause: str, *, new_controller: bool) -> None:
        for name, partition in self._controller.partitions():
            if partition.leader == NO_LEADER and not partition.vacated:
                self._apply(cause, (name, partition.index), partition, partition.isr)
        if not new_controller:
            self._controller.reactions.broker_started(cause, broker_id)

    def fail_over(self, to: int) -> None:
        """Make another live broker the controller.

        Reassignments continue as far as the new controller finds them: in ZooKeeper mode in znodes,
        in KRaft mode in the partitions.
        """
        if not self._controller.broker(to).live:
            raise ClusterError(f"broker {to} is stopped and cannot become the controller")
        if to == self._controller.state.controller_id:
            raise ClusterError(f"broker {to} is already the controller")
        self.move_controller(to, "failover")

    def resign(self) -> None:
        """Let the controller resign: there is none until ``fail_over`` or until a broker starts."""
        if self._controller.state.controller_id == NO_CONTROLLER:
            raise ClusterError("there is already no controller")
        self._resigned = True
        self._vacate("resign_controller")

    def expire_session(self, broker_id: int) -> None:
        """Expire the broker's ZooKeeper session: the broker disappears, then registers again.

        Its connections to clients stay open.
        """
        broker = self._controller.broker(broker_id)
        cause = "expire_session"
        if not broker.live:
            raise ClusterError(f"broker {broker_id} is stopped and has no session")
        was_controller = self._controller.state.controller_id == broker_id
        others = [each for each in self._controller.live_ids() if each != broker_id]
        if was_controller:
            self._vacate(cause)
        self._controller.record(cause, BrokerChanged(broker, replace(broker, live=False)))
        if was_controller and others:
            self.move_controller(others[0], cause)
        elif not was_controller and self._controller.state.controller_id != NO_CONTROLLER:
            self.leave_isrs(broker_id, cause)
        self._controller.record(cause, BrokerChanged(replace(broker, live=False), broker))
        if was_controller and not others:
            self.move_controller(broker_id, cause)
        elif self._controller.state.controller_id != NO_CONTROLLER:
            self._handle_start(broker_id, cause, new_controller=False)

    def session_expired(self) -> None:
        """Handle the end of this process's session, and with it of every ephemeral znode.

        The controller resigns; in a new session the brokers register and elect a controller, as
        Kafka's brokers do (``KafkaController.Expire``, then ``RegisterBrokerAndReelect``).
        """
        self._forget_ephemeral_znodes()
        if self._controller.state.controller_id != NO_CONTROLLER:
            self._vacate(SEEN)
        self._controller.znodes.renew()
        for broker in list(self._controller.state.brokers.values()):
            if broker.live:
                self._controller.reactions.store(SEEN, BrokerRegistered(broker))
        live = self._controller.live_ids()
        if live and not self._resigned:
            self.move_controller(live[0], SEEN)

    def set_software(self, broker_id: int, apis: tuple[tuple[int, int, int], ...]) -> None:
        """Change the software of a broker (``Broker.apis``).

        The controller sends it nothing because of that. If the broker is the controller, it
        restarts and sends everything again.
        """
        before = self._controller.broker(broker_id)
        if before.apis == apis:
            return
        self._controller.record("set_level", BrokerChanged(before, replace(before, apis=apis)))
        if broker_id == self._controller.state.controller_id and before.live:
            self.move_controller(broker_id, "set_level")

    def catch_up(self, broker_id: int, cause: str) -> None:
        """Let all replicas of a live broker join their ISRs, as far as there are leaders."""
        for name, partition in self._controller.partitions():
            tp = (name, partition.index)
            if broker_id in partition.isr or broker_id not in partition.hosts:
                continue
            if partition.leader != NO_LEADER and self._controller.is_served(tp, broker_id):
                self.join_isr(tp, broker_id, cause=cause)

    def _replace_dead_controller(self, broker_id: int) -> None:
        """Stop the broker of a controller that died, so that another one takes over.

        The new controller also handles the end of brokers that the dead one had not handled.
        """
        if self._controller.is_live(broker_id):
            self.stop(broker_id)
        for each in [
            broker for broker in self._controller.state.brokers.values() if not broker.live
        ]:
            self._handle_end(each.broker_id)

    def move_controller(self, to: int, cause: str) -> None:
        """Make ``to`` the controller, with the next epoch.

        After a time without a controller it also handles the brokers that stopped since.
        """
        state = self._controller.state
        vacant = state.controller_id == NO_CONTROLLER
        self._resigned = False
        change = ControllerChanged(state.controller_id, to, state.controller_epoch + 1)
        self._controller.record(cause, change)
        self._controller.reactions.take_over(cause)
        for broker in list(state.brokers.values()) if vacant else ():
            if not broker.live:
                self.leave_isrs(broker.broker_id, cause)

    def _vacate(self, cause: str) -> None:
        state = self._controller.state
        change = ControllerChanged(state.controller_id, NO_CONTROLLER, state.controller_epoch)
        self._controller.record(cause, change)

    def _forget_ephemeral_znodes(self) -> None:
        state, znodes = self._controller.state, self._controller.znodes
        for path, stat in list(state.znode_stats.items()):
            if stat.ephemeral_owner == znodes.session_id:
                change = ZnodeWritten(path, state.znodes.get(path), None, None)
                self._controller.record(SEEN, change)


def _name(tp: TopicPartition) -> str:
    return f"{tp[0]}-{tp[1]}"
