"""Log directories that fail and are mended (KIP-112, KIP-858), in every era of controllers."""

import asyncio
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.records import Record, build_batch
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import (
    LeaderAndIsrSent,
    LogDirReported,
    UpdateMetadataSent,
    ZnodeWritten,
)
from mockbroker.simulation.state.cluster_parts import LOG_DIR, Broker
from mockbroker.simulation.state.cluster_state import replay
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.wire import PATIENCE, connect
from tests.support.requests import request_of

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
TOLD = ("kafka-4.4", "kafka-3.7", "kafka-3.9-zk", "kafka-2.4", "kafka-1.0")
"""Releases whose controllers are told."""
TWO = {"log.dirs": "/a, /b"}


def cluster(profile: str = "kafka-4.4", *topics: str, **options: Any) -> Cluster:
    return MockCluster(3, profile=profile, topics=topics or ("foo:1:3",), **options).cluster


def broker(of: Cluster, profile: str = "kafka-4.4") -> DirectBroker:
    return DirectBroker(of, profile_name=profile)


def records() -> bytes:
    return build_batch([Record(value=b"x", timestamp=1)])


def produce(topic: str = "foo") -> Any:
    data = {"index": 0, "records": records()}
    return request_of("Produce", acks=1, timeout_ms=1000, name=topic, partition_data=[data])


def fetch(version: int = 12) -> Any:
    part = {"partition": 0, "partition_max_bytes": 1000}
    return request_of(
        "Fetch", max_wait_ms=0, min_bytes=1, topics={"topic": "foo", "partitions": [part]}
    )


def produce_error(on: DirectBroker, version: int = 9) -> int:
    return int(on.ask(produce(), version).responses[0].partition_responses[0].error_code)


def fetch_error(on: DirectBroker, version: int = 12) -> int:
    return int(on.ask(fetch(), version).responses[0].partitions[0].error_code)


@pytest.mark.requirement("DP-CTL-16")
@pytest.mark.parametrize("profile", TOLD)
def test_leaders_move_and_isrs_shrink_where_the_controller_is_told(profile: str) -> None:
    of = cluster(profile, "foo=1,2,3/2,1,3/2,3")
    Operations(of).fail_log_dir(1)
    first, second, third = of.topics["foo"].partitions
    assert (first.leader, first.isr, first.leader_epoch) == (2, (2, 3), 1)
    assert (second.leader, second.isr) == (2, (2, 3))
    assert (third.leader, third.isr, third.leader_epoch) == (2, (2, 3), 0)
    assert of.controller.broker(1).live
    assert of.describe()["brokers"]["1"] == {"live": True, "failed_log_dirs": [LOG_DIR]}
    assert of.describe()["brokers"]["2"] == {"live": True}
    view = of.controller.metadata_view(2)
    assert view.offline_replicas("foo", first) == (1,)
    assert view.offline_replicas("foo", third) == ()
    assert replay(of.state.cluster_id, of.log).replica_dirs == of.state.replica_dirs


@pytest.mark.requirement("DP-CTL-16")
def test_a_kraft_controller_before_3_7_is_not_told() -> None:
    """The leader stays and answers with the error; other leaders drop the replica that no longer
    fetches from them."""
    of = cluster("kafka-3.6", "foo=1,2,3/2,1,3")
    Operations(of).fail_log_dir(1)
    led, followed = of.topics["foo"].partitions
    assert (led.leader, led.isr, led.leader_epoch) == (1, (1, 2, 3), 0)
    assert (followed.leader, followed.isr) == (2, (2, 3))
    assert not any(isinstance(each.change, LogDirReported) for each in of.log)
    assert of.controller.metadata_view(2).offline_replicas("foo", led) == ()
    assert produce_error(broker(of, "kafka-3.6")) == STORAGE
    with pytest.raises(ClusterError, match="log directory of foo-1 on broker 1 has failed"):
        Operations(of).join_isr(("foo", 1), 1)


@pytest.mark.requirement("DP-CTL-16")
def test_a_broker_before_1_0_stops() -> None:
    of = cluster("kafka-0.11.0")
    Operations(of).fail_log_dir(1)
    assert not of.controller.broker(1).live
    assert of.topics.partition("foo", 0).leader == 2
    Operations(of).mend_log_dir(1)  # a stopped broker is not started by that
    assert not of.controller.broker(1).live
    Operations(of).start_broker(1)
    Operations(of).join_isr(("foo", 0), 1)


