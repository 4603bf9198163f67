"""What clients and operators of a cluster may expect of it.

Derived from requests, answers and steps, and not from the cluster's own state, with one exception:
if an outcome cannot be known from outside (a controller died, or a fault rule took the request),
the facts are looked up (``learn``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER, TopicPartition

__all__ = ["Model"]


@dataclass(slots=True)
class Model:
    """``topics`` maps topics to their numbers of partitions. ``goals`` holds the target of each
    partition's last accepted reassignment, ``factors`` the number of replicas promised by a request
    with AllowReplicationFactorChange=false (KIP-860). Both are dropped if something untracked may
    have changed them."""

    live: set[int] = field(default_factory=set)
    controller: int = NO_CONTROLLER
    in_zookeeper: bool = False
    topics: dict[str, int] = field(default_factory=dict)
    goals: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    factors: dict[TopicPartition, int] = field(default_factory=dict)

    def learn(self, cluster: Cluster) -> None:
        """Look up everything, and expect nothing of reassignments."""
        self.live = {each.broker_id for each in cluster.brokers.values() if each.live}
        self.controller = cluster.state.controller_id
        self.in_zookeeper = bool(cluster.state.znodes)
        self.topics = {name: len(topic.partitions) for name, topic in cluster.topics.items()}
        self.goals.clear()
        self.factors.clear()

    def created(self, name: str, partitions: int) -> None:
        self.topics[name] = partitions
        self._expect_nothing(name)

    def deleted(self, name: str) -> None:
        self.topics.pop(name, None)
        self._expect_nothing(name)

    def _expect_nothing(self, name: str) -> None:
        for known in (self.goals, self.factors):
            for tp in [each for each in known if each[0] == name]:
                del known[tp]

    def aimed(self, tp: TopicPartition, target: tuple[int, ...] | None, *, guarded: bool) -> None:
        """A request for this partition was accepted; None if its target is unknown."""
        self.goals.pop(tp, None)
        self.factors.pop(tp, None)
        if target is not None:
            self.goals[tp] = target
            if guarded:
                self.factors[tp] = len(target)

    def stopped(self, broker_id: int) -> None:
        """The broker stopped. If it was the controller, the live broker with the lowest id takes
        over. The last broker remains controller in name; with ZooKeeper there is none."""
        self.live.discard(broker_id)
        if broker_id == self.controller and (self.live or self.in_zookeeper):
            self.controller = min(self.live, default=NO_CONTROLLER)

    def started(self, broker_id: int) -> None:
        """The broker started, and takes over if there is no controller."""
        if not self.live:
            self.controller = broker_id
        self.live.add(broker_id)
