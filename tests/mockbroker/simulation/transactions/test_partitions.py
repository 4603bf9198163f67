"""What a partition's leader makes of transactional batches and of markers."""

import pytest

from kproto.error_codes import message
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.transactions.markers import MarkerToWrite
from tests.mockbroker.simulation.transactions.transacting import (
    BAR,
    FOO,
    KIND,
    NEWEST,
    OLD,
    Producer,
    coordinator,
    markers,
)

Release = tuple[int, int]
BOTH = pytest.mark.parametrize("release", [OLD, NEWEST])
BEFORE = (3, 5)


# ---- verification --------------------------------------------------------------------------------


@pytest.mark.requirement("DP-TXN-41", "DP-LOG-05")
def test_until_3_5_nobody_asks() -> None:
    cluster = coordinator(BEFORE)
    producer = Producer(cluster, "nobody")
    producer.producer_id, producer.epoch = 7, 0
    assert producer.produce().error == 0
    assert cluster.logs.log(FOO).last_stable_offset == 0


@pytest.mark.parametrize("release", [(3, 6), OLD, NEWEST])
@pytest.mark.requirement("DP-TXN-40", "DP-TXN-43", "DP-ADD-04")
def test_old_clients_have_their_partitions_verified(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster, version=0)
    producer.init()
    error, text = producer.verify().errors[FOO]
    assert (error, text) == (48, "Partition was not added to the transaction")
    newer = producer.verify(api_version=11).errors[FOO]
    assert newer == ((48, text) if release < (3, 8) else (120, None))
    assert producer.produce().error == 48
    producer.add(FOO)
    assert producer.verify().errors == {}
    assert producer.produce().error == 0
    assert producer.verify().guards == {}  # the transaction is open: nobody is asked any more
    assert producer.produce().error == 0


@pytest.mark.requirement("DP-TXN-40", "DP-TXN-07")
def test_since_produce_12_the_leader_adds_the_partition() -> None:
    cluster = coordinator()
    producer = Producer(cluster)
    producer.init()
    assert producer.state == "Empty"
    assert producer.produce().error == 0
    assert (producer.state, producer.transaction.metadata.partitions) == ("Ongoing", (FOO,))
    assert producer.produce(tp=BAR).error == 0
    assert producer.transaction.metadata.partitions == (FOO, BAR)
    assert producer.transaction.metadata.version == 2


