"""Coordinators that move, load, or are lost in the midst of a change; what their log has."""

import pytest

from kproto.messages.transaction_log_value import TransactionLogValue
from kproto.records import Record
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.transactions.transaction_log import transaction_record
from mockbroker.simulation.transactions.transactional_ids import (
    TransactionMetadata,
    TransactionState,
)
from tests.mockbroker.simulation.transactions.transacting import (
    BAR,
    FOO,
    KIND,
    NEWEST,
    OLD,
    Producer,
    coordinator,
    log_records,
    markers,
)

Release = tuple[int, int]
BOTH = pytest.mark.parametrize("release", [OLD, NEWEST])


def own_log(cluster: Cluster) -> TopicPartition:
    return cluster.coordinators.partition_of(KIND, "t")


# ---- the log -------------------------------------------------------------------------------------

# Printed by java/TransactionRecords.java with the classes of Kafka 4.4.0.
KEY = "0000000174"
ONGOING_0 = (
    "000000000000000003e80007000186a001000000010003666f6f000000020000000200000000000000000000"
    "00090000000000000008"
)
EMPTY_0 = "000000000000000003e80000000186a000ffffffff0000000000000009ffffffffffffffff"
ONGOING_2 = (
    "000100000000000003e80007000186a0010204666f6f03000000020000000000000000000000000900000000"
    "0000000803000800000000000003e7010800000000000003e902020002"
)
EMPTY_2 = "000100000000000003e80000000186a000000000000000000009ffffffffffffffff00"


def decoded(record: Record) -> tuple[int, TransactionLogValue]:
    assert record.value is not None
    version = int.from_bytes(record.value[:2], "big")
    return version, TransactionLogValue.decode(record.value[2:], version)


@pytest.mark.requirement("DP-COORD-09")
@pytest.mark.parametrize(
    ("level", "ongoing", "empty"), [(0, ONGOING_0, EMPTY_0), (2, ONGOING_2, EMPTY_2)]
)
def test_records_are_kafkas_bytes(level: int, ongoing: str, empty: str) -> None:
    metadata = TransactionMetadata(
        producer_id=1000, epoch=7, last_epoch=6, timeout_ms=100_000, start_ms=8, update_ms=9,
        state=TransactionState.ONGOING, partitions=(("foo", 2), FOO),
        previous_producer_id=999, next_producer_id=1001, version=level,
    )  # fmt: skip
    key = bytes.fromhex(KEY)
    assert transaction_record("t", metadata, level) == Record(key=key, value=bytes.fromhex(ongoing))
    metadata = TransactionMetadata(1000, 100_000, 9, epoch=0)
    assert transaction_record("t", metadata, level) == Record(key=key, value=bytes.fromhex(empty))
    assert transaction_record("t", None, level) == Record(key=key, value=None)


