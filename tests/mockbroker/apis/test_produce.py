"""Produce (0) on the wire: every version, acks, waits for replicas, and who may produce."""

import asyncio
import uuid
from typing import Any

import pytest

from kproto.records import Compression, Record, build_batch
from kproto.schema.model import ZERO_UUID
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.batch_header import read_header, with_header
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.wire import connect
from tests.support.requests import request_of
from tests.support.toolchain import require_module

SERVED = {0: Versions(0, 13)}


def batch(*values: bytes, **settings: Any) -> bytes:
    return build_batch([Record(timestamp=1, value=value) for value in values], **settings)


def request(
    *partitions: tuple[int, bytes | None],
    acks: int = 1,
    topic: str = "foo",
    topic_id: uuid.UUID = ZERO_UUID,
    timeout_ms: int = 60_000,
) -> Any:
    rows = [{"index": index, "records": data} for index, data in partitions]
    topics = [{"name": topic, "topic_id": topic_id, "partition_data": rows}]
    return request_of("Produce", acks=acks, timeout_ms=timeout_ms, topic_data=topics)


def rows(answer: Any) -> list[tuple[int, int, int]]:
    """(partition, error, base offset) of every row, in order."""
    return [
        (row.index, row.error_code, row.base_offset)
        for topic in answer.responses
        for row in topic.partition_responses
    ]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", range(14))
@pytest.mark.requirement("DP-PRODUCE-34", "DP-VER-01")
def test_every_version(version: int, acks: int) -> None:
    old = version < 3
    cluster = simulated_cluster(3, topics=["foo=1,2,3"], release=(3, 9) if old else (4, 4))
    broker = DirectBroker(cluster, apis=SERVED)
    data = batch(b"a", b"b", magic={0: 0, 1: 0, 2: 1}.get(version, 2))
    topic_id = cluster.topics["foo"].topic_id
    for expected in (0, 2):
        answer = broker.ask(request((0, data), acks=acks, topic_id=topic_id), version)
        assert rows(answer) == [(0, 0, expected)]
        row = answer.responses[0].partition_responses[0]
        assert (row.log_append_time_ms, row.error_message, row.record_errors) == (-1, None, [])
        assert row.log_start_offset == (0 if version >= 5 else -1)
        assert answer.responses[0].topic_id == (topic_id if version >= 13 else ZERO_UUID)
    newest = DirectBroker(Cluster(3, topics=["foo=1,2,3"]), apis=SERVED)
    assert (newest.ask(request((0, data), acks=acks), version) is None) == old


@pytest.mark.requirement("DP-PRODUCE-40", "DP-PRODUCE-41")
def test_partitions_are_answered_as_they_were_asked() -> None:
    cluster = Cluster(3, topics=["foo=1,2,3/2,1,3/1,2,3", "bar=1"])
    broker = DirectBroker(cluster)
    asked = request((2, batch(b"a")), (1, batch(b"b")), (0, batch(b"c")), (2, batch(b"d")))
    asked.topic_data += request((0, batch(b"e")), (9, batch(b"f")), topic="bar").topic_data
    asked.topic_data += request((3, batch(b"g")), (0, batch(b"h", b"i"))).topic_data
    assert rows(broker.ask(asked, 9)) == [
        (2, 0, 0), (1, 6, -1), (0, 0, 0), (3, 3, -1), (0, 0, 0), (9, 3, -1),
    ]  # fmt: skip
    ends = [cluster.logs.log(("foo", index)).end_offset for index in (0, 2)]
    assert ends == [2, 1], "of a partition that is named twice the last data counts"


@pytest.mark.requirement("DP-PRODUCE-07", "DP-PRODUCE-41")
@pytest.mark.parametrize("version", [3, 9])
def test_data_of_a_wrong_form_replace_no_others(version: int) -> None:
    """Kafka appends the data that it can read, and answers with the error of the others."""
    whole, cut = batch(b"a"), batch(b"a")[:60]
    for number, datas in enumerate(((whole, cut), (cut, whole), (b"", whole, whole), (cut, cut))):
        cluster = Cluster(1, topics=["foo=1"])
        asked = request(*((0, each) for each in datas))
        assert rows(DirectBroker(cluster).ask(asked, version)) == [(0, 87, -1)]
        assert cluster.logs.log(("foo", 0)).end_offset == (number < 3)


