"""The APIs of transactions as messages, in every version, and who may use them."""

import asyncio
from typing import Any

import pytest

from kproto.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from kproto.records import Record, build_batch
from mockbroker import MockCluster
from mockbroker.profiles import profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.coordinators.offset_requests import fetch
from tests.mockbroker.simulation.security.enforced import ALICE, ENFORCED, allow
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
from tests.mockbroker.wire import PATIENCE, connect
from tests.support.requests import request_of

OFFSETS = ("__consumer_offsets", 0)
ONE_PARTITION = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
LATEST: dict[Any, int] = {
    InitProducerIdRequest: 5, AddPartitionsToTxnRequest: 3, AddOffsetsToTxnRequest: 4,
    EndTxnRequest: 5, TxnOffsetCommitRequest: 5,
}  # fmt: skip


class Client:
    """A broker of one, asked for the transactional id "t" with the producer's id and epoch."""

    def __init__(self, release: tuple[int, int] = NEWEST, **options: Any) -> None:
        brokers = options.pop("brokers", 1)
        verifies = {"transaction.partition.verification.enable": options.pop("verifies", "true")}
        self.cluster = coordinator(release, brokers, broker_configs={**ONE_PARTITION, **verifies})
        profile = "kafka-{}.{}".format(*release)
        self.broker = DirectBroker(self.cluster, profile_name=profile, **options)
        self.producer = Producer(self.cluster)

    def ask(self, body: Any, version: int | None = None, broker_id: int = 1) -> Any:
        chosen = LATEST[type(body)] if version is None else version
        return self.broker.ask(body, chosen, broker_id=broker_id)

    def init(self, version: int = 5, **fields: Any) -> tuple[int, int, int]:
        body = request_of(
            "InitProducerId",
            **{"transactional_id": "t", "transaction_timeout_ms": 60_000, **fields},
        )
        answer = self.ask(body, version)
        if not answer.error_code:
            self.producer.producer_id = answer.producer_id
            self.producer.epoch = answer.producer_epoch
        return answer.error_code, answer.producer_id, answer.producer_epoch

    def add(self, *partitions: tuple[str, int], version: int = 3, **fields: Any) -> dict[Any, int]:
        topics = [{"name": n, "partitions": [i]} for n, i in partitions or (FOO,)]
        given = {"epoch": self.producer.epoch, "name": "t", "verify": False, **fields}
        if version < 4:
            body = request_of(
                "AddPartitionsToTxn",
                v3_and_below_transactional_id=given["name"],
                v3_and_below_producer_id=self.producer.producer_id,
                v3_and_below_producer_epoch=given["epoch"],
                v3_and_below_topics=topics,
            )
            rows = self.ask(body, version).results_by_topic_v3_and_below
        else:
            body = request_of(
                "AddPartitionsToTxn",
                transactional_id=given["name"],
                producer_id=self.producer.producer_id,
                producer_epoch=given["epoch"],
                verify_only=given["verify"],
                topics=topics,
            )
            answer = self.ask(body, version)
            if answer.error_code:
                return {None: answer.error_code}
            rows = [row for each in answer.results_by_transaction for row in each.topic_results]
        return {
            (topic.name, row.partition_index): row.partition_error_code
            for topic in rows
            for row in topic.results_by_partition
        }

    def add_offsets(self, version: int = 4, **fields: Any) -> int:
        given = {"transactional_id": "t", "group_id": "g",
                 "producer_id": self.producer.producer_id,
                 "producer_epoch": self.producer.epoch, **fields}  # fmt: skip
        code: int = self.ask(request_of("AddOffsetsToTxn", **given), version).error_code
        return code

    def end(self, version: int = 5, *, committed: bool = True, **fields: Any) -> Any:
        given = {"transactional_id": "t", "producer_id": self.producer.producer_id,
                 "producer_epoch": self.producer.epoch, "committed": committed,
                 **fields}  # fmt: skip
        return self.ask(request_of("EndTxn", **given), version)

    def commit(
        self, offsets: dict[tuple[str, int], int], version: int = 5, broker_id: int = 1,
        **fields: Any,
    ) -> dict[tuple[str, int], int]:  # fmt: skip
        known = self.cluster.topics
        given = {"transactional_id": "t", "group_id": "g",
                 "producer_id": self.producer.producer_id,
                 "producer_epoch": self.producer.epoch, **fields}  # fmt: skip
        body = request_of(
            "TxnOffsetCommit",
            topics=[
                {
                    "name": name,
                    "partition_index": index,
                    "committed_offset": offset,
                    "committed_metadata": "m",
                    **(
                        {"topic_id": known[name].topic_id} if version >= 6 and name in known else {}
                    ),
                }
                for (name, index), offset in offsets.items()
            ],
            **given,
        )
        answer = self.ask(body, version, broker_id)
        names = {topic.topic_id: name for name, topic in known.items()}
        return {
            (topic.name if version < 6 else names.get(topic.topic_id, ""), row.partition_index): (
                row.error_code
            )
            for topic in answer.topics
            for row in topic.partitions
        }


