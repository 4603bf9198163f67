"""Which release has which ZooKeeper controller, and what each writes, sends and answers."""

import pytest

from kproto.error_codes import ErrorCode, message
from mockbroker.errors import ControllerDiedError
from mockbroker.profiles import all_profiles, profile
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.reassignment import CONTROLLERS
from mockbroker.simulation.releases.facts import ZOOKEEPER_CONTROLLER
from tests.mockbroker.simulation.reassignment.zookeeper_story import (
    FOO,
    PLAN,
    TOPIC,
    alter,
    cluster_of,
    shape,
    story,
    submit,
)

ALL = "1,2,3,4,5,6"
ADDED = "4,5,6,1,2,3+4,5,6-1,2,3 isr 1,2,3 1@1"


@pytest.mark.requirement("K455-60")
def test_every_release_with_zookeeper_has_this_controller() -> None:
    names = {name for _, name in ZOOKEEPER_CONTROLLER.values}
    for each in all_profiles():
        if each.name.startswith("kafka"):
            assert (each.reassignment in names) == (each.mode == "zk"), each.name
    lines = "2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8-zk 3.0-zk 3.1-zk 3.2-zk 3.3-zk 3.4-zk 3.9-zk"
    since = [
        "0.10",
        "2.1",
        "2.1",
        "2.3",
        "2.4",
        "2.5",
        "2.5",
        "2.7",
        "2.8",
        "3.0",
        "3.0",
        "3.2",
        "3.2",
    ]
    expected = [*(f"zookeeper-{each}" for each in since), "zookeeper", "zookeeper"]
    assert [profile(f"kafka-{line}").reassignment for line in lines.split()] == expected
    assert names <= set(CONTROLLERS)


@pytest.mark.requirement("K455-41")
@pytest.mark.parametrize(
    ("release", "topic", "broker", "controller"),
    [
        ("kafka-0.10.0", 1, 4, 1),
        ("kafka-2.3", 1, 4, 1),
        ("kafka-2.4", 2, 4, 1),
        ("kafka-2.6", 2, 4, 1),
        ("kafka-2.7", 2, 5, 1),
        ("kafka-2.8-zk", 3, 5, 1),
        ("kafka-3.3-zk", 3, 5, 1),
        ("kafka-3.4-zk", 3, 5, 2),
        ("kafka-3.9-zk", 3, 5, 2),
    ],
)
def test_the_versions_of_the_znodes(release: str, topic: int, broker: int, controller: int) -> None:
    cluster = cluster_of(reassignment=profile(release).reassignment)
    for path, version in ((TOPIC, topic), ("/brokers/ids/1", broker), ("/controller", controller)):
        assert f'"version":{version}' in cluster.state.znodes[path]
    assert ("adding_replicas" in cluster.state.znodes[TOPIC]) == (topic >= 2)
    assert ("topic_id" in cluster.state.znodes[TOPIC]) == (topic >= 3)


@pytest.mark.requirement("K455-60")
def test_before_2_4_the_plan_is_all_a_new_controller_has() -> None:
    cluster = cluster_of(reassignment=profile("kafka-2.3").reassignment)
    submit(cluster, {FOO: [4, 2]})
    assert cluster.state.znodes[TOPIC] == '{"version":1,"partitions":{"0":[4,2,1,3]}}'
    Operations(cluster).failover(2)
    Operations(cluster).join_isr(FOO, 4)
    assert shape(cluster)[:2] == ([4, 2], [2, 4])
    assert PLAN not in cluster.state.znodes


@pytest.mark.requirement("K455-42")
@pytest.mark.parametrize("release", ["kafka-2.4", "kafka-2.5", "kafka-2.6"])
def test_to_2_6_the_first_request_calls_no_replica_new(release: str) -> None:
    """One call of ``addLeaderAndIsrRequestForBrokers`` for all; the second request says it."""
    cluster = cluster_of(reassignment=profile(release).reassignment)
    since = len(cluster.log)
    alter(cluster, [4, 5, 6])
    assert story(cluster, since) == [
        "topic znode 4,5,6,1,2,3+4,5,6-1,2,3",
        "memory 4,5,6,1,2,3 isr 1,2,3 1@0",
        "state znode isr 1,2,3 1@1",
        "memory 4,5,6,1,2,3 isr 1,2,3 1@1",
        f"LeaderAndIsr to 4,5,6,1,2,3 {ADDED}",
        f"UpdateMetadata to {ALL} 4,5,6,1,2,3 isr 1,2,3 1@1",
        f"LeaderAndIsr new to 4,5,6 {ADDED}",
    ]


@pytest.mark.requirement("K455-42")
@pytest.mark.parametrize("release", ["kafka-2.7", "kafka-2.8-zk", "kafka-3.9-zk"])
def test_since_2_7_the_first_request_tells_new_replicas_from_old_ones(release: str) -> None:
    cluster = cluster_of(reassignment=profile(release).reassignment)
    since = len(cluster.log)
    alter(cluster, [4, 5, 6])
    assert [line for line in story(cluster, since) if "LeaderAndIsr" in line] == [
        f"LeaderAndIsr to 1,2,3 {ADDED}",
        f"LeaderAndIsr new to 4,5,6 {ADDED}",
        f"LeaderAndIsr new to 4,5,6 {ADDED}",
    ]


