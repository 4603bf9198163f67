"""What ``transcripts/kip_455.txt`` cannot say of the two drafts of KIP-455."""

import pytest
from msgspec.structs import replace

from mockbroker.simulation.state.actions import PartitionChanged
from tests.mockbroker.simulation.reassignment.walks import (
    BOTH,
    FOO,
    OLD,
    STATE,
    TOPIC,
    alter,
    cluster_of,
    joined,
    now,
    znode_writes,
)


@BOTH
@pytest.mark.requirement("K455-31", "K455-35")
def test_the_state_shows_the_target_as_it_stands(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    joined(cluster, 4)
    shown = cluster.describe()["topics"]["foo"]["0"]
    assert shown["target"] == ([5, 6] if draft == OLD else [4, 5, 6])
    assert (shown["replicas"], shown["adding"], shown["removing"]) == ([1, 2, 3, 4], [], [])


@BOTH
@pytest.mark.requirement("A-10", "K455-43")
def test_a_cancellation_before_the_controller_saw_the_isr_keeps_who_joined(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4, 5, 6])
    before = cluster.topics.partition(*FOO)
    ahead = PartitionChanged("foo", before, replace(before, isr=(1, 2, 3, 4)))
    cluster.controller.record("the leader's write", ahead)
    since = len(cluster.log)
    alter(cluster, None)
    assert now(cluster) == ([1, 2, 3, 4], [1, 2, 3, 4], None)
    assert [path for path, _ in znode_writes(cluster, since)] == [TOPIC, STATE]