# ---- InitProducerId, EndTxn ----------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
@pytest.mark.requirement("DP-TXN-01", "DP-INIT-07", "DP-TXN-03")
def test_a_producer_is_initialized(version: int) -> None:
    client = Client()
    assert client.init(version) == (0, 1000, 0)
    assert client.init(version) == (0, 1000, 1)
    if version >= 3:
        fenced = 90 if version >= 4 else 47
        assert client.init(version, producer_id=1000, producer_epoch=7) == (fenced, -1, -1)
        assert client.init(version, producer_id=1000, producer_epoch=-1) == (42, -1, -1)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.requirement("DP-END-01", "DP-TXN-15", "DP-TXN-10")
def test_a_transaction_ends(version: int) -> None:
    client = Client()
    client.init()
    assert client.end(version).error_code == 48
    assert client.add() == {FOO: 0}
    assert client.end(version, producer_epoch=7).error_code == (90 if version >= 2 else 47)
    assert client.end(version, producer_id=7).error_code == 49
    assert client.end(version, transactional_id="u").error_code == 49
    assert client.end(version, transactional_id="").error_code == 42
    answer = client.end(version)
    assert answer.error_code == 0
    shown = (answer.producer_id, answer.producer_epoch)
    assert shown == ((1000, 1) if version >= 5 else (-1, -1))


# ---- AddPartitionsToTxn, AddOffsetsToTxn ---------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
@pytest.mark.requirement("DP-ADD-01", "DP-ADD-02", "DP-ADD-03")
def test_partitions_are_added(version: int) -> None:
    client = Client()
    client.init()
    unknown, other = ("foo", 9), ("nothing", 0)
    assert client.add(FOO, unknown, other, version=version) == {FOO: 55, unknown: 3, other: 3}
    assert client.producer.state == "Empty"
    assert client.add(FOO, BAR, FOO_1, version=version) == {FOO: 0, BAR: 0, FOO_1: 0}
    assert client.producer.transaction.metadata.partitions == (FOO, BAR, FOO_1)
    assert client.producer.transaction.metadata.version == (2 if version >= 4 else 0)
    assert client.add(version=version, epoch=7) == {FOO: 90 if version >= 2 else 47}
    assert client.add(version=version, name="u") == {FOO: 49}
    assert client.add(version=version, name="") == {FOO: 42}


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.requirement("DP-ADD-01", "DP-ADD-04")
def test_brokers_verify_partitions(version: int) -> None:
    client = Client()
    client.init()
    assert client.add(FOO, version=version, verify=True) == {FOO: 120}
    client.add(BAR)
    assert client.add(FOO, BAR, version=version, verify=True) == {FOO: 120, BAR: 0}
    assert client.producer.transaction.metadata.partitions == (BAR,)
    assert client.add(FOO, version=version, verify=True, epoch=3) == {FOO: 90}
    Operations(client.cluster).hold_markers()
    client.end(4)
    assert client.add(FOO, version=version, verify=True) == {FOO: 51}
    empty = client.ask(request_of("AddPartitionsToTxn", transactions=[]), version)
    assert (empty.error_code, empty.results_by_transaction) == (0, [])


@pytest.mark.requirement("DP-ADD-01")
def test_brokers_ask_for_several_transactions_at_once() -> None:
    client = Client()
    others = [Producer(client.cluster, name) for name in "ab"]
    for other in others:
        other.init()
    topics = [{"name": "foo", "partitions": [0]}]
    body = request_of(
        "AddPartitionsToTxn",
        transactions=[
            {
                "transactional_id": each.name,
                "producer_id": each.producer_id,
                "producer_epoch": epoch,
                "topics": topics,
            }
            for each, epoch in zip(others, (0, 5), strict=True)
        ],
    )
    answer = client.ask(body, 5)
    assert [
        (each.transactional_id, each.topic_results[0].results_by_partition[0].partition_error_code)
        for each in answer.results_by_transaction
    ] == [("a", 0), ("b", 90)]


