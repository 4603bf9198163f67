"""Whatever the log says was sent arrives, at every version there ever was; of each partition in the
log's order, and step by step."""

from collections import defaultdict
from typing import Any

import pytest

from kproto.schema.model import ZERO_UUID
from kproto.schema.versions import Versions
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.profiles import all_profiles, profile
from mockbroker.simulation.reassignment import keeps_znodes
from tests.mockbroker.simulation.brokers.inter_broker.heard import (
    Heard,
    alter,
    heard,
    recorded,
    said,
)
from tests.mockbroker.simulation.brokers.inter_broker.talking import talking

RELEASED = [("kafka-3.9-zk", {4: v, 5: min(v, 4), 6: v}) for v in range(9) if v <= 7] + [
    ("kafka-3.9-zk", {4: 7, 5: 4, 6: 8})
]
DRAFTS = [
    (name, {4: v, 5: min(v, 1), 6: v}) for name in ("kip-455-old", "kip-455-new") for v in range(4)
]


async def live_a_little(mock: MockCluster) -> None:
    """Everything a controller has something to say about."""
    await mock.settled()
    assert alter(mock, [4, 2]) == 0
    mock.join_isr("foo-0", 4)
    mock.leave_isr("foo-1", 3)
    mock.cluster.topics.add_partitions([("foo", 3, [[4, 1]])])
    await mock.settled()
    await mock.stop_broker(1)
    await mock.settled()
    await mock.start_broker(1)
    mock.failover(1)
    mock.cluster.topics.delete([("bar", ZERO_UUID)])
    await mock.settled()


@pytest.mark.parametrize(
    ("profile", "versions"),
    [pytest.param(*each, id=f"{each[0]}-v{each[1][4]}") for each in RELEASED + DRAFTS],
)
@pytest.mark.requirement("K455-15", "K455-16", "K455-17")
async def test_what_arrives_is_what_the_log_says(profile: str, versions: dict[int, int]) -> None:
    apis = {key: Versions(0, highest) for key, highest in versions.items()}
    async with talking(
        4,
        topics=["foo=1,2,3/2,3,1", "bar=3,4"],
        profile=profile,
        apis=apis,
        clock="manual",
        # The draft's version 3 is for those that a target reaches; its older ones cannot move.
        broker_levels={3: "4=0-0"},
    ) as mock:
        if profile.startswith("kip") and versions[4] < 3:
            # Broker 4 is told of no target; that stops the reassignment, and nothing else.
            with pytest.raises(ClusterError, match="does not fetch foo-0"):
                await live_a_little(mock)
            await mock.settled()
        else:
            await live_a_little(mock)
        requests = heard(mock)
        assert {each.api_key for each in requests} >= {4, 6}
        for broker_id in (1, 2, 3, 4):
            mine = [each for each in requests if each.broker_id == broker_id]
            arrived = [row for each in mine for row in said(each)]
            assert by_partition(arrived) == by_partition(recorded(mock, broker_id))
            for each in mine:
                expected = versions[each.api_key]
                assert each.version == (0 if (broker_id, each.api_key) == (3, 4) else expected)
                check_the_head(mock, each)
        check_connections(requests)


