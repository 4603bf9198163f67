"""What a broker answers to its controller, by the bytes on any listener."""

from typing import Any

import pytest

from kproto.dialects import dialect
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.mockbroker.simulation.brokers.inter_broker.talking import talking
from tests.mockbroker.wire import connect
from tests.support.requests import request_of

STALE_CONTROLLER_EPOCH, STALE_BROKER_EPOCH = 11, 77
UNKNOWN_TOPIC_OR_PARTITION, FENCED_LEADER_EPOCH = 3, 74


def led(leader_epoch: int = 0, replicas: tuple[int, ...] = (1, 2), **head: int) -> Any:
    state = {
        "topic_name": "foo",
        "leader": 1,
        "leader_epoch": leader_epoch,
        "isr": [1],
        "replicas": list(replicas),
    }
    topic = {"topic_name": "foo", "partition_states": [state]}
    return lambda version: request_of(
        "LeaderAndIsr",
        **{"controller_id": 1, "controller_epoch": 5, **head},
        ungrouped_partition_states=[state] if version < 2 else [],
        topic_states=[topic] if version >= 2 else [],
    )


def stopped(leader_epoch: int, **head: int) -> Any:
    state = {"leader_epoch": leader_epoch, "delete_partition": True}
    topic = {"topic_name": "foo", "partition_states": [state]}
    return request_of(
        "StopReplica", **{"controller_id": 1, "controller_epoch": 5, **head}, topic_states=[topic]
    )


def errors(answer: Any, version: int) -> tuple[int, list[int]]:
    rows = answer.partition_errors
    if version >= 5:
        rows = [row for topic in answer.topics for row in topic.partition_errors]
    return answer.error_code, [row.error_code for row in rows]


def asked() -> DirectBroker:
    return DirectBroker(Cluster(3), profile_name="kafka-3.9-zk")


@pytest.mark.parametrize("version", range(8))
def test_leader_and_isr_by_epochs(version: int) -> None:
    """In order: taken, known already, of an older controller, of a newer one, no replica here."""
    broker = asked()

    def answer(make: Any) -> tuple[int, list[int]]:
        return errors(broker.ask(make(version), version), version)

    assert answer(led(3)) == (0, [0])
    assert answer(led(3)) == (0, [STALE_CONTROLLER_EPOCH])
    assert answer(led(2)) == (0, [STALE_CONTROLLER_EPOCH])
    refused = (STALE_CONTROLLER_EPOCH, [STALE_CONTROLLER_EPOCH])
    assert answer(led(4, controller_epoch=4)) == refused
    assert broker.cluster.memories[1].replicas["foo", 0].leader_epoch == 3
    assert answer(led(4, controller_id=2, controller_epoch=6)) == (0, [0])
    assert answer(led(5, controller_epoch=6, replicas=(2, 3))) == (0, [UNKNOWN_TOPIC_OR_PARTITION])
    memory = broker.cluster.memories[1]
    assert (memory.controller_id, memory.controller_epoch) == (1, 6)
    assert memory.replicas["foo", 0].leader_epoch == 4
    assert broker.cluster.memories[2].replicas == {}


def test_stop_replica_by_epochs() -> None:
    broker = asked()
    for leader_epoch, code, left in [(2, FENCED_LEADER_EPOCH, 1), (3, 0, 0), (2, 0, 0)]:
        if leader_epoch != 2 or left:
            broker.ask(led(3)(4), 4)
        answer = broker.ask(stopped(leader_epoch), 3)
        assert errors(answer, 3) == (0, [code])
        assert len(broker.cluster.memories[1].replicas) == left
    broker.ask(led(3)(4), 4)
    answer = broker.ask(stopped(-2), 4)  # the topic is being deleted, whatever the epoch
    assert errors(answer, 4) == (0, [0])
    assert broker.cluster.memories[1].replicas == {}
    answer = broker.ask(stopped(9, controller_epoch=4), 3)
    assert (answer.error_code, answer.partition_errors) == (STALE_CONTROLLER_EPOCH, [])