@pytest.mark.requirement("DP-ADD-20")
def test_a_transaction_that_is_named_twice() -> None:
    """Kafka adds the partitions of its last row for each, and shows those of its first."""
    client = Client()
    client.init()
    answer = client.ask(
        request_of(
            "AddPartitionsToTxn",
            transactions=[
                {
                    "transactional_id": "t",
                    "producer_id": producer_id,
                    "producer_epoch": client.producer.epoch,
                    "topics": [{"name": "foo", "partitions": [index]}],
                }
                for index, producer_id in enumerate((client.producer.producer_id, 99))
            ],
        ),
        5,
    )
    assert [
        (row.partition_index, row.partition_error_code)
        for each in answer.results_by_transaction
        for row in each.topic_results[0].results_by_partition
    ] == [(0, 0), (0, 49)]
    assert client.producer.transaction.metadata.partitions == (FOO_1,)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.requirement("DP-ADD-05", "DP-ADD-03")
def test_the_partition_of_a_group_is_added(version: int) -> None:
    client = Client()
    client.init()
    assert client.add_offsets(version) == 0
    assert client.producer.transaction.metadata.partitions == (OFFSETS,)
    assert client.add_offsets(version, producer_epoch=3) == (90 if version >= 2 else 47)
    assert client.add_offsets(version, transactional_id="u") == 49


# ---- TxnOffsetCommit -----------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", range(7))
@pytest.mark.requirement("DP-TXNOFF-02", "DP-TXN-49", "DP-TXNOFF-03", "DP-OFFSET-16")
def test_offsets_are_those_of_the_transaction(version: int, committed: bool) -> None:
    client = Client()
    client.init()
    if version < 5:
        assert client.commit({FOO: 5}, version) == {FOO: 120 if version >= 4 else 48}
        assert client.add_offsets() == 0
    assert client.commit({FOO: 5, FOO_1: 6}, version) == {FOO: 0, FOO_1: 0}
    assert client.producer.transaction.metadata.partitions == (OFFSETS,)
    wanted = {"foo": [0, 1]}
    none = {FOO: (-1, -1, "", 0), FOO_1: (-1, -1, "", 0)}
    assert fetch(client.broker, 9, wanted) == none
    unstable = {FOO: (-1, -1, "", 88), FOO_1: (-1, -1, "", 88)}
    assert fetch(client.broker, 9, wanted, require_stable=True) == unstable
    assert client.cluster.logs.log(OFFSETS).last_stable_offset == 0
    assert client.end(5 if version >= 5 else 4, committed=committed).error_code == 0
    decided = {FOO: (5, -1, "m", 0), FOO_1: (6, -1, "m", 0)} if committed else none
    assert fetch(client.broker, 9, wanted, require_stable=True) == decided
    assert markers(client.cluster, OFFSETS)[0][0] == ("COMMIT" if committed else "ABORT")


@pytest.mark.requirement("DP-TXNOFF-03")
@pytest.mark.parametrize(("release", "code"), [((3, 6), 0), ((3, 7), 48)])
def test_offsets_are_verified_since_3_7(release: tuple[int, int], code: int) -> None:
    client = Client(release)
    client.init(4)
    assert client.commit({FOO: 5}, 3) == {FOO: code}


@pytest.mark.requirement("DP-TXNOFF-02")
def test_a_later_commit_is_kept() -> None:
    client = Client()
    client.init()
    client.commit({FOO: 5, FOO_1: 6})
    Operations(client.cluster).set_offset("g", FOO, 99)
    client.end()
    assert fetch(client.broker, 9, {"foo": [0, 1]}) == {
        FOO: (99, -1, "", 0), FOO_1: (6, -1, "m", 0)
    }  # fmt: skip


