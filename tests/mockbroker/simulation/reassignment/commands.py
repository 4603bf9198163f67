"""What tests of any commands in any order have in common, whatever the machine."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mockbroker.errors import ClusterError, ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import NO_CONTROLLER, NO_LEADER, Partition
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster

__all__ = ["BROKERS", "TARGETS", "TPS", "AnyCommands", "cluster_of", "has_controller"]

BROKERS = st.integers(1, 5)
TPS = st.sampled_from([("foo", 0), ("foo", 1), ("bar", 0)])
TARGETS = st.permutations([1, 2, 3, 4, 5]).flatmap(
    lambda order: st.integers(1, 4).map(lambda count: list(order[:count]))
)


def cluster_of(reassignment: str) -> Cluster:
    return simulated_cluster(
        5, topics=["foo=1,2,3/3,4", "bar=2"], cluster_id="c", reassignment=reassignment
    )


def has_controller(commands: AnyCommands) -> bool:
    """Without one, nobody acts on znodes, and what the last one remembered may be half done."""
    return commands.cluster.state.controller_id != NO_CONTROLLER


class AnyCommands(RuleBasedStateMachine):
    """Replicas join and leave, brokers stop and come back; the rest is each machine's own."""

    cluster: Cluster

    @rule(tp=TPS, broker=BROKERS)
    def join(self, tp: tuple[str, int], broker: int) -> None:
        self.perhaps(lambda: Operations(self.cluster).join_isr(tp, broker))

    @rule(tp=TPS)
    def join_the_next(self, tp: tuple[str, int]) -> None:
        partition = self.cluster.topics.partition(*tp)
        waiting = [each for each in partition.target or () if each not in partition.isr]
        if waiting:
            self.perhaps(lambda: Operations(self.cluster).join_isr(tp, waiting[0]))

    @rule(tp=TPS, broker=BROKERS)
    def leave(self, tp: tuple[str, int], broker: int) -> None:
        self.perhaps(lambda: Operations(self.cluster).leave_isr(tp, broker))

    @rule(broker=BROKERS)
    def stop(self, broker: int) -> None:
        self.perhaps(lambda: Operations(self.cluster).stop_broker(broker))

    @rule(broker=BROKERS)
    def begin(self, broker: int) -> None:
        self.perhaps(lambda: Operations(self.cluster).start_broker(broker))

    @invariant()
    def the_log_replays(self) -> None:
        replayed = replay("c", self.cluster.log)
        assert replayed.topics == self.cluster.topics
        assert replayed.znodes == self.cluster.state.znodes

    @precondition(has_controller)
    @invariant()
    def replicas_are_a_set_with_somebody_in_sync(self) -> None:
        for each in self.partitions():
            assert each.replicas
            assert len(set(each.replicas)) == len(each.replicas)
            assert each.isr
            assert each.leader == NO_LEADER or each.leader in each.isr

    def partitions(self) -> list[Partition]:
        return [each for topic in self.cluster.topics.values() for each in topic.partitions]

    def perhaps(self, command: Callable[[], object]) -> bool:
        """Whether it was done; one that is refused leaves no trace, one that dies is succeeded."""
        before = len(self.cluster.log)
        try:
            command()
        except ControllerDiedError:
            self.succeeded()
            return False
        except ClusterError:
            assert len(self.cluster.log) == before
            return False
        return True

    def succeeded(self) -> None:
        """Another broker has taken over from one that died."""