@pytest.mark.requirement("DP-CTL-16")
@pytest.mark.parametrize("profile", TOLD)
def test_the_only_replica_in_sync_keeps_the_partition_offline_until_it_is_mended(profile):
    of = cluster(profile, "foo=1")
    Operations(of).append("foo-0", "kept")
    Operations(of).fail_log_dir(1)
    assert (of.topics.partition("foo", 0).leader, of.topics.partition("foo", 0).isr) == (-1, (1,))
    Operations(of).stop_broker(1)
    Operations(of).start_broker(1)  # a restart alone mends nothing
    assert of.topics.partition("foo", 0).leader == -1
    assert of.state.replica_dirs.is_failed(1, ("foo", 0))
    Operations(of).mend_log_dir(1)
    assert of.topics.partition("foo", 0).leader == 1
    assert of.logs.log(("foo", 0)).end_offset == 1
    assert of.describe()["brokers"]["1"] == {"live": True}


@pytest.mark.requirement("DP-CTL-16")
def test_mending_restarts_the_broker_and_its_replicas_may_join_again() -> None:
    of = cluster("kafka-4.4", "foo=1,2,3/2,1,3")
    Operations(of).fail_log_dir(1)
    with pytest.raises(ClusterError, match="so that the replica cannot join the ISR"):
        Operations(of).join_isr(("foo", 0), 1)
    Operations(of).mend_log_dir(1)
    assert of.controller.broker(1).live
    assert (
        of.controller.metadata_view(2).offline_replicas("foo", of.topics.partition("foo", 0)) == ()
    )
    Operations(of).join_isr(("foo", 0), 1)
    assert of.topics.partition("foo", 0).isr == (2, 3, 1)
    of.elections.elect(0, [("foo", [0])])
    assert of.topics.partition("foo", 0).leader == 1


@pytest.mark.requirement("DP-CTL-16")
@pytest.mark.parametrize("profile", TOLD)
def test_a_replica_in_a_failed_directory_is_not_elected(profile: str) -> None:
    """Neither as the preferred leader nor uncleanly, although its broker lives."""
    of = cluster(profile, "foo=1,2")
    Operations(of).fail_log_dir(1)
    of.elections.elect(0, [("foo", [0])])
    assert of.topics.partition("foo", 0).leader == 2
    Operations(of).stop_broker(2)
    of.elections.elect(1, [("foo", [0])])
    assert of.topics.partition("foo", 0).leader == -1
    with pytest.raises(ClusterError, match="has failed"):
        Operations(of).unclean_election("foo-0", 1)


@pytest.mark.requirement("DP-CTL-16")
def test_auto_progress_leaves_failed_replicas_alone() -> None:
    of = cluster("kafka-4.4", auto_progress_ms=100, clock="manual")
    Operations(of).fail_log_dir(3)
    of.turns.advance(1000)
    assert of.topics.partition("foo", 0).isr == (1, 2)
    Operations(of).mend_log_dir(3)
    of.turns.advance(1000)
    assert of.topics.partition("foo", 0).isr == (1, 2, 3)


@pytest.mark.requirement("DP-CTL-16")
def test_in_zookeeper_the_broker_writes_a_notification_and_is_asked() -> None:
    of = cluster("kafka-3.9-zk")
    before = len(of.log)
    Operations(of).fail_log_dir(1)
    changes = [each.change for each in of.log[before:]]
    (written, deleted) = (
        each
        for each in changes
        if isinstance(each, ZnodeWritten) and each.path.startswith("/log_dir_event_notification/")
    )
    assert written.path == "/log_dir_event_notification/log_dir_event_0000000000"
    assert written.after == '{"version":1,"broker":1,"event":1}'
    assert deleted.after is None
    asked = next(each for each in changes if isinstance(each, LeaderAndIsrSent))
    assert asked.to == (1,)
    reported = changes.index(LogDirReported(1, LOG_DIR))
    assert changes.index(written) < changes.index(asked) < reported
    assert isinstance(changes[-1], UpdateMetadataSent)
    assert changes[-1].leader == 2


@pytest.mark.requirement("DP-CTL-16")
def test_the_next_zookeeper_controller_learns_of_failures() -> None:
    of = cluster("kafka-3.9-zk")
    Operations(of).resign_controller()
    Operations(of).fail_log_dir(1)
    assert of.topics.partition("foo", 0).leader == 1
    Operations(of).failover(2)
    assert of.topics.partition("foo", 0).leader == 2
    assert of.znodes.children("/log_dir_event_notification") == []