@pytest.mark.parametrize("version", range(7))
@pytest.mark.requirement("DP-TXNOFF-01", "DP-TXNOFF-03")
def test_offsets_that_cannot_be_committed(version: int) -> None:
    client = Client()
    client.init()
    client.add_offsets()
    unknown, other = ("foo", 9), ("nothing", 0)
    gone = {("", 0): 100} if version >= 6 else {other: 3}
    assert client.commit({FOO: 1, unknown: 2, other: 3}, version) == {FOO: 0, unknown: 3, **gone}
    assert client.commit({unknown: 2}, version) == {unknown: 3}
    assert client.commit({FOO: 1}, version, producer_id=77) == {FOO: 49}
    if version >= 3:
        wrong = client.commit({FOO: 1}, version, generation_id_or_member_epoch=3, member_id="m")
        assert wrong == {FOO: 25}
        wrong = client.commit({FOO: 1}, version, generation_id_or_member_epoch=3, group_id="other")
        assert wrong == {FOO: 69 if version >= 6 else 22}
    assert client.commit({FOO: 1}, version, group_id="") == {FOO: 24}
    Operations(client.cluster).load_coordinator("group", "g")
    assert client.commit({FOO: 1}, version) == {FOO: 14 if version >= 2 else 15}
    Operations(client.cluster).finish_loading("group", "g")
    Operations(client.cluster).load_coordinator("transaction", "t")
    assert client.commit({FOO: 1}, version, group_id="g") == {FOO: 0}  # open: nobody is asked


@pytest.mark.requirement("DP-TXNOFF-01")
@pytest.mark.parametrize(("profile_name", "code"), [("kafka-1.1", 0), ("kafka-2.0", 24)])
def test_offsets_of_a_transaction_need_a_group_since_2_0(profile_name: str, code: int) -> None:
    cluster = simulated_cluster(1, topics=["foo=1"], release=profile(profile_name).software)
    at = DirectBroker(cluster, profile_name=profile_name)
    for key_type, key in ((0, ""), (1, "t")):
        cluster.coordinators.find(CoordinatorKind(key_type), key, 1)
    init = request_of("InitProducerId", transactional_id="t", transaction_timeout_ms=1000)
    producer = at.ask(init, 0)
    adds = request_of(
        "AddOffsetsToTxn",
        transactional_id="t",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        group_id="",
    )
    at.ask(adds, 0)
    row = {"partition_index": 0, "committed_offset": 1}
    commits = request_of(
        "TxnOffsetCommit",
        transactional_id="t",
        group_id="",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        name="foo",
        partitions=[row],
    )
    answer = at.ask(commits, 0)
    assert [each.error_code for topic in answer.topics for each in topic.partitions] == [code]


@pytest.mark.requirement("DP-TXNOFF-01", "DP-TXNOFF-04")
@pytest.mark.parametrize("verifies", ["false", "true"])
@pytest.mark.parametrize("version", [0, 3])
def test_before_4_0_offsets_without_a_producer_are_plain(version: int, verifies: str) -> None:
    client = Client(OLD, verifies=verifies)
    client.init()
    code = 0 if verifies == "false" else 49
    assert client.commit({FOO: 5}, version, producer_id=-1, producer_epoch=-1) == {FOO: code}
    stored = (-1, -1, "", 0) if code else (5, -1, "m", 0)
    assert fetch(client.broker, 7, {"foo": [0]}) == {FOO: stored}
    assert client.cluster.groups.group("g") is not None


@pytest.mark.requirement("DP-TXNOFF-04")
def test_since_4_0_offsets_without_a_producer_fail() -> None:
    client = Client(NEWEST, verifies="false")
    client.init()
    failed = client.commit({FOO: 5}, 3, producer_id=-1, producer_epoch=-1)
    assert failed == {("", 0): -1}
    assert fetch(client.broker, 7, {"foo": [0]}) == {FOO: (-1, -1, "", 0)}


@pytest.mark.requirement("DP-TXNOFF-04")
@pytest.mark.parametrize(("release", "code"), [(OLD, -1), (NEWEST, 47)])
def test_offsets_of_a_producer_without_an_epoch(release: tuple[int, int], code: int) -> None:
    client = Client(release)
    client.init()
    client.add_offsets()
    assert client.commit({FOO: 5}, 3) == {FOO: 0}
    wrong = client.commit({FOO: 6, ("foo", 9): 6}, 3, producer_epoch=-1)
    assert wrong == {FOO: code, ("foo", 9): -1 if release == OLD else 3}