@pytest.mark.requirement("DP-PRODUCE-04")
def test_a_topic_is_known_by_its_id() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    broker = DirectBroker(cluster)
    answer = broker.ask(request((0, batch(b"a")), topic="", topic_id=uuid.UUID(int=5)), 13)
    assert rows(answer) == [(0, 100, -1)]
    assert answer.responses[0].topic_id == uuid.UUID(int=5)


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.requirement("DP-PRODUCE-14", "DP-PRODUCE-42")
def test_a_broker_that_does_not_lead_says_who_does(version: int) -> None:
    cluster = Cluster(4, topics=["foo=2,1,3/2,1,3"])
    for broker_id in (1, 4):
        answer = DirectBroker(cluster).ask(
            request((0, batch(b"a")), (1, batch(b"b"))), version, broker_id=broker_id
        )
        assert rows(answer) == [(0, 6, -1), (1, 6, -1)]
        leaders = {
            (row.current_leader.leader_id, row.current_leader.leader_epoch)
            for row in answer.responses[0].partition_responses
        }
        assert leaders == ({(2, 0)} if version >= 10 else {(-1, -1)})
        nodes = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
        leader = cluster.controller.broker(2)
        assert nodes == ([(2, leader.host, leader.port)] if version >= 10 else [])


@pytest.mark.requirement("DP-PRODUCE-06")
def test_a_broker_knows_what_its_metadata_has() -> None:
    cluster = Cluster(1)
    Operations(cluster).hold_metadata(1)
    cluster.topics.add("foo=1")
    assert rows(DirectBroker(cluster).ask(request((0, batch(b"a"))), 9)) == [(0, 3, -1)]
    Operations(cluster).release_metadata(1)
    Operations(cluster).hold_metadata(1)
    cluster.topics.delete([("foo", ZERO_UUID)])
    assert rows(DirectBroker(cluster).ask(request((0, batch(b"a"))), 9)) == [(0, 6, -1)]


@pytest.mark.parametrize("version", [7, 8])
@pytest.mark.requirement("DP-PRODUCE-38", "DP-PRODUCE-39")
def test_failed_records_are_told_since_version_8(version: int) -> None:
    cluster = Cluster(1, topics=["foo=1"])
    cluster.config_changes.alter_incrementally([(2, "foo", [("cleanup.policy", 0, "compact")])])
    answer = DirectBroker(cluster).ask(request((0, batch(b"a"))), version)
    row = answer.responses[0].partition_responses[0]
    assert row.error_code == 87
    if version >= 8:
        assert row.error_message.startswith("One or more records have been rejected due to 1 ")
        (error,) = row.record_errors
        assert error.batch_index == 0
        assert error.batch_index_error_message.startswith("Compacted topic cannot accept")
    else:
        assert (row.error_message, row.record_errors) == (None, [])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (bytes(17), "Record size 0 is less than the minimum record overhead (14)"),
        (bytes(11) + b"\x20" + bytes(4) + b"\x03", "Invalid magic found in record: 3"),
        (bytes(11) + b"\x20" + bytes(4) + b"\xff", "Invalid magic found in record: -1"),
    ],
)
@pytest.mark.requirement("DP-PRODUCE-18", "DP-PRODUCE-38")
def test_a_batch_that_cannot_be_one_fails_the_request(data: bytes, text: str) -> None:
    """As brokers of 3.9.2 and 4.4.0 answer."""
    cluster = Cluster(1, topics=["foo=1/1"])
    answer = DirectBroker(cluster).ask(request((0, batch(b"a")), (1, data)), 9)
    assert rows(answer) == [(0, 2, -1), (1, 2, -1)]
    assert {row.error_message for row in answer.responses[0].partition_responses} == {text}
    former = DirectBroker(simulated_cluster(1, topics=["foo=1/1"], release=(2, 7)))
    assert former.ask(request((0, batch(b"a")), (1, data)), 9) is None


# ---- who may -------------------------------------------------------------------------------------


def allow(cluster: Cluster, kind: int, name: str, operation: int) -> None:
    cluster.acls.create([AclBinding(kind, name, 3, "User:me", "*", operation, 3)])


def secured(cluster: Cluster, release: str = "kafka-4.4") -> DirectBroker:
    return DirectBroker(
        cluster, profile_name=release, security=Security(authorizer=Authorizer()),
        principal="User:me", apis={0: Versions(0, 9), 22: Versions(0, 4)},
    )  # fmt: skip


