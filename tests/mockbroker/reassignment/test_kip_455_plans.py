"""``/admin/reassign_partitions`` beside the api, in the drafts of KIP-455."""

from __future__ import annotations

import json

import pytest

from mockbroker.cluster import Cluster
from mockbroker.errors import ControllerDiedError
from mockbroker.state.actions import Warned
from tests.mockbroker.reassignment.walks import (
    BOTH,
    FOO,
    NEW,
    alter,
    changes,
    cluster_of,
    joined,
    now,
)

ZNODE = "/admin/reassign_partitions"
BAR = ("bar", 0)


def submit(cluster: Cluster, *moves: tuple[str, list[int]]) -> None:
    rows = [{"topic": name, "partition": 0, "replicas": replicas} for name, replicas in moves]
    cluster.write_znode(ZNODE, json.dumps({"version": 1, "partitions": rows}))


def planned(cluster: Cluster) -> dict[str, list[int]] | None:
    found = cluster.read_znode(ZNODE)
    if found is None:
        return None
    return {each["topic"]: each["replicas"] for each in json.loads(found[0])["partitions"]}


@BOTH
@pytest.mark.requirement("K455-60")
@pytest.mark.requirement("K455-61")
def test_a_plan_is_carried_out_and_the_znode_goes_with_its_last_partition(draft: str) -> None:
    cluster = cluster_of(draft, "foo=1,2,3", "bar=1,2")
    submit(cluster, ("foo", [4, 5]), ("bar", [6]))
    assert now(cluster)[2] == [4, 5]
    assert now(cluster, BAR)[2] == [6]
    joined(cluster, 4, 5)
    assert now(cluster)[0] == [4, 5]
    assert planned(cluster) == {"bar": [6]}
    cluster.join_isr(BAR, 6)
    assert now(cluster, BAR) == ([6], [6], None)
    assert planned(cluster) is None
    submit(cluster, ("foo", [1]))
    assert now(cluster)[2] == [1]


@BOTH
@pytest.mark.requirement("K455-60")
def test_what_is_written_into_a_plan_in_progress_starts_nothing(draft: str) -> None:
    cluster = cluster_of(draft, "foo=1,2,3", "bar=1,2")
    submit(cluster, ("foo", [4, 5]))
    submit(cluster, ("foo", [6]), ("bar", [6]))
    assert now(cluster)[2] == [4, 5]
    assert now(cluster, BAR)[2] is None


@BOTH
@pytest.mark.requirement("K455-61")
def test_a_cancellation_by_the_api_ends_a_plans_partition_too(draft: str) -> None:
    cluster = cluster_of(draft)
    submit(cluster, ("foo", [4, 5]))
    assert alter(cluster, None) == 0
    assert planned(cluster) is None
    assert now(cluster)[2] is None


@BOTH
@pytest.mark.requirement("K455-62")
def test_a_plan_by_znode_is_carried_out_with_a_warning_that_this_way_is_to_go(draft: str) -> None:
    cluster = cluster_of(draft)
    alter(cluster, [4])
    assert not changes(cluster, Warned)
    submit(cluster, ("foo", [5]))
    (warning,) = changes(cluster, Warned)
    assert "/admin/reassign_partitions is deprecated and will be removed" in warning.text


@pytest.mark.requirement("K455-39")
@pytest.mark.requirement("A-13")
def test_a_new_controller_takes_what_the_plan_says() -> None:
    cluster = cluster_of(NEW)
    submit(cluster, ("foo", [4, 5]))
    state = cluster.znodes["/brokers/topics/foo/partitions/0/state"]
    cluster.write_znode("/brokers/topics/foo/partitions/0/state", state.replace("[4,5]", "[6]"))
    cluster.failover(2)
    assert now(cluster)[2] == [4, 5]


@BOTH
@pytest.mark.requirement("K455-63")
def test_a_change_by_the_api_is_lost_to_the_plan_at_a_failover(draft: str) -> None:
    cluster = cluster_of(draft, "foo=1,2,3", "bar=1,2")
    submit(cluster, ("foo", [4, 5]), ("bar", [6]))
    assert alter(cluster, [6]) == 0
    assert now(cluster)[2] == [6]
    assert planned(cluster) == {"foo": [4, 5], "bar": [6]}
    cluster.failover(2)
    assert now(cluster)[2] == [4, 5]
    joined(cluster, 4, 5)
    assert now(cluster)[0] == [4, 5]


@BOTH
@pytest.mark.requirement("K455-60")
@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"partitions":7}', '{"version":1,"partitions":[{"topic":"foo"}]}',
             '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[-1]}]}',
             "[" * 5000],
    ids=range(7),
)  # fmt: skip
def test_a_plan_that_cannot_be_read_starts_nothing_and_the_log_says_so(
    draft: str, text: str
) -> None:
    cluster = cluster_of(draft)
    cluster.write_znode(ZNODE, text)
    assert now(cluster)[2] is None
    warning = changes(cluster, Warned)[0].text
    assert warning.startswith(f"{ZNODE}: ")
    cluster.write_znode(ZNODE, None)
    submit(cluster, ("foo", [4]))
    assert now(cluster)[2] is None, "the watch was used up by the deletion, as in Kafka"
    cluster.failover(2)
    assert now(cluster)[2] == [4]


@BOTH
@pytest.mark.requirement("K455-60")
def test_what_a_plan_cannot_have_is_left_out_and_the_log_says_so(draft: str) -> None:
    cluster = cluster_of(draft)
    submit(cluster, ("nope", [4]), ("foo", []))
    assert planned(cluster) is None
    texts = [warning.text for warning in changes(cluster, Warned)]
    assert texts[1:] == [
        f"{ZNODE}: nope-0 is not reassigned: the partition does not exist",
        f"{ZNODE}: foo-0 is not reassigned: an empty replica list",
    ]
    submit(cluster, ("foo", [4]))
    assert now(cluster)[2] == [4]


def test_every_place_of_death_leaves_a_plan_that_is_carried_out() -> None:
    for place in range(40):
        cluster = cluster_of(NEW, "foo=2,3", "bar=2")
        cluster.kill_controller_after(place)
        try:
            submit(cluster, ("foo", [4, 5]))
            joined(cluster, 4, 5)
        except ControllerDiedError:
            assert not cluster.broker(1).live
        for broker in (4, 5):
            if broker in cluster.partition(*FOO).hosts:
                cluster.join_isr(FOO, broker)
        if cluster.broker(1).live:
            break
        if place == 0:
            assert now(cluster) == ([2, 3], [2, 3], None), "the znode was never written"
        else:
            assert now(cluster) == ([4, 5], [4, 5], None), f"died after {place} changes"
            assert planned(cluster) is None
    else:
        pytest.fail("the controller never survived")
