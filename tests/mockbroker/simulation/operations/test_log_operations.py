"""What a tester does to logs: replication, losses, segments, records without a producer."""

import json

import pytest

from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.record_documents import LoggedRecord, UnreadableBatch
from mockbroker.simulation.log.producing.partitioner import murmur2, partition_of_key
from mockbroker.simulation.log.seeding import read_records
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.actions import LogStartMoved, RecordsLost
from tests.mockbroker.simulated import simulated_cluster

TP = ("foo", 0)


def cluster(**options: object) -> Cluster:
    return simulated_cluster(3, topics=["foo=1,2,3"], **options)  # type: ignore[arg-type]


def batch(text: str) -> str:
    return json.dumps({"batch": text})


def watermark(of: Cluster) -> int:
    return of.logs.log(TP).high_watermark


def values(of: Cluster) -> list[bytes | None]:
    found = list(read_records(TP, of.logs.log(TP)))
    return [each.value for each in found if isinstance(each, LoggedRecord)]


@pytest.mark.requirement("DP-CTL-01")
def test_a_held_follower_keeps_the_high_watermark_and_its_place_in_the_isr() -> None:
    made = cluster()
    Operations(made).append("foo-0", "one")
    Operations(made).hold_replication("foo-0", 2)
    Operations(made).append("foo-0", "two")
    assert (made.logs.log(TP).end_offset, watermark(made)) == (2, 1)
    assert made.topics.partition(*TP).isr == (1, 2, 3)
    assert [made.logs.end_of(TP, broker) for broker in (1, 2, 3)] == [2, 1, 2]


@pytest.mark.requirement("DP-CTL-01", "DP-CTL-03")
def test_without_a_broker_every_follower_is_held_and_released() -> None:
    made = cluster()
    Operations(made).hold_replication(TP)
    Operations(made).append(TP, "one")
    assert [made.logs.end_of(TP, broker) for broker in (1, 2, 3)] == [1, 0, 0]
    Operations(made).release_replication(TP, 2)
    assert watermark(made) == 0
    Operations(made).release_replication(TP)
    assert watermark(made) == 1


@pytest.mark.requirement("DP-CTL-02")
def test_a_held_follower_copies_one_record_at_a_time() -> None:
    made = cluster()
    Operations(made).hold_replication("foo-0", 2)
    for value in ("one", "two", "three"):
        Operations(made).append("foo-0", value)
    for offset in (1, 2):
        Operations(made).replicate("foo-0", 2, offset)
        assert watermark(made) == offset
    Operations(made).replicate("foo-0", 2)
    Operations(made).append("foo-0", "four")
    assert watermark(made) == 3
    with pytest.raises(ClusterError, match="broker 3 copies foo-0 already"):
        Operations(made).replicate("foo-0", 3)


@pytest.mark.requirement("DP-CTL-04")
def test_the_high_watermark_lags_until_it_is_set_to_zero() -> None:
    made = cluster()
    for value in ("one", "two", "three"):
        Operations(made).append("foo-0", value)
    Operations(made).lag_high_watermark("foo-0", 2)
    assert watermark(made) == 3
    Operations(made).append("foo-0", '["four", "five", "six"]')
    assert watermark(made) == 4
    Operations(made).lag_high_watermark("foo-0", 0)
    assert watermark(made) == 6


@pytest.mark.requirement("DP-CTL-09")
def test_the_cluster_appends_records_of_every_form() -> None:
    made = cluster(now_ms=7)
    Operations(made).append("foo-0", "plain text, with spaces")
    Operations(made).append(
        "foo-0", '{"key": "k", "value": {"hex": "ff00"}, "headers": {"a": null}}'
    )
    Operations(made).append("foo-0", '[{"value": "x", "timestamp": 5}, "y"]')
    settings = {"codec": "gzip", "producer_id": 9, "producer_epoch": 1, "base_sequence": 3}
    Operations(made).append(
        "foo-0", json.dumps({"records": [{"value": None}], **settings, "transactional": True})
    )
    stored = bytes(made.logs.log(TP).storage.batch(0).data)
    Operations(made).append("foo-0", batch(stored.hex()))
    found = list(read_records(TP, made.logs.log(TP)))
    assert found == [
        LoggedRecord("foo", 0, 0, 7, None, b"plain text, with spaces"),
        LoggedRecord("foo", 0, 1, 7, b"k", b"\xff\x00", (("a", None),)),
        LoggedRecord("foo", 0, 2, 5, None, b"x"),
        LoggedRecord("foo", 0, 3, 7, None, b"y"),
        LoggedRecord("foo", 0, 4, 7, None, None),
        LoggedRecord("foo", 0, 5, 7, None, b"plain text, with spaces"),
    ]
    header = made.logs.log(TP).storage.batch(3).header
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 1, 3)
    assert header.attributes == 0x11


def test_a_header_of_many_zero_bytes_makes_a_small_batch() -> None:
    made = cluster()
    record = {"value": "x", "headers": [["zeroes", {"zeros": 1 << 20}]]}
    Operations(made).append("foo-0", json.dumps({"records": [record], "codec": "gzip"}))
    (found,) = read_records(TP, made.logs.log(TP))
    assert isinstance(found, LoggedRecord)
    assert found.headers == (("zeroes", bytes(1 << 20)),)
    assert len(made.logs.log(TP).storage.batch(0).data) < 4096


@pytest.mark.requirement("DP-CTL-09")
def test_bytes_are_appended_without_checks_and_are_shown_as_unreadable() -> None:
    made = cluster()
    Operations(made).append("foo-0", "good")
    data = bytearray(made.logs.log(TP).storage.batch(0).data)
    data[-2] ^= 1
    Operations(made).append("foo-0", batch(data.hex()))
    good, bad = read_records(TP, made.logs.log(TP))
    assert isinstance(good, LoggedRecord)
    assert isinstance(bad, UnreadableBatch)
    assert (bad.base_offset, bad.last_offset, bad.size) == (1, 1, len(data))
    assert "crc" in bad.problem.lower() or "checksum" in bad.problem.lower()