@BOTH
@pytest.mark.requirement("DP-TXN-42", "DP-TXN-40", "DP-ADD-03", "DP-TXN-44")
def test_a_fenced_producer_cannot_write(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    producer.end()
    producer.epoch = producer.transaction.metadata.epoch
    zombie = Producer(cluster)
    zombie.producer_id, zombie.epoch = producer.producer_id, producer.epoch
    assert producer.init().code == 0
    assert zombie.verify(FOO, BAR).errors == {FOO: (47, None), BAR: (47, None)}
    producer.write()
    # The log knows the newer epoch, so nobody needs to ask.
    Operations(cluster).load_coordinator("transaction", "t")
    # Before 4.0 the log takes its open transaction for the zombie's, until the batch comes.
    known = {} if release == OLD else {FOO: (47, None)}
    assert zombie.verify(FOO).errors == known
    assert zombie.verify(BAR).errors[BAR][0] == 19
    assert zombie.produce().error == 47


@pytest.mark.parametrize(("release", "asks"), [(OLD, False), (NEWEST, True)])
@pytest.mark.requirement("DP-TXN-40")
def test_an_open_transaction_of_an_older_epoch(release: Release, asks: bool) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    producer.epoch = 5
    found = producer.verify()
    assert (found.errors == {FOO: (47, None)}, bool(found.guards)) == (asks, False)
    # Before 4.0 the log took it for verified, and the batch by its sequence.
    assert producer.produce(sequence=0).error == (47 if asks else 0)


@pytest.mark.requirement("DP-TXN-43")
@pytest.mark.parametrize(("release", "text"), [((3, 6), message(49)), ((3, 7), None)])
def test_whether_an_error_of_the_coordinator_has_a_text(release: Release, text: str | None) -> None:
    """As Kafka 3.6.2 and 3.9.2 answer; by bytecode 3.7.2 is like 3.9.2."""
    producer = Producer(coordinator(release), version=0)
    producer.init()
    assert producer.verify(producer_id=99).errors == {FOO: (49, text)}


@BOTH
@pytest.mark.requirement("DP-TXN-44", "DP-TXN-45")
def test_a_coordinator_that_cannot_answer(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster)
    producer.init()
    text = "Unable to verify the partition has been added to the transaction. Underlying error: "
    Operations(cluster).load_coordinator("transaction", "t")
    for version in (9, 11, 12) if release == NEWEST else (9, 11):
        error = producer.verify(api_version=version).errors[FOO]
        assert error == (19, f"{text}COORDINATOR_LOAD_IN_PROGRESS")
    Operations(cluster).finish_loading("transaction", "t")
    tp = cluster.coordinators.partition_of(KIND, "t")
    leader = producer.at
    Operations(cluster).leave_isr(tp, 3 - leader)
    Operations(cluster).stop_broker(leader)
    leaders = {cluster.topics.partition(*each).leader for each in (FOO, BAR)}
    assert leaders == {3 - leader}
    for api_version in (9, 12) if release == NEWEST else (9,):
        error = producer.verify(api_version=api_version).errors[FOO]
        assert error == (19, f"{text}COORDINATOR_NOT_AVAILABLE")


@BOTH
@pytest.mark.requirement("DP-TXN-45", "DP-TXN-09")
def test_a_coordinator_that_ends_the_transaction_before(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    Operations(cluster).hold_markers()
    producer.end(keep=True)
    producer.epoch = producer.transaction.metadata.epoch
    text = "Unable to verify the partition has been added to the transaction. Underlying error: "
    assert producer.verify(BAR, api_version=9).errors == {
        BAR: (19, f"{text}CONCURRENT_TRANSACTIONS")
    }
    if release == NEWEST:
        found = producer.verify(BAR)
        assert (found.errors, found.is_concurrent) == ({BAR: (51, None)}, True)


@BOTH
@pytest.mark.requirement("DP-TXN-46")
def test_a_batch_that_comes_after_its_marker(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster)
    producer.init()
    if release == OLD:
        producer.add(FOO)
    outcome = producer.produce(between=lambda: Operations(cluster).abort_transaction("t"))
    assert (outcome.error, outcome.text) == (48, None)
    assert cluster.logs.log(FOO).end_offset == 1
    producer.write()
    # The transaction was open when it was asked about: no question, and none is known now.
    outcome = producer.produce(between=lambda: Operations(cluster).abort_transaction("t"))
    assert outcome.error == 48
    producer.write()
    assert producer.end() == 0


@pytest.mark.requirement("DP-TXN-46", "DP-TXN-43")
def test_a_question_that_was_refused_guards_nothing() -> None:
    producer = Producer(coordinator(OLD))
    producer.init()
    assert producer.verify().guards == {}
    outcome = producer.produce(between=lambda: producer.add(FOO))
    assert (outcome.error, outcome.text) == (48, "Partition was not added to the transaction")


@BOTH
@pytest.mark.requirement("DP-TXN-47")
def test_verification_can_be_switched_off(release: Release) -> None:
    off = {"transaction.partition.verification.enable": "false"}
    cluster = coordinator(release, broker_configs=off)
    producer = Producer(cluster, version=0)
    producer.init()
    assert producer.produce().error == 0
    assert producer.state == "Empty"
    if release == NEWEST:  # Produce 12 adds partitions all the same
        newer = Producer(cluster, "u")
        newer.init()
        assert newer.produce(tp=BAR).error == 0
        assert newer.state == "Ongoing"


# ---- markers -------------------------------------------------------------------------------------


def write(
    cluster: Cluster, *, broker_id: int = 1, tp: tuple[str, int] = FOO, producer_id: int = 1000,
    epoch: int = 0, coordinator_epoch: int = 0, version: int = 0,
) -> list[int]:  # fmt: skip
    codes: list[int] = []
    marker = MarkerToWrite(producer_id, epoch, coordinator_epoch, True, version)
    cluster.marker_writer.write(broker_id, tp, marker, codes.append)
    return codes


@BOTH
@pytest.mark.requirement("DP-MARK-01", "DP-MARK-03")
def test_which_markers_a_leader_takes(release: Release) -> None:
    cluster = coordinator(release)
    Producer(cluster).begun()
    assert write(cluster, tp=("foo", 9)) == [3]
    assert write(cluster, tp=("nothing", 0)) == [3]
    assert write(cluster, epoch=-1) == [-1]
    assert write(cluster, coordinator_epoch=4) == [0]
    assert write(cluster, coordinator_epoch=3) == [52]
    assert write(cluster, epoch=2, coordinator_epoch=4) == [0]
    assert write(cluster, epoch=1, coordinator_epoch=3) == [47]
    assert write(cluster, producer_id=77, epoch=5) == [0]
    assert [each[1:] for each in markers(cluster)] == [(1000, 0, 4), (1000, 2, 4), (77, 5, 0)]


@pytest.mark.parametrize(("release", "code"), [((4, 1), 0), ((4, 2), 47), (NEWEST, 47)])
@pytest.mark.requirement("DP-MARK-01", "DP-TXN-52")
def test_a_marker_of_version_2_has_to_raise_the_epoch(release: Release, code: int) -> None:
    cluster = coordinator(release)
    Producer(cluster).begun()
    assert write(cluster, version=2) == [code]
    assert write(cluster, version=1) == [0]
    assert write(cluster, version=2) == [0]  # a repetition
    assert write(cluster, version=2, epoch=1) == [0]


@pytest.mark.parametrize(("release", "code"), [((4, 1), 0), ((4, 2), -1), (NEWEST, -1)])
@pytest.mark.requirement("DP-MARK-01")
def test_a_marker_has_a_known_version(release: Release, code: int) -> None:
    cluster = coordinator(release)
    Producer(cluster).begun()
    assert write(cluster, version=-2) == [0]
    assert write(cluster, version=-1) == [code]


@BOTH
@pytest.mark.requirement("DP-MARK-01")
def test_a_marker_needs_the_leader_and_its_replicas(release: Release) -> None:
    cluster = coordinator(release, 3, topics=["foo=1,2", "bar:1:3"])
    assert write(cluster, broker_id=3) == [3]
    assert write(cluster, broker_id=2) == [6]
    Operations(cluster).hold_replication(FOO)
    waiting = write(cluster)
    assert waiting == []
    Operations(cluster).release_replication(FOO)
    assert waiting == [0]
    cluster.config_changes.alter_incrementally([(2, "foo", [("min.insync.replicas", 0, "2")])])
    Operations(cluster).leave_isr(FOO, 2)
    assert write(cluster) == [19]
    assert len(markers(cluster)) == 1


@pytest.mark.parametrize(("release", "code"), [(OLD, 0), (NEWEST, 6)])
@pytest.mark.requirement("DP-MARK-01")
def test_a_group_coordinator_that_loads_takes_no_marker(release: Release, code: int) -> None:
    cluster = coordinator(release)
    Operations(cluster).load_coordinator("group", "g")
    tp = cluster.coordinators.partition_of(type(KIND).GROUP, "g")
    assert write(cluster, tp=tp) == [code]


@pytest.mark.requirement("DP-MARK-01")
def test_an_old_message_format_takes_no_marker() -> None:
    for release, code in (((2, 8), 43), (OLD, 0)):
        cluster = coordinator(release)
        if release < (3, 0):
            config = ("message.format.version", 0, "0.10.2")
            cluster.config_changes.alter_incrementally([(2, "foo", [config])])
        assert write(cluster) == [code]
        with pytest.raises(ClusterError):
            Operations(cluster).write_marker("foo-0", 1, "commit")


@BOTH
@pytest.mark.requirement("DP-MARK-01", "DP-TXN-10")
def test_a_partition_of_an_old_format_is_left_out(release: Release) -> None:
    cluster = coordinator((2, 8) if release == OLD else release)
    producer = Producer(cluster, version=0)
    producer.init()
    assert producer.add(FOO, BAR) == 0
    if release == OLD:
        config = ("message.format.version", 0, "0.10.2")
        cluster.config_changes.alter_incrementally([(2, "foo", [config])])
    assert producer.end() == 0
    assert producer.state == "CompleteCommit"
    assert len(markers(cluster)) == (0 if release == OLD else 1)
    assert len(markers(cluster, BAR)) == 1