def by_partition(rows: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    """One request tells of many partitions; which of them comes first there says nothing."""
    found: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in rows:
        found[row[2]].append(row)
    return found


def check_the_head(mock: MockCluster, request: Heard) -> None:
    body = request.body
    assert request.client_id == str(body.controller_id)
    assert 1 <= body.controller_epoch <= mock.cluster.state.controller_epoch
    epochs_since = {4: 2, 5: 1, 6: 5}[request.api_key]
    if request.version >= epochs_since:
        assert 0 < body.broker_epoch <= mock.cluster.memories.epoch(request.broker_id)
    else:
        assert body.broker_epoch == -1
    if request.api_key == 6:
        check_live_brokers(mock, request)
    elif request.api_key == 4:
        for leader in body.live_leaders:
            assert f"{leader.host_name}:{leader.port}" == mock.addresses[leader.broker_id]
        if request.version >= 5:
            ids = {topic.topic_id for topic in body.topic_states}
            assert ZERO_UUID not in ids


def check_live_brokers(mock: MockCluster, request: Heard) -> None:
    """Those that live are where clients reach them, whatever a version calls that."""
    for broker in request.body.live_brokers:
        if request.version == 0:
            where = f"{broker.v0_host}:{broker.v0_port}"
        else:
            (endpoint,) = broker.endpoints
            where = f"{endpoint.host}:{endpoint.port}"
            assert endpoint.listener == ("PLAINTEXT" if request.version >= 3 else "")
        assert where == mock.addresses[broker.id]


def check_connections(requests: list[Heard]) -> None:
    """One connection a broker and controller at a time, its correlation ids counting from 0."""
    numbers = defaultdict(list)
    for each in requests:
        numbers[each.broker_id, each.connection_id, each.client_id].append(each.correlation_id)
    assert all(ids == list(range(len(ids))) for ids in numbers.values())
    # A stopped broker has two lives, and broker 1, 2, 1 were controllers.
    assert len(numbers) <= 4 * 4


@pytest.mark.parametrize("profile", ["kafka-4.1", "kafka-3.9"])
async def test_kraft_controllers_send_nothing(profile: str) -> None:
    async with talking(topics=["foo=1,2"], profile=profile) as mock:
        mock.failover(2)
        await mock.settled()
        assert heard(mock) == []
        assert not [each for each in mock.cluster.log if each.kind.endswith("Sent")]


async def test_off_only_logs() -> None:
    async with talking(topics=["foo=1,2"], profile="kafka-2.4", inter_broker=False) as mock:
        await mock.settled()
        assert heard(mock) == []
        assert recorded(mock, 2) != []


async def test_one_step_is_one_request_an_api_and_broker() -> None:
    """However many partitions: the log has an entry for each, a broker one request for all."""
    async with talking(profile="kafka-2.4", clock="manual") as mock:
        await mock.settled()
        seen = heard(mock)[-1].sequence
        since = len(mock.cluster.log)
        mock.cluster.topics.add("big:500:3")
        await mock.settled()
        for broker_id in (1, 2, 3):
            requests = heard(mock, broker_id, after=seen)
            assert [each.api_key for each in requests] == [4, 6]
            assert len(recorded(mock, broker_id, since)) == 1000
            assert [len(said(each)) for each in requests] == [500, 500]


@pytest.mark.requirement("K455-16")
async def test_steps_arrive_one_after_the_other() -> None:
    """Also those that nobody waited for in between."""
    async with talking(3, topics=["a=1,2", "b=2,3"], profile="kafka-2.4") as mock:
        steps = []
        for name in ("a-0", "b-0"):
            for act in (mock.leave_isr, mock.join_isr):
                steps.append(len(mock.cluster.log))
                act(name, 2 if name == "a-0" else 3)
        await mock.settled()
        for broker_id in (1, 2, 3):
            expected = recorded(mock, broker_id, steps[0])
            told = [row for each in heard(mock, broker_id) for row in said(each)]
            assert told[-len(expected) :] == expected
            assert len(expected) == len(steps)


async def test_a_broker_that_goes_costs_the_others_few_requests() -> None:
    """It led some of the partitions, followed in others: both apis, turn by turn in the log."""
    topics = ["big=" + "/".join(["1,2,3", "2,3,1", "3,1,2"] * 20)]
    async with talking(3, topics=topics, profile="kafka-2.4", clock="manual") as mock:
        await mock.settled()
        seen, since = heard(mock)[-1].sequence, len(mock.cluster.log)
        await mock.stop_broker(2)
        await mock.settled()
        for broker_id in (1, 3):
            requests = heard(mock, broker_id, after=seen)
            told = [row for each in requests for row in said(each)]
            assert by_partition(told) == by_partition(recorded(mock, broker_id, since))
            assert len(requests) <= 4


async def test_a_partition_that_comes_again_begins_another_request() -> None:
    async with talking(4, topics=["foo=1,2,3"], profile="kip-455-new") as mock:
        assert alter(mock, [4]) == 0
        await mock.settled()
        seen = heard(mock)[-1].sequence
        mock.join_isr("foo-0", 4)  # joins, is added, completes, takes over: each is told
        await mock.settled()
        requests = heard(mock, 2, after=seen)
        assert len(requests) > 2
        for each in requests:
            tps = [row[2] for row in said(each)]
            assert len(set(tps)) == len(tps)


@pytest.mark.parametrize(
    "name", [each.name for each in all_profiles() if keeps_znodes(each.reassignment)]
)
@pytest.mark.parametrize("listener", ["its own", "auto"])
async def test_every_release_and_draft_of_the_zookeeper_era(name: str, listener: str) -> None:
    """At the versions its brokers advertise, in its own layouts whatever clients may speak, and
    with no complaint from either side."""
    own = profile(name)
    spoken = own.dialect if listener == "its own" else "auto"
    async with talking(3, topics=["foo=1,2"], profile=own, dialect=spoken, clock="manual") as mock:
        assert alter(mock, [2, 3]) == 0
        mock.leave_isr("foo-0", 2)
        mock.failover(3)
        await mock.settled()
        requests = heard(mock)
        highest = {key: mock.served[key].highest for key in (4, 5, 6)}
        assert {(each.api_key, each.version) for each in requests} <= set(highest.items())
        assert {each.api_key for each in requests} >= {4, 6}
        assert {each.dialect for each in requests} == {own.dialect}
        assert not [
            entry
            for entry in mock.journal.select()
            if entry.event not in ("", "connected", "disconnected")
        ]
        for broker_id in (1, 2, 3):
            memory = mock.broker_knows(broker_id)
            partition = mock.cluster.topics.partition("foo", 0)
            assert memory.partitions["foo", 0].isr == partition.isr
            assert ("foo", 0) in memory.replicas
