"""The stories of data, told with kafka-python: a released client in place of the scenarios' own."""

import gc
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from mockbroker.errors import ClusterError
from mockbroker.running.fixture import MockKafka
from mockbroker.simulation.state.actions import RecordsLost

kafka = pytest.importorskip("kafka")
errors = pytest.importorskip("kafka.errors")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.requirement("DP-CTL-59"),
]
SECONDS = 30


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """kafka-python may leave a socket to the garbage collector; its warning belongs here."""
    yield
    gc.collect()


def producer(mock: MockKafka, **options: Any) -> Any:
    return kafka.KafkaProducer(bootstrap_servers=mock.bootstrap, acks="all", **options)


def consumer(mock: MockKafka, **options: Any) -> Any:
    given = {"bootstrap_servers": mock.bootstrap, "auto_offset_reset": "earliest", **options}
    return kafka.KafkaConsumer(**given)


@pytest.mark.mock_kafka(topics=["foo:1:1"])
@pytest.mark.parametrize("idempotent", [True, False])
def test_lost_acknowledgement(mock_kafka: MockKafka, idempotent: bool) -> None:
    mock_kafka.fault(api="Produce", disconnect="after", times=1)
    with closing(producer(mock_kafka, enable_idempotence=idempotent, retries=5)) as sender:
        sender.send("foo", b"once").get(SECONDS)
    mock_kafka.assert_requested("Produce", times=2)
    mock_kafka.assert_produced("foo", value="once", times=1 if idempotent else 2)


def rebalance(mock_kafka: MockKafka) -> int:
    """Begin a rebalance of the stable group; its generation before.

    A client may join again by itself, so the group may have ceased to be stable meanwhile."""
    while True:
        before = mock_kafka.wait_for_group("g", state="Stable", members=2, timeout=SECONDS)
        try:
            mock_kafka.rebalance("g")
        except ClusterError:
            now = mock_kafka.groups()["g"]
            assert now.state != "Stable" or now.generation > before.generation
        else:
            return before.generation


@pytest.mark.mock_kafka(topics=["foo:2:1"])
def test_rebalance_storm(mock_kafka: MockKafka) -> None:
    ended = threading.Event()

    def poll() -> None:
        with closing(consumer(mock_kafka, group_id="g", heartbeat_interval_ms=50)) as member:
            member.subscribe(["foo"])
            # A leader of kafka-python 3.0.12 that learns the topic's partitions after it assigned
            # them joins again by itself. It forgets that join if poll returns before the join ends,
            # and sends no heartbeats from then on.
            member.topics()
            while not ended.is_set():
                member.poll(timeout_ms=50)

    threads = [threading.Thread(target=poll) for _ in range(2)]
    for each in threads:
        each.start()
    try:
        for _ in range(3):
            before = rebalance(mock_kafka)
            after = mock_kafka.wait_for_group("g", state="Stable", members=2, timeout=SECONDS)
            assert after.generation > before
            given = [tp for each in after.members for tp in each.assignment or ()]
            assert sorted(given) == [("foo", 0), ("foo", 1)]
    finally:
        ended.set()
        for each in threads:
            each.join(SECONDS)


@pytest.mark.mock_kafka(topics=["foo:1:1"])
def test_the_coordinator_moves_during_a_commit(mock_kafka: MockKafka) -> None:
    mock_kafka.produce("foo", value="x")
    with closing(consumer(mock_kafka, group_id="g", enable_auto_commit=False)) as member:
        member.subscribe(["foo"])
        assert next(member).value == b"x"
        mock_kafka.hold_commits("g")
        held = threading.Thread(target=member.commit)
        held.start()
        old = mock_kafka.wait_for("OffsetCommit", timeout=SECONDS).broker
        mock_kafka.move_coordinator("group", "g", old % 3 + 1)
        mock_kafka.release_commits("g")
        held.join(SECONDS)
        assert not held.is_alive()
        mock_kafka.assert_committed("g", {"foo-0": 1})
        assert mock_kafka.requests("OffsetCommit").brokers == [old, old % 3 + 1]