@BOTH
@pytest.mark.requirement("DP-COORD-09", "DP-TXN-10")
def test_each_step_is_in_the_log(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    producer.end()
    new = release == NEWEST
    found = [decoded(each) for each in log_records(cluster)]
    assert {version for version, _ in found} == {1 if new else 0}
    statuses = [(each.transaction_status, each.producer_epoch) for _, each in found]
    assert statuses == [(0, 0), (1, 0), (2, int(new)), (4, int(new))]
    partitions = [each.transaction_partitions for _, each in found]
    assert [partitions[0], partitions[3]] == [None, []]
    assert [each.topic for each in partitions[1] or []] == ["foo"]
    if new:
        assert [each.client_transaction_version for _, each in found] == [0, 2, 2, 2]


# ---- moving --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.requirement("DP-TXN-21", "DP-CTL-26", "DP-MARK-02")
def test_the_next_coordinator_sends_the_markers(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster).begun()
    producer.write(tp=BAR)
    Operations(cluster).hold_replication(BAR)
    producer.end()
    before = producer.at
    epoch = producer.transaction.metadata.epoch
    assert markers(cluster) == [("COMMIT", 1000, epoch, 0)]
    assert producer.transaction.unmarked == {BAR: None}
    Operations(cluster).move_coordinator("transaction", "t", 3 - before)
    assert producer.ask_end(at=before)[0].code == 16
    # It does not know which markers are written, and writes all.
    assert markers(cluster) == [("COMMIT", 1000, epoch, 0), ("COMMIT", 1000, epoch, 1)]
    assert producer.state == "PrepareCommit"
    Operations(cluster).release_replication(BAR)
    assert producer.state == "CompleteCommit"
    assert cluster.logs.log(FOO).last_stable_offset == 3


@BOTH
@pytest.mark.requirement("DP-TXN-21", "DP-CTL-27", "DP-CTL-33")
def test_held_markers_are_sent_by_the_next_coordinator(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster).begun()
    Operations(cluster).hold_markers("t")
    producer.end(commit=False)
    Operations(cluster).load_coordinator("transaction", "t")
    Operations(cluster).release_markers("t")
    assert markers(cluster) == []
    Operations(cluster).finish_loading("transaction", "t")
    assert [each[0] for each in markers(cluster)] == ["ABORT"]
    assert producer.state == "CompleteAbort"


@BOTH
@pytest.mark.parametrize("lost", [True, False])
@pytest.mark.requirement("DP-TXN-20", "DP-TXN-21", "DP-COORD-06")
def test_a_change_that_was_being_written_is_lost_with_its_record(release, lost):
    cluster = coordinator(release, 3)
    producer = Producer(cluster).begun()
    tp = own_log(cluster)
    heir, other = [each for each in cluster.topics.partition(*tp).isr if each != producer.at]
    Operations(cluster).hold_replication(tp, other)
    if lost:
        Operations(cluster).hold_replication(tp, heir)
    answers = producer.ask_end()
    assert (answers, producer.state) == ([], "Ongoing")
    Operations(cluster).move_coordinator("transaction", "t", heir)
    assert [each.code for each in answers] == [16]
    Operations(cluster).release_replication(tp)
    assert producer.state == ("Ongoing" if lost else "CompleteCommit")
    assert len(markers(cluster)) == (0 if lost else 1)
    assert producer.end() == 0


@pytest.mark.requirement("DP-TXN-01", "DP-COORD-06")
def test_an_id_that_was_never_written_is_lost() -> None:
    cluster = coordinator(brokers=2)
    tp = own_log(cluster)
    Operations(cluster).hold_replication(tp)
    producer = Producer(cluster)
    answers = producer.ask_init()
    Operations(cluster).move_coordinator("transaction", "t", 3 - producer.at)
    assert [each.code for each in answers] == [16]
    assert producer.state == "none"
    Operations(cluster).release_replication(tp)
    assert producer.init().code == 0


@pytest.mark.requirement("DP-TXN-03")
def test_the_next_coordinator_does_not_know_the_epoch_before() -> None:
    cluster = coordinator(brokers=2)
    producer = Producer(cluster)
    producer.init()
    producer.again()
    assert producer.init(producer_id=1000, epoch=0).code == 0
    Operations(cluster).move_coordinator("transaction", "t", 3 - producer.at)
    assert producer.init(producer_id=1000, epoch=0).code == 90


@BOTH
@pytest.mark.requirement("DP-TXN-22", "DP-TXN-21")
def test_markers_find_their_partition_again(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster).begun()
    producer.write(tp=BAR)
    leader = cluster.topics.partition(*FOO).leader
    Operations(cluster).hold_markers()
    producer.end()
    Operations(cluster).leave_isr(FOO, 3 - leader)
    Operations(cluster).stop_broker(leader)
    Operations(cluster).release_markers()
    assert producer.state == "PrepareCommit"
    assert FOO in producer.transaction.unmarked
    Operations(cluster).start_broker(leader)
    assert producer.transaction.unmarked == {}
    assert len(markers(cluster)) == 1
    Operations(cluster).join_isr(own_log(cluster), leader)  # its log needs two replicas
    assert producer.state == "CompleteCommit"


@BOTH
@pytest.mark.requirement("DP-TXN-22")
def test_a_deleted_partition_needs_no_marker(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    producer.write(tp=BAR)
    Operations(cluster).hold_markers()
    producer.end()
    cluster.topics.delete([(None, cluster.topics["foo"].topic_id)])
    assert producer.state == "PrepareCommit"
    Operations(cluster).release_markers()
    assert producer.state == "CompleteCommit"
    assert len(markers(cluster, BAR)) == 1


@pytest.mark.requirement("DP-TXN-22")
def test_a_partition_may_be_deleted_while_its_marker_is_replicated() -> None:
    cluster = coordinator(brokers=2)
    producer = Producer(cluster).begun()
    Operations(cluster).hold_replication(FOO)
    producer.end()
    assert producer.state == "PrepareCommit"
    cluster.topics.delete([(None, cluster.topics["foo"].topic_id)])
    assert producer.state == "CompleteCommit"


@BOTH
@pytest.mark.requirement("DP-MARK-01")
def test_a_newer_producer_in_the_log_ends_the_sending(release: Release) -> None:
    """Kafka gives up on the markers then; the transactional id stays as it is until another
    coordinator loads it."""
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    record = '{"records": [{"value": "v"}], "producer_id": 1000, "producer_epoch": 9, '
    Operations(cluster).append("foo-0", record + '"base_sequence": 0, "transactional": true}')
    producer.end()
    assert markers(cluster) == []
    assert producer.state == "PrepareCommit"
    assert producer.init().code == 51
    Operations(cluster).set_offset("g", BAR, 1)  # nothing that happens makes it go on
    assert producer.state == "PrepareCommit"


@BOTH
@pytest.mark.requirement("DP-COORD-08", "DP-TXN-10")
def test_the_completion_is_written_as_soon_as_it_can_be(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster).begun()
    Operations(cluster).hold_markers()
    producer.end()
    tp = own_log(cluster)
    cluster.config_changes.alter_incrementally([(2, tp[0], [("min.insync.replicas", 0, "2")])])
    Operations(cluster).leave_isr(tp, 3 - producer.at)
    Operations(cluster).release_markers()
    assert len(markers(cluster)) == 1
    assert producer.state == "PrepareCommit"
    assert producer.init().code == 51
    Operations(cluster).join_isr(tp, 3 - producer.at)
    assert producer.state == "CompleteCommit"
    assert len(markers(cluster)) == 1
