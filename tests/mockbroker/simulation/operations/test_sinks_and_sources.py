"""Topics for measuring clients: sinks that keep nothing, sources that never end."""

import json

import pytest

from kproto.records import Record, RecordBatches
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.repeated_batch import REPETITIONS
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulation.log.producing import FOO, batch, new_cluster, produce
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

pytestmark = pytest.mark.requirement("DP-API-98")

THREE = json.dumps([{"value": each} for each in ("a", "b", "c")])


def fetched(
    cluster: Cluster, offset: int, *, room: int = 1 << 20, version: int = 11
) -> list[Record]:
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": room}
    body = request_of(
        "Fetch", max_wait_ms=0, max_bytes=room, topics={"topic": "foo", "partitions": [part]}
    )
    found = DirectBroker(cluster).ask(body, version).responses[0].partitions[0]
    assert found.error_code == 0
    batches = RecordBatches(found.records, allow_partial=True)
    return [record for each in batches for record in each.records()]


def listed(cluster: Cluster, timestamp: int) -> tuple[int, int]:
    part = {"partition_index": 0, "timestamp": timestamp}
    body = request_of("ListOffsets", replica_id=-1, name="foo", partitions=[part])
    found = DirectBroker(cluster).ask(body, 7).topics[0].partitions[0]
    assert found.error_code == 0
    return found.offset, found.timestamp


def test_a_sink_answers_and_keeps_nothing() -> None:
    cluster = new_cluster()
    assert produce(cluster, batch(b"before")).base_offset == 0
    Operations(cluster).make_sink("foo")
    actions = len(cluster.log)
    assert cluster.logs.bytes == 0
    for number in range(1, 101):
        answer = produce(cluster, batch(b"x" * 1000), acks=-1)
        assert (answer.error, answer.base_offset, answer.is_replicated) == (0, number, True)
        assert cluster.logs.bytes == cluster.logs.log(FOO).storage.size == 0
    log = cluster.logs.log(FOO)
    assert (log.start_offset, log.high_watermark, log.end_offset) == (101, 101, 101)
    assert len(cluster.log) == actions  # nothing is told of single appends
    assert produce(cluster, b"no batch").error


def test_a_sink_keeps_what_is_not_replicated_and_knows_its_producers() -> None:
    cluster = new_cluster()
    Operations(cluster).make_sink("foo")
    Operations(cluster).hold_replication("foo-0", 2)
    own = {"producer_id": 7, "producer_epoch": 0}
    first = batch(b"a", base_sequence=0, **own)
    assert produce(cluster, first).base_offset == 0
    assert cluster.logs.bytes == len(first)
    Operations(cluster).release_replication("foo-0")
    assert produce(cluster, batch(b"b", base_sequence=1, **own)).base_offset == 1
    assert cluster.logs.bytes == 0
    assert produce(cluster, batch(b"b", base_sequence=1, **own)).base_offset == 1
    assert produce(cluster, batch(b"d", base_sequence=5, **own)).error == 45


@pytest.mark.parametrize("offset", [0, 1, 2, 3, 1_000_000_007, 3 * REPETITIONS - 1])
def test_a_source_has_its_batch_at_every_offset(offset: int) -> None:
    cluster = new_cluster()
    Operations(cluster).append("foo-0", "old")
    Operations(cluster).make_source("foo", THREE)
    assert cluster.logs.bytes == 0
    found = fetched(cluster, offset)
    assert [each.offset for each in found][:1] == [offset - offset % 3]
    assert [each.offset for each in found] == list(
        range(found[0].offset, found[0].offset + len(found))
    )
    assert {(each.offset % 3, each.value) for each in found} == {(0, b"a"), (1, b"b"), (2, b"c")}
    assert len(found) > 1000 or offset > 3 * REPETITIONS - 3


def test_limits_of_a_fetch_hold_for_a_source() -> None:
    cluster = new_cluster()
    Operations(cluster).make_source("foo", THREE)
    size = cluster.logs.log(FOO).storage.position(1)
    assert len(fetched(cluster, 0, room=1)) == 3  # the first batch comes whole
    assert len(fetched(cluster, 0, room=2 * size)) == 6
    assert len(fetched(cluster, 0, room=3 * size - 1)) == 6
    assert fetched(cluster, 3 * REPETITIONS) == []
    # Old versions may have the last batch cut, even the first.
    assert len(fetched(cluster, 0, room=3 * size - 1, version=4)) == 6