@pytest.mark.requirement("DP-TXNOFF-05")
@pytest.mark.parametrize(("release", "code"), [((2, 3), 0), ((2, 4), 47)])
def test_offsets_of_a_fenced_producer(release: tuple[int, int], code: int) -> None:
    client = Client(release)
    client.init(1)
    client.add_offsets(1)
    assert client.commit({FOO: 5}, 0) == {FOO: 0}
    client.init(1)
    assert client.commit({FOO: 6}, 0, producer_epoch=0) == {FOO: code}


@pytest.mark.requirement("DP-TXNOFF-01")
def test_another_broker_does_not_coordinate_the_group() -> None:
    client = Client(brokers=2)
    elsewhere = 3 - client.cluster.topics.partition(*OFFSETS).leader
    client.producer.init()
    assert client.commit({FOO: 1}, broker_id=elsewhere) == {FOO: 16}


@pytest.mark.parametrize(("release", "version"), [(OLD, 4), (NEWEST, 5)])
@pytest.mark.requirement("DP-TXNOFF-03", "DP-TXN-42")
def test_a_fenced_producer_commits_no_offsets(release: tuple[int, int], version: int) -> None:
    client = Client(release)
    client.init(4)
    if version < 5:
        client.add_offsets()
    assert client.commit({FOO: 1}, version) == {FOO: 0}
    Operations(client.cluster).expire_transaction("t")
    assert client.commit({FOO: 2}, version) == {FOO: 47}
    assert fetch(client.broker, 9, {"foo": [0]}) == {FOO: (-1, -1, "", 0)}


@pytest.mark.requirement("DP-MARK-01", "DP-TXNOFF-03")
def test_a_newer_producer_of_one_partition_keeps_no_other_from_its_marker() -> None:
    """Markers are on their way to all partitions before one of them knows better (Kafka 2.8.2)."""
    client = Client((2, 7))
    client.init(2)
    client.add_offsets(version=2)
    assert client.add(FOO, version=2) == {FOO: 0}
    assert client.commit({FOO: 2}, 0, producer_epoch=99) == {FOO: 0}
    client.end(1)
    assert [each[0] for each in markers(client.cluster)] == ["COMMIT"]
    assert markers(client.cluster, OFFSETS) == []


# ---- WriteTxnMarkers -----------------------------------------------------------------------------


def marker(producer_id: int, *topics: tuple[str, int], epoch: int = 0) -> Any:
    return {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "transaction_result": True,
        "coordinator_epoch": 3,
        "topics": [{"name": name, "partition_indexes": [index]} for name, index in topics],
    }


def marked(answer: Any) -> dict[int, dict[tuple[str, int], int]]:
    return {
        each.producer_id: {
            (topic.name, row.partition_index): row.error_code
            for topic in each.topics
            for row in topic.partitions
        }
        for each in answer.markers
    }


@pytest.mark.parametrize(("release", "versions"), [(OLD, (0, 1)), (NEWEST, (1, 2))])
@pytest.mark.requirement("DP-MARK-01", "DP-MARK-03")
def test_markers_are_written(release: tuple[int, int], versions: tuple[int, ...]) -> None:
    for version in versions:
        client = Client(release)
        body = request_of(
            "WriteTxnMarkers", markers=[marker(7, FOO, ("foo", 9)), marker(8, BAR), marker(7, BAR)]
        )
        assert marked(client.ask(body, version)) == {
            7: {FOO: 0, ("foo", 9): 3, BAR: 0}, 8: {BAR: 0}
        }  # fmt: skip
        assert markers(client.cluster, BAR) == [("COMMIT", 8, 0, 3), ("COMMIT", 7, 0, 3)]
        assert client.ask(request_of("WriteTxnMarkers", markers=[]), version).markers == []
        empty = marker(10, FOO)
        empty["topics"][0]["partition_indexes"] = []
        rows = [marker(9), empty, marker(8, BAR)]
        answer = client.ask(request_of("WriteTxnMarkers", markers=rows), version)
        assert [each.producer_id for each in answer.markers] == [8], "those with partitions"


@pytest.mark.parametrize("release", [(2, 7), OLD, NEWEST])
@pytest.mark.requirement("DP-MARK-01")
def test_markers_of_negative_producers_are_only_appended(release: tuple[int, int]) -> None:
    client = Client(release)
    version = 0 if release == (2, 7) else 1
    for _ in range(2):
        body = request_of("WriteTxnMarkers", markers=[marker(-9, FOO) | {"coordinator_epoch": -5}])
        assert marked(client.ask(body, version)) == {-9: {FOO: 0}}
    assert markers(client.cluster) == [("COMMIT", -9, 0, -5)] * 2
    assert not client.cluster.logs.log(FOO).producers


