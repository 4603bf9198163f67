"""Idempotent producers: duplicates, sequences, epochs, and how long a log knows them."""

from typing import Any

import pytest

from kproto.records import end_transaction_marker
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.producing.producer_states import (
    ROWS,
    Guard,
    ProducerBatch,
    Producers,
    SequenceCheck,
)
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import apply_first, rows_of_release
from tests.mockbroker.simulation.log.producing import FOO, NOW_MS, batch, new_cluster, produce
from tests.mockbroker.simulation.log.records import append_batch

DAY = 86_400_000
LAST = 0x7FFFFFFF


def from_7(sequence: int, count: int = 1, *, epoch: int = 0, **settings: Any) -> bytes:
    """A batch of producer 7."""
    return batch(
        *[b"v"] * count, producer_id=7, producer_epoch=epoch, base_sequence=sequence, **settings
    )


def send(cluster: Cluster, sequence: int, count: int = 1, **settings: Any) -> tuple[int, int]:
    """The error and the base offset."""
    outcome = produce(cluster, from_7(sequence, count, **settings))
    return outcome.error, outcome.base_offset


def mark(cluster: Cluster, epoch: int, *, commit: bool = True) -> int:
    """Append the end of producer 7's transaction."""
    data = end_transaction_marker(
        commit=commit, producer_id=7, producer_epoch=epoch, coordinator_epoch=3, timestamp=NOW_MS
    )
    return append_batch(cluster, data)


@pytest.mark.requirement("DP-IDEM-01")
def test_one_of_the_last_five_batches_is_a_duplicate() -> None:
    cluster = new_cluster()
    for number in range(6):
        assert send(cluster, 2 * number, 2, timestamp=NOW_MS + number) == (0, 2 * number)
    for number in range(1, 6):
        outcome = produce(cluster, from_7(2 * number, 2, timestamp=5))
        assert (outcome.error, outcome.base_offset) == (0, 2 * number)
        assert outcome.log_append_time_ms == NOW_MS + number, "the time of the first one"
        assert outcome.end_offset == 2 * number + 2
    assert send(cluster, 0, 2) == (45, -1), "only five are remembered"
    assert send(cluster, 10, 1) == (45, -1), "both ends are compared"
    assert cluster.logs.log(FOO).end_offset == 12


@pytest.mark.requirement("DP-IDEM-02")
def test_0_11_remembers_one_batch() -> None:
    cluster = new_cluster((0, 11))
    assert [send(cluster, 0), send(cluster, 1)] == [(0, 0), (0, 1)]
    assert send(cluster, 1) == (0, 1)
    assert send(cluster, 0) == (45, -1)


@pytest.mark.requirement("DP-IDEM-03", "DP-IDEM-04")
def test_epochs_only_grow_and_begin_at_sequence_0() -> None:
    cluster = new_cluster()
    assert send(cluster, 0, epoch=4) == (0, 0)
    assert send(cluster, 1, epoch=3) == (47, -1)
    assert send(cluster, 1, epoch=5) == (45, -1)
    assert send(cluster, 0, epoch=5) == (0, 1)
    assert send(cluster, 0, epoch=4) == (47, -1)
    assert send(cluster, 1, epoch=5) == (0, 2)


@pytest.mark.parametrize(
    ("release", "code"), [((0, 11), 45), ((1, 0), 59), ((2, 4), 59), ((2, 5), 0), ((4, 4), 0)]
)
@pytest.mark.requirement("DP-IDEM-05", "DP-IDEM-06")
def test_an_unknown_producer_in_the_middle(release: tuple[int, int], code: int) -> None:
    cluster = new_cluster(release)
    assert send(cluster, 8)[0] == code
    assert send(new_cluster(release), 0) == (0, 0)


