"""Who serves a fetch: leaders, followers, replicas in the client's rack; fetches of replicas."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching.fetching import (
    FOO,
    append,
    ask,
    request,
    row,
    rows,
    values,
)

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


# ---- followers -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-FETCH-18")
@pytest.mark.parametrize(("version", "code"), [(10, ErrorCode.NOT_LEADER_OR_FOLLOWER), (11, 0)])
def test_followers_serve_clients_of_version_11(version: int, code: int) -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    append(cluster, b"a")
    found = row(ask(DirectBroker(cluster), {FOO: 0}, version, broker_id=2))
    assert found.error_code == code
    assert values(found) == ([] if code else [b"a"])


@pytest.mark.requirement("DP-FETCH-18")
def test_a_follower_serves_what_it_has() -> None:
    cluster = Cluster(3, topics=["foo=1,2,3"])
    broker = DirectBroker(cluster)
    append(cluster, b"a")
    cluster.logs.hold_replication(FOO, 2)
    Operations(cluster).leave_isr(FOO, 2)
    append(cluster, b"b")
    append(cluster, b"c")

    def follower(offset: int) -> Any:
        return row(ask(broker, {FOO: offset}, broker_id=2))

    assert row(ask(broker, {FOO: 0})).high_watermark == 3
    found = follower(0)
    assert (values(found), found.high_watermark, found.last_stable_offset) == ([b"a"], 1, 1)
    assert (follower(1).error_code, follower(1).records) == (0, b"")
    assert follower(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    cluster.logs.replicate(FOO, 2, 2)
    assert values(follower(1)) == [b"b"]


# ---- preferred read replicas ---------------------------------------------------------------------


def racks(selector: str | None = RACK_AWARE, **options: Any) -> Cluster:
    brokers = [Broker(1, rack="x"), Broker(2, rack="y"), Broker(3, rack="y"), Broker(4, rack="z")]
    configs = {} if selector is None else {"replica.selector.class": selector}
    return simulated_cluster(brokers, topics=["foo=1,2,3,4"], broker_configs=configs, **options)


@pytest.mark.requirement("DP-FETCH-17")
@pytest.mark.parametrize(
    ("selector", "rack", "version", "preferred"),
    [
        (RACK_AWARE, "y", 11, 3),
        (RACK_AWARE, "z", 12, 4),
        (RACK_AWARE, "x", 11, -1),
        (RACK_AWARE, "nowhere", 11, -1),
        (RACK_AWARE, "", 11, -1),
        (RACK_AWARE, "y", 10, -1),
        (None, "y", 11, -1),
        ("org.apache.kafka.common.replica.LeaderSelector", "y", 11, -1),
    ],
)
def test_the_leader_sends_clients_to_their_rack(selector, rack, version, preferred):
    cluster = racks(selector)
    append(cluster, b"a")
    found = row(ask(DirectBroker(cluster), {FOO: 0}, version, rack_id=rack))
    assert found.preferred_read_replica == preferred
    assert values(found) == ([] if preferred >= 0 else [b"a"])
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 1, 1)
    assert found.log_start_offset == 0


@pytest.mark.requirement("REL-24")
@pytest.mark.parametrize(
    ("release", "fixes", "preferred"),
    [
        ((3, 2, 3), (), 4),
        ((3, 3, 1), (), 4),
        ((3, 3, 2), (), -1),
        ((3, 4), (), -1),
        ((3, 3, 2), (("KAFKA-14372", False),), 4),
        ((3, 2), (("KAFKA-14372", True),), -1),
    ],
)
def test_replicas_out_of_sync_are_chosen_before_3_3_2(release, fixes, preferred):
    cluster = racks(release=Release(release, fixes))
    append(cluster, b"a")
    Operations(cluster).leave_isr(FOO, 4)
    broker = DirectBroker(cluster)
    assert row(ask(broker, {FOO: 0}, 11, rack_id="z")).preferred_read_replica == preferred
    Operations(cluster).stop_broker(4)
    assert row(ask(broker, {FOO: 0}, 11, rack_id="z")).preferred_read_replica == -1


@pytest.mark.requirement("DP-FETCH-17")
def test_only_replicas_in_sync_that_have_the_offset_are_chosen() -> None:
    cluster = racks()
    broker = DirectBroker(cluster)
    cluster.logs.hold_replication(FOO, None)
    append(cluster, b"a")
    append(cluster, b"b")

    def preferred(offset: int) -> int:
        answer = row(ask(broker, {FOO: offset}, rack_id="y"))
        assert answer.error_code == 0
        return answer.preferred_read_replica

    assert (preferred(0), preferred(1)) == (3, -1)
    cluster.logs.replicate(FOO, 2, 1)
    assert (preferred(0), preferred(1)) == (2, 2), "the most caught up"
    Operations(cluster).leave_isr(FOO, 2)
    assert (preferred(0), preferred(1)) == (3, -1)


@pytest.mark.requirement("DP-FETCH-17")
def test_followers_and_replicas_are_not_redirected() -> None:
    cluster = racks()
    append(cluster, b"a")
    broker = DirectBroker(cluster)
    assert values(row(ask(broker, {FOO: 0}, broker_id=2, rack_id="z"))) == [b"a"]
    assert values(row(ask(broker, {FOO: 0}, rack_id="y", replica_id=2))) == [b"a"]


@pytest.mark.requirement("DP-FETCH-17")
def test_epochs_are_checked_before_a_client_is_redirected() -> None:
    cluster = racks()
    position = {"fetch_offset": 0, "current_leader_epoch": 1}
    found = row(ask(DirectBroker(cluster), {FOO: position}, rack_id="y"))
    assert found.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


# ---- replicas ------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-FETCH-14", "DP-FETCH-23")
@pytest.mark.parametrize("version", [12, 15])
def test_a_replica_reads_to_the_end_and_moves_the_watermark(version: int) -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    cluster.logs.hold_replication(FOO, 2)
    append(cluster, b"a")
    append(cluster, b"b")
    broker = DirectBroker(cluster)
    ids = {"foo": cluster.topics["foo"].topic_id} if version >= 13 else None
    as_replica = {"state_replica_id" if version >= 15 else "replica_id": 2}

    def fetch(offset: int) -> Any:
        return row(ask(broker, {FOO: offset}, version, ids=ids, **as_replica))

    assert values(fetch(0)) == [b"a", b"b"]
    assert cluster.logs.log(FOO).high_watermark == 0
    assert fetch(1).high_watermark == 0, "the watermark before the fetch"
    assert cluster.logs.log(FOO).high_watermark == 1
    assert cluster.logs.end_of(FOO, 2) == 1
    assert values(fetch(2)) == []
    assert fetch(2).high_watermark == 2
    fetch(0)
    assert cluster.logs.log(FOO).high_watermark == 2, "it never falls"


@pytest.mark.requirement("DP-FETCH-23")
@pytest.mark.parametrize("replica_id", [1, 3])
@pytest.mark.parametrize(
    ("release", "epoch", "code"),
    [
        ((3, 2), 0, 0),
        ((3, 3), 0, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ((3, 3), -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_a_broker_is_not_a_replica_of_everything(release, epoch, code, replica_id):
    cluster = simulated_cluster(3, topics=["foo=1,2"], release=release)
    append(cluster, b"a")
    position = {"fetch_offset": 0, "current_leader_epoch": epoch}
    found = row(ask(DirectBroker(cluster), {FOO: position}, 12, replica_id=replica_id))
    assert (found.error_code, found.records) == (code, b"")
    assert found.high_watermark == (-1 if code else 1)


# ---- permissions ---------------------------------------------------------------------------------


@pytest.mark.requirement("DP-FETCH-01", "DP-FETCH-23")
@pytest.mark.parametrize("replica_id", [-1, 2])
def test_readers_and_replicas_need_permissions(replica_id: int) -> None:
    cluster = Cluster(2, topics=["foo=1,2"])
    append(cluster, b"a")
    security = Security(Authorizer(frozenset({"User:admin"})))
    offsets = {FOO: 0, ("unknown", 0): 0}
    stranger = DirectBroker(cluster, security=security, principal="User:stranger")
    found = rows(ask(stranger, offsets, replica_id=replica_id))
    assert [each.error_code for each in found.values()] == [29, 29]
    admin = DirectBroker(cluster, security=security, principal="User:admin")
    found = rows(ask(admin, offsets, replica_id=replica_id))
    assert [each.error_code for each in found.values()] == [0, 3]


@pytest.mark.requirement("DP-FETCH-01")
def test_an_unknown_id_is_told_to_readers_without_permission() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    security = Security(Authorizer(frozenset()))
    broker = DirectBroker(cluster, security=security)
    ids = {"foo": cluster.topics["foo"].topic_id, "unknown": cluster.topics["foo"].topic_id}
    ids["unknown"] = type(ids["foo"])(int=1)
    body = request({FOO: 0, ("unknown", 0): 0}, ids=ids)
    codes = [
        each.error_code for topic in broker.ask(body, 13).responses for each in topic.partitions
    ]
    assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_TOPIC_ID]
    body = request({FOO: 0, ("unknown", 0): 0}, ids=ids, state_replica_id=1)
    codes = [
        each.error_code for topic in broker.ask(body, 15).responses for each in topic.partitions
    ]
    assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2
