"""OffsetForLeaderEpoch: where leader epochs end, and who may ask."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.replicas.leader_epochs import LeaderEpochs
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.log.records import append_times
from tests.mockbroker.simulation.security.enforced import ENFORCED
from tests.support.requests import request_of

FOO = ("foo", 0)


def request(epoch: int, leader_epoch: int = -1, topic: str = "foo") -> Any:
    asked = {"partition": 0, "leader_epoch": epoch, "current_leader_epoch": leader_epoch}
    return request_of("OffsetForLeaderEpoch", topic=topic, partitions=[asked])


def ask(
    broker: DirectBroker, body: Any, version: int = 4, broker_id: int = 1
) -> tuple[int, int, int]:
    (found,) = broker.ask(body, version, broker_id=broker_id).topics[0].partitions
    return found.error_code, found.leader_epoch, found.end_offset


def cluster_with_epochs() -> Cluster:
    """Epoch 0 has the offsets 0 and 1, epoch 2 begins at 2; the log ends at 5. The epochs 1, 3 and
    4 have no records, 4 is the leader's."""
    cluster = Cluster(2, topics=["foo=1,2"])
    append_times(cluster, 1, 1)
    fail_over_twice(cluster)
    append_times(cluster, 1, 1, 1)
    fail_over_twice(cluster)
    return cluster


def fail_over_twice(cluster: Cluster) -> None:
    for stopped, other in ((1, 2), (2, 1)):
        Operations(cluster).stop_broker(stopped)
        Operations(cluster).start_broker(stopped)
        Operations(cluster).join_isr(FOO, stopped)
        assert cluster.topics.partition(*FOO).leader == other


@pytest.mark.requirement("DP-EPOCH-01")
@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-1, (-1, -1)),
        (0, (0, 2)),
        (1, (0, 2)),
        (2, (2, 5)),
        (3, (2, 5)),
        (4, (4, 5)),
        (5, (-1, -1)),
    ],
)
def test_where_epochs_end(epoch: int, end: tuple[int, int]) -> None:
    broker = DirectBroker(cluster_with_epochs())
    assert ask(broker, request(epoch)) == (0, *end)


@pytest.mark.requirement("DP-EPOCH-01")
def test_epochs_that_the_log_no_longer_has() -> None:
    cluster = cluster_with_epochs()
    cluster.logs.advance_start("test", FOO, 3)
    assert ask(DirectBroker(cluster), request(0)) == (0, 0, 3)


@pytest.mark.requirement("DP-EPOCH-04")
@pytest.mark.parametrize(("release", "ends"), [((1, 1), [-1, 1]), ((2, 0), [0, 1])])
def test_epochs_before_all_that_are_known(release: tuple[int, int], ends: list[int]) -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    broker = DirectBroker(cluster, profile_name="kafka-1.1")
    append_times(cluster, 1)
    first = cluster.topics.partition(*FOO).leader_epoch
    assert [ask(broker, request(epoch), version=0)[2] for epoch in (-2, first)] == ends


@pytest.mark.requirement("DP-EPOCH-03")
@pytest.mark.parametrize(("release", "begins"), [((1, 1), False), ((2, 0), True)])
def test_epochs_without_batches(release: tuple[int, int], begins: bool) -> None:
    cluster = simulated_cluster(2, topics=["foo=1,2"], release=release)
    broker = DirectBroker(cluster, profile_name="kafka-1.1")

    def end(epoch: int) -> int:
        return ask(broker, request(epoch), version=0)[2]

    first = cluster.topics.partition(*FOO).leader_epoch
    assert end(first) == (0 if begins else -1)
    append_times(cluster, 1)
    assert end(first) == 1
    fail_over_twice(cluster)
    latest = cluster.topics.partition(*FOO).leader_epoch
    assert (end(first), end(latest)) == (1, 1 if begins else -1)


@pytest.mark.requirement("DP-EPOCH-02")
@pytest.mark.parametrize(
    ("broker_id", "body", "code"),
    [
        (1, request(0, 4), 0),
        (1, request(0, 3), 74),
        (1, request(0, 5), 75),
        (2, request(0, 4), 6),
        (2, request(0, 3), 74),
        (1, request(0, topic="bar"), 3),
    ],
)
def test_who_may_answer(broker_id: int, body: Any, code: int) -> None:
    broker = DirectBroker(cluster_with_epochs())
    found = ask(broker, body, broker_id=broker_id)
    assert found[0] == code
    assert code == 0 or found[1:] == (-1, -1)


@pytest.mark.requirement("DP-EPOCH-02")
@pytest.mark.parametrize(
    ("profile_name", "release", "acl", "code"),
    [
        ("kafka-4.4", (4, 4), None, 29),
        ("kafka-4.4", (4, 4), AclBinding(2, "foo", 3, "User:a", "*", 8, 3), 0),
        ("kafka-4.4", (4, 4), AclBinding(4, "kafka-cluster", 3, "User:a", "*", 9, 3), 0),
        ("kafka-2.1", (2, 1), None, 29),
        ("kafka-2.0", (2, 0), None, 31),
        ("kafka-2.0", (2, 0), AclBinding(2, "foo", 3, "User:a", "*", 8, 3), 31),
        ("kafka-2.0", (2, 0), AclBinding(4, "kafka-cluster", 3, "User:a", "*", 9, 3), 0),
    ],
)
def test_who_may_ask(profile_name, release, acl, code):
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    if acl is not None:
        cluster.acls.create([acl])
    broker = DirectBroker(cluster, profile_name=profile_name, security=ENFORCED, principal="User:a")
    version = 1 if release < (2, 1) else 2
    assert ask(broker, request(0), version)[0] == code


@pytest.mark.requirement("DP-EPOCH-01", "DP-LOG-09")
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=8),
    st.integers(-2, 30),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_ends_equal_those_of_a_naive_model(steps, epoch, start, cut):
    """The model keeps the epoch of every record, and the last epoch that a leader began."""
    epochs, of_record, latest = LeaderEpochs(), list[int](), 0
    epochs.assign(0, 0)
    for raised, records in steps:
        latest += raised
        epochs.assign(latest, len(of_record))
        of_record += [latest] * records
    cut = min(cut, len(of_record))
    del of_record[cut:]
    epochs.truncate_end(cut)
    latest += 1
    epochs.assign(latest, cut)
    start = min(start, cut)
    epochs.truncate_start(start)

    first_of = {latest: len(of_record)}
    for offset in reversed(range(start, len(of_record))):
        first_of[of_record[offset]] = offset
    if epoch == -1 or epoch > latest:
        expected = (-1, -1)
    elif epoch == latest:
        expected = (latest, len(of_record))
    else:
        above = min(each for each in first_of if each > epoch)
        below = [each for each in first_of if each <= epoch]
        expected = (max(below, default=epoch), first_of[above])
    assert tuple(epochs.end_of(epoch, len(of_record))) == expected