@pytest.mark.parametrize("release", [(2, 7), OLD, NEWEST])
@pytest.mark.requirement("DP-MARK-04")
def test_a_marker_of_no_producer_fails_the_request(release: tuple[int, int]) -> None:
    def written(client: Client, *rows: Any) -> dict[int, dict[tuple[str, int], int]]:
        version = 0 if release == (2, 7) else 1
        return marked(client.ask(request_of("WriteTxnMarkers", markers=rows), version))

    for bad in (marker(-1, FOO, ("foo", 9)), marker(7, FOO, ("foo", 9), epoch=-1)):
        client = Client(release)
        assert written(client, marker(8, BAR), bad, marker(9, BAR), marker(9, FOO)) == {
            8: {BAR: -1}, bad["producer_id"]: {FOO: -1, ("foo", 9): -1}, 9: {FOO: -1}
        }  # fmt: skip
        assert markers(client.cluster, BAR) == [("COMMIT", 8, 0, 3)]
        assert markers(client.cluster) == []
    client = Client(release)
    client.add_offsets(version=2)
    absent = marker(-1, ("foo", 9)), marker(8, BAR)
    assert written(client, *absent) == {-1: {("foo", 9): 3}, 8: {BAR: 0}}
    code = 0 if release == NEWEST else -1
    assert written(client, marker(-1, OFFSETS), marker(8, BAR)) == {
        -1: {OFFSETS: -1},
        8: {BAR: code},
    }
    if release == (2, 7):
        config = ("message.format.version", 0, "0.10.2")
        client.cluster.config_changes.alter_incrementally([(2, "foo", [config])])
        assert written(client, marker(-1, FOO), marker(8, BAR)) == {-1: {FOO: 43}, 8: {BAR: 0}}


# ---- DescribeTransactions, ListTransactions ------------------------------------------------------


@pytest.mark.requirement("DP-DESC-01")
def test_transactions_are_described() -> None:
    client = Client()
    client.init()
    client.add(FOO, BAR)

    def described(*names: str) -> list[Any]:
        answer = client.ask(request_of("DescribeTransactions", transactional_ids=list(names)), 0)
        return [
            (row.error_code, row.transaction_state, row.producer_id, row.producer_epoch,
             row.transaction_timeout_ms, row.transaction_start_time_ms,
             [(each.topic, each.partitions) for each in row.topics])
            for row in answer.transaction_states
        ]  # fmt: skip

    topics = [("foo", [0]), ("bar", [0])]
    ongoing = (0, "Ongoing", 1000, 0, 60_000, 1_000_000, topics)
    unknown: Any = (105, "", 0, 0, 0, 0, [])
    assert described("t", "u", "") == [ongoing, unknown, (42, *unknown[1:])]
    Operations(client.cluster).hold_markers()
    client.end(4)
    assert described("t") == [(0, "PrepareCommit", *ongoing[2:])]
    Operations(client.cluster).release_markers()
    assert described("t") == [(0, "CompleteCommit", *ongoing[2:6], [])]
    Operations(client.cluster).load_coordinator("transaction", "t")
    assert described("t") == [(14, *unknown[1:])]


@pytest.mark.requirement("REL-23")
@pytest.mark.parametrize(
    ("release", "start_ms"), [(OLD, 1_000_000), ((4, 0), 1_000_000), (NEWEST, -1)]
)
@pytest.mark.requirement("DP-DESC-01")
def test_when_the_last_transaction_of_a_new_producer_began(release, start_ms):
    client = Client(release)
    client.init(4)
    client.add()
    client.end(3)
    client.init(4)
    (row,) = client.ask(
        request_of("DescribeTransactions", transactional_ids=["t"]), 0
    ).transaction_states
    assert (row.transaction_state, row.transaction_start_time_ms) == ("Empty", start_ms)


