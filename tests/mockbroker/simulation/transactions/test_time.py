"""Transactions that time out and transactional ids that nobody uses."""

import pytest

from mockbroker.errors import ClusterError
from mockbroker.simulation.features.feature_updates import FeatureUpdate
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.transactions.transacting import (
    KIND,
    NEWEST,
    OLD,
    TIMEOUT_MS,
    Producer,
    coordinator,
    log_records,
    markers,
)

Release = tuple[int, int]
BOTH = pytest.mark.parametrize("release", [OLD, NEWEST])
CHECK_MS = 10_000
DAY_MS = 24 * 3_600_000
HOUR_MS = 3_600_000


@BOTH
@pytest.mark.requirement("DP-TXN-18", "DP-TXN-51")
def test_a_transaction_times_out_at_the_next_check(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster)
    producer.init()
    cluster.turns.advance(1)
    producer.write()
    cluster.turns.advance(TIMEOUT_MS + CHECK_MS - 2)
    assert producer.state == "Ongoing"
    cluster.turns.advance(1)
    assert producer.state == "CompleteAbort"
    assert markers(cluster) == [("ABORT", 1000, 1, 0)]
    metadata = producer.transaction.metadata
    assert (metadata.version, metadata.last_epoch) == ((2, 0) if release == NEWEST else (0, -1))
    assert producer.add() == 90
    # With version 2 the fence looks like the end that the producer asks for.
    assert producer.end() == (48 if release == NEWEST else 90)
    assert producer.produce().error == 47
    assert producer.init().epoch == 2
    producer.write()
    assert producer.end() == 0


@pytest.mark.requirement("DP-INIT-09")
@pytest.mark.parametrize(
    ("release", "timeout_ms", "state"),
    [
        ((4, 0), 2**31 - 1, "CompleteAbort"),
        ((4, 1), 2**31 - 2, "CompleteAbort"),
        ((4, 1), 2**31 - 1, "Ongoing"),
    ],
)
def test_the_longest_time_out_is_none(release: Release, timeout_ms: int, state: str) -> None:
    cluster = coordinator(release, broker_configs={"transaction.max.timeout.ms": str(2**31 - 1)})
    producer = Producer(cluster)
    producer.init(timeout_ms=timeout_ms)
    producer.write()
    cluster.turns.advance(2**31 + CHECK_MS)
    assert producer.state == state


@pytest.mark.requirement("DP-TXN-18")
def test_what_is_in_time_or_ends_is_left_alone() -> None:
    cluster = coordinator()
    producer = Producer(cluster)
    producer.init()
    producer.write()
    cluster.turns.advance(TIMEOUT_MS)  # a check, at which the time-out is not over yet
    assert producer.state == "Ongoing"
    Operations(cluster).hold_markers()
    assert producer.end() == 0
    cluster.turns.advance(10 * TIMEOUT_MS)
    assert producer.state == "PrepareCommit"
    Operations(cluster).release_markers()
    cluster.turns.advance(10 * TIMEOUT_MS)
    assert producer.state == "CompleteCommit"


@pytest.mark.requirement("DP-TXN-18")
def test_only_the_transaction_that_is_overdue_is_aborted() -> None:
    cluster = coordinator()
    short, long = Producer(cluster), Producer(cluster, "u")
    short.init()
    long.init(timeout_ms=10 * TIMEOUT_MS)
    for each in (short, long):
        each.write()
    cluster.turns.advance(TIMEOUT_MS + CHECK_MS)
    assert (short.state, long.state) == ("CompleteAbort", "Ongoing")
    cluster.turns.advance(9 * TIMEOUT_MS)
    assert long.state == "CompleteAbort"


@pytest.mark.requirement("DP-TXN-18", "DP-TXN-05")
def test_a_fence_without_transaction_version_2() -> None:
    """The feature's level decides, which a release that has version 2 may keep at 1."""
    cluster = coordinator(NEWEST)
    cluster.features.update([FeatureUpdate("transaction.version", 1, upgrade_type=2)])
    producer = Producer(cluster).begun()
    cluster.turns.advance(TIMEOUT_MS + CHECK_MS)
    metadata = producer.transaction.metadata
    assert (metadata.version, metadata.epoch, metadata.last_epoch) == (0, 1, -1)
    assert producer.end() == 90


@pytest.mark.requirement("DP-TXN-18")
def test_a_coordinator_that_loads_checks_nothing() -> None:
    cluster = coordinator()
    producer = Producer(cluster).begun()
    Operations(cluster).load_coordinator("transaction", "t")
    cluster.turns.advance(5 * TIMEOUT_MS)
    assert producer.state == "Ongoing"
    Operations(cluster).finish_loading("transaction", "t")
    cluster.turns.advance(CHECK_MS)
    assert producer.state == "CompleteAbort"


@BOTH
@pytest.mark.requirement("DP-TXN-19")
def test_an_unused_id_is_forgotten(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster)
    producer.init()
    cluster.turns.advance(7 * DAY_MS - 1)
    assert producer.state == "Empty"
    cluster.turns.advance(HOUR_MS)
    assert producer.state == "none"
    assert log_records(cluster)[-1].value is None
    assert producer.add() == 49
    assert producer.again().producer_id == 1001
    producer.write()
    producer.end()
    cluster.turns.advance(8 * DAY_MS)
    assert producer.state == "none"


@pytest.mark.requirement("DP-TXN-19")
def test_an_id_that_was_used_in_between_stays() -> None:
    cluster = coordinator()
    unused, used = Producer(cluster), Producer(cluster, "u")
    for each in (unused, used):
        each.init()
    cluster.turns.advance(4 * DAY_MS)
    used.write()
    assert used.end() == 0
    cluster.turns.advance(3 * DAY_MS + HOUR_MS)
    assert (unused.state, used.state) == ("none", "CompleteCommit")