@pytest.mark.parametrize(("release", "code"), [((4, 0), 0), ((4, 1), 45), ((4, 4), 45)])
@pytest.mark.requirement("DP-IDEM-07")
def test_a_transaction_of_version_2_begins_at_sequence_0(release, code):
    rows = rows_of_release(ROWS, Release(release))
    for implicit, expected in ((True, code), (False, 0)):
        unknown = ProducerBatch(
            None, 0, 8, 8, is_transactional=True, guard=Guard(8, 0, implicit, NOW_MS)
        )
        check = SequenceCheck(unknown)
        apply_first(rows, unknown.form, check)
        assert check.code == expected


@pytest.mark.parametrize(("release", "code"), [((3, 5), 0), ((3, 6), 45), ((4, 4), 45)])
@pytest.mark.requirement("DP-IDEM-07")
def test_no_batch_overtakes_the_first_that_the_coordinator_was_asked_for(release, code):
    """Whatever the coordinator answered: found beside Kafka 4.4.0, 4.1.2 and 3.9.2."""

    def answer(sequence: int, epoch: int, *asked: tuple[int, int]) -> int:
        cluster = new_cluster(release)
        for each in asked:
            cluster.logs.ask_about_producer(FOO, 7, *each, implicit=False)
        return send(cluster, sequence, epoch=epoch)[0]

    assert answer(3, 0) == 0
    assert answer(3, 0, (4, 0), (2, 0), (3, 0)) == code, "the lowest sequence counts"
    assert answer(2, 0, (4, 0), (2, 0), (3, 0)) == 0
    assert answer(6, 1, (2, 0), (5, 1), (3, 0)) == code, "of the newest epoch"
    assert answer(5, 1, (2, 0), (5, 1), (3, 0)) == 0


