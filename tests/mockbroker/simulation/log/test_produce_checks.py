"""What is refused before it is appended: each row, the release that has it, and the order."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.records import Compression, Record, TimestampType, build_batch
from mockbroker.simulation.log.producing.appender import AppendOutcome
from mockbroker.simulation.log.producing.produce_rules import RequestFacts
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.log.producing import (
    FOO,
    NOW_MS,
    batch,
    changed,
    new_cluster,
    produce,
    stored,
)

GOOD = batch(b"a", b"b")
WITH_ID = batch(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=0)
ZSTD = changed(GOOD, attributes=Compression.ZSTD)
NO_CODEC = changed(GOOD, attributes=5)
BAD_CRC = GOOD[:-1] + b"\xff"
TOO_SHORT = GOOD[:8] + (40).to_bytes(4, "big") + GOOD[12:52]
OLD = batch(b"a", magic=1)
NEW, FORMER = (4, 4), (2, 3)


def codes(outcome: AppendOutcome) -> tuple[int, int, int, int]:
    return (
        outcome.error,
        outcome.base_offset,
        outcome.log_append_time_ms,
        outcome.log_start_offset,
    )


def refusal(release: tuple[int, int], request: RequestFacts) -> int | str:
    """What a whole request is answered: an error, 0, or "closed"."""
    found = new_cluster(release).appender.refusal(request)
    if found is None:
        return 0
    return "closed" if found.disconnects else found.error


PARTITIONS: list[Any] = [
    pytest.param({"topic": None}, GOOD, 100, -1, id="no-id", marks=[
        pytest.mark.requirement("DP-PRODUCE-04")]),
    pytest.param({"may_write": False}, GOOD, 29, -1, id="not-allowed", marks=[
        pytest.mark.requirement("DP-PRODUCE-05")]),
    pytest.param({"is_known": False}, GOOD, 3, -1, id="unknown", marks=[
        pytest.mark.requirement("DP-PRODUCE-06")]),
    pytest.param({}, b"", 87, -1, id="empty", marks=[
        pytest.mark.requirement("DP-PRODUCE-07")]),
    pytest.param({}, None, 87, -1, id="null", marks=[
        pytest.mark.requirement("DP-PRODUCE-07")]),
    pytest.param({}, OLD, 87, -1, id="old", marks=[
        pytest.mark.requirement("DP-PRODUCE-07")]),
    pytest.param({}, GOOD + GOOD, 87, -1, id="two", marks=[
        pytest.mark.requirement("DP-PRODUCE-07")]),
    pytest.param({"version": 6}, ZSTD, 76, -1, id="zstd-early", marks=[
        pytest.mark.requirement("DP-PRODUCE-09")]),
    pytest.param({}, NO_CODEC, -1, 0, id="no-codec", marks=[
        pytest.mark.requirement("DP-PRODUCE-09")]),
    pytest.param({"acks": 2}, GOOD, 21, -1, id="acks", marks=[
        pytest.mark.requirement("DP-PRODUCE-10")]),
    pytest.param({"broker_id": 2}, GOOD, 6, -1, id="follower", marks=[
        pytest.mark.requirement("DP-PRODUCE-14", "DP-PRODUCE-42")]),
    pytest.param({}, changed(GOOD, base_offset=1), 87, 0, id="base-offset", marks=[
        pytest.mark.requirement("DP-PRODUCE-16")]),
    pytest.param({}, BAD_CRC, 2, -1, id="crc", marks=[
        pytest.mark.requirement("DP-PRODUCE-18")]),
    pytest.param({}, TOO_SHORT, 2, -1, id="short", marks=[
        pytest.mark.requirement("DP-PRODUCE-18")]),
    pytest.param({}, GOOD[:8] + bytes(4) + GOOD[12:], 2, -1, id="no-size", marks=[
        pytest.mark.requirement("DP-PRODUCE-18")]),
    pytest.param({}, GOOD[:16] + b"\x03" + GOOD[17:], 2, -1, id="magic", marks=[
        pytest.mark.requirement("DP-PRODUCE-18")]),
    pytest.param({}, changed(GOOD, last_offset_delta=-1), 87, 0, id="delta", marks=[
        pytest.mark.requirement("DP-PRODUCE-20")]),
    pytest.param({}, changed(GOOD, record_count=0), 87, 0, id="count", marks=[
        pytest.mark.requirement("DP-PRODUCE-20")]),
    pytest.param({}, changed(GOOD, record_count=3), 87, 0, id="other-count", marks=[
        pytest.mark.requirement("DP-PRODUCE-20")]),
    pytest.param({}, changed(GOOD, attributes=0x20), 87, 0, id="control", marks=[
        pytest.mark.requirement("DP-PRODUCE-21")]),
    pytest.param({}, changed(WITH_ID, base_sequence=-1), 87, 0, id="sequence", marks=[
        pytest.mark.requirement("DP-PRODUCE-22")]),
    pytest.param({"unverified": {FOO: (ErrorCode.INVALID_TXN_STATE, "why")}},
                 changed(WITH_ID, attributes=0x10), 48, -1, id="transaction", marks=[
        pytest.mark.requirement("DP-PRODUCE-12")]),
]  # fmt: skip


@pytest.mark.requirement("DP-PRODUCE-45")
@pytest.mark.parametrize(("release", "code"), [((2, 7), 0), ((2, 8), -1)])
def test_null_records_of_old_versions(release: tuple[int, ...], code: int) -> None:
    assert produce(new_cluster(release), None, version=2).error == code
    assert produce(new_cluster(release), b"", version=2).error == 0


@pytest.mark.requirement("DP-PRODUCE-18")
@pytest.mark.parametrize(("release", "code"), [((0, 10, 2), 2), ((0, 11), 0)])
def test_batches_of_a_later_magic(release: tuple[int, ...], code: int) -> None:
    assert produce(new_cluster(release), GOOD, version=2).error == code


@pytest.mark.requirement("DP-PRODUCE-10", "DP-PRODUCE-12")
@pytest.mark.parametrize(("release", "code"), [((3, 6), 21), ((3, 7), 21), ((3, 8), 48)])
def test_whether_acks_or_the_transaction_count_first(release: tuple[int, int], code: int) -> None:
    """As Kafka 3.6.2 and 3.9.2 answer; by bytecode 3.7.2 is like 3.6.2, and 3.8.1 like 3.9.2."""
    unverified = {FOO: (ErrorCode.INVALID_TXN_STATE, "why")}
    data = changed(WITH_ID, attributes=0x10)
    assert produce(new_cluster(release), data, acks=7, unverified=unverified).error == code


@pytest.mark.requirement("DP-PRODUCE-10")
@pytest.mark.parametrize(("release", "code"), [((1, 1), 21), ((2, 0), 3)])
def test_acks_in_a_partition_that_a_topic_lacks(release: tuple[int, int], code: int) -> None:
    cluster = new_cluster(release)
    unknown = {"acks": 2, "version": 3, "is_known": False}
    assert produce(cluster, GOOD, **unknown, knows_topic=True).error == code
    assert produce(cluster, GOOD, **unknown).error == 3


@pytest.mark.parametrize(("facts", "data", "code", "start"), PARTITIONS)
@pytest.mark.requirement("DP-PRODUCE-36")
def test_nothing_of_it_is_appended(facts, data, code, start):
    cluster = new_cluster()
    assert codes(produce(cluster, data, **facts)) == (code, -1, -1, start)
    assert cluster.logs.log(FOO).end_offset == 0


@pytest.mark.parametrize(
    ("data", "since"),
    [
        pytest.param(changed(GOOD, base_offset=1), (0, 11), marks=[
            pytest.mark.requirement("DP-PRODUCE-16")]),
        pytest.param(changed(GOOD, last_offset_delta=4), (1, 1), marks=[
            pytest.mark.requirement("DP-PRODUCE-20")]),
        pytest.param(changed(GOOD, record_count=0), (0, 11), marks=[
            pytest.mark.requirement("DP-PRODUCE-20")]),
        pytest.param(changed(GOOD, attributes=0x20), (0, 11), marks=[
            pytest.mark.requirement("DP-PRODUCE-21")]),
        pytest.param(changed(WITH_ID, base_sequence=-1), (0, 11), marks=[
            pytest.mark.requirement("DP-PRODUCE-22")]),
    ],
)  # fmt: skip
def test_until_2_3_an_invalid_batch_is_a_corrupt_one(data: bytes, since: tuple[int, int]) -> None:
    for release, code, start in ((since, 2, -1), (FORMER, 2, -1), ((2, 4), 87, 0)):
        cluster = new_cluster(release)
        assert codes(produce(cluster, data)) == (code, -1, -1, start), release
    if since > (0, 11):
        assert produce(new_cluster((1, 0)), data).error == 0


PACKED = batch(b"a", b"b", compression=Compression.ZSTD)


@pytest.mark.requirement("DP-PRODUCE-09", "DP-PRODUCE-28")
@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("release", "data", "code"),
    [
        ((2, 3), PACKED, 0),
        ((2, 8), PACKED, 0),
        ((3, 9), PACKED, 0),
        ((3, 9), PACKED + PACKED, 87),
        ((2, 3), GOOD + GOOD, 0),
        ((2, 4), GOOD + GOOD, 87),
        ((3, 9), GOOD + GOOD, 87),
        ((3, 9), OLD + OLD, 0),
    ],
)
def test_newer_batches_in_older_requests(version, release, data, code):
    assert produce(new_cluster(release), data, version=version).error == code


@pytest.mark.requirement("DP-PRODUCE-20")
@pytest.mark.parametrize(
    ("release", "code"), [((0, 11), 2), ((1, 0), 2), ((1, 1), 2), ((2, 4), 87)]
)
def test_a_batch_of_no_records_is_refused(release: tuple[int, int], code: int) -> None:
    """Nothing but its count is wrong."""
    empty = changed(GOOD[:61], record_count=0, length=49)
    assert produce(new_cluster(release), empty).error == code


@pytest.mark.requirement("DP-PRODUCE-07")
@pytest.mark.parametrize("version", [3, 13])
def test_a_batch_that_is_cut_off_at_the_end_is_ignored(version: int) -> None:
    cluster = new_cluster()
    assert produce(cluster, GOOD + GOOD[:50], version=version).error == 0
    assert stored(cluster.logs.log(FOO))[16:] == GOOD[16:]
    assert produce(cluster, GOOD[:50], version=version).error == 87


@pytest.mark.requirement("DP-PRODUCE-13")
def test_only_the_admin_client_writes_to_internal_topics() -> None:
    cluster = new_cluster()
    cluster.topics.add("__consumer_offsets=1,2,3")
    refused = produce(cluster, GOOD, topic="__consumer_offsets", client_id="me")
    assert codes(refused) == (17, -1, -1, -1)
    allowed = produce(cluster, GOOD, topic="__consumer_offsets", client_id="__admin_client")
    assert allowed.error == 0


@pytest.mark.requirement("DP-PRODUCE-15")
def test_too_few_replicas_are_in_sync() -> None:
    cluster = new_cluster(configs={"min.insync.replicas": "3"})
    Operations(cluster).stop_broker(3)
    assert codes(produce(cluster, GOOD, acks=-1)) == (19, -1, -1, 0)
    assert cluster.logs.log(FOO).end_offset == 0
    assert produce(cluster, GOOD, acks=1).error == 0, "only acks -1 needs them"


@pytest.mark.requirement("DP-PRODUCE-17")
def test_a_batch_counts_with_its_header() -> None:
    size = len(GOOD)
    for limit, code in ((size, 0), (size - 1, 10)):
        cluster = new_cluster(configs={"max.message.bytes": str(limit)})
        outcome = produce(cluster, GOOD)
        assert (outcome.error, outcome.log_start_offset) == (code, -1 if code else 0)


@pytest.mark.requirement("DP-PRODUCE-30")
def test_a_batch_fits_into_a_segment() -> None:
    cluster = new_cluster(configs={"segment.bytes": "1048576", "max.message.bytes": "2000000"})
    assert codes(produce(cluster, batch(bytes(1 << 20)))) == (18, -1, -1, -1)
    assert produce(cluster, batch(bytes(1 << 19))).error == 0


@pytest.mark.requirement("DP-PRODUCE-29")
def test_a_batch_counts_again_after_it_is_rewritten() -> None:
    configs = {"compression.type": "uncompressed", "max.message.bytes": "1000"}
    small = batch(bytes(2000), compression=Compression.GZIP)
    assert len(small) < 1000
    assert codes(produce(new_cluster(configs=configs), small)) == (10, -1, -1, -1)
    kept = new_cluster(configs={"max.message.bytes": "1000"})
    assert produce(kept, small).error == 0


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        pytest.param({}, 53, marks=[pytest.mark.requirement("DP-PRODUCE-02")]),
        pytest.param({"transactional_id": "t", "may_write_id": False}, 53, marks=[
            pytest.mark.requirement("DP-PRODUCE-02")]),
        pytest.param({"transactional_id": "t"}, 0),
    ],
)  # fmt: skip
def test_transactional_batches_need_an_id_that_the_caller_may_write(facts, code):
    request = RequestFacts(1, 9, is_transactional=True, is_idempotent=True, **facts)
    assert refusal(NEW, request) == code


@pytest.mark.requirement("DP-PRODUCE-02")
@pytest.mark.parametrize(
    ("release", "alone", "authorized"),
    [((0, 11), 0, 0), ((1, 1), 0, 0), ((2, 0), 0, -1), ((2, 1), 53, 53)],
)
def test_older_brokers_look_for_no_transactional_id(release, alone, authorized):
    request = RequestFacts(1, 5, is_transactional=True, is_idempotent=True)
    assert refusal(release, request) == alone
    request.has_authorizer = True
    assert refusal(release, request) == authorized
    request.transactional_id = "t"
    assert refusal(release, request) == 0
    request.may_write_id = False
    assert refusal(release, request) == 53


@pytest.mark.requirement("DP-PRODUCE-03")
def test_until_2_7_produce_needs_idempotent_write() -> None:
    request = RequestFacts(1, 9, is_idempotent=True, may_be_idempotent=False)
    found = {release: refusal(release, request) for release in ((0, 11), (2, 7), (2, 8), NEW)}
    assert found == {(0, 11): 31, (2, 7): 31, (2, 8): 0, NEW: 0}
    request.is_transactional = request.may_write_id = True
    request.transactional_id = "t"
    assert refusal((2, 7), request) == 0


@pytest.mark.requirement("DP-PRODUCE-18")
@pytest.mark.parametrize("rest", [b"\0", b"\xff"])
def test_bytes_behind_a_batch_are_wrong_once_they_contain_a_size(rest: bytes) -> None:
    cluster = new_cluster(NEW)
    found = {length: produce(cluster, GOOD + rest * length).error for length in (1, 11, 12, 16, 17)}
    assert found == {1: 0, 11: 0, 12: 2, 16: 2, 17: 2}
    cut = (100).to_bytes(12, "big")
    assert [produce(cluster, GOOD + cut + rest * length).error for length in (0, 4)] == [0, 0]


@pytest.mark.requirement("DP-PRODUCE-08")
@pytest.mark.parametrize("data", [None, b"", OLD, GOOD + GOOD, GOOD[:50], GOOD + bytes(12)])
def test_until_2_7_requests_without_batches_close_the_connection(data: bytes | None) -> None:
    """Up to 2.0 that all data is one batch of magic 2 is part of reading it."""
    request = RequestFacts(1, 7, data=[GOOD, data])
    begins = data in (OLD, GOOD + GOOD, GOOD + bytes(12))
    later = 0 if begins else "closed"
    releases = ((0, 11), (2, 0), (2, 1), (2, 7), (2, 8))
    found = [refusal(release, request) for release in releases]
    assert found == ["closed", "closed", later, later, 0]
    assert refusal((2, 0), RequestFacts(1, 7, data=[GOOD, GOOD])) == 0
    older = RequestFacts(1, 2, data=[data])
    assert [refusal(release, older) for release in ((2, 0), (2, 1))] == [0, later]


@pytest.mark.requirement("DP-VER-01")
def test_since_4_0_the_oldest_versions_are_listed_only() -> None:
    for version in range(4):
        request = RequestFacts(1, version, data=[GOOD])
        assert refusal((4, 0), request) == ("closed" if version < 3 else 0)
        assert refusal((3, 9), request) == 0


@pytest.mark.requirement("DP-PRODUCE-11")
def test_since_3_6_a_request_has_one_transactional_producer() -> None:
    request = RequestFacts(1, 9, transactional_id="t", producers=frozenset({(7, 0), (8, 0)}))
    assert refusal((3, 6), request) == 49
    assert refusal((3, 5), request) == 0


@pytest.mark.requirement("DP-PRODUCE-12", "DP-LOG-05")
def test_until_3_5_a_transaction_is_not_verified_and_holds_the_stable_offset() -> None:
    cluster = new_cluster((3, 5))
    produce(cluster, GOOD)
    assert produce(cluster, changed(WITH_ID, attributes=0x10)).base_offset == 2
    log = cluster.logs.log(FOO)
    assert (log.last_stable_offset, log.high_watermark) == (2, 4)


@pytest.mark.requirement("DP-PRODUCE-19")
def test_magics_of_a_set_are_equal_since_2_4() -> None:
    both = batch(b"a", magic=0) + batch(b"b", magic=1)
    assert produce(new_cluster((2, 4)), both, version=2).error == 87
    assert produce(new_cluster((2, 3)), both, version=2).error == 0


@pytest.mark.requirement("DP-PRODUCE-23")
def test_idempotent_batches_need_magic_2() -> None:
    cluster = new_cluster((2, 8), {"message.format.version": "0.10.2"})
    assert codes(produce(cluster, WITH_ID)) == (43, -1, -1, 0)
    assert produce(cluster, GOOD).error == 0
    ignored = new_cluster((3, 0), {"message.format.version": "0.10.2"})
    assert produce(ignored, WITH_ID).error == 0


# ---- records -------------------------------------------------------------------------------------

KEYS = build_batch(
    [Record(timestamp=NOW_MS, key=key, value=b"v") for key in (None, b"k", None, None, None)]
)
KEYLESS = "Compacted topic cannot accept message without key in topic partition foo-0"


@pytest.mark.requirement("DP-PRODUCE-24", "DP-PRODUCE-39", "DP-PRODUCE-38")
def test_a_compacted_topic_needs_keys() -> None:
    configs = {"cleanup.policy": "compact"}
    outcome = produce(new_cluster(configs=configs), KEYS)
    assert codes(outcome) == (87, -1, -1, 0)
    assert [each.batch_index for each in outcome.record_errors] == [0, 2, 3, 4]
    assert {each.text for each in outcome.record_errors} == {KEYLESS}
    shown = ", ".join(f"RecordError(batchIndex={i}, message='{KEYLESS}')" for i in (0, 2, 3))
    assert outcome.text == (
        "One or more records have been rejected due to 4 record errors in total, and only "
        f"showing the first three errors at most: [{shown}]"
    )
    first = produce(new_cluster((2, 4), configs), KEYS)
    assert (first.error, first.text) == (87, KEYLESS)
    assert [(each.batch_index, each.text) for each in first.record_errors] == [(0, None)]
    former = produce(new_cluster(FORMER, configs), KEYS)
    assert codes(former) == (2, -1, -1, -1)
    assert (former.text, former.record_errors) == (None, ())


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("release", "configs", "timestamps", "failed"),
    [
        (NEW, {}, (NOW_MS + HOUR, 0, -1), []),
        (NEW, {}, (NOW_MS + HOUR + 1, 0, -1), [0]),
        (NEW, {"message.timestamp.before.max.ms": "10"}, (NOW_MS, NOW_MS - 10, -1), []),
        (NEW, {"message.timestamp.before.max.ms": "10"}, (NOW_MS, NOW_MS - 11, -1), [1]),
        (NEW, {"message.timestamp.before.max.ms": "10"}, (NOW_MS - 11,), [0]),
        (NEW, {"message.timestamp.before.max.ms": "10"}, (NOW_MS - 10,), []),
        ((3, 6), {}, (NOW_MS + 2 * HOUR,), []),
        ((3, 5), {}, (NOW_MS + 2 * HOUR, 0), []),
        ((3, 5), {"message.timestamp.difference.max.ms": "10"}, (NOW_MS + 11, NOW_MS, 9), [0, 2]),
        ((3, 6), {"message.timestamp.difference.max.ms": "10"}, (NOW_MS + 11, NOW_MS, 9), [0, 2]),
    ],
)
@pytest.mark.requirement("DP-PRODUCE-25", "DP-PRODUCE-26")
def test_times_have_limits(release, configs, timestamps, failed):
    cluster = new_cluster(release, configs)
    data = build_batch([Record(timestamp=each, value=b"v") for each in timestamps])
    outcome = produce(cluster, data)
    assert outcome.error == (32 if failed else 0)
    assert [each.batch_index for each in outcome.record_errors] == failed
    if failed:
        assert outcome.text == "One or more records have been rejected due to invalid timestamp"
        assert str(outcome.record_errors[0].text).startswith(
            f"Timestamp {timestamps[failed[0]]} of message with offset {failed[0]} is out of "
            "range. The timestamp should be within ["
        )


def appended(timestamp: int, **settings: Any) -> bytes:
    settings.update(timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=timestamp)
    return batch(b"abc", **settings)


@pytest.mark.parametrize(
    ("release", "time_type", "timestamp", "code"),
    [
        (NEW, "CreateTime", NOW_MS, 0),
        (NEW, "CreateTime", -1, 32),
        (NEW, "LogAppendTime", NOW_MS, 32),
        ((3, 6), "CreateTime", NOW_MS, 0),
        ((3, 5), "CreateTime", NOW_MS, 32),
        ((3, 5), "LogAppendTime", NOW_MS, 32),
    ],
)
@pytest.mark.requirement("DP-PRODUCE-27", "DP-LOG-02")
def test_a_producer_does_not_claim_to_be_the_broker(release, time_type, timestamp, code):
    cluster = new_cluster(release, {"message.timestamp.type": time_type})
    outcome = produce(cluster, appended(timestamp))
    assert outcome.error == code
    if code:
        (error,) = outcome.record_errors
        assert error.text == (
            f"Invalid timestamp type in message DefaultRecord(offset=0, timestamp={timestamp}, "
            "key=0 bytes, value=3 bytes). Producer should not set timestamp type to LogAppendTime."
        )
    else:
        assert stored(cluster.logs.log(FOO)) == changed(
            appended(timestamp), attributes=0, leader_epoch=0
        ), "the broker clears the bit"


@pytest.mark.requirement("DP-PRODUCE-27")
@pytest.mark.parametrize(
    ("sent", "kept", "kind"),
    [
        (Compression.GZIP, "producer", "PartialDefaultRecord"),
        (Compression.GZIP, "gzip", "PartialDefaultRecord"),
        (Compression.GZIP, "lz4", "DefaultRecord"),
        (Compression.NONE, "gzip", "DefaultRecord"),
    ],
)
def test_texts_say_whether_kafka_reads_keys_and_values(sent, kept, kind):
    cluster = new_cluster(
        (3, 9), {"message.timestamp.type": "LogAppendTime", "compression.type": kept}
    )
    (error,) = produce(cluster, appended(5, compression=sent)).record_errors
    assert (error.text or "").startswith(f"Invalid timestamp type in message {kind}(offset=0, ")