@pytest.mark.parametrize("version", range(3))
@pytest.mark.requirement("DP-DESC-02")
def test_transactions_are_listed(version: int) -> None:
    client = Client()
    client.init()
    client.cluster.turns.advance(100)
    for name in ("t-1", "u"):
        producer = Producer(client.cluster, name)
        producer.init()
        producer.add(FOO)
    client.cluster.turns.advance(100)

    def listed(**fields: Any) -> tuple[int, list[str], list[tuple[str, int, str]]]:
        answer = client.ask(request_of("ListTransactions", **fields), version)
        rows = [
            (each.transactional_id, each.producer_id, each.transaction_state)
            for each in answer.transaction_states
        ]
        return answer.error_code, answer.unknown_state_filters, rows

    empty, one, two = ("t", 1000, "Empty"), ("t-1", 1001, "Ongoing"), ("u", 1002, "Ongoing")
    assert listed() == (0, [], [empty, one, two])
    assert listed(state_filters=["Ongoing", "ongoing"]) == (0, ["ongoing"], [one, two])
    assert listed(state_filters=["nothing"]) == (0, ["nothing"], [])
    assert listed(producer_id_filters=[1000, 1002, 7]) == (0, [], [empty, two])
    if version >= 1:
        assert listed(duration_filter=99) == (0, [], [empty, one, two])
        assert listed(duration_filter=100) == (0, [], [empty])
    if version >= 2:
        assert listed(transactional_id_pattern="t.*") == (0, [], [empty, one])
        assert listed(transactional_id_pattern="") == (0, [], [empty, one, two])
        assert listed(transactional_id_pattern="t(") == (128, [], [])
    Operations(client.cluster).load_coordinator("transaction", "t")
    assert listed() == (14, [], [])


@pytest.mark.requirement("DP-DESC-02")
def test_a_broker_lists_what_it_coordinates() -> None:
    client = Client(brokers=2)
    client.producer.init()
    body = request_of("ListTransactions")
    found = {each: client.ask(body, 1, each).transaction_states for each in (1, 2)}
    assert [len(found[client.producer.at]), len(found[3 - client.producer.at])] == [1, 0]


# ---- who may -------------------------------------------------------------------------------------

TOPIC, GROUP, CLUSTER, ID = 2, 3, 4, 5
READ, WRITE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 7, 8, 9


@pytest.mark.requirement("DP-ADD-02", "DP-ADD-05", "DP-TXNOFF-01", "DP-DESC-01", "DP-DESC-02")
def test_who_may_use_a_transaction() -> None:
    client = Client(security=ENFORCED, principal=ALICE)
    cluster = client.cluster
    client.producer.init()
    assert client.init()[0] == 53
    assert client.add() == {FOO: 53}
    assert client.add_offsets() == 53
    assert client.commit({FOO: 1}) == {FOO: 53}
    assert client.end().error_code == 53
    described = request_of("DescribeTransactions", transactional_ids=["t"])
    assert client.ask(described, 0).transaction_states[0].error_code == 53
    assert client.ask(request_of("ListTransactions"), 0).transaction_states == []
    allow(cluster, AclOperation(WRITE), "t", ResourceType(ID))
    assert client.add() == {FOO: 29}
    assert client.add(OFFSETS) == {OFFSETS: 29}
    assert client.add_offsets() == 30
    assert client.commit({FOO: 1}) == {FOO: 30}
    allow(cluster, AclOperation(READ), "g", ResourceType(GROUP))
    assert client.add_offsets() == 0
    assert client.commit({FOO: 1}) == {FOO: 29}
    allow(cluster, AclOperation(READ), "foo", ResourceType(TOPIC))
    assert client.commit({FOO: 1}) == {FOO: 0}
    allow(cluster, AclOperation(WRITE), "foo", ResourceType(TOPIC))
    assert client.add(FOO, BAR) == {FOO: 55, BAR: 29}
    assert client.add(FOO) == {FOO: 0}
    allow(cluster, AclOperation(DESCRIBE), "t", ResourceType(ID))
    (row,) = client.ask(described, 0).transaction_states
    assert [each.topic for each in row.topics] == ["foo"]
    assert len(client.ask(request_of("ListTransactions"), 0).transaction_states) == 1
    assert client.end(4).error_code == 0


