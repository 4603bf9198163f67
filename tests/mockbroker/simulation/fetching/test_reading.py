"""What a partition answers to a fetch: errors in their order, records, limits."""

import uuid

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.fetching.fetching import (
    FOO,
    append,
    ask,
    request,
    row,
    rows,
    values,
)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(3, topics=["foo=1,2", "bar=1,2"])


@pytest.fixture
def broker(cluster: Cluster) -> DirectBroker:
    return DirectBroker(cluster)


@pytest.mark.requirement("DP-FETCH-06", "DP-FETCH-19")
@pytest.mark.parametrize("version", [4, 5, 7, 9, 10, 11, 12])
def test_records_come_in_whole_batches(cluster, broker, version):
    append(cluster, b"a", b"b")
    append(cluster, b"c")
    cluster.logs.advance_start("test", FOO, 1)
    found = row(ask(broker, {FOO: 1}, version))
    assert values(found) == [b"a", b"b", b"c"]
    assert (found.error_code, found.high_watermark, found.last_stable_offset) == (0, 3, 3)
    assert found.log_start_offset == (1 if version >= 5 else -1)
    assert found.preferred_read_replica == -1
    assert found.aborted_transactions is None
    assert values(row(ask(broker, {FOO: 2}, version))) == [b"c"]
    assert row(ask(broker, {FOO: 3}, version)).records == b""


@pytest.mark.requirement("DP-FETCH-05")
def test_offsets_up_to_the_end_are_in_range(cluster: Cluster, broker: DirectBroker) -> None:
    append(cluster, b"a")
    cluster.logs.hold_replication(FOO, None)
    append(cluster, b"b")
    append(cluster, b"c")
    assert values(row(ask(broker, {FOO: 0}))) == [b"a"]
    for offset in (1, 2, 3):
        found = row(ask(broker, {FOO: offset}))
        assert (found.error_code, found.records, found.high_watermark) == (0, b"", 1)
    assert row(ask(broker, {FOO: 4})).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.requirement("DP-FETCH-03")
def test_an_error_comes_without_offsets_and_records(broker: DirectBroker) -> None:
    found = row(ask(broker, {FOO: 7}))
    assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (found.high_watermark, found.last_stable_offset, found.log_start_offset) == (-1, -1, -1)
    assert (found.records, found.aborted_transactions) == (b"", None)


@pytest.mark.requirement("DP-FETCH-03")
@pytest.mark.parametrize(
    ("release", "aborted"), [((2, 8), None), ((3, 0), []), ((3, 9), []), ((4, 0), [])]
)
def test_a_refusal_has_a_null_or_an_empty_list(release: tuple[int, int], aborted: object) -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    refused, failed = rows(ask(DirectBroker(cluster), {("unknown", 0): 0, FOO: 9})).values()
    assert (refused.aborted_transactions, refused.records) == (aborted, b"")
    assert (refused.high_watermark, refused.log_start_offset) == (-1, -1)
    assert (failed.aborted_transactions, failed.records) == (None, b"")


