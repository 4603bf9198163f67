"""``/admin/reassign_partitions`` beside the api, in the drafts of KIP-455."""

import json

import pytest

from mockbroker.errors import ControllerDiedError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import Warned
from tests.mockbroker.simulation.reassignment.walks import (
    BOTH,
    FOO,
    NEW,
    changes,
    cluster_of,
    joined,
    now,
)

ZNODE = "/admin/reassign_partitions"
BAR = ("bar", 0)


def submit(cluster: Cluster, *moves: tuple[str, list[int]]) -> None:
    rows = [{"topic": name, "partition": 0, "replicas": replicas} for name, replicas in moves]
    Operations(cluster).write_znode(ZNODE, json.dumps({"version": 1, "partitions": rows}))


def planned(cluster: Cluster) -> dict[str, list[int]] | None:
    found = cluster.znodes.read(ZNODE)
    if found is None:
        return None
    return {each["topic"]: each["replicas"] for each in json.loads(found[0])["partitions"]}


@BOTH
@pytest.mark.requirement("K455-60")
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"partitions":7}', '{"version":1,"partitions":[{"topic":"foo"}]}',
             '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[-1]}]}',
             "[" * 5000],
    ids=range(7),
)  # fmt: skip
def test_a_plan_that_cannot_be_read_starts_nothing_and_the_log_says_so(draft, text):
    cluster = cluster_of(draft)
    Operations(cluster).write_znode(ZNODE, text)
    assert now(cluster)[2] is None
    warning = changes(cluster, Warned)[0].text
    assert warning.startswith(f"{ZNODE}: ")
    Operations(cluster).write_znode(ZNODE, None)
    submit(cluster, ("foo", [4]))
    assert now(cluster)[2] is None, "the watch was used up by the deletion, as in Kafka"
    Operations(cluster).failover(2)
    assert now(cluster)[2] == [4]


def test_every_place_of_death_leaves_a_plan_that_is_carried_out() -> None:
    for place in range(40):
        cluster = cluster_of(NEW, "foo=2,3", "bar=2")
        Operations(cluster).kill_controller_after(place)
        try:
            submit(cluster, ("foo", [4, 5]))
            joined(cluster, 4, 5)
        except ControllerDiedError:
            assert not cluster.controller.broker(1).live
        for broker in (4, 5):
            if broker in cluster.topics.partition(*FOO).hosts:
                Operations(cluster).join_isr(FOO, broker)
        if cluster.controller.broker(1).live:
            break
        if place == 0:
            assert now(cluster) == ([2, 3], [2, 3], None), "the znode was never written"
        else:
            assert now(cluster) == ([4, 5], [4, 5], None), f"died after {place} changes"
            assert planned(cluster) is None
    else:
        pytest.fail("the controller never survived")