@pytest.mark.parametrize("operation", [ALTER, CLUSTER_ACTION])
@pytest.mark.requirement("DP-MARK-01", "DP-MARK-03", "DP-ADD-01")
def test_who_may_write_markers(operation: int) -> None:
    client = Client(security=ENFORCED, principal=ALICE)
    client.producer.init()
    body = request_of("WriteTxnMarkers", markers=[marker(7, FOO, BAR)])
    assert marked(client.ask(body, 1)) == {7: {FOO: 31, BAR: 31}}
    assert client.add(version=4, verify=True) == {None: 31}
    allow(client.cluster, AclOperation(operation), "kafka-cluster", ResourceType(CLUSTER))
    assert marked(client.ask(body, 1)) == {7: {FOO: 0, BAR: 0}}
    verified = client.add(version=4, verify=True)
    assert verified == ({FOO: 120} if operation == CLUSTER_ACTION else {None: 31})


# ---- Produce -------------------------------------------------------------------------------------


def produced(producer: Producer, *partitions: tuple[str, int], sequence: int = 0) -> Any:
    data = build_batch(
        [Record(timestamp=1_000_000, value=b"v")],
        producer_id=producer.producer_id, producer_epoch=producer.epoch, base_sequence=sequence,
        is_transactional=True,
    )  # fmt: skip
    return request_of(
        "Produce",
        transactional_id="t",
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            {"name": name, "index": index, "records": data} for name, index in partitions or (FOO,)
        ],
    )


@pytest.mark.requirement("DP-PRODUCE-12", "DP-TXN-43", "DP-TXN-40", "DP-PRODUCE-38")
def test_produce_is_verified() -> None:
    client = Client()
    client.init()

    def codes(version: int, *partitions: tuple[str, int], sequence: int = 0) -> list[Any]:
        answer = client.broker.ask(
            produced(client.producer, *partitions, sequence=sequence), version
        )
        rows = [row for topic in answer.responses for row in topic.partition_responses]
        return [(row.error_code, row.error_message, row.log_start_offset) for row in rows]

    text = "Partition was not added to the transaction"
    assert codes(9, FOO, ("foo", 9)) == [(48, text, -1), (3, None, -1)]
    assert codes(11) == [(120, None, -1)]
    client.add(FOO)
    assert codes(9, FOO, BAR) == [(0, None, 0), (48, text, -1)]
    assert codes(12, FOO, BAR, sequence=1) == [(0, None, 0), (45, None, 0)]
    assert client.producer.transaction.metadata.partitions == (FOO, BAR)


@pytest.mark.requirement("DP-TXN-45")
@pytest.mark.parametrize("released", [True, False])
async def test_a_leader_asks_again_while_the_transaction_before_ends(released: bool) -> None:
    async with MockCluster(1, topics=["foo=1"], profile="kafka-4.4") as mock, connect(mock) as wire:
        cluster: Cluster = mock.cluster
        Operations(cluster).load_coordinator("transaction", "t")
        Operations(cluster).finish_loading("transaction", "t")
        producer = Producer(cluster)
        producer.init()
        assert (await wire.ask(produced(producer), 12)).responses[0].partition_responses[
            0
        ].error_code == 0
        mock.hold_markers("t")
        assert producer.end() == 0
        wire.send(wire.frame(produced(producer), 12))
        if released:
            await mock.wait_for_transaction("t", state="PrepareCommit")
            mock.release_markers("t")
        _, answer = wire.codec.decode_response(await wire.receive(), api_key=0, api_version=12)
        (row,) = answer.responses[0].partition_responses
        assert row.error_code == (0 if released else 51)


@pytest.mark.requirement("DP-TXN-40", "DP-TXN-20")
async def test_a_produce_waits_for_the_log_of_the_transaction() -> None:
    async with MockCluster(2, topics=["foo=1"], profile="kafka-4.4") as mock, connect(mock) as wire:
        cluster = mock.cluster
        Operations(cluster).load_coordinator("transaction", "t")
        Operations(cluster).finish_loading("transaction", "t")
        producer = Producer(cluster)
        producer.init()
        tp = cluster.coordinators.partition_of(KIND, "t")
        mock.hold_replication(tp)
        began = asyncio.Event()
        cluster.transactions.machine.on_changed.append(lambda _: began.set())
        wire.send(wire.frame(produced(producer), 12))
        async with asyncio.timeout(PATIENCE):
            await began.wait()
        mock.release_replication(tp)
        _, answer = wire.codec.decode_response(await wire.receive(), api_key=0, api_version=12)
        (row,) = answer.responses[0].partition_responses
        assert (row.error_code, row.base_offset) == (0, 0)
