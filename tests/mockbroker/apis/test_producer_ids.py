"""InitProducerId (22) and DescribeProducers (61)."""

from typing import Any

import pytest

from kproto.records import Record, build_batch
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.producing.producer_ids import BLOCK_SIZE, ProducerIds
from mockbroker.simulation.security.authorizer import Authorizer
from mockbroker.simulation.security.policy import Security
from mockbroker.simulation.state.results import AclBinding
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.log.producing import FOO, NOW_MS, new_cluster, produce
from tests.support.requests import request_of

ANONYMOUS_ID = {"transactional_id": None}
TOPIC, CLUSTER, TRANSACTIONAL_ID = 2, 4, 5
WRITE, IDEMPOTENT_WRITE, TWO_PHASE_COMMIT = 4, 12, 15
LITERAL, PREFIXED = 3, 4


def ask(broker: DirectBroker, version: int = 4, **fields: Any) -> tuple[int, int, int]:
    answer = broker.ask("InitProducerId", version, **{**ANONYMOUS_ID, **fields})
    return answer.error_code, answer.producer_id, answer.producer_epoch


@pytest.mark.parametrize("version", range(6))
@pytest.mark.requirement("DP-INIT-04", "DP-INIT-08")
def test_each_producer_has_an_id(version: int) -> None:
    for _ in range(2):
        broker = DirectBroker(Cluster(2))
        assert [ask(broker, version) for _ in range(2)] == [(0, 1000, 0), (0, 1001, 0)]
        request = request_of("InitProducerId", transactional_id=None)
        assert broker.ask(request, version, broker_id=2).producer_id == 2000


@pytest.mark.requirement("DP-INIT-08")
def test_a_broker_takes_block_after_block() -> None:
    ids = ProducerIds(lambda: [1, 2, 3])
    first = [ids.next_id(1) for _ in range(BLOCK_SIZE)]
    assert first == [*range(1000, 2000)]
    assert [ids.next_id(1), ids.next_id(2)] == [4000, 2000]
    for _ in range(BLOCK_SIZE):
        ids.next_id(2)
    assert ids.next_id(2) == 5001


@pytest.mark.requirement("DP-INIT-03", "DP-INIT-04")
def test_what_cannot_be() -> None:
    broker = DirectBroker(Cluster(1))
    assert ask(broker, producer_id=7) == (42, -1, -1)
    assert ask(broker, producer_epoch=0) == (42, -1, -1)
    assert ask(broker, transactional_id="") == (42, -1, -1)


def secured(cluster: Cluster, release: str, **options: Any) -> DirectBroker:
    security = Security(authorizer=Authorizer())
    return DirectBroker(
        cluster, profile_name=release, security=security, principal="User:me", **options
    )


def allow(cluster: Cluster, kind: int, name: str, operation: int, pattern: int = LITERAL) -> None:
    cluster.acls.create([AclBinding(kind, name, pattern, "User:me", "*", operation, 3)])


@pytest.mark.parametrize(
    ("release", "rule", "code"),
    [
        ("kafka-2.7", None, 31),
        ("kafka-2.7", (CLUSTER, "kafka-cluster", IDEMPOTENT_WRITE), 0),
        ("kafka-2.7", (TOPIC, "foo", WRITE), 31),
        ("kafka-2.8-zk", (TOPIC, "foo", WRITE), 0),
        ("kafka-3.9", None, 31),
        ("kafka-3.9", (CLUSTER, "kafka-cluster", IDEMPOTENT_WRITE), 0),
        ("kafka-3.9", (TOPIC, "foo", WRITE), 0),
        ("kafka-3.9", (TOPIC, "not-there", WRITE), 0),
        ("kafka-3.9", (TOPIC, "f", WRITE, PREFIXED), 0),
        ("kafka-3.9", (TOPIC, "*", WRITE), 0),
        ("kafka-3.9", (TOPIC, "foo", 3), 31),
    ],
)
@pytest.mark.requirement("DP-INIT-01")
def test_who_may_be_idempotent(release: str, rule: Any, code: int) -> None:
    cluster = Cluster(1, topics=["foo=1"])
    if rule is not None:
        allow(cluster, *rule)
    assert ask(secured(cluster, release), 1)[0] == code


@pytest.mark.requirement("DP-INIT-01")
def test_a_transactional_id_has_to_be_the_callers() -> None:
    cluster = Cluster(1)
    assert ask(secured(cluster, "kafka-4.4"), transactional_id="t") == (53, -1, -1)
    allow(cluster, TRANSACTIONAL_ID, "t", WRITE)
    # Nobody has asked for the coordinator yet, so there is none.
    wanted = {"transactional_id": "t", "transaction_timeout_ms": 1000}
    assert ask(secured(cluster, "kafka-4.4"), **wanted) == (16, -1, -1)