@pytest.mark.parametrize(
    ("records", "problem"),
    [
        ("{x}", "records that begin with '{' must be JSON"),
        ("[]", "a batch needs at least one record"),
        ("[7]", "a record must be an object or a string, not 7"),
        ('{"valeu": "x"}', "a record has no member 'valeu'"),
        ('{"value": 7}', '"value" must be text, null, '),
        ('{"key": {"hex": "0"}}', '"key" must be hex'),
        ('{"value": {"zeros": -1}}', 'the "zeros" of "value" must be a number up to'),
        ('{"headers": [["a"]]}', r"a header must be a \[name, value\] pair"),
        ('{"headers": "a"}', '"headers" must be'),
        ('{"timestamp": "now"}', '"timestamp" must be milliseconds'),
        ('{"records": "x"}', '"records" must be a list'),
        ('{"records": ["x"], "codec": "zip"}', '"codec" must be one of none, gzip'),
        ('{"records": ["x"], "producer_id": true}', '"producer_id" must be of type int'),
        ('{"records": ["x"], "transactional": true}', "the batch cannot be built"),
        ('{"batch": "00"}', "a batch has a header of 61 bytes, not of 1"),
        (batch("00" * 61), "the batch has magic 0"),
        (batch("00" * 16 + "02" + "00" * 44), "says that it has 12 bytes, not 61"),
    ],
)
def test_records_that_cannot_be_written_are_refused(records: str, problem: str) -> None:
    made = cluster()
    with pytest.raises(ClusterError, match=problem):
        Operations(made).append("foo-0", records)
    assert made.logs.log(TP).end_offset == 0


@pytest.mark.requirement("DP-CTL-11")
def test_truncating_loses_acknowledged_records_and_raises_the_epoch() -> None:
    made = cluster()
    for value in ("one", "two", "three"):
        Operations(made).append("foo-0", value)
    Operations(made).truncate("foo-0", 1)
    assert values(made) == [b"one"]
    assert watermark(made) == 1
    partition = made.topics.partition(*TP)
    assert (partition.leader, partition.leader_epoch) == (1, 1)
    (lost,) = (each.change for each in made.log if isinstance(each.change, RecordsLost))
    assert lost == RecordsLost("foo", 0, 1, 2, 2)
    Operations(made).append("foo-0", "another")
    assert [each.header.leader_epoch for each in made.logs.log(TP).storage.batches()] == [0, 1]
    with pytest.raises(ClusterError, match="foo-0 has offsets 0 to 2; it cannot end at 3"):
        Operations(made).truncate("foo-0", 3)


@pytest.mark.requirement("DP-CTL-12")
def test_an_unclean_election_loses_what_the_replica_lacks() -> None:
    made = cluster()
    Operations(made).append("foo-0", "kept")
    Operations(made).leave_isr(TP, 2)
    Operations(made).append("foo-0", "lost")
    Operations(made).unclean_election("foo-0", 2)
    partition = made.topics.partition(*TP)
    assert (partition.leader, partition.isr, partition.leader_epoch) == (2, (2,), 1)
    assert values(made) == [b"kept"]
    (lost,) = (each.change for each in made.log if isinstance(each.change, RecordsLost))
    assert lost == RecordsLost("foo", 0, 1, 1, 1)


def test_a_replica_that_cannot_lead_is_refused() -> None:
    made = cluster()
    Operations(made).stop_broker(3)
    for broker, problem in ((1, "already leads"), (3, "is stopped"), (9, "unknown|no broker")):
        with pytest.raises(ClusterError, match=problem):
            Operations(made).unclean_election("foo-0", broker)


@pytest.mark.requirement("DP-CTL-14")
def test_a_log_begins_later_at_once() -> None:
    made = cluster()
    for value in ("one", "two", "three"):
        Operations(made).append("foo-0", value)
    Operations(made).jump_log_start("foo-0", 2)
    assert values(made) == [b"three"]
    (moved,) = (each.change for each in made.log if isinstance(each.change, LogStartMoved))
    assert moved == LogStartMoved("foo", 0, 0, 2)
    for offset in (1, 4):
        with pytest.raises(ClusterError, match="can begin at 2 to 3, its high watermark, and not"):
            Operations(made).jump_log_start("foo-0", offset)


@pytest.mark.requirement("DP-CTL-15")
def test_a_segment_is_closed_unless_it_is_empty() -> None:
    made = cluster()
    Operations(made).append("foo-0", "one")
    Operations(made).roll_segment("foo-0")
    assert [each.base_offset for each in made.logs.log(TP).segments] == [0, 1]
    with pytest.raises(ClusterError, match="the newest segment of foo-0 is empty"):
        Operations(made).roll_segment("foo-0")


def test_a_partition_without_a_leader_takes_no_records() -> None:
    made = Cluster(2, topics=["foo=2"])
    Operations(made).stop_broker(2)
    with pytest.raises(ClusterError, match="foo-0 is offline"):
        Operations(made).append("foo-0", "one")


@pytest.mark.parametrize(
    ("key", "hashed"),
    # From Kafka's UtilsTest.testMurmur2.
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536),
     (b"a-little-bit-longer-string", -1486304829), (b"abc", 479470107),
     (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971)],
)  # fmt: skip
def test_keys_are_hashed_as_producers_hash_them(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF
    assert partition_of_key(key, 7) == (hashed & 0x7FFFFFFF) % 7
