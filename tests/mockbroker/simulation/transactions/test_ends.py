"""Partitions of transactions and their ends, without and with transaction version 2 (KIP-890)."""

from functools import partial

import pytest

from mockbroker.simulation.features.feature_updates import FeatureUpdate
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.transactions.transactional_ids import LAST_EPOCH
from tests.mockbroker.simulation.transactions.transacting import (
    BAR,
    FOO,
    FOO_1,
    KIND,
    NEWEST,
    OLD,
    Producer,
    coordinator,
    markers,
)

Release = tuple[int, int]
BOTH = pytest.mark.parametrize("release", [OLD, NEWEST])
COMMITS = pytest.mark.parametrize("commit", [True, False])


# ---- partitions ----------------------------------------------------------------------------------


@BOTH
@pytest.mark.requirement("DP-TXN-07", "DP-TXN-08")
def test_partitions_join_a_transaction(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster)
    producer.init()
    cluster.turns.advance(5)
    assert producer.add(FOO, FOO) == 0
    metadata = producer.transaction.metadata
    began = (metadata.state, metadata.partitions, metadata.start_ms)
    assert began == ("Ongoing", (FOO,), cluster.timers.now_ms)
    cluster.turns.advance(5)
    assert producer.add(FOO) == 0
    assert producer.transaction.metadata is metadata
    assert producer.add(FOO, BAR, FOO_1) == 0
    joined = producer.transaction.metadata
    assert (joined.partitions, joined.start_ms) == ((FOO, BAR, FOO_1), metadata.start_ms)
    assert joined.update_ms == cluster.timers.now_ms
    assert producer.end() == 0
    cluster.turns.advance(5)
    assert producer.add(BAR) == 0
    again = producer.transaction.metadata
    assert (again.partitions, again.start_ms) == ((BAR,), cluster.timers.now_ms)


