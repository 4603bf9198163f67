"""KIP-236, older draft: from a request znode to the end, row by row."""

import pytest

from kproto.error_codes import ErrorCode
from kproto.znodes import EmbeddedStore, ZnodeTree
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.reassignment.requesting import (
    CHILD,
    in_flight,
    old_cluster,
    submit,
)
from tests.mockbroker.simulation.reassignment.transcripts import entries
from tests.mockbroker.simulation.reassignment.walks import joined

BROKERS = "1,2,3,4,5,6"


@pytest.mark.requirement("K236-57")
def test_czxid_names_a_reassignment_and_mzxid_tells_that_it_was_changed() -> None:
    cluster = old_cluster("foo=1,2")

    def zxids() -> tuple[int, int]:
        found = cluster.znodes.read(CHILD)
        assert found is not None
        return found[1].czxid, found[1].mzxid

    submit(cluster, [2, 3])
    first = zxids()
    assert first[0] == first[1]
    since = len(cluster.log)
    submit(cluster, [2, 3])
    # The target in progress: nothing changes but the request znode, which comes and goes.
    assert (zxids(), len(entries(cluster, since))) == (first, 2)
    submit(cluster, [2, 4])
    changed = zxids()
    assert changed[0] == first[0] < changed[1]
    joined(cluster, 4)
    submit(cluster, [1])
    another = zxids()
    assert another[0] == another[1] > changed[1]


# ---- through Kafka's protocol --------------------------------------------------------------------


@pytest.mark.requirement("K236-12")
def test_the_state_shows_what_it_would_be_rolled_back_to() -> None:
    cluster = old_cluster()
    assert "original" not in cluster.describe()["topics"]["foo"]["0"]
    submit(cluster, [4])
    shown = cluster.describe()["topics"]["foo"]["0"]
    assert (shown["target"], shown["original"]) == ([4], [1, 2, 3])
    Operations(cluster).failover(2)
    assert cluster.describe()["topics"]["foo"]["0"]["original"] is None


@pytest.mark.requirement("K236-03", "K236-12")
def test_a_request_too_large_for_zookeeper_is_refused_whole() -> None:
    tree = ZnodeTree(max_request_bytes=600)
    store = EmbeddedStore(tree, lambda: 0)
    cluster = old_cluster(("foo", [[1]] * 30), znodes=store)
    rows = [(index, [2, 3, 4, 5, 6]) for index in range(30)]
    result = cluster.reassignments.alter([("foo", [*rows, (99, [2])])])
    *refused, unknown = result.topics[0].partitions
    assert {row.error_code for row in refused} == {ErrorCode.INVALID_REQUEST}
    assert all("jute.maxbuffer" in str(row.error_message) for row in refused)
    assert (len(refused), unknown.error_code) == (30, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert in_flight(cluster) == set()
    few = cluster.reassignments.alter([("foo", rows[:10])])
    assert {row.error_code for row in few.topics[0].partitions} == {0}
    assert len(in_flight(cluster)) == 10