@pytest.mark.requirement("DP-CTL-16")
def test_notifications_that_cannot_be_read_are_removed() -> None:
    of = cluster("kafka-3.9-zk")
    Operations(of).write_znode("/log_dir_event_notification/log_dir_event_0000000007", "?")
    assert of.znodes.children("/log_dir_event_notification") == []
    Operations(of).write_znode(
        "/log_dir_event_notification/log_dir_event_0000000008", '{"version":1,"broker":9,"event":1}'
    )
    assert of.znodes.children("/log_dir_event_notification") == []


def answers_of(of: DirectBroker) -> dict[str, int]:
    """The error of every api that looks at a replica, as broker 1 gives it."""
    listed = request_of("ListOffsets", replica_id=-1, name="foo", partition_index=0, timestamp=-1)
    epochs = request_of("OffsetForLeaderEpoch", topic="foo", partition=0, leader_epoch=0)
    deleted = request_of("DeleteRecords", timeout_ms=1000, name="foo", partition_index=0, offset=0)
    producers = request_of("DescribeProducers", name="foo", partition_indexes=[0])
    markers = request_of(
        "WriteTxnMarkers", producer_id=1, producer_epoch=0, name="foo", partition_indexes=[0]
    )
    return {
        "produce": produce_error(of),
        "fetch": fetch_error(of),
        "list offsets": of.ask(listed, 7).topics[0].partitions[0].error_code,
        "epochs": of.ask(epochs, 4).topics[0].partitions[0].error_code,
        "delete": of.ask(deleted, 2).topics[0].partitions[0].error_code,
        "producers": of.ask(producers, 0).topics[0].partitions[0].error_code,
        "markers": of.ask(markers, 1).markers[0].topics[0].partitions[0].error_code,
    }


@pytest.mark.requirement("DP-CTL-16", "DP-FETCH-22")
@pytest.mark.parametrize("profile", ["kafka-4.4", "kafka-3.9-zk"])
def test_every_request_for_the_replica_has_the_error(profile: str) -> None:
    """Also once another broker leads: the old leader does not answer 6."""
    of = cluster(profile)
    Operations(of).fail_log_dir(1)
    assert of.topics.partition("foo", 0).leader == 2
    assert answers_of(broker(of, profile)) == {
        "produce": STORAGE,
        "fetch": STORAGE,
        "list offsets": STORAGE,
        "epochs": STORAGE,
        "delete": STORAGE,
        "producers": STORAGE,
        "markers": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # as if the broker had no replica
    }


@pytest.mark.requirement("DP-FETCH-22")
@pytest.mark.parametrize(
    ("profile", "version", "code"),
    [
        ("kafka-4.4", 6, STORAGE),
        ("kafka-4.4", 5, NOT_LEADER),
        ("kafka-1.0", 5, NOT_LEADER),
        ("kafka-1.0", 6, STORAGE),
    ],
)
def test_old_fetches_have_an_error_that_they_know(profile: str, version: int, code: int) -> None:
    of = cluster(profile)
    Operations(of).fail_log_dir(1)
    assert fetch_error(broker(of, profile), version) == code


@pytest.mark.requirement("DP-CTL-16")
@pytest.mark.parametrize(
    ("profile", "version", "code"),
    [
        ("kafka-1.0", 3, NOT_LEADER),
        ("kafka-1.0", 4, STORAGE),
        ("kafka-2.7", 3, NOT_LEADER),
        ("kafka-2.8", 3, STORAGE),
        ("kafka-4.4", 3, STORAGE),
    ],
)
def test_old_produces_have_an_error_that_they_know(profile: str, version: int, code: int) -> None:
    """Up to 2.7 only: since then the response is not converted."""
    of = cluster(profile)
    Operations(of).fail_log_dir(1)
    assert produce_error(broker(of, profile), version) == code


@pytest.mark.requirement("DP-CTL-16")
def test_segment_starts_have_the_error_too() -> None:
    of = cluster("kafka-2.4")
    Operations(of).fail_log_dir(1)
    answer = broker(of, "kafka-2.4").ask(
        "ListOffsets", 0, replica_id=-1, name="foo", partition_index=0, timestamp=-1
    )
    assert answer.topics[0].partitions[0].error_code == STORAGE