@pytest.mark.requirement("DP-FETCH-07", "DP-FETCH-08")
def test_limits_hold_from_the_second_batch_on(cluster: Cluster, broker: DirectBroker) -> None:
    size = 0
    for tp in (FOO, ("bar", 0)):
        for value in (b"1", b"2", b"3"):
            append(cluster, value * 100, tp=tp)
        size = cluster.logs.log(tp).storage.size // 3

    def counts(**fields: int) -> list[int]:
        answer = ask(broker, {FOO: 0, ("bar", 0): 0}, **fields)
        return [len(each.records or b"") // size for each in rows(answer).values()]

    assert counts(max_bytes=6 * size) == [3, 3]
    assert counts(max_bytes=5 * size) == [3, 2]
    assert counts(max_bytes=5 * size - 1) == [3, 1]
    assert counts(max_bytes=3 * size) == [3, 0]
    assert counts(max_bytes=1) == [1, 0], "the first batch comes whole"
    assert counts(partition_max_bytes=2 * size + 1) == [2, 2]
    assert counts(partition_max_bytes=1) == [1, 0]
    assert counts(max_bytes=0) == [1, 0]


@pytest.mark.requirement("DP-FETCH-08")
def test_limits_cut_the_last_batch_as_kafka_does() -> None:
    """But never the first one of a partition."""
    cluster = simulated_cluster(1, topics=["foo=1", "bar=1"], cut_last_batch=True)
    broker = DirectBroker(cluster)
    for tp in (FOO, ("bar", 0)):
        for value in (b"1", b"2"):
            append(cluster, value * 100, tp=tp)
    size = cluster.logs.log(FOO).storage.size // 2

    def sizes(**fields: int) -> list[int]:
        answer = ask(broker, {FOO: 0, ("bar", 0): 0}, **fields)
        return [len(each.records or b"") for each in rows(answer).values()]

    assert sizes(max_bytes=4 * size) == [2 * size, 2 * size]
    assert sizes(max_bytes=4 * size - 1) == [2 * size, 2 * size - 1]
    assert sizes(max_bytes=3 * size - 1) == [2 * size, 0], "the first batch does not fit"
    assert sizes(max_bytes=size + 7) == [size + 7, 0]
    assert sizes(max_bytes=1) == [size, 0]
    assert sizes(partition_max_bytes=size + 1) == [size + 1, size + 1]


@pytest.mark.requirement("DP-FETCH-06")
def test_an_answer_ends_with_its_segment(cluster: Cluster, broker: DirectBroker) -> None:
    log = cluster.logs.log(FOO)
    for value in (b"a", b"b", b"c", b"d"):
        append(cluster, value)
        if value in (b"b", b"c"):
            log.roll(0)

    def read(offset: int, **fields: int) -> list[bytes | None]:
        return values(row(ask(broker, {FOO: offset}, **fields)))

    assert [read(offset) for offset in range(5)] == [[b"a", b"b"], [b"b"], [b"c"], [b"d"], []]
    assert read(0, partition_max_bytes=1) == [b"a"]
    cluster.logs.lag_watermark(FOO, 2)
    assert read(1) == [b"b"]


@pytest.mark.requirement("DP-FETCH-07")
def test_the_broker_limits_a_response() -> None:
    cluster = simulated_cluster(
        1, topics=["foo=1", "bar=1"], broker_configs={"fetch.max.bytes": "1024"}
    )
    append(cluster, b"x" * 2000)
    append(cluster, b"y", tp=("bar", 0))
    found = rows(ask(DirectBroker(cluster), {FOO: 0, ("bar", 0): 0}))
    assert [values(each) for each in found.values()] == [[b"x" * 2000], []]


@pytest.mark.requirement("DP-FETCH-02")
@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, 0), (0, ErrorCode.FENCED_LEADER_EPOCH), (1, 0), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_the_leader_epoch_is_checked(epoch: int, code: int) -> None:
    cluster = Cluster(3, topics=["foo=1,2"])
    Operations(cluster).stop_broker(1)
    broker = DirectBroker(cluster)
    position = {"fetch_offset": 0, "current_leader_epoch": epoch}
    assert row(ask(broker, {FOO: position}, broker_id=2)).error_code == code


@pytest.mark.requirement("DP-FETCH-02")
@pytest.mark.parametrize(
    ("release", "code"),
    [((2, 0), 0), ((2, 1), 74), ((2, 6), 74), ((2, 7), 0), ((4, 4), 0)],
)
def test_numbers_below_any_epoch_are_epochs_up_to_2_6(release: tuple[int, int], code: int) -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=release)
    broker = DirectBroker(cluster)
    for epoch, expected in ((-1, 0), (-2, code)):
        position = {"fetch_offset": 0, "current_leader_epoch": epoch}
        assert row(ask(broker, {FOO: position})).error_code == expected


@pytest.mark.requirement("DP-FETCH-01")
def test_the_first_error_in_order_counts(cluster: Cluster, broker: DirectBroker) -> None:
    """Each request has the errors below its own, too."""
    far = {"fetch_offset": 99, "current_leader_epoch": 9}

    def code(name: str, broker_id: int = 1, **fields: int) -> int:
        return row(ask(broker, {(name, 0): {**far, **fields}}, 10, broker_id=broker_id)).error_code

    assert code("unknown") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code("foo", 3) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "no replica"
    assert code("foo", 2) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code("foo", 2, current_leader_epoch=0) == ErrorCode.NOT_LEADER_OR_FOLLOWER, "follower"
    assert code("foo", 1, current_leader_epoch=0) == ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.requirement("DP-FETCH-01")
