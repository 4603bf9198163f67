"""Replay the action log step by step: the state it gives, and what each broker may know.

A second reader of the log, independent of the cluster: everything here comes from replaying actions
and from the clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.state.actions import Action, PartitionChanged
from mockbroker.simulation.state.cluster_parts import Broker, Topic
from mockbroker.simulation.state.cluster_state import ClusterState, replay

__all__ = ["BrokerView", "History"]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The cluster at one moment. ``offset`` is the length of the log at that time."""

    at_ms: int
    offset: int
    controller: int
    brokers: Mapping[int, Broker]
    topics: Mapping[str, Topic]


class History:
    """``state`` is the state by the log. ``unchained`` lists changes of partitions that did not
    start from the previous state, which must not happen."""

    def __init__(self, cluster: Cluster, static_configs: Mapping[str, str]) -> None:
        self.state: ClusterState = replay(cluster.state.cluster_id, (), static_configs)
        self.unchained: list[Action] = []
        self.log = cluster.log
        self._moments: list[BrokerView] = []
        self._delay_ms = 0
        self._known: BrokerView | None = None
        """What every broker knew when the delay was set."""
        self._held: dict[int, BrokerView] = {}

    def follow(self) -> Sequence[Action]:
        """Read and return the new actions."""
        actions = self.log.since(self.state.offset)
        for action in actions:
            change = action.change
            if isinstance(change, PartitionChanged):
                topic = self.state.topics[change.topic]
                if topic.partitions[change.after.index] != change.before:
                    self.unchained.append(action)
            self.state.apply(action)
            self._remember(action.at_ms)
        return actions

    def _remember(self, at_ms: int) -> None:
        """Of the changes in one millisecond only the last counts."""
        state = self.state
        moment = BrokerView(
            at_ms, state.offset, state.last_controller_id, dict(state.brokers), dict(state.topics)
        )
        if self._moments and self._moments[-1].at_ms == at_ms:
            self._moments[-1] = moment
        else:
            self._moments.append(moment)

    # ---- what brokers know -----------------------------------------------------------------------

    def visible(self, broker_id: int, now_ms: int) -> BrokerView:
        """Return what this broker's Metadata must show: held, delayed, or current.

        A broker keeps what it knew when the delay grows.
        """
        held = self._held.get(broker_id)
        return self.arrived(now_ms) if held is None else held

    def arrived(self, now_ms: int) -> BrokerView:
        if not self._delay_ms:
            return self._moments[-1]
        arrived = [each for each in self._moments if each.at_ms <= now_ms - self._delay_ms]
        known = self._known
        assert known is not None, "set with the delay"
        return arrived[-1] if arrived and arrived[-1].offset >= known.offset else known

    def hold(self, broker_id: int, known: BrokerView) -> None:
        self._held[broker_id] = known

    def release(self, broker_id: int) -> None:
        del self._held[broker_id]

    @property
    def held(self) -> frozenset[int]:
        return frozenset(self._held)

    def delay(self, delay_ms: int, known: BrokerView) -> None:
        """``known`` is what brokers without held metadata knew at that time."""
        self._known, self._delay_ms = known, delay_ms