@pytest.mark.requirement("DP-CTL-16")
def test_the_controllers_requests_for_the_replica_have_the_error() -> None:
    of = cluster("kafka-3.9-zk")
    Operations(of).fail_log_dir(1)
    on, epoch = broker(of, "kafka-3.9-zk"), of.state.controller_epoch
    state = {
        "partition_index": 0,
        "controller_epoch": epoch,
        "leader": 2,
        "leader_epoch": 9,
        "isr": [2],
        "partition_epoch": 9,
        "replicas": [1, 2, 3],
    }
    led = request_of(
        "LeaderAndIsr",
        controller_id=1,
        controller_epoch=epoch,
        topic_states={"topic_name": "foo", "partition_states": [state]},
    )
    stopped = request_of(
        "StopReplica",
        controller_id=1,
        controller_epoch=epoch,
        topic_states={"topic_name": "foo", "partition_index": 0, "leader_epoch": 9},
    )
    assert on.ask(led, 4).partition_errors[0].error_code == STORAGE
    assert on.ask(stopped, 3).partition_errors[0].error_code == STORAGE


@pytest.mark.requirement("DP-CTL-16", "DP-API-34")
def test_directories_are_described_and_the_failed_one_has_the_error() -> None:
    of = cluster("kafka-4.4", "foo=1,2/1,2/1,2", broker_configs=TWO)
    Operations(of).fail_log_dir(1, "/a")
    results = broker(of).ask("DescribeLogDirs", 4, topics=None).results
    assert [(each.log_dir, each.error_code) for each in results] == [("/a", STORAGE), ("/b", 0)]
    assert results[0].topics == []
    assert [each.partition_index for each in results[1].topics[0].partitions] == [1]


@pytest.mark.requirement("DP-CTL-16")
def test_only_the_replicas_of_the_directory_are_offline() -> None:
    """A new replica is in the working directory with the fewest."""
    of = cluster("kafka-4.4", "foo=1,2/1,2/1,2", broker_configs=TWO)
    Operations(of).fail_log_dir(1, "/a")
    assert [each.leader for each in of.topics["foo"].partitions] == [2, 1, 2]
    of.topics.add("bar=1,2/1,2")
    assert [each.leader for each in of.topics["bar"].partitions] == [1, 1]
    row = broker(of).ask("Metadata", 9, name="foo").topics[0]
    assert [each.offline_replicas for each in row.partitions] == [[1], [], [1]]
    old = broker(of).ask("Metadata", 4, name="foo").topics[0]
    assert [each.error_code for each in old.partitions] == [0, 0, 0]


@pytest.mark.requirement("DP-CTL-16")
def test_a_broker_without_a_working_directory_takes_no_new_leader() -> None:
    of = cluster("kafka-4.4")
    Operations(of).fail_log_dir(1)
    of.topics.add("bar=1,2")
    assert (of.topics.partition("bar", 0).leader, of.topics.partition("bar", 0).isr) == (2, (2,))
    assert of.state.replica_dirs.is_failed(1, ("bar", 0))


@pytest.mark.requirement("DP-API-34")
def test_replicas_move_between_the_directories_of_a_broker() -> None:
    of = cluster("kafka-4.4", "foo=1,2/1,2", broker_configs=TWO)
    on = broker(of)

    def move(index: int, path: str, topic: str = "foo") -> int:
        body = request_of("AlterReplicaLogDirs", path=path, name=topic, partitions=[index])
        return int(on.ask(body, 2).results[0].partitions[0].error_code)

    assert move(0, "/c") == ErrorCode.LOG_DIR_NOT_FOUND
    assert move(0, "/a") == ErrorCode.NONE
    assert move(0, "/b") == ErrorCode.NONE
    assert move(0, "/a", "nope") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    described = [
        [(name, [each.partition_index for each in rows]) for name, rows in directory.topics]
        for directory in of.log_dirs.describe(1, None)
    ]
    assert described == [[], [("foo", [0, 1])]]
    Operations(of).fail_log_dir(1, "/a")
    assert move(0, "/a") == STORAGE
    assert move(0, "/b") == ErrorCode.NONE
    Operations(of).mend_log_dir(1, "/a")
    Operations(of).fail_log_dir(1, "/b")
    assert move(0, "/b") == STORAGE
    assert move(0, "/a") == STORAGE  # no second log while a directory cannot be seen
    # A replica that leaves the broker and comes back is placed anew.
    Operations(of).mend_log_dir(1)
    of.reassignments.alter([("foo", [(0, [2])])])
    of.reassignments.alter([("foo", [(0, [2, 1])])])
    assert of.log_dirs.describe(1, [("foo", [0])])[0].topics