@BOTH
@pytest.mark.requirement("DP-ADD-03")
def test_partitions_are_verified_for_the_present_producer(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    producer.add(FOO)
    verify = partial(cluster.transactions.verify_partitions, producer.at, "t")
    present = producer.producer_id, producer.epoch
    assert verify(*present, [FOO]) == {FOO: 0}
    assert verify(present[0] + 1, present[1], [FOO]) == {FOO: 49}
    assert verify(present[0], present[1] + 1, [FOO]) == {FOO: 90}


@BOTH
@pytest.mark.requirement("DP-ADD-03", "DP-END-01", "DP-INIT-05")
def test_requests_of_others(release: Release) -> None:
    cluster = coordinator(release, 2)
    producer = Producer(cluster)
    other = Producer(cluster, "")
    for code, name in ((42, ""), (49, "unknown")):
        stranger = Producer(cluster, name)
        assert (stranger.add(), stranger.end()) == (code, code)
        assert stranger.verify(api_version=9).errors[FOO][0] == (code if code == 42 else 49)
    assert other.add(at=3 - other.at) == 42
    producer.init()
    assert producer.add(producer_id=7, epoch=7) == 49
    assert producer.end(producer_id=7, epoch=7) == 49
    for epoch in (-1, 1):
        assert (producer.add(epoch=epoch), producer.end(epoch=epoch)) == (90, 90)
    assert producer.add(at=3 - producer.at) == 16
    assert producer.end(at=3 - producer.at) == 16
    Operations(cluster).load_coordinator("transaction", "t")
    assert (producer.add(), producer.end()) == (14, 14)


@pytest.mark.requirement("DP-END-01", "DP-END-05")
@pytest.mark.parametrize(("release", "state"), [((2, 5), "PrepareCommit"), ((2, 6), "Ongoing")])
def test_ends_with_another_epoch(release: Release, state: str) -> None:
    producer = Producer(coordinator(release)).begun()
    producer.add(FOO)
    assert producer.end(epoch=producer.epoch - 1) == 90
    assert producer.state == "Ongoing"
    assert producer.end(epoch=producer.epoch + 1) == 90
    assert producer.state == state
    if state == "PrepareCommit":
        assert (producer.add(FOO), producer.end()) == (51, 51)
        assert producer.end(commit=False) == 48
        assert [each.code for each in producer.ask_init()] == [51]


@BOTH
@pytest.mark.requirement("DP-TXN-09", "DP-TXN-13", "DP-TXN-20", "DP-CTL-33")
def test_what_ends_can_neither_grow_nor_end_otherwise(release: Release) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    Operations(cluster).hold_markers()
    assert producer.end(keep=True) == 0
    assert producer.state == "PrepareCommit"
    assert (producer.add(BAR), producer.end(), producer.end(commit=False)) == (51, 51, 51)
    # Before version 2 it was looked at first whose request it is.
    others = (producer.add(producer_id=7), producer.add(epoch=7))
    assert others == ((51, 51) if release == NEWEST else (49, 90))
    ends = (producer.end(producer_id=7), producer.end(epoch=7))
    assert ends == ((51, 51) if release == NEWEST else (49, 90))
    Operations(cluster).release_markers()
    assert producer.state == "CompleteCommit"


@BOTH
@pytest.mark.requirement("DP-TXN-09", "DP-TXN-13", "DP-TXN-20")
def test_a_transaction_whose_end_is_being_written_can_neither_grow_nor_end(release):
    cluster = coordinator(release, 2)
    producer = Producer(cluster).begun()
    tp = cluster.coordinators.partition_of(KIND, "t")
    Operations(cluster).hold_replication(tp)
    waiting = producer.ask_end()
    assert (waiting, producer.state) == ([], "Ongoing")
    assert (producer.add(BAR), producer.add(FOO), producer.end(keep=True)) == (51, 51, 51)
    Operations(cluster).release_replication(tp)
    assert [each.code for each in waiting] == [0]
    assert producer.state == "CompleteCommit"


# ---- ends without transaction version 2 ----------------------------------------------------------


@COMMITS
@BOTH
@pytest.mark.requirement("DP-TXN-10", "DP-MARK-02")
def test_an_end_is_marked_in_every_partition(release: Release, commit: bool) -> None:
    cluster = coordinator(release)
    producer = Producer(cluster).begun()
    producer.write(b"a", b"b", tp=BAR)
    kind, state = ("COMMIT", "CompleteCommit") if commit else ("ABORT", "CompleteAbort")
    epoch = 1 if release == NEWEST else 0
    assert cluster.logs.log(BAR).last_stable_offset == 0
    assert producer.end(commit=commit) == 0
    assert (producer.state, producer.transaction.metadata.partitions) == (state, ())
    for tp, end in ((FOO, 2), (BAR, 3)):
        assert markers(cluster, tp) == [(kind, 1000, epoch, 0)]
        log = cluster.logs.log(tp)
        assert (log.last_stable_offset, log.end_offset) == (end, end)
        assert [each.producer_id for each in log.aborted] == ([] if commit else [1000])
    assert markers(cluster, FOO_1) == []


@COMMITS
@BOTH
@pytest.mark.requirement("DP-TXN-11", "DP-TXN-12", "DP-TXN-14")
def test_an_end_may_be_repeated(release: Release, commit: bool) -> None:
    producer = Producer(coordinator(release), version=0)
    producer.init()
    assert (producer.end(commit=commit), producer.end(commit=not commit)) == (48, 48)
    producer.write()
    for _ in range(3):
        assert producer.end(commit=commit) == 0
        assert producer.epoch == 0
    assert producer.end(commit=not commit) == 48
    assert len(markers(producer.cluster)) == 1


@pytest.mark.requirement("DP-IDEM-14", "DP-TXN-10")
def test_sequences_go_on_in_the_next_transaction_of_an_epoch() -> None:
    producer = Producer(coordinator(OLD)).begun()
    producer.end()
    producer.write()
    assert producer.produce(sequence=5).error == 45
    assert producer.sequences[FOO] == 2


# ---- ends with transaction version 2 -------------------------------------------------------------


@COMMITS
@pytest.mark.requirement("DP-TXN-15", "DP-TXN-16", "DP-IDEM-14")
def test_an_end_raises_the_epoch(commit: bool) -> None:
    producer = Producer(coordinator()).begun()
    assert producer.end(commit=commit, keep=True) == 0
    assert producer.transaction.metadata.epoch == 1
    for _ in range(2):  # the answer got lost
        (again,) = producer.ask_end(commit=commit)
        assert (again.code, again.producer_id, again.epoch) == (0, 1000, 1)
    assert producer.end(commit=not commit, keep=True) == 48
    assert producer.add() == 90
    assert producer.end(commit=commit, epoch=-1) == 90
    assert producer.end(commit=commit, epoch=2) == 90
    assert producer.end(commit=commit, producer_id=7) == 49
    assert producer.end(commit=commit) == 0
    assert producer.epoch == 1
    producer.write()  # sequences begin anew
    assert producer.end(commit=commit) == 0
    assert markers(producer.cluster)[1] == ("COMMIT" if commit else "ABORT", 1000, 2, 0)


@pytest.mark.requirement("DP-TXN-17", "DP-TXN-16")
def test_an_abort_of_nothing_raises_the_epoch() -> None:
    cluster = coordinator()
    producer = Producer(cluster)
    producer.init()
    assert producer.end(commit=True) == 48
    cluster.turns.advance(7)
    assert (producer.end(commit=False), producer.epoch) == (0, 1)
    assert (producer.state, producer.transaction.metadata.start_ms) == (
        "CompleteAbort", cluster.timers.now_ms,
    )  # fmt: skip
    assert (producer.end(commit=False), producer.epoch) == (0, 2)
    assert producer.end(commit=True) == 48
    assert producer.end(commit=False, epoch=0) == 90
    producer.write()
    assert (producer.end(), producer.epoch) == (0, 3)
    assert (producer.end(commit=False), producer.epoch) == (0, 4)
    assert producer.init().epoch == 5
    assert producer.end(commit=False, epoch=4) == 90  # Empty: nothing can be repeated


@pytest.mark.requirement("DP-TXN-15", "DP-TXN-16", "DP-TXN-04")
def test_an_end_may_use_up_the_epochs() -> None:
    cluster = coordinator()
    producer = Producer(cluster)
    producer.init()
    Operations(cluster).set_producer_epoch("t", LAST_EPOCH)
    producer.epoch = LAST_EPOCH
    producer.write()
    Operations(cluster).hold_markers("t")
    (answer,) = producer.ask_end()
    assert (answer.code, answer.producer_id, answer.epoch) == (0, 1001, 0)
    prepared = producer.transaction.metadata
    assert (prepared.producer_id, prepared.epoch, prepared.next_producer_id) == (
        1000, LAST_EPOCH + 1, 1001,
    )  # fmt: skip
    Operations(cluster).release_markers("t")
    assert markers(cluster) == [("COMMIT", 1000, LAST_EPOCH + 1, 0)]
    (again,) = producer.ask_end()
    assert (again.code, again.producer_id, again.epoch) == (0, 1001, 0)
    assert producer.ask_end(commit=False)[0].code == 48
    assert producer.ask_end(epoch=LAST_EPOCH - 1)[0].code == 49
    producer.producer_id, producer.epoch = 1001, 0
    producer.sequences.clear()
    producer.write()
    assert (producer.end(), producer.epoch) == (0, 1)


@pytest.mark.requirement("DP-END-02")
def test_an_end_is_answered_before_its_markers() -> None:
    cluster = coordinator(brokers=2)
    producer = Producer(cluster).begun()
    Operations(cluster).hold_replication(FOO)
    assert producer.end() == 0
    assert producer.state == "PrepareCommit"
    assert cluster.logs.log(FOO).last_stable_offset == 0
    Operations(cluster).release_replication(FOO)
    assert producer.state == "CompleteCommit"
    assert cluster.logs.log(FOO).last_stable_offset == 2


@pytest.mark.requirement("DP-TXN-15")
def test_the_version_is_that_of_the_client() -> None:
    """The feature's level decides what a coordinator does by itself."""
    cluster = coordinator(NEWEST)
    cluster.features.update([FeatureUpdate("transaction.version", 1, upgrade_type=2)])
    producer = Producer(cluster).begun()
    assert Producer(cluster).init().code == 51
    assert producer.transaction.metadata.epoch == 1
    new = Producer(cluster, version=2)
    assert new.init().epoch == 2
    new.write()
    assert (new.end(), new.epoch) == (0, 3)