def test_update_metadata_by_controller_epoch() -> None:
    broker = asked()
    newest = request_of("UpdateMetadata", controller_id=1, controller_epoch=7)
    oldest = request_of("UpdateMetadata", controller_id=2, controller_epoch=6)
    for version in range(9):
        assert broker.ask(newest, version).error_code == 0
        assert broker.ask(oldest, version).error_code == STALE_CONTROLLER_EPOCH
    assert broker.cluster.memories[1].controller_id == 1


def test_a_request_for_an_earlier_life_is_refused() -> None:
    cluster = simulated_cluster(2, topics=["foo=1,2"], reassignment="zookeeper")
    broker = DirectBroker(cluster, profile_name="kafka-3.9-zk")
    before = cluster.memories.epoch(1)
    broker.ask(led(0, broker_epoch=before)(2), 2)
    assert cluster.memories[1].replicas
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    assert cluster.memories.epoch(1) > before
    assert cluster.memories[1].replicas == {}
    answer = broker.ask(led(9, broker_epoch=before)(2), 2)
    assert errors(answer, 2) == (STALE_BROKER_EPOCH, [STALE_BROKER_EPOCH])
    answer = broker.ask(stopped(9, broker_epoch=before), 3)
    assert answer.error_code == STALE_BROKER_EPOCH
    request = request_of("UpdateMetadata", controller_id=1, controller_epoch=7, broker_epoch=before)
    assert broker.ask(request, 5).error_code == STALE_BROKER_EPOCH
    # An epoch of none says nothing.
    assert errors(broker.ask(led(9)(1), 1), 1) == (0, [0])


def hexed(text: str) -> bytes:
    return bytes.fromhex("".join(text.split()))


@pytest.mark.requirement("C-07", "K455-15", "K455-16")
async def test_a_draft_broker_reads_targets_from_version_3_on() -> None:
    """The bytes are made here by hand: foo-0 has replicas [1], and moves to [2]."""
    head = "0004 {version} 00000001 0001 61"
    body = """
        00000001 00000001 ffffffffffffffff
        00000001 0003 666f6f
          00000001 00000000 00000001 00000001 00000007
            00000001 00000001  00000000  00000001 00000001 {target} 00
        00000000
    """
    versions = {"0002": "", "0003": "00000001 00000002"}
    expected = {"0002": (UNKNOWN_TOPIC_OR_PARTITION, None), "0003": (0, (2,))}
    for version, target in versions.items():
        async with talking(2, profile="kip-455-new", inter_broker=False) as mock:
            content = hexed(head.format(version=version) + body.format(target=target))
            async with connect(mock, 2) as wire:
                wire.send(len(content).to_bytes(4, "big") + content)
                answer = await wire.receive()
            code, known = expected[version]
            row = hexed("0003 666f6f 00000000") + code.to_bytes(2, "big")
            told = hexed("00000001 0000 00000001") + row
            assert answer == len(told).to_bytes(4, "big") + told
            replica = mock.broker_knows(2).replicas.get(("foo", 0))
            assert (replica.target_replicas if replica else None) == known


@pytest.mark.requirement("K455-17")
async def test_a_released_broker_has_no_targets() -> None:
    """The draft's version 3 is not the released one's; a listener that takes both tells them
    apart."""
    make = dialect("kip-455-new").apis[4].request
    states = make.STRUCTS["LeaderAndIsrTopicState"]
    state = make.STRUCTS["LeaderAndIsrPartitionState"]
    body = make(
        controller_epoch=9,
        topic_states=[
            states(
                name="foo",
                partition_states=[state(leader_epoch=1, replicas=[1], target_replicas=[2])],
            )
        ],
    )
    frame = dialect("kip-455-new").encode_request(
        body, api_version=3, correlation_id=1, client_id="1"
    )
    async with talking(2, profile="kafka-2.4", inter_broker=False) as mock:
        async with connect(mock, 2) as wire:
            wire.send(frame)
            assert await wire.closed() == b""
        assert mock.broker_knows(2).replicas == {}
    async with (
        talking(2, profile="kafka-2.4", dialect="auto", inter_broker=False) as mock,
        connect(mock, 2) as wire,
    ):
        wire.send(frame)
        _, answer = dialect("kip-455-new").decode_response(
            await wire.receive(), api_key=4, api_version=3
        )
        assert answer.partitions[0].error_code == 0  # type: ignore[attr-defined]
        assert mock.broker_knows(2).replicas["foo", 0].target_replicas == (2,)