@pytest.mark.requirement("DP-IDEM-07", "DP-IDEM-12")
def test_questions_to_the_coordinator_expire_like_producers() -> None:
    cluster = new_cluster()
    cluster.logs.ask_about_producer(FOO, 7, 2, 0, implicit=False)
    cluster.turns.advance(DAY // 2)
    assert send(cluster, 3)[0] == 45
    cluster.turns.advance(DAY)
    assert send(cluster, 3)[0] == 0


@pytest.mark.parametrize(
    ("release", "code"),
    [((1, 1), 45), ((2, 0, 0), 45), ((2, 0, 1), 59), ((2, 4), 59), ((2, 5), 45), ((4, 4), 45)],
)
@pytest.mark.requirement("DP-IDEM-08", "DP-IDEM-14")
def test_a_producer_known_by_a_marker_only(release: tuple[int, ...], code: int) -> None:
    cluster = new_cluster(release)
    mark(cluster, epoch=1)
    assert send(cluster, 8, epoch=1)[0] == code
    assert send(cluster, 0, epoch=1) == (0, 1)


@pytest.mark.requirement("DP-IDEM-09")
def test_sequences_have_no_gap() -> None:
    cluster = new_cluster()
    assert send(cluster, 0, 3) == (0, 0)
    assert send(cluster, 4) == (45, -1)
    assert send(cluster, 3) == (0, 3)


@pytest.mark.requirement("DP-IDEM-10")
def test_sequences_wrap() -> None:
    for first, count, following in ((LAST, 1, 0), (LAST - 1, 3, 1), (LAST - 1, 2, 0)):
        cluster = new_cluster()
        assert send(cluster, first, count) == (0, 0)
        assert send(cluster, first, count) == (0, 0), "a duplicate"
        assert send(cluster, following + 1) == (45, -1)
        assert send(cluster, following) == (0, count)


@pytest.mark.requirement("DP-IDEM-11", "DP-LOG-05")
def test_an_open_transaction_takes_transactional_batches_only() -> None:
    cluster = new_cluster((3, 5))
    log = cluster.logs.log(FOO)
    assert send(cluster, 0, is_transactional=True) == (0, 0)
    assert send(cluster, 1) == (48, -1)
    assert send(cluster, 1, is_transactional=True) == (0, 1)
    assert log.last_stable_offset == 0
    mark(cluster, epoch=0)
    assert log.last_stable_offset == 3
    assert send(cluster, 2) == (0, 3), "a marker of the same epoch keeps the sequences"


@pytest.mark.requirement("DP-LOG-10")
def test_aborted_transactions_are_kept() -> None:
    cluster = new_cluster((3, 5))
    log = cluster.logs.log(FOO)
    other = batch(b"o", producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True)
    send(cluster, 0, is_transactional=True)
    produce(cluster, other)
    mark(cluster, epoch=0, commit=False)
    assert log.aborted == [(7, 0, 2, 1)], "the other one is still open"
    mark(cluster, epoch=0, commit=False)
    send(cluster, 1, is_transactional=True)
    mark(cluster, epoch=0)
    send(cluster, 2, is_transactional=True)
    cluster.logs.forget_producer(FOO, 8)
    mark(cluster, epoch=0, commit=False)
    assert log.aborted == [(7, 0, 2, 1), (7, 6, 7, 8)]


@pytest.mark.requirement("DP-IDEM-14")
def test_a_marker_of_a_higher_epoch_starts_the_sequences_anew() -> None:
    cluster = new_cluster()
    assert send(cluster, 0) == (0, 0)
    mark(cluster, epoch=1)
    assert send(cluster, 1) == (47, -1)
    assert send(cluster, 0, epoch=1) == (0, 2)


@pytest.mark.requirement("DP-LOG-05")
def test_a_transaction_is_stable_once_its_end_is_replicated() -> None:
    cluster = new_cluster((3, 5))
    log = cluster.logs.log(FOO)
    assert send(cluster, 0, is_transactional=True) == (0, 0)
    cluster.logs.hold_replication(FOO, 3)
    mark(cluster, epoch=0)
    assert (log.last_stable_offset, log.high_watermark, log.end_offset) == (0, 1, 2)
    cluster.logs.release_replication(FOO, None)
    assert (log.last_stable_offset, log.high_watermark, log.end_offset) == (2, 2, 2)


@pytest.mark.parametrize(("release", "days"), [((4, 4), 1), ((3, 4), 1), ((3, 3), 7), ((2, 5), 7)])
@pytest.mark.requirement("DP-IDEM-12")
def test_a_producer_expires(release: tuple[int, int], days: int) -> None:
    cluster = new_cluster(release)
    assert send(cluster, 0) == (0, 0)
    cluster.turns.advance(days * DAY - 1)
    assert send(cluster, 2) == (45, -1), "known"
    cluster.turns.advance(600_000)
    assert send(cluster, 2) == (0, 1), "forgotten"


@pytest.mark.parametrize(
    ("release", "config"),
    [
        ((4, 4), "producer.id.expiration.ms"),
        ((3, 4), "producer.id.expiration.ms"),
        ((3, 3), "transactional.id.expiration.ms"),
    ],
)
@pytest.mark.requirement("DP-IDEM-12")
def test_brokers_say_when_a_producer_expires(release: tuple[int, int], config: str) -> None:
    check = {"producer.id.expiration.check.interval.ms": "500"} if release >= (3, 4) else {}
    cluster = new_cluster(release, static={config: "5000", **check})
    assert send(cluster, 0) == (0, 0)
    cluster.turns.advance(4999)
    assert send(cluster, 2) == (45, -1), "known"
    cluster.turns.advance(501 if check else 600_000)
    assert send(cluster, 2) == (0, 1), "forgotten"


@pytest.mark.requirement("DP-IDEM-12")
def test_a_running_broker_takes_another_time_of_producers() -> None:
    cluster = new_cluster(static={"producer.id.expiration.check.interval.ms": "500"})
    assert send(cluster, 0) == (0, 0)
    cluster.turns.advance(1000)
    assert send(cluster, 2) == (45, -1)
    cluster.config_changes.alter_incrementally([(4, "", [("producer.id.expiration.ms", 0, "100")])])
    cluster.turns.advance(500)
    assert send(cluster, 2) == (0, 1)


@pytest.mark.requirement("DP-IDEM-12")
def test_a_producer_with_an_open_transaction_does_not_expire() -> None:
    cluster = new_cluster((3, 5))
    assert send(cluster, 0, is_transactional=True) == (0, 0)
    cluster.turns.advance(9 * DAY)
    assert send(cluster, 2) == (45, -1)
    mark(cluster, epoch=0)
    cluster.turns.advance(600_000)
    assert not cluster.logs.log(FOO).producers
    assert cluster.timers.next_due_ms is None, "no more checks"


@pytest.mark.parametrize(("release", "code"), [((2, 3), 59), ((2, 4), 0), ((4, 4), 0)])
@pytest.mark.requirement("DP-IDEM-13")
def test_until_2_3_producers_go_with_their_batches(release: tuple[int, int], code: int) -> None:
    cluster = new_cluster(release)
    assert [send(cluster, 0), send(cluster, 1)] == [(0, 0), (0, 1)]
    cluster.logs.advance_start("delete_records", FOO, 1)
    assert send(cluster, 2) == (0, 2)
    cluster.logs.advance_start("delete_records", FOO, 3)
    assert send(cluster, 3)[0] == code


@pytest.mark.requirement("DP-IDEM-15")
def test_the_next_leader_knows_the_producer() -> None:
    cluster = new_cluster()
    assert [send(cluster, 0), send(cluster, 1)] == [(0, 0), (0, 1)]
    Operations(cluster).stop_broker(1)
    assert produce(cluster, from_7(1), broker_id=2).base_offset == 1, "a duplicate"
    assert produce(cluster, from_7(3), broker_id=2).error == 45
    assert produce(cluster, from_7(2), broker_id=2).base_offset == 2


@pytest.mark.requirement("DP-IDEM-15")
def test_what_is_cut_from_the_log_is_forgotten() -> None:
    cluster = new_cluster((3, 5))
    assert [send(cluster, 0), send(cluster, 1)] == [(0, 0), (0, 1)]
    other = batch(b"o", producer_id=8, producer_epoch=0, base_sequence=0)
    assert produce(cluster, other).base_offset == 2
    for follower in (2, 3):
        cluster.logs.hold_replication(FOO, follower)
    assert send(cluster, 2) == (0, 3)
    assert send(cluster, 3, is_transactional=True) == (0, 4)
    Operations(cluster).stop_broker(1)
    log = cluster.logs.log(FOO)
    assert log.end_offset == 3
    assert produce(cluster, from_7(2), broker_id=2).base_offset == 3, "not a duplicate"
    assert produce(cluster, from_7(1), broker_id=2).base_offset == 1
    assert produce(cluster, other, broker_id=2).base_offset == 2
    assert log.last_stable_offset == log.high_watermark, "nor is a transaction open any more"


@pytest.mark.requirement("DP-IDEM-15")
def test_a_marker_that_is_cut_opens_its_transaction_again() -> None:
    cluster = new_cluster((3, 5))
    assert send(cluster, 0, is_transactional=True) == (0, 0)
    for follower in (2, 3):
        cluster.logs.hold_replication(FOO, follower)
    mark(cluster, epoch=1)
    Operations(cluster).stop_broker(1)
    log = cluster.logs.log(FOO)
    assert (log.end_offset, log.last_stable_offset) == (1, 0)
    assert produce(cluster, from_7(0, is_transactional=True), broker_id=2).base_offset == 0


def test_a_tester_lets_a_log_forget_producers() -> None:
    cluster = new_cluster()
    assert send(cluster, 0) == (0, 0)
    other = batch(b"o", producer_id=8, producer_epoch=0, base_sequence=0)
    assert produce(cluster, other).base_offset == 1
    assert cluster.logs.forget_producer(FOO, 9) == 0
    assert cluster.logs.forget_producer(FOO, 7) == 1
    assert send(cluster, 5) == (0, 2)
    assert cluster.logs.forget_producer(FOO, None) == 2
    assert not cluster.logs.log(FOO).producers


def test_producers_are_listed_by_id() -> None:
    producers = Producers()
    assert not [*producers]
    assert producers.forget(None) == 0