@pytest.mark.requirement("DP-TXN-19")
def test_an_open_transaction_keeps_its_id() -> None:
    cluster = coordinator(broker_configs={"transactional.id.expiration.ms": str(HOUR_MS)})
    producer = Producer(cluster)
    producer.init(timeout_ms=900_000)
    producer.write()
    Operations(cluster).hold_markers()
    assert producer.end() == 0
    cluster.turns.advance(3 * HOUR_MS)
    assert producer.state == "PrepareCommit"
    Operations(cluster).release_markers()
    cluster.turns.advance(3 * HOUR_MS)
    assert producer.state == "none"


@pytest.mark.requirement("DP-TXN-19")
def test_an_id_stays_while_its_end_cannot_be_written() -> None:
    cluster = coordinator(brokers=2)
    producer = Producer(cluster)
    producer.init()
    tp = cluster.coordinators.partition_of(KIND, "t")
    cluster.config_changes.alter_incrementally([(2, tp[0], [("min.insync.replicas", 0, "2")])])
    Operations(cluster).leave_isr(tp, 3 - producer.at)
    cluster.turns.advance(8 * DAY_MS)
    assert producer.state == "Empty"
    Operations(cluster).join_isr(tp, 3 - producer.at)
    cluster.turns.advance(HOUR_MS)
    assert producer.state == "none"


# ---- steps of a tester ---------------------------------------------------------------------------


@BOTH
@pytest.mark.requirement("DP-CTL-30", "DP-TXN-51")
def test_a_tester_lets_a_transaction_expire(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    Operations(cluster).expire_transaction("t")
    assert producer.state == "CompleteAbort"
    assert producer.add() == 90
    assert producer.init().code == 0
    with pytest.raises(ClusterError, match="is Empty: it has no open transaction"):
        Operations(cluster).expire_transaction("t")


@BOTH
@pytest.mark.requirement("DP-CTL-31")
def test_a_tester_aborts_a_transaction_without_a_fence(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    Operations(cluster).abort_transaction("t")
    assert markers(cluster) == [("ABORT", 1000, 0, 0)]
    assert producer.transaction.metadata.epoch == 0
    producer.write()
    assert producer.end() == 0
    with pytest.raises(ClusterError, match="no open transaction"):
        Operations(cluster).abort_transaction("t")


@BOTH
@pytest.mark.parametrize("open_transaction", [True, False])
@pytest.mark.requirement("DP-CTL-32")
def test_a_tester_fences_a_producer(release: Release, open_transaction: bool) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster)
    producer.init()
    if open_transaction:
        producer.write()
    Operations(cluster).fence_producer("t")
    assert producer.state == "Empty"
    assert (producer.add(), producer.end()) == (90, 90)
    assert len(markers(cluster)) == open_transaction
    assert producer.init().code == 0


@pytest.mark.requirement("DP-CTL-32", "DP-CTL-33")
def test_steps_that_cannot_be() -> None:
    cluster = coordinator()
    producer = Producer(cluster).begun()
    with pytest.raises(ClusterError, match="no markers are held"):
        Operations(cluster).release_markers()
    with pytest.raises(ClusterError, match="of 't' are not held"):
        Operations(cluster).release_markers("t")
    Operations(cluster).hold_markers("t")
    with pytest.raises(ClusterError, match="of 't' are held already"):
        Operations(cluster).hold_markers("t")
    Operations(cluster).fence_producer("t")
    assert (producer.state, producer.end()) == ("PrepareAbort", 51)
    for step in (
        Operations(cluster).fence_producer,
        Operations(cluster).expire_transaction,
        Operations(cluster).abort_transaction,
    ):
        with pytest.raises(ClusterError, match="PrepareAbort and becomes CompleteAbort"):
            step("t")
    with pytest.raises(ClusterError, match="no transactional id 'u'; known: t"):
        Operations(cluster).fence_producer("u")
    Operations(cluster).hold_markers()
    with pytest.raises(ClusterError, match="of all transactions are held already"):
        Operations(cluster).hold_markers()
    Operations(cluster).release_markers()
    assert producer.state == "CompleteAbort"


@pytest.mark.requirement("DP-CTL-32", "DP-TXN-04")
def test_a_stranger_may_use_up_the_epochs() -> None:
    cluster = coordinator()
    producer = Producer(cluster)
    producer.init()
    Operations(cluster).set_producer_epoch("t", 32766)
    Operations(cluster).fence_producer("t")
    metadata = producer.transaction.metadata
    assert (metadata.producer_id, metadata.epoch) == (1001, 0)


@pytest.mark.requirement("DP-CTL-34", "DP-TXN-41")
def test_a_tester_ends_a_hanging_transaction() -> None:
    cluster = coordinator()
    record = '{"records": [{"value": "v"}], "producer_id": 7, "producer_epoch": 3, '
    Operations(cluster).append("foo-0", record + '"base_sequence": 0, "transactional": true}')
    log = cluster.logs.log(("foo", 0))
    assert log.last_stable_offset == 0
    with pytest.raises(ClusterError, match="has no producer 8"):
        Operations(cluster).write_marker("foo-0", 8, "abort")
    with pytest.raises(ClusterError, match="commit or abort, not 'end'"):
        Operations(cluster).write_marker("foo-0", 7, "end")
    Operations(cluster).write_marker("foo-0", 7, "abort")
    assert markers(cluster) == [("ABORT", 7, 3, 0)]
    assert log.last_stable_offset == 2
