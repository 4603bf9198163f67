"""Records that are in flight in a share group: acquired, acknowledged, released, archived."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.records import Record, build_batch
from mockbroker.errors import ClusterError
from mockbroker.simulation.groups.share.deliveries import BatchCheck, DeliveryRules
from mockbroker.simulation.groups.share.share_fetches import duration_ms
from mockbroker.simulation.log.batches.batch_header import read_header
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import NEWEST
from mockbroker.simulation.releases.rows import apply_first, rules_of_release
from tests.mockbroker.simulation.fetching.fetching import append
from tests.mockbroker.simulation.groups.sharers import Sharers

OK = (ErrorCode.NONE, None)
INVALID = ErrorCode.INVALID_RECORD_STATE


def sharers(count: int = 10, release: tuple[int, int] = (4, 4), **configs: object) -> Sharers:
    """Members a and b share foo-0, with a batch of so many records."""
    at = Sharers(release, ("foo:1:1",), **configs)
    at.settle("a", "b")
    at.append(count)
    return at


# ---- acquiring -----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-05", "DP-SHARE-09")
def test_a_record_goes_to_one_member() -> None:
    at = sharers()
    assert at.fetch("a") == [(0, 9, 1)]
    assert at.fetch("b") == []
    at.append(5)
    assert at.fetch("b") == [(10, 14, 1)]
    assert at.states() == [(0, 9, "Acquired", 1), (10, 14, "Acquired", 1)]


@pytest.mark.requirement("DP-SHARE-38")
@pytest.mark.parametrize(
    ("share", "whole"), [(0.1, 1), (1.0, 1), (1.1, 1), (1.9, 1), (2.5, 2), (3.0, 3)]
)
def test_a_batch_that_a_limit_cuts_is_not_acquired(share: float, whole: int) -> None:
    at = Sharers(topics=("foo:1:1",), cut_last_batch=True)
    at.settle("a")
    for _ in range(3):
        at.append(2)
    size = at.cluster.logs.log(("foo", 0)).storage.size // 3
    answer = at.answer("a", max_bytes=int(share * size))
    assert (answer.acquired[0].first, answer.acquired[-1].last) == (0, 2 * whole - 1)
    assert len(answer.records) >= whole * size


@pytest.mark.requirement("DP-SHARE-04")
@pytest.mark.parametrize(
    ("strategy", "first"), [("latest", 3), ("earliest", 0), ("by_duration:PT1H", 0)]
)
def test_where_a_group_begins(strategy: str, first: int) -> None:
    at = Sharers(topics=("foo:1:1",), group=(("share.auto.offset.reset", strategy),))
    at.settle("a")
    at.append(3)
    at.fetch("a")
    assert at.share().start_offset == first
    at.append(2)
    assert at.fetch("a") == [(3, 4, 1)]


@pytest.mark.requirement("DP-SHARE-04")
def test_a_time_without_records_is_not_available() -> None:
    at = Sharers(topics=("foo:1:1",), group=(("share.auto.offset.reset", "by_duration:PT1S"),))
    at.settle("a")
    at.append(3)
    at.advance(100_000)
    at.settle("a")
    assert at.answer("a").error_code == ErrorCode.OFFSET_NOT_AVAILABLE
    assert at.ack("a", (0, 0, [1]))[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    at.append(1)
    assert at.answer("a").error_code == ErrorCode.OFFSET_NOT_AVAILABLE, "an older record"
    data = build_batch([Record(timestamp=at.cluster.timers.now_ms, value=b"new")])
    at.cluster.logs.append(("foo", 0), data, read_header(data))
    assert at.fetch("a") == [(4, 4, 1)]


@pytest.mark.parametrize(
    ("text", "expected"), [("PT1S", 1000), ("P1DT2H3M4.5S", 93_784_500), ("pt1h", 3_600_000)]
)
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


def test_a_text_that_is_not_a_duration() -> None:
    with pytest.raises(ClusterError, match="is not a duration such as PT1H"):
        duration_ms("1h")


@pytest.mark.requirement("DP-SHARE-09")
def test_ranges_are_cut_at_batches() -> None:
    at = sharers(4)
    for _ in range(3):
        at.append(4)
    assert at.fetch("a", max_records=6) == [(0, 7, 1)], "whole batches"
    assert at.fetch("a", batch_size=3) == [(8, 11, 1), (12, 15, 1)]


@pytest.mark.requirement("DP-SHARE-09")
def test_a_record_limit_is_kept() -> None:
    at = sharers()
    assert at.fetch("a", max_records=3, strict=True) == [(0, 2, 1)]
    assert at.fetch("b", max_records=3, strict=True) == [(3, 5, 1)]
    assert at.fetch("b", max_records=30, strict=True) == [(6, 9, 1)]
    assert at.fetch("b", max_records=0) == []


@pytest.mark.requirement("DP-SHARE-07")
def test_records_in_flight_are_limited() -> None:
    at = sharers(100, group_share_partition_max_record_locks=100)
    at.append(50)
    assert at.fetch("a") == [(0, 99, 1)]
    assert at.fetch("a") == []
    assert not at.share().can_acquire
    at.ack("a", (50, 59, [2]))
    assert at.fetch("b") == [(50, 59, 2)], "what is in flight already"
    at.ack("a", (0, 49, [1]))
    assert at.share().start_offset == 50
    assert at.fetch("b") == [(100, 149, 1)]


@pytest.mark.requirement("DP-SHARE-09")
def test_records_hold_the_acquired_batches_alone() -> None:
    at = sharers(4)
    at.append(4)
    at.append(4)
    answer = at.answer("a", max_records=4)
    assert [tuple(each) for each in answer.acquired] == [(0, 3, 1)]
    whole = at.answer("b")
    assert [tuple(each) for each in whole.acquired] == [(4, 11, 1)]
    assert len(whole.records) == 2 * len(answer.records)


# ---- acknowledging -------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-05", "DP-SHARE-07")
def test_the_start_moves_over_what_is_done() -> None:
    at = sharers()
    at.fetch("a")
    assert at.ack("a", (0, 3, [1, 3, 0, 1])) == OK
    assert at.share().start_offset == 4
    assert at.states()[:4] == [
        (0, 0, "Acknowledged", 1),
        (1, 1, "Archived", 1),
        (2, 2, "Archived", 1),
        (3, 3, "Acknowledged", 1),
    ]
    assert at.ack("a", (6, 9, [1])) == OK
    assert (at.share().start_offset, at.share().complete) == (4, 4)
    assert at.ack("a", (4, 5, [1])) == OK
    assert (at.share().start_offset, at.states()) == (10, [])
    assert at.ack("a", (0, 3, [1])) == OK, "before the start nothing is checked"


@pytest.mark.requirement("DP-SHARE-05", "DP-SHARE-06")
def test_released_records_are_delivered_again() -> None:
    at = sharers()
    at.fetch("a")
    assert at.ack("a", (2, 3, [2]), (5, 5, [2])) == OK
    assert at.fetch("b") == [(2, 3, 2), (5, 5, 2)]
    assert at.ack("a", (0, 1, [1])) == OK
    assert at.share().start_offset == 2


@pytest.mark.requirement("DP-SHARE-05")
def test_a_whole_batch_is_released() -> None:
    at = sharers()
    at.fetch("a")
    assert at.ack("a", (0, 9, [2])) == OK
    assert at.states() == [(0, 9, "Available", 1)]
    assert at.fetch("b") == [(0, 9, 2)]


@pytest.mark.requirement("DP-SHARE-06")
def test_a_record_that_was_delivered_too_often_is_archived() -> None:
    at = sharers(1, group_share_delivery_count_limit=2)
    for count in (1, 2):
        assert at.fetch("a") == [(0, 0, count)]
        assert at.ack("a", (0, 0, [2])) == OK
    assert (at.fetch("a"), at.share().start_offset) == ([], 1)


@pytest.mark.requirement("DP-SHARE-06")
def test_the_limit_is_the_groups_since_4_3() -> None:
    at = sharers(1)
    at.configure("share.delivery.count.limit", "2")
    for _ in range(2):
        at.fetch("a")
        at.ack("a", (0, 0, [2]))
    assert at.share().start_offset == 1


@pytest.mark.requirement("DP-SHARE-30")
def test_what_a_member_has_not_acquired() -> None:
    at = sharers()
    cache = "Batch record not found. The request batch offsets are not found in the cache."
    assert at.ack("a", (0, 1, [1]))[0] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "not fetched"
    assert len(at.start("a").sources) == 1
    assert at.ack("a", (0, 1, [1])) == (INVALID, cache)
    at.fetch("a")
    assert at.ack("b", (0, 9, [1])) == (INVALID, "Member is not the owner of batch record")
    past = "offset in request is past acquired records."
    bad = ErrorCode.INVALID_REQUEST
    assert at.ack("a", (0, 10, [1])) == (bad, f"Batch record not found. The last {past}")
    assert at.ack("a", (10, 10, [1])) == (bad, f"Batch record not found. The first {past}")
    assert at.ack("a", (5, 5, [2])) == OK
    at.fetch("b")
    assert at.ack("a", (5, 5, [1])) == (INVALID, "Member is not the owner of offset")
    assert at.ack("b", (5, 5, [1])) == OK
    text = "The offset cannot be acknowledged. The offset is not acquired."
    assert at.ack("b", (5, 5, [1])) == (INVALID, text)
    at.append(2)
    at.fetch("b")
    at.ack("b", (10, 11, [2]))
    text = "The batch cannot be acknowledged. The batch is not in the acquired state."
    assert at.ack("b", (10, 11, [1])) == (INVALID, text)


@pytest.mark.requirement("DP-SHARE-30")
def test_all_of_a_request_counts_or_nothing() -> None:
    at = sharers()
    at.fetch("a")
    text = "The batch cannot be acknowledged. The batch is not in the acquired state."
    assert at.ack("a", (0, 9, [1]), (9, 9, [1])) == (INVALID, text)
    text = "The offset cannot be acknowledged. The offset is not acquired."
    assert at.ack("a", (0, 4, [1]), (4, 5, [1])) == (INVALID, text)
    assert {state for _, _, state, _ in at.states()} == {"Acquired"}
    assert at.ack("a", (0, 4, [1]), (5, 12, [1]))[0] is ErrorCode.INVALID_REQUEST
    assert at.share().start_offset == 0


def _check(first: int, last: int, types: list[int], **fields: Any) -> bool:
    given = {"previous_last": -1, "is_renewal": False, "version": 2, **fields}
    check = BatchCheck(first, last, tuple(types), **given)
    apply_first(rules_of_release(DeliveryRules, NEWEST).batch, check, check)
    return check.refused


@pytest.mark.requirement("DP-SHARE-08", "DP-SHARE-31")
def test_batches_that_make_no_sense() -> None:
    assert not _check(0, 1, [1])
    assert not _check(0, 1, [0, 3])
    assert not _check(5, 5, [1], previous_last=5)
    assert _check(1, 0, [1])
    assert _check(4, 5, [1], previous_last=5)
    assert _check(0, 1, [])
    assert _check(0, 1, [1, 1, 1])
    assert _check(0, 2, [1, 1])
    assert _check(0, 1, [-1])
    assert _check(0, 1, [5], is_renewal=True)
    assert _check(0, 1, [4])
    assert not _check(0, 1, [4], is_renewal=True)
    assert _check(0, 1, [4], version=1, is_renewal=True)
    assert not _check(0, 0, [3], version=1)


# ---- locks ---------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-06", "DP-SHARE-10", "DP-SHARE-32")
def test_a_lock_ends() -> None:
    at = sharers()
    at.fetch("a")
    at.ack("a", (0, 1, [1]))
    at.advance(29_999)
    assert at.fetch("b") == []
    at.advance(1)
    assert at.states()[2:3] == [(2, 2, "Available", 1)]
    assert at.fetch("b") == [(2, 9, 2)]
    text = "Member is not the owner of offset"
    assert at.ack("a", (2, 9, [1])) == (INVALID, text)


@pytest.mark.requirement("DP-SHARE-10")
def test_how_long_a_lock_holds() -> None:
    at = sharers()
    at.configure("share.record.lock.duration.ms", "15000")
    at.fetch("a")
    at.advance(15_000)
    assert at.fetch("b") == [(0, 9, 2)]


@pytest.mark.requirement("DP-SHARE-31")
def test_a_lock_is_renewed() -> None:
    at = sharers()
    at.fetch("a")
    at.advance(20_000)
    assert at.ack("a", (0, 4, [4])) == OK
    at.advance(10_000)
    assert at.fetch("b") == [(5, 9, 2)]
    at.advance(20_000)
    assert at.fetch("b") == [(0, 4, 2)]
    at.configure("share.renew.acknowledge.enable", "false")
    text = "Renewing acquisition locks is not enabled for the group."
    assert at.ack("b", (0, 4, [4])) == (INVALID, text)
    older = sharers(release=(4, 2))
    older.fetch("a")
    assert older.ack("a", (0, 9, [4])) == OK
    assert older.states() == [(0, 9, "Acquired", 1)]


@pytest.mark.requirement("DP-SHARE-32")
def test_records_before_the_start_are_archived_when_their_lock_ends() -> None:
    at = sharers()
    at.fetch("a")
    Operations(at.cluster).jump_log_start("foo-0", 4)
    at.append(1)
    at.share().log_starts_at(4)
    at.advance(30_000)
    assert [state for _, _, state, _ in at.states()][:5] == ["Archived"] * 4 + ["Available"]


@pytest.mark.requirement("DP-SHARE-07")
def test_records_that_the_log_lost_are_not_waited_for() -> None:
    at = sharers()
    at.fetch("a")
    at.ack("a", (0, 9, [2]))
    at.append(2)
    Operations(at.cluster).jump_log_start("foo-0", 10)
    assert at.fetch("a") == []
    assert at.share().start_offset == 10
    assert at.fetch("a") == [(10, 11, 1)]


# ---- redelivery ----------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-33")
def test_records_come_alone_before_they_are_given_up() -> None:
    at = sharers(8)
    for count in (1, 2, 3):
        assert at.fetch("a") == [(0, 7, count)]
        at.ack("a", (0, 7, [2]))
    assert at.fetch("a") == [(0, 3, 4)], "half of the batch"
    at.ack("a", (0, 3, [2]))
    assert at.fetch("a") == [(0, 0, 5)], "one record alone"
    at.ack("a", (0, 0, [2]))
    assert at.share().start_offset == 1
    assert at.fetch("a") == [(1, 1, 5)]


@pytest.mark.requirement("DP-SHARE-33")
def test_releases_before_4_2_deliver_whole_batches_to_the_end() -> None:
    at = sharers(8, (4, 1))
    for count in range(1, 6):
        assert at.fetch("a") == [(0, 7, count)]
        at.ack("a", (0, 7, [2]))
    assert at.share().start_offset == 8


# ---- steps of a tester ---------------------------------------------------------------------------


@pytest.mark.requirement("DP-CTL-36")
def test_a_tester_ends_locks() -> None:
    at = sharers()
    at.fetch("a")
    assert Operations(at.cluster).expire_locks("g", "foo-0") == 10
    assert Operations(at.cluster).expire_locks("g") == 0
    assert at.fetch("b") == [(0, 9, 2)]
    with pytest.raises(ClusterError, match="shares no foo-9"):
        Operations(at.cluster).expire_locks("g", "foo-9")
    with pytest.raises(ClusterError, match="shares no partition"):
        Operations(at.cluster).expire_locks("other")


@pytest.mark.requirement("DP-CTL-36")
def test_a_tester_sets_the_delivery_count() -> None:
    at = sharers()
    at.fetch("a")
    Operations(at.cluster).set_delivery_count("g", "foo-0", 3, 5)
    at.ack("a", (0, 9, [2]))
    assert at.states()[3] == (3, 3, "Archived", 5)
    with pytest.raises(ClusterError, match="offset 10 of foo-0 is not in flight"):
        Operations(at.cluster).set_delivery_count("g", "foo-0", 10, 5)


# ---- other leaders -------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-13")
def test_another_leader_forgets_who_has_acquired_records() -> None:
    at = Sharers(topics=("foo:1:2",), brokers=2)
    at.settle("a")
    at.append(4)
    at.fetch("a")
    at.ack("a", (0, 0, [1]))
    Operations(at.cluster).stop_broker(1)
    assert [each[2:] for each in at.states()] == [("Acknowledged", 1)], "what is stored"
    assert at.answer("a").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert at.fetch("a", broker_id=2) == [(1, 3, 1)]


@pytest.mark.requirement("DP-SHARE-43")
def test_a_broker_without_a_session_of_the_group_loads_its_state_anew() -> None:
    """As Kafka 4.4.0: batches that were acquired one by one are one by then."""
    at = Sharers()
    at.settle("a")

    def begin() -> None:
        at.fetches.open(
            1, "g", "a", 0, 7, acknowledges=False, added=[at.key()], forgotten=[]
        )  # on connection 7

    begin()
    at.append(2)
    assert at.fetch("a") == [(0, 1, 1)]
    at.append(2)
    assert at.fetch("a") == [(2, 3, 1)]
    at.fetches.end_session(1, "g", "a")
    assert at.fetch("a") == [(0, 1, 2), (2, 3, 2)], "the end of a session alone unloads nothing"
    begin()
    at.fetches.connection_closed(1, 7, "g")
    assert at.fetch("a") == [(0, 3, 3)]


@pytest.mark.requirement("DP-SHARE-36")
def test_another_leader_reads_offsets_that_were_altered() -> None:
    at = Sharers(topics=("foo:1:2",), brokers=2)
    at.settle("a")
    at.append(4)
    assert at.fetch("a") == [(0, 3, 1)]
    at.fetches.initialize("g", frozenset({at.key()}), 9, 2)
    assert at.fetch("b") == [], "the leader has another state"
    Operations(at.cluster).stop_broker(1)
    assert at.fetch("b", broker_id=2) == [(2, 3, 1)]


@pytest.mark.requirement("DP-SHARE-09")
def test_a_negative_size_fails_every_partition() -> None:
    """As Kafka 4.4.0, whether or not there are records."""
    at = Sharers()
    at.settle("a")
    assert at.answer("a", max_bytes=-1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    at.append(1)
    assert at.answer("a", max_bytes=-1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert at.fetch("a") == [(0, 0, 1)]


# ---- waiting -------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-12")
def test_a_fetch_waits_for_records() -> None:
    at = sharers()
    at.fetch("a")
    calls: list[str] = []
    started = at.start("b", max_wait_ms=1000)
    assert started.wait is not None
    at.fetches.begin_wait(started.wait, lambda: calls.append("b"))
    assert (calls, at.fetches.waiting()) == ([], (started.wait,))
    assert started.wait.partitions == (("foo", 0),)
    at.ack("a", (0, 0, [1]))
    assert calls == []
    at.ack("a", (1, 1, [2]))
    assert calls == ["b"]
    at.fetches.end_wait(started.wait)
    assert at.fetches.waiting() == ()
    assert [tuple(each) for each in started.answer()[0].acquired] == [(1, 1, 2)]


@pytest.mark.requirement("DP-SHARE-12")
def test_a_fetch_waits_for_bytes() -> None:
    at = sharers()
    assert at.start("a", max_wait_ms=1000).wait is None
    wait = at.start("a", max_wait_ms=1000, min_bytes=500).wait
    assert wait is not None
    calls: list[str] = []
    at.fetches.begin_wait(wait, lambda: calls.append("a"))
    at.append(100)
    assert calls == ["a"]
    wait.finish()
    assert calls == ["a"], "once"
    at.fetches.end_wait(wait)


# ---- transactions --------------------------------------------------------------------------------


@pytest.mark.requirement("DP-SHARE-14")
def test_aborted_records_are_not_seen_by_read_committed_groups() -> None:
    for level, expected in (("read_uncommitted", [(0, 6, 1)]), ("read_committed", [(3, 6, 1)])):
        at = Sharers(topics=("foo:1:1",))
        at.configure("share.isolation.level", level)
        at.settle("a")
        append(
            at.cluster, b"1", b"2", b"3",
            producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True,
        )  # fmt: skip
        if level == "read_committed":
            assert at.fetch("a") == [], "the transaction is open"
        Operations(at.cluster).write_marker("foo-0", 7, "abort")
        at.append(3)
        assert at.fetch("a") == expected
        if level == "read_committed":
            assert at.states()[0][2] == "Archived"


@pytest.mark.requirement("DP-SHARE-32", "DP-SHARE-10")
def test_the_end_of_a_lock_concerns_what_its_member_has_acquired() -> None:
    at = sharers()
    at.fetch("a", max_records=4, strict=True)
    at.fetch("b", max_records=4, strict=True)
    at.ack("a", (1, 1, [1]))
    assert at.share().release("a") == 3
    assert [state for _, _, state, _ in at.states()] == [
        "Available", "Acknowledged", "Available", "Available",
        "Acquired", "Acquired", "Acquired", "Acquired",
        "Available", "Available",
    ]  # fmt: skip
    assert Operations(at.cluster).expire_locks("g") == 4
    assert at.states()[1][2] == "Acknowledged"


@pytest.mark.requirement("DP-SHARE-06")
def test_a_lock_that_ends_at_the_limit_archives_the_record() -> None:
    at = sharers(1, group_share_delivery_count_limit=2)
    for count in (1, 2):
        assert at.fetch("a") == [(0, 0, count)]
        at.advance(30_000)
    assert (at.fetch("a"), at.share().start_offset) == ([], 1)
