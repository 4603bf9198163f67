"""InitProducerId with a transactional id: ids and epochs, retries, rotation, fencing."""

import pytest

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.transactions.transactional_ids import LAST_EPOCH, ProducerResult
from tests.mockbroker.simulation.transactions.transacting import (
    BAR,
    FOO,
    KIND,
    NEWEST,
    OLD,
    TIMEOUT_MS,
    Producer,
    coordinator,
    markers,
)

Release = tuple[int, int]
BOTH = pytest.mark.parametrize("release", [OLD, NEWEST])


@BOTH
@pytest.mark.requirement("DP-TXN-01", "DP-TXN-02")
def test_a_producer_gets_an_id_and_then_the_next_epoch(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster)
    assert producer.state == "none"
    assert producer.init() == ProducerResult(0, 1000, 0)
    assert (producer.state, producer.transaction.metadata.start_ms) == ("Empty", -1)
    assert producer.init() == ProducerResult(0, 1000, 1)
    assert Producer(cluster, "u").init() == ProducerResult(0, 1001, 0)
    producer.write()
    assert producer.end() == 0
    epoch = producer.epoch
    assert producer.init(timeout_ms=5) == ProducerResult(0, 1000, epoch + 1)
    assert producer.transaction.metadata.timeout_ms == 5
    assert (producer.state, producer.transaction.metadata.partitions) == ("Empty", ())


@pytest.mark.requirement("DP-TXN-03")
def test_a_producer_that_goes_on_names_its_epoch() -> None:
    producer = Producer(coordinator())
    producer.init()
    assert producer.again() == ProducerResult(0, 1000, 1)
    # The answer got lost: the same again, as often as wanted.
    for _ in range(2):
        assert producer.init(producer_id=1000, epoch=0) == ProducerResult(0, 1000, 1)
    assert producer.again() == ProducerResult(0, 1000, 2)
    assert producer.init(producer_id=1000, epoch=0).code == 90
    # Another producer of the same id has no epoch before.
    Producer(producer.cluster).init()
    for epoch in (1, 2, 4):
        assert producer.init(producer_id=1000, epoch=epoch).code == 90


@pytest.mark.requirement("DP-TXN-03", "DP-INIT-07")
def test_a_producer_of_another_id_is_fenced() -> None:
    producer = Producer(coordinator())
    assert producer.init(producer_id=77, epoch=3) == ProducerResult(0, 1000, 0)  # nobody was there
    assert producer.init(producer_id=77, epoch=3).code == 90
    assert producer.init(producer_id=77, epoch=LAST_EPOCH).code == 90
    assert producer.init(producer_id=1000, epoch=0) == ProducerResult(0, 1000, 1)
    assert producer.init(producer_id=77, epoch=1).code == 90


@BOTH
@pytest.mark.requirement("DP-TXN-04", "DP-INIT-07", "DP-CTL-35")
def test_the_last_epoch_is_followed_by_another_id(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster)
    producer.init()
    Operations(cluster).set_producer_epoch("t", LAST_EPOCH - 1)
    producer.epoch = LAST_EPOCH - 1
    assert producer.again() == ProducerResult(0, 1000, LAST_EPOCH)
    assert producer.again() == ProducerResult(0, 1001, 0)
    # The answer got lost.
    assert producer.init(producer_id=1000, epoch=LAST_EPOCH) == ProducerResult(0, 1001, 0)
    assert producer.init(producer_id=1000, epoch=LAST_EPOCH - 1).code == 90
    Operations(cluster).set_producer_epoch("t", LAST_EPOCH)
    assert producer.init(producer_id=1001, epoch=LAST_EPOCH - 1).code == -1
    assert producer.init() == ProducerResult(0, 1002, 0)
    # A rotation without an epoch cannot be repeated.
    assert producer.init(producer_id=1001, epoch=LAST_EPOCH).code == 90


@pytest.mark.requirement("DP-CTL-35")
def test_epochs_that_cannot_be_set() -> None:
    cluster = coordinator()
    with pytest.raises(ClusterError, match="no transactional id 't'"):
        Operations(cluster).set_producer_epoch("t", 1)
    producer = Producer(cluster).begun()
    with pytest.raises(ClusterError, match="has an open transaction"):
        Operations(cluster).set_producer_epoch("t", 1)
    producer.end()
    for epoch in (-1, 32767):
        with pytest.raises(ClusterError, match="from 0 to 32766"):
            Operations(cluster).set_producer_epoch("t", epoch)


@pytest.mark.parametrize(("release", "epoch"), [(OLD, 2), (NEWEST, 2)])
@pytest.mark.requirement("DP-TXN-05", "DP-TXN-51")
def test_a_producer_that_comes_back_ends_its_transaction(release: Release, epoch: int) -> None:
    cluster = coordinator(release)
    old = Producer(cluster).begun()
    new = Producer(cluster)
    assert new.init().code == 51
    assert markers(cluster) == [("ABORT", 1000, 1, 0)]
    assert old.state == "CompleteAbort"
    assert new.init() == ProducerResult(0, 1000, epoch)
    assert old.end() == 90
    assert old.add(FOO) == 90
    assert old.init(producer_id=1000, epoch=0).code == 90
    assert old.init() == ProducerResult(0, 1000, epoch + 1)  # it is not lost for ever