TOPIC, CLUSTER, TRANSACTIONAL_ID = 2, 4, 5
WRITE, IDEMPOTENT_WRITE = 4, 12


@pytest.mark.requirement("DP-PRODUCE-05")
def test_producing_needs_write() -> None:
    cluster = Cluster(1, topics=["foo=1"])
    asked = request((0, batch(b"a")))
    assert rows(secured(cluster).ask(asked, 9)) == [(0, 29, -1)]
    allow(cluster, TOPIC, "foo", WRITE)
    assert rows(secured(cluster).ask(asked, 9)) == [(0, 0, 0)]


@pytest.mark.requirement("DP-PRODUCE-03")
def test_an_idempotent_batch_is_authorized_until_2_7() -> None:
    data = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
    for release, line, expected in (
        ("kafka-2.7", (2, 7), [(0, 31, -1)]),
        ("kafka-4.4", (4, 4), [(0, 0, 0)]),
    ):
        cluster = simulated_cluster(1, topics=["foo=1"], release=line)
        allow(cluster, TOPIC, "foo", WRITE)
        assert rows(secured(cluster, release).ask(request((0, data)), 8)) == expected
        allow(cluster, CLUSTER, "kafka-cluster", IDEMPOTENT_WRITE)
        assert rows(secured(cluster, release).ask(request((0, data)), 8)) == [(0, 0, 0)]


@pytest.mark.requirement("DP-PRODUCE-02")
def test_a_transactional_batch_needs_its_id() -> None:
    data = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    cluster = simulated_cluster(1, topics=["foo=1/1"], release=(3, 5))
    allow(cluster, TOPIC, "foo", WRITE)
    asked = request((0, data), (1, batch(b"b")))
    assert rows(secured(cluster).ask(asked, 9)) == [(0, 53, -1), (1, 53, -1)]
    asked.transactional_id = "t"
    assert rows(secured(cluster).ask(asked, 9)) == [(0, 53, -1), (1, 53, -1)]
    allow(cluster, TRANSACTIONAL_ID, "t", WRITE)
    assert rows(secured(cluster).ask(asked, 9)) == [(0, 0, 0), (1, 0, 0)]


@pytest.mark.requirement("DP-PRODUCE-09")
@pytest.mark.parametrize(("version", "answers"), [
    (6, [(0, -1, -1), (1, -1, -1)]), (7, [(0, -1, -1), (1, 0, 0)]),
])  # fmt: skip
def test_before_version_7_an_unknown_codec_fails_the_whole_request(version, answers):
    cluster = Cluster(1, topics=["foo=1/1"])
    data = batch(b"a")
    header = read_header(data)
    unknown = with_header(data, header._replace(attributes=header.attributes | 5))
    asked = request((0, unknown), (1, batch(b"b")))
    assert rows(DirectBroker(cluster).ask(asked, version)) == answers
    asked = request((9, unknown), (1, batch(b"b")))
    (_, known) = rows(DirectBroker(cluster).ask(asked, version))
    assert known[1] == 0, "of a partition that is not known no codec is looked at"


@pytest.mark.requirement("DP-PRODUCE-11", "DP-PRODUCE-38")
def test_two_transactional_producers_in_one_request() -> None:
    cluster = Cluster(1, topics=["foo=1/1"])
    one, other = (
        batch(b"a", producer_id=each, producer_epoch=0, base_sequence=0, is_transactional=True)
        for each in (1, 2)
    )
    asked = request((0, one), (1, other))
    asked.transactional_id = "t"
    answer = DirectBroker(cluster).ask(asked, 9)
    assert rows(answer) == [(0, 49, -1), (1, 49, -1)]
    assert {row.error_message for row in answer.responses[0].partition_responses} == {
        "Transactional records contained more than one producer ID"
    }
    asked = request((0, one))
    asked.transactional_id = "t"
    answer = DirectBroker(cluster).ask(asked, 9)
    assert rows(answer) == [(0, 19, -1)]
    assert answer.responses[0].partition_responses[0].error_message == (
        "Unable to verify the partition has been added to the transaction. Underlying error: "
        "COORDINATOR_NOT_AVAILABLE"
    )


# ---- acks ----------------------------------------------------------------------------------------