def test_a_broker_answers_by_its_own_metadata(cluster: Cluster, broker: DirectBroker) -> None:
    """Broker 1 has not learned of a new topic, nor that another was created anew."""
    former = cluster.topics["foo"].topic_id
    Operations(cluster).hold_metadata(1)
    cluster.topics.add("new=1,2")
    assert row(ask(broker, {("new", 0): 0})).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.topics.delete([("foo", uuid.UUID(int=0))])
    cluster.topics.add("foo=1,2")
    answer = broker.ask(request({FOO: 0}, ids={"foo": former}), 13)
    assert row(answer).error_code == ErrorCode.INCONSISTENT_TOPIC_ID


@pytest.mark.requirement("DP-FETCH-01", "DP-FETCH-20")
def test_topics_may_be_named_by_id(cluster: Cluster, broker: DirectBroker) -> None:
    append(cluster, b"a")
    none = uuid.UUID(int=0)
    ids = {"foo": cluster.topics["foo"].topic_id, "gone": uuid.uuid4(), "none": none}
    answer = broker.ask(request({FOO: 0, ("gone", 0): 0, ("none", 0): 0}, ids=ids), 13)
    assert [each.topic_id for each in answer.responses] == list(ids.values())
    found = [each for topic in answer.responses for each in topic.partitions]
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert [each.error_code for each in found] == [0, unknown, unknown]
    assert values(found[0]) == [b"a"]


@pytest.mark.requirement("DP-FETCH-04")
@pytest.mark.parametrize("version", [15, 16, 18])
def test_the_leader_is_named_to_who_looks_for_it(version: int) -> None:
    cluster = Cluster(3, topics=["foo=1,2"])
    cluster.brokers.set_endpoint(2, "leader.example", 9)
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    ids = {"foo": cluster.topics["foo"].topic_id}
    broker = DirectBroker(cluster)
    for broker_id, epoch, code in ((3, -1, 6), (2, 0, 74)):
        position = {"fetch_offset": 0, "current_leader_epoch": epoch}
        answer = ask(broker, {FOO: position}, version, broker_id=broker_id, ids=ids)
        found = row(answer)
        assert found.error_code == code
        leader = (found.current_leader.leader_id, found.current_leader.leader_epoch)
        nodes = [(each.node_id, each.host, each.port) for each in answer.node_endpoints]
        assert (leader, nodes) == (
            ((2, 1), [(2, "leader.example", 9)]) if version >= 16 else ((-1, -1), [])
        )
    follower = ask(broker, {FOO: 0}, version, broker_id=3, ids=ids, state_replica_id=2)
    assert (row(follower).error_code, follower.node_endpoints) == (6, [])
    assert row(follower).current_leader.leader_id == (2 if version >= 16 else -1)


def test_what_makes_no_sense_fails_as_in_kafka(cluster: Cluster, broker: DirectBroker) -> None:
    append(cluster, b"a")
    negative = {"fetch_offset": 0, "partition_max_bytes": -1}
    failed = row(ask(broker, {FOO: negative}))
    assert (failed.error_code, failed.high_watermark, failed.records) == (-1, -1, b"")
    assert row(ask(broker, {FOO: {**negative, "fetch_offset": 1}})).error_code == 0
    answer = ask(broker, {FOO: 0}, isolation_level=7)
    assert (answer.error_code, row(answer).error_code) == (-1, -1)
    ids = {"foo": cluster.topics["foo"].topic_id}
    answer = ask(broker, {FOO: 0}, 13, ids=ids, isolation_level=7)
    assert (answer.error_code, answer.responses) == (-1, [])


@pytest.mark.requirement("DP-FETCH-03")
@pytest.mark.parametrize(
    ("release", "records", "aborted"),
    [((2, 8), b"", None), ((3, 0), None, []), ((3, 9), None, []), ((4, 0), b"", [])],
)
def test_records_of_a_request_that_fails_as_a_whole(release, records, aborted):
    broker = DirectBroker(simulated_cluster(3, topics=["foo=1,2"], release=release))
    failed = row(ask(broker, {FOO: 0}, isolation_level=7))
    assert (failed.error_code, failed.records) == (-1, records)
    assert failed.aborted_transactions == aborted