@pytest.mark.requirement("DP-TXN-05")
def test_fencing_may_use_up_the_epochs() -> None:
    for release, wanted in ((OLD, 1001), (NEWEST, 1001)):
        cluster = coordinator(release)
        producer = Producer(cluster)
        producer.init()
        Operations(cluster).set_producer_epoch("t", LAST_EPOCH)
        producer.epoch = LAST_EPOCH
        producer.write()
        assert Producer(cluster).init().code == 51
        assert markers(cluster) == [("ABORT", 1000, LAST_EPOCH + 1, 0)]
        assert Producer(cluster).init().producer_id == wanted


@pytest.mark.requirement("DP-INIT-02", "DP-INIT-04", "DP-INIT-05", "DP-INIT-06")
def test_what_is_refused_before_the_id_is_looked_up() -> None:
    cluster = coordinator(brokers=2)
    producer = Producer(cluster)
    elsewhere = 3 - producer.at
    for timeout_ms, code in ((0, 50), (-1, 50), (900_001, 50), (900_000, 0), (1, 0)):
        assert producer.init(timeout_ms=timeout_ms).code == code
    assert producer.init(at=elsewhere).code == 16
    assert producer.init(at=elsewhere, timeout_ms=0).code == 50
    assert producer.init(at=elsewhere, enable_2pc=True, timeout_ms=0).code == 53
    assert producer.init(keep_prepared=True, timeout_ms=0).code == 35
    assert producer.init(transactional_id="", enable_2pc=True).code == 42
    Operations(cluster).load_coordinator("transaction", "t")
    assert producer.init().code == 14
    Operations(cluster).finish_loading("transaction", "t")
    assert producer.init().code == 0


@pytest.mark.requirement("DP-INIT-06")
def test_the_longest_time_out_is_a_config() -> None:
    cluster = coordinator(broker_configs={"transaction.max.timeout.ms": "10"})
    assert [Producer(cluster).init(timeout_ms=each).code for each in (10, 11)] == [0, 50]


@pytest.mark.requirement("DP-INIT-02", "DP-INIT-06", "DP-INIT-09")
def test_two_phase_commit_needs_a_config_and_no_time_out() -> None:
    name = "transaction.two.phase.commit.enable"
    for enabled, code in (("false", 53), ("true", 0)):
        producer = Producer(coordinator(broker_configs={name: enabled}))
        for timeout_ms in (-1, 0, 1, 2**31 - 1):
            assert producer.init(enable_2pc=True, timeout_ms=timeout_ms).code == code
            assert enabled == "false" or producer.transaction.metadata.timeout_ms == 2**31 - 1
        assert producer.init(timeout_ms=0).code == 50
        assert producer.init(timeout_ms=1).code == 0
        assert producer.transaction.metadata.timeout_ms == 1
        assert producer.init(enable_2pc=True, keep_prepared=True).code == (53 if code else 35)


@BOTH
@pytest.mark.requirement("DP-TXN-06", "DP-TXN-20")
def test_a_transaction_that_ends_has_no_time_for_another_producer(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    Operations(cluster).hold_markers("t")
    assert producer.end() == 0
    assert Producer(cluster).init().code == 51
    assert producer.init(producer_id=77, epoch=3).code == 51
    Operations(cluster).release_markers("t")
    assert Producer(cluster).init().code == 0


@BOTH
@pytest.mark.requirement("DP-TXN-20", "DP-COORD-08")
def test_changes_wait_for_the_replicas_of_the_log(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster)
    producer.init()
    tp = cluster.coordinators.partition_of(KIND, "t")
    Operations(cluster).hold_replication(tp)
    waiting = producer.ask_init()
    assert (waiting, producer.ask_init()) == ([], [ProducerResult(51)])
    assert producer.transaction.metadata.epoch == 0
    Operations(cluster).release_replication(tp)
    assert waiting == [ProducerResult(0, 1000, 1)]
    Operations(cluster).hold_replication(tp)
    waiting = producer.ask_init(timeout_ms=700)
    cluster.turns.advance(699)
    assert waiting == []
    cluster.turns.advance(1)
    assert waiting == [ProducerResult(15)]
    assert producer.ask_init() == []
    assert producer.transaction.metadata.timeout_ms == TIMEOUT_MS


@BOTH
@pytest.mark.requirement("DP-COORD-08", "DP-TXN-05")
def test_a_log_with_too_few_replicas_takes_no_changes(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster).begun()
    tp = cluster.coordinators.partition_of(KIND, "t")
    config = ("min.insync.replicas", 0, "2")
    cluster.config_changes.alter_incrementally([(2, tp[0], [config])])
    Operations(cluster).leave_isr(tp, 3 - producer.at)
    assert producer.add(BAR) == 15
    assert producer.end() == 15
    for _ in range(3):  # the fence is not written, so it raises the epoch once
        assert Producer(cluster).init().code == 15
    assert producer.state == "Ongoing"
    Operations(cluster).join_isr(tp, 3 - producer.at)
    assert Producer(cluster).init().code == 51
    assert markers(cluster) == [("ABORT", 1000, 1, 0)]


@pytest.mark.requirement("DP-INIT-05")
def test_the_number_of_transactional_ids_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "mockbroker.simulation.transactions.transaction_coordinators.MOST_TRANSACTIONS", 2
    )
    cluster = coordinator()
    assert [Producer(cluster, name).init().code for name in "abca"] == [0, 0, 15, 0]