@pytest.mark.requirement("DP-PRODUCE-33")
async def test_without_acks_nothing_is_answered() -> None:
    async with MockCluster(1, topics=["foo=1/1"]) as mock, connect(mock) as wire:
        wire.send(wire.frame(request((0, batch(b"a")), acks=0), 9))
        answer = await wire.ask(request((0, batch(b"b"))), 9)
        assert rows(answer) == [(0, 0, 1)], "the first answer is that of the second request"
        wire.send(wire.frame(request((9, batch(b"c")), (1, batch(b"d")), acks=0), 9))
        assert await wire.closed() == b""
        assert mock.cluster.logs.log(("foo", 1)).end_offset == 1, "the other one was appended"


async def test_other_connections_do_not_wait() -> None:
    async with MockCluster(2, topics=["foo=1,2"]) as mock:
        logs = mock.cluster.logs
        logs.hold_replication(("foo", 0), 2)
        async with connect(mock) as wire, connect(mock) as other:
            wire.send(wire.frame(request((0, batch(b"a")), acks=-1), 9))
            assert rows(await other.ask(request((0, batch(b"b"))), 9))[0][1] == 0
            while not logs.log(("foo", 0)).watched:
                await asyncio.sleep(0)
            logs.release_replication(("foo", 0), None)
            _, answer = mock.dialect.decode_response(await wire.receive(), api_key=0, api_version=9)
            assert rows(answer)[0][1] == 0
        assert not logs.log(("foo", 0)).watched


@pytest.mark.requirement("DP-PRODUCE-35")
async def test_a_wait_ends_at_its_timeout() -> None:
    async with MockCluster(2, topics=["foo=1,2/1"]) as mock:
        mock.cluster.logs.hold_replication(("foo", 0), 2)
        async with connect(mock) as wire:
            asked = request((0, batch(b"a")), (1, batch(b"b")), acks=-1, timeout_ms=1)
            assert rows(await wire.ask(asked, 9)) == [(0, 7, 0), (1, 0, 0)]
        log = mock.cluster.logs.log(("foo", 0))
        assert (log.end_offset, log.high_watermark, log.watched) == (1, 0, 0), "the records stay"


async def test_a_client_that_leaves_waits_no_more() -> None:
    async with MockCluster(2, topics=["foo=1,2"]) as mock:
        log = mock.cluster.logs.log(("foo", 0))
        mock.cluster.logs.hold_replication(("foo", 0), 2)
        async with connect(mock) as wire:
            wire.send(wire.frame(request((0, batch(b"a")), acks=-1), 9))
            async with asyncio.timeout(10):
                while not log.watched:
                    await asyncio.sleep(0.001)
        async with asyncio.timeout(10):
            while log.watched:
                await asyncio.sleep(0.001)


# ---- released clients ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_an_idempotent_producer_of_librdkafka(codec: str) -> None:
    confluent = require_module("confluent_kafka")
    async with MockCluster(3, topics=["foo=1,2,3"]) as mock:

        def work() -> list[int]:
            producer = confluent.Producer(
                {"bootstrap.servers": mock.bootstrap, "enable.idempotence": True,
                 "compression.type": codec, "linger.ms": 1}
            )  # fmt: skip
            offsets: list[int] = []
            for number in range(200):
                producer.produce(
                    "foo", b"value %d" % number,
                    on_delivery=lambda error, message: offsets.append(
                        -1 if error else message.offset()
                    ),
                )  # fmt: skip
            assert producer.flush(10) == 0
            return offsets

        assert await asyncio.to_thread(work) == [*range(200)]
        log = mock.cluster.logs.log(("foo", 0))
        (producer,) = log.producers
        assert (producer.producer_id % 1000, producer.last_sequence) == (0, 199)
        headers = [each.header for each in log.storage.batches()]
        assert {each.codec for each in headers} <= {0, Compression[codec.upper()]}


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_a_producer_of_kafka_python(acks: int | str) -> None:
    kafka = require_module("kafka")
    async with MockCluster(3, topics=["foo=1,2,3"]) as mock:

        def work() -> list[int]:
            producer = kafka.KafkaProducer(
                bootstrap_servers=mock.bootstrap, acks=acks, enable_idempotence=acks == "all",
                compression_type="gzip",
            )  # fmt: skip
            try:
                sent = [producer.send("foo", b"value %d" % each) for each in range(20)]
                return [each.get(10).offset for each in sent]
            finally:
                producer.close(10)

        offsets = await asyncio.to_thread(work)
        if acks:
            assert offsets == [*range(20)]
        async with asyncio.timeout(10):
            while mock.cluster.logs.log(("foo", 0)).end_offset < 20:
                await asyncio.sleep(0.001)
