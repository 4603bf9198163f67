"""A controller that dies while a topic grows or goes: the next one finishes what is on record.

Found by ``fuzz.stateful``: a deletion that was half done was nobody's, and its topic lived on
without its znodes; and new partitions whose state znodes a dead controller had left were told of
with a zkVersion that was not those znodes'.
"""

import pytest

from kproto.schema.model import ZERO_UUID
from kproto.znodes.kafka_znodes import partition_state_path
from mockbroker.errors import ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.simulated import simulated_cluster

KINDS = pytest.mark.parametrize("reassignment", ["zookeeper", "zookeeper-0.10", "kip-236-new"])


def _after(reassignment: str, changes: int, command: str) -> tuple[Cluster, bool]:
    """A cluster whose controller, broker 4, hosts nothing, and whether it died of the command."""
    cluster = simulated_cluster(4, topics=["foo=1,2/2,3", "bar=3"], reassignment=reassignment)
    Operations(cluster).failover(4)
    Operations(cluster).kill_controller_after(changes)
    try:
        if command == "delete":
            cluster.topics.delete([("foo", ZERO_UUID)])
        else:
            cluster.topics.add_partitions([("foo", 4, None)])
    except ControllerDiedError:
        return cluster, True
    return cluster, False


@KINDS
def test_a_deletion_is_all_or_nothing(reassignment: str) -> None:
    changes, died = 0, True
    while died:
        cluster, died = _after(reassignment, changes, "delete")
        left = [path for path in cluster.state.znodes if "/foo" in path]
        if "foo" in cluster.topics:
            assert changes <= 1, f"begun, and not finished: after {changes} changes"
        else:
            assert left == []
        assert replay(cluster.state.cluster_id, cluster.log).topics == cluster.topics
        changes += 1
    assert changes > 5


@KINDS
def test_new_partitions_have_their_znodes_versions(reassignment: str) -> None:
    changes, died = 0, True
    while died:
        cluster, died = _after(reassignment, changes, "grow")
        for each in cluster.topics["foo"].partitions:
            stat = cluster.controller.state.znode_stats[partition_state_path("foo", each.index)]
            assert each.partition_epoch == stat.version, (changes, each, stat)
        changes += 1
    assert changes > 3