@pytest.mark.requirement("DP-CTL-16")
def test_what_makes_no_sense_is_refused() -> None:
    of = cluster("kafka-4.4", broker_configs=TWO)
    with pytest.raises(ClusterError, match="broker 1 has no log directory '/c'; it has /a, /b"):
        Operations(of).fail_log_dir(1, "/c")
    with pytest.raises(ClusterError, match="every log directory of broker 1 has not failed"):
        Operations(of).mend_log_dir(1)
    Operations(of).fail_log_dir(1, "/a")
    with pytest.raises(ClusterError, match="directory /a of broker 1 has already failed"):
        Operations(of).fail_log_dir(1, "/a")
    with pytest.raises(ClusterError, match="directory /b of broker 1 has not failed"):
        Operations(of).mend_log_dir(1, "/b")
    Operations(of).fail_log_dir(1)  # the rest of them
    assert of.describe()["brokers"]["1"]["failed_log_dirs"] == ["/a", "/b"]
    with pytest.raises(ClusterError, match="every log directory of broker 1 has already failed"):
        Operations(of).fail_log_dir(1)
    Operations(of).stop_broker(2)
    with pytest.raises(ClusterError, match="broker 2 is stopped"):
        Operations(of).fail_log_dir(2)
    with pytest.raises(ClusterError, match="names no directory"):
        cluster("kafka-4.4", broker_configs={"log.dirs": " "})
    own = simulated_cluster([Broker(1, log_dirs=("/x",)), Broker(2)], broker_configs=TWO)
    assert [each.log_dirs for each in own.brokers.values()] == [("/x",), ("/a", "/b")]


@pytest.mark.requirement("DP-CTL-16")
async def test_requests_that_wait_end_with_the_error() -> None:
    async with MockCluster(3, topics=["foo:1:3"], profile="kafka-3.6") as mock:
        mock.hold_replication("foo-0", 2)
        async with connect(mock) as producer, connect(mock) as consumer:
            body = request_of(
                "Produce", acks=-1, timeout_ms=60_000, topic_data=produce().topic_data
            )
            produced = asyncio.create_task(producer.ask(body, 9))
            asked = fetch()
            asked.max_wait_ms = 60_000
            fetched = asyncio.create_task(consumer.ask(asked, 12))
            async with asyncio.timeout(PATIENCE):
                while not (mock.cluster.fetches.waiting() and mock.cluster.logs.bytes):
                    await asyncio.sleep(0)
            await mock.run_command("fail-log-dir 1")
            answer = await produced
            assert answer.responses[0].partition_responses[0].error_code == STORAGE
            answer = await fetched
            assert answer.responses[0].partitions[0].error_code == STORAGE
            await mock.run_command("mend-log-dir 1")
            assert await producer.closed() == b""


@pytest.mark.requirement("DP-CTL-16")
async def test_the_broker_that_stops_closes_its_port() -> None:
    async with MockCluster(3, topics=["foo:1:3"], profile="kafka-0.11.0") as mock:
        address = mock.addresses[1]
        await mock.fail_log_dir(1)
        host, port = address.rsplit(":", 1)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))


@pytest.mark.requirement("DP-CTL-16")
@pytest.mark.parametrize("profile", ["kafka-4.4", "kafka-0.11.0"])
async def test_a_fault_rule_fails_the_directory_before_the_answer(profile: str) -> None:
    async with MockCluster(3, topics=["foo:1:3"], profile=profile) as mock:
        mock.fault(api=0, times=1, steps_before=["fail-log-dir self"])
        async with connect(mock) as wire:
            assert (await wire.ask(produce(), 3)).responses[0].partition_responses[0].error_code
            assert mock.cluster.topics.partition("foo", 0).leader == 2
    async with MockCluster(3, topics=["foo:1:3"]) as mock:
        await mock.fail_log_dir(1)
        mock.fault(api=3, times=1, steps_before=["mend-log-dir 1"])
        async with connect(mock, 2) as wire:
            await wire.ask("Metadata", 9, topics=[])
        assert not mock.cluster.state.replica_dirs.is_failed(1, ("foo", 0))