@pytest.mark.mock_kafka(topics=["foo=1,2,3"])
def test_unclean_loss(mock_kafka: MockKafka) -> None:
    with closing(producer(mock_kafka)) as sender:
        sender.send("foo", b"kept").get(SECONDS)
        mock_kafka.leave_isr("foo-0", 2)
        assert sender.send("foo", b"lost").get(SECONDS).offset == 1
        mock_kafka.unclean_election("foo-0", 2)
        with pytest.raises(errors.OutOfOrderSequenceNumberError):
            # The log does not know the batch before it any more.
            sender.send("foo", b"behind").get(SECONDS)
    with closing(producer(mock_kafka)) as sender:
        assert sender.send("foo", b"new").get(SECONDS).offset == 1
    log = mock_kafka.cluster.cluster.log
    assert RecordsLost("foo", 0, 1, 1, 1) in [each.change for each in log]
    with closing(consumer(mock_kafka)) as reader:
        reader.assign([kafka.TopicPartition("foo", 0)])
        assert [next(reader).value for _ in range(2)] == [b"kept", b"new"]


@pytest.mark.mock_kafka(topics=["foo:1:1"])
def test_poison_record(mock_kafka: MockKafka) -> None:
    for value in ("good", "poison", "behind"):
        mock_kafka.produce("foo", value=value)
    mock_kafka.corrupt_batch("foo-0", 1, "bit")
    foo = kafka.TopicPartition("foo", 0)
    with closing(consumer(mock_kafka)) as reader:
        reader.assign([foo])
        assert next(reader).value == b"good"
        with pytest.raises(errors.CorruptRecordError):
            next(reader)
        reader.seek(foo, 2)
        assert next(reader).value == b"behind"


@pytest.mark.mock_kafka(topics=["foo:1:1"])
def test_zombie_producer(mock_kafka: MockKafka) -> None:
    with closing(producer(mock_kafka, transactional_id="pay")) as zombie:
        zombie.init_transactions()
        zombie.begin_transaction()
        zombie.send("foo", b"half").get(SECONDS)
        with closing(producer(mock_kafka, transactional_id="pay")) as successor:
            successor.init_transactions()
            successor.begin_transaction()
            successor.send("foo", b"whole").get(SECONDS)
            successor.commit_transaction()
        with pytest.raises(errors.KafkaError):
            zombie.commit_transaction()
    with closing(consumer(mock_kafka, isolation_level="read_committed")) as reader:
        reader.subscribe(["foo"])
        assert next(reader).value == b"whole"


@pytest.mark.mock_kafka(topics=["foo:1:1"])
def test_hanging_transaction(mock_kafka: MockKafka) -> None:
    hanging = (
        '{"records": [{"value": "late"}], "transactional": true, "producer_id": 4000, '
        '"producer_epoch": 0, "base_sequence": 0}'
    )
    mock_kafka.append("foo-0", hanging)
    mock_kafka.append("foo-0", "behind")
    options = {"isolation_level": "read_committed"}
    with closing(consumer(mock_kafka, consumer_timeout_ms=1000, **options)) as reader:
        reader.subscribe(["foo"])
        assert list(reader) == []
    mock_kafka.write_marker("foo-0", 4000, "abort")
    with closing(consumer(mock_kafka, **options)) as reader:
        reader.subscribe(["foo"])
        assert next(reader).value == b"behind"


@pytest.mark.mock_kafka(brokers=2, topics=["foo=1,2"])
def test_failed_log_dir(mock_kafka: MockKafka) -> None:
    with closing(producer(mock_kafka, retries=10)) as sender:
        assert sender.send("foo", b"one").get(SECONDS).offset == 0
        mock_kafka.fail_log_dir(1)
        assert sender.send("foo", b"two").get(SECONDS).offset == 1
    # The answers with error 56 let the producer look for the leader.
    mock_kafka.assert_requested("Produce", broker_id=2, times=1)