@pytest.mark.requirement("K455-22")
@pytest.mark.parametrize("replicas", [[], [1, 1], [-1], [9]])
def test_2_4_refuses_replicas_without_a_text_of_its_own(replicas: list[int]) -> None:
    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    cluster = cluster_of(reassignment=profile("kafka-2.4").reassignment)
    assert alter(cluster, replicas) == (code, message(code))
    cluster = cluster_of(reassignment=profile("kafka-2.5").reassignment)
    refused, text = alter(cluster, replicas)
    assert refused == code
    assert text != message(code)


@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize(
    ("release", "states"),
    [
        ("kafka-1.1", ["isr 2,3 2@1"]),
        ("kafka-2.2", ["isr 2,3 2@1"]),
        ("kafka-2.3", ["isr 2,3 -1@1", "isr 2,3 2@2"]),
        ("kafka-2.4", ["isr 2,3 -1@1", "isr 2,3 2@2"]),
        ("kafka-3.9-zk", ["isr 2,3 -1@1", "isr 2,3 2@2"]),
    ],
)
def test_a_controller_that_dies_and_led_costs_two_epochs_since_2_3(release, states):
    """Seen so on 2.4.1 and 3.9.2, whose successors take dead replicas out of the ISR first."""
    cluster = cluster_of(reassignment=profile(release).reassignment)
    since = len(cluster.log)
    Operations(cluster).stop_broker(1)
    written = [line for line in story(cluster, since) if line.startswith("state znode")]
    assert written == [f"state znode {state}" for state in states]


@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize(
    ("release", "epoch", "told"),
    [("kafka-2.2", 0, []), ("kafka-2.3", 1, ["LeaderAndIsr to 2,3 2,1,3+- isr 2,3 2@1"])],
)
def test_a_controller_that_dies_and_followed_costs_an_epoch_since_2_3(release, epoch, told):
    """Before, it is for the leader to take it out of the ISR, which raises none."""
    cluster = cluster_of("foo=2,1,3", reassignment=profile(release).reassignment)
    since = len(cluster.log)
    Operations(cluster).stop_broker(1)
    assert shape(cluster) == ([2, 1, 3], [2, 3], 2, epoch)
    assert story(cluster, since)[-3 - len(told) :] == [
        f"state znode isr 2,3 2@{epoch}",
        f"memory 2,1,3 isr 2,3 2@{epoch}",
        *told,
        f"UpdateMetadata to 2,3,4,5,6 2,1,3 isr 2,3 2@{epoch}",
    ]


@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize(("release", "epoch"), [("kafka-2.2", 1), ("kafka-2.4", 2)])
def test_a_take_over_raises_the_epoch_of_what_is_offline_since_2_3(release, epoch):
    """Seen so on 2.4.1 and 3.9.2: the last in sync is taken out, and stays in all the same."""
    cluster = cluster_of("foo=4", reassignment=profile(release).reassignment)
    Operations(cluster).stop_broker(4)
    assert shape(cluster) == ([4], [4], -1, 1)
    Operations(cluster).failover(2)
    assert shape(cluster) == ([4], [4], -1, epoch)


@pytest.mark.requirement("K455-38")
@pytest.mark.parametrize(
    ("release", "isr"),
    [
        ("kafka-2.4", [2, 3, 4]),
        ("kafka-2.8-zk", [2, 3, 4]),
        ("kafka-3.0-zk", [2, 3]),
        ("kafka-3.9-zk", [2, 3]),
    ],
)
def test_who_is_in_the_isr_and_no_replica_leaves_it_by_the_leaders_hand(release, isr):
    """The controller died after the first write of a cancellation. Seen so on 2.4.1, whose leader
    tries in vain ("Replica with id 4 is not available on broker 2"), and on 3.9.2."""
    cluster = cluster_of(reassignment=profile(release).reassignment)
    alter(cluster, [4, 5])
    Operations(cluster).join_isr(FOO, 4)
    Operations(cluster).kill_controller_after(1)
    with pytest.raises(ControllerDiedError):
        alter(cluster, None)
    assert shape(cluster) == ([1, 2, 3], isr, 2, 3)
    told = [line for line in story(cluster, 0) if line.startswith("UpdateMetadata")]
    assert told[-1] == f"UpdateMetadata to {ALL[2:]} 1,2,3 isr {','.join(map(str, isr))} 2@3"
    assert f'"isr":{isr}'.replace(" ", "") in cluster.state.znodes[f"{TOPIC}/partitions/0/state"]


@pytest.mark.requirement("REL-21", "K455-41")
@pytest.mark.parametrize(("release", "epoch"), [("kafka-2.6", 1), ("kafka-2.7", 2)])
def test_a_leader_writes_its_isr_with_the_controller_epoch_of_its_election_to_2_6(release, epoch):
    """The leader learned of no other controller: the new one sent it no new leader epoch. Seen so
    on 2.4.1."""
    cluster = cluster_of(reassignment=profile(release).reassignment)
    Operations(cluster).leave_isr(FOO, 3)
    Operations(cluster).failover(6)
    Operations(cluster).join_isr(FOO, 3)
    state = cluster.state.znodes[f"{TOPIC}/partitions/0/state"]
    assert '"isr":[1,2,3]' in state
    assert f'"controller_epoch":{epoch}' in state