def test_offsets_of_a_source_are_listed() -> None:
    cluster = new_cluster()
    Operations(cluster).make_source("foo", THREE)
    assert listed(cluster, -2) == (0, -1)
    assert listed(cluster, -1) == (3 * REPETITIONS, -1)
    assert listed(cluster, -3) == (0, cluster.timers.now_ms)
    assert listed(cluster, 0) == (0, cluster.timers.now_ms)
    assert listed(cluster, cluster.timers.now_ms + 1) == (-1, -1)


def test_a_source_survives_what_happens_to_logs() -> None:
    cluster = new_cluster(configs={"cleanup.policy": "compact,delete", "retention.bytes": "10"})
    Operations(cluster).make_source("foo", THREE)
    Operations(cluster).compact("foo-0")
    cluster.turns.advance(10**12)
    Operations(cluster).apply_retention()
    Operations(cluster).append("foo-0", "dropped")
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    Operations(cluster).join_isr(("foo", 0), 1)
    cluster.elections.elect(0, [("foo", [0])])
    assert [each.value for each in fetched(cluster, 0)][:3] == [b"a", b"b", b"c"]
    Operations(cluster).jump_log_start("foo-0", 10)
    assert fetched(cluster, 10)[0].offset == 9
    assert [each.value for each in fetched(cluster, 12)][:3] == [b"a", b"b", b"c"]
    Operations(cluster).truncate("foo-0", 15)
    assert [each.offset for each in fetched(cluster, 12)] == [12, 13, 14]


def test_partitions_that_are_added_are_sources_and_a_new_topic_is_none() -> None:
    cluster = new_cluster()
    Operations(cluster).make_source("foo", THREE)
    cluster.topics.add_partitions([("foo", 2, None)])
    assert cluster.logs.log(("foo", 1)).end_offset == 3 * REPETITIONS
    cluster.topics.delete([("foo", cluster.topics["foo"].topic_id.__class__(int=0))])
    cluster.topics.add("foo=1")
    assert cluster.logs.log(FOO).end_offset == 0
    Operations(cluster).make_sink("foo")
    cluster.topics.delete([("foo", cluster.topics["foo"].topic_id.__class__(int=0))])
    cluster.topics.add("foo=1")
    Operations(cluster).append("foo-0", "kept")
    assert cluster.logs.bytes


def test_a_source_can_be_damaged() -> None:
    cluster = new_cluster()
    Operations(cluster).make_source("foo", THREE)
    Operations(cluster).corrupt_batch("foo-0", 30, "crc")
    (first, *_) = RecordBatches(b"".join(cluster.logs.log(FOO).storage.read(0, 2)), check_crc=False)
    assert not first.crc_is_right()


def test_what_cannot_be_a_sink_or_a_source_is_refused() -> None:
    cluster = new_cluster()
    cluster.topics.add("__consumer_offsets=1")
    for topic, problem in (("nope", "no topic 'nope'"), ("__consumer_offsets", "coordinators")):
        with pytest.raises(ClusterError, match=problem):
            Operations(cluster).make_sink(topic)
        with pytest.raises(ClusterError, match=problem):
            Operations(cluster).make_source(topic, "x")
    own = {"records": [{}], "producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    with pytest.raises(ClusterError, match="no producer"):
        Operations(cluster).make_source("foo", json.dumps(own))


async def test_both_are_commands() -> None:
    async with MockCluster(1, topics=["foo:1:1", "bar:1:1"]) as mock:
        await mock.run_command('make-source foo {"records": [{"value": "x"}], "codec": "gzip"}')
        await mock.run_command("make-sink bar")
        mock.append("bar-0", "gone")
        assert mock.records("bar") == []
        part = {"partition": 0, "fetch_offset": 5, "partition_max_bytes": 1000}
        async with connect(mock) as wire:
            body = request_of(
                "Fetch",
                max_wait_ms=0,
                max_bytes=1000,
                topics={"topic": "foo", "partitions": [part]},
            )
            answer = (await wire.ask(body, 11)).responses[0].partitions[0]
        found = [each for data in RecordBatches(answer.records) for each in data.records()]
        assert [each.offset for each in found] == list(range(5, 5 + len(found)))
        assert len(found) > 5