@pytest.mark.requirement("DP-INIT-10")
def test_two_phase_commit_has_an_operation_of_its_own() -> None:
    configs = {"transaction.two.phase.commit.enable": "true"}
    cluster = simulated_cluster(1, topics=["foo=1"], broker_configs=configs)
    at = secured(cluster, "kafka-4.4", apis={22: Versions(0, 6)})
    wanted = {"transactional_id": "t", "transaction_timeout_ms": 1000}
    answers = []
    for operation in (WRITE, TWO_PHASE_COMMIT):
        allow(cluster, TRANSACTIONAL_ID, "t", operation)
        answers.append([ask(at, 6, enable2_pc=each, **wanted)[0] for each in (False, True)])
    # 16: nobody has asked for the coordinator.
    assert answers == [[16, 53], [16, 16]]
    assert ask(at, 6, **{**wanted, "transactional_id": "other"}, enable2_pc=True)[0] == 53


@pytest.mark.requirement("DP-INIT-10")
@pytest.mark.parametrize(
    ("profile", "enabled", "highest"),
    [
        ("kafka-4.0", "true", 5),
        ("kafka-4.1", "true", 6),
        ("kafka-4.4", "true", 6),
        ("kafka-4.4", "false", 5),
    ],
)
def test_unstable_versions_are_served_on_request(profile: str, enabled: str, highest: int) -> None:
    mock = MockCluster(profile=profile, broker_configs={"unstable.api.versions.enable": enabled})
    assert mock.served[22] == Versions(0, highest)


# ---- DescribeProducers ---------------------------------------------------------------------------


def described(cluster: Cluster, broker_id: int = 1, index: int = 0) -> tuple[int, list[Any]]:
    answer = DirectBroker(cluster).ask(
        "DescribeProducers", 0, name="foo", partition_indexes=[index], broker_id=broker_id
    )
    (row,) = answer.topics[0].partitions
    return row.error_code, [
        (
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch,
            each.current_txn_start_offset,
        )
        for each in row.active_producers
    ]


@pytest.mark.requirement("DP-IDEM-16")
def test_replicas_list_their_producers() -> None:
    cluster = new_cluster((3, 5))
    assert described(cluster) == (0, [])
    for producer_id, transactional in ((9, True), (8, False)):
        data = build_batch(
            [Record(timestamp=NOW_MS - 3, value=b"v"), Record(timestamp=NOW_MS, value=b"v")],
            producer_id=producer_id, producer_epoch=4, base_sequence=10,
            is_transactional=transactional,
        )  # fmt: skip
        assert produce(cluster, data).error == 0
    assert described(cluster) == (
        0, [(8, 4, 11, NOW_MS, -1, -1), (9, 4, 11, NOW_MS, -1, 0)],
    )  # fmt: skip
    cluster.logs.forget_producer(FOO, 8)
    assert len(described(cluster)[1]) == 1
    assert described(cluster, index=7) == (3, [])


@pytest.mark.requirement("DP-IDEM-16")
def test_a_follower_lists_the_producers_of_its_log() -> None:
    cluster = simulated_cluster(3, topics=["foo=1,2"], now_ms=NOW_MS)
    for producer_id, sequence in ((7, 0), (7, 1), (8, 0)):
        data = build_batch(
            [Record(timestamp=NOW_MS, value=b"v")],
            producer_id=producer_id, producer_epoch=0, base_sequence=sequence,
        )  # fmt: skip
        assert produce(cluster, data).error == 0
        if (producer_id, sequence) == (7, 0):
            cluster.logs.hold_replication(FOO, 2)
    assert described(cluster) == (0, [(7, 0, 1, NOW_MS, -1, -1), (8, 0, 0, NOW_MS, -1, -1)])
    assert described(cluster, broker_id=2) == (0, [(7, 0, 0, NOW_MS, -1, -1)])
    assert described(cluster, broker_id=3) == (6, [])


@pytest.mark.requirement("DP-IDEM-16")
def test_only_an_unknown_topic_has_a_text() -> None:
    names = [{"name": name, "partition_indexes": [7]} for name in ("foo", "nosuch")]
    response = DirectBroker(Cluster(1, topics=["foo=1"])).ask("DescribeProducers", 0, topics=names)
    rows = [row for topic in response.topics for row in topic.partitions]
    assert [row.error_code for row in rows] == [3, 3]
    assert [row.error_message for row in rows] == [
        None, "This server does not host this topic-partition.",
    ]  # fmt: skip
