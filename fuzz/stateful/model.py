"""What the clients of a cluster, and those who break it, have reason to believe of it.

Kept from requests, their answers and the steps that were taken, never from the cluster's own state,
but for one way out: where an outcome cannot be known from outside (a controller died on its way, a
rule of faults took the request) the facts are looked up (``learn``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mockbroker.cluster import Cluster
from mockbroker.state.model import NO_CONTROLLER, TopicPartition

__all__ = ["Model"]


@dataclass(slots=True)
class Model:
    """``topics`` is how many partitions each has. ``goals`` is where the last reassignment that was
    accepted wants a partition, ``factors`` how many replicas it was promised by a request with
    AllowReplicationFactorChange=false (KIP-860); both are dropped where something may have changed
    them that is not followed here."""

    live: set[int] = field(default_factory=set)
    controller: int = NO_CONTROLLER
    in_zookeeper: bool = False
    topics: dict[str, int] = field(default_factory=dict)
    goals: dict[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    factors: dict[TopicPartition, int] = field(default_factory=dict)

    def learn(self, cluster: Cluster) -> None:
        """Look everything up, and expect nothing of reassignments."""
        self.live = {each.broker_id for each in cluster.brokers.values() if each.live}
        self.controller = cluster.controller_id
        self.in_zookeeper = bool(cluster.znodes)
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
        """A request for this partition was accepted; None where its end is not to be told."""
        self.goals.pop(tp, None)
        self.factors.pop(tp, None)
        if target is not None:
            self.goals[tp] = target
            if guarded:
                self.factors[tp] = len(target)

    def stopped(self, broker_id: int) -> None:
        """Where that was the controller, the live broker with the lowest id is now. The last one
        stays it in name; with ZooKeeper there is none."""
        self.live.discard(broker_id)
        if broker_id == self.controller and (self.live or self.in_zookeeper):
            self.controller = min(self.live, default=NO_CONTROLLER)

    def started(self, broker_id: int) -> None:
        """It takes over where nobody was there to be the controller."""
        if not self.live:
            self.controller = broker_id
        self.live.add(broker_id)
