"""Groups under the steps of a tester, with members on the wire."""

import asyncio
from typing import Any

import pytest

from kproto.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.running.fixture import MockKafka
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of


def cluster(**options: Any) -> MockCluster:
    configs = {"group.initial.rebalance.delay.ms": "0"}
    return MockCluster(1, topics=["foo:2:1"], broker_configs=configs, **options)


def join(member_id: str = "", instance: str | None = None) -> Any:
    return request_of(
        "JoinGroup",
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        name="range",
        metadata=b"",
    )


async def coordinated(mock: MockCluster) -> None:
    """Create the internal topic, as FindCoordinator does."""
    mock.set_offset("other", "foo-0", 0)


async def member(wire: Wire, instance: str = "one") -> str:
    """Join alone and become stable with foo-0; the member's id."""
    joined = await wire.ask(join(instance=instance), 5)
    assert joined.error_code == 0
    assigned = ConsumerProtocolAssignment(
        assigned_partitions=[TopicPartition(topic="foo", partitions=[0])]
    )
    given = {"member_id": joined.member_id, "assignment": b"\x00\x00" + assigned.encode(0)}
    synced = await wire.ask(
        "SyncGroup",
        1,
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[given],
    )
    assert synced.error_code == 0
    found: str = joined.member_id
    return found


async def beat(wire: Wire, member_id: str, instance: str | None = None, generation: int = 1) -> int:
    request = request_of(
        "Heartbeat",
        group_id="g",
        member_id=member_id,
        generation_id=generation,
        group_instance_id=instance,
    )
    code: int = (await wire.ask(request, 3)).error_code
    return code


@pytest.mark.requirement("DP-CTL-18", "DP-CTL-54")
async def test_joins_are_held_and_completed() -> None:
    async with cluster() as mock, connect(mock) as wire:
        await coordinated(mock)
        await member(wire)
        mock.hold_joins("g")
        mock.rebalance("g")
        waiting = asyncio.create_task(wire.ask(join(instance="two"), 5))
        view = await mock.wait_for_group("g", state="PreparingRebalance", members=2)
        assert view.held
        assert [each.joining for each in view.members] == [False, True]
        mock.complete_join("g")
        assert (await waiting).generation_id == 2
        assert not mock.groups()["g"].held


@pytest.mark.requirement("DP-CTL-19", "DP-CTL-20", "DP-CTL-21", "DP-CTL-22", "DP-CTL-23")
@pytest.mark.parametrize(
    ("command", "code"),
    [("rebalance g", 27), ("expire-member g one", 25), ("remove-member g one", 25),
     ("fence-instance g one", 82), ("set-generation g 9", 22)],
)  # fmt: skip
async def test_a_member_gets_the_error_of_each_step(command: str, code: int) -> None:
    async with cluster() as mock, connect(mock) as wire:
        await coordinated(mock)
        one = await member(wire)
        assert await beat(wire, one, "one") == 0
        await mock.run_command(command)
        assert await beat(wire, one, "one") == code


@pytest.mark.requirement("DP-CTL-28")
async def test_offsets_are_set_and_dropped() -> None:
    async with cluster() as mock:
        mock.produce("foo", value="x", partition=0)
        mock.set_offset("g", "foo-0", 1)
        mock.set_offset("g", ("foo", 1), 0)
        assert mock.committed("g") == {("foo", 0): 1, ("foo", 1): 0}
        mock.drop_offset("g", "foo-0")
        assert mock.committed("g") == {("foo", 1): 0}
        assert mock.committed("nobody") == {}
        with pytest.raises(ClusterError, match="group 'g' has no offset for foo-0"):
            mock.drop_offset("g", "foo-0")


@pytest.mark.requirement("DP-CTL-29")
async def test_commits_wait_while_they_are_held() -> None:
    async with cluster() as mock, connect(mock) as wire:
        await coordinated(mock)
        one = await member(wire)
        mock.hold_commits("g")
        partition = {"partition_index": 0, "committed_offset": 7}
        topic = {"name": "foo", "partitions": [partition]}
        commit = request_of(
            "OffsetCommit",
            group_id="g",
            generation_id_or_member_epoch=1,
            member_id=one,
            topics=[topic],
        )
        waiting = asyncio.create_task(wire.ask(commit, 7))
        async with asyncio.timeout(10):
            while not mock.cluster.offsets.is_unstable("g", ("foo", 0)):
                await asyncio.sleep(0)
        assert mock.committed("g") == {}
        assert mock.cluster.offsets.waiting_commits() == {"g": 1}
        mock.release_commits("g")
        assert (await waiting).topics[0].partitions[0].error_code == 0
        assert mock.committed("g") == {("foo", 0): 7}


@pytest.mark.requirement("DP-CTL-53")
async def test_a_wait_ends_when_the_group_changes_or_says_what_it_is() -> None:
    async with cluster() as mock, connect(mock) as wire:
        await coordinated(mock)
        stable = asyncio.create_task(mock.wait_for_group("g", state="Stable", members=1))
        one = await member(wire)
        view = await stable
        assert [each.member_id for each in view.members] == [one]
        assert view.members[0].assignment == (("foo", 0),)
        assert (view.leader, view.protocol, view.generation) == (one, "range", 1)
        with pytest.raises(TimeoutError, match="group 'nope' does not exist after 0 s, wanted: st"):
            await mock.wait_for_group("nope", state="Stable", timeout=0)
        with pytest.raises(TimeoutError, match=r"is GroupView.*wanted: members 3"):
            await mock.wait_for_group("g", members=3, timeout=0)
        assert len(mock.cluster.groups.on_changed) == len(cluster().cluster.groups.on_changed)


@pytest.mark.requirement("DP-API-97", "DP-CTL-53")
async def test_a_wait_ends_when_an_offset_is_committed_or_says_which_are() -> None:
    async with cluster() as mock:
        await coordinated(mock)
        before = len(mock.cluster.offsets.on_changed)
        waiting = asyncio.create_task(mock.wait_for_committed("g", {"foo-0": 2, "foo-1": 1}))
        await asyncio.sleep(0)
        mock.set_offset("g", "foo-0", 3)
        mock.set_offset("g", "foo-1", 0)
        await asyncio.sleep(0.01)
        assert not waiting.done()
        mock.set_offset("g", "foo-1", 1)
        assert await waiting == {("foo", 0): 3, ("foo", 1): 1}
        text = "group 'g' has committed foo-0 3, foo-1 1 after 0 s, wanted: foo-0 4"
        with pytest.raises(TimeoutError, match=text):
            await mock.wait_for_committed("g", {("foo", 0): 4}, timeout=0)
        assert len(mock.cluster.offsets.on_changed) == before


@pytest.mark.requirement("DP-API-97", "DP-CTL-53")
async def test_the_control_port_waits_for_an_offset() -> None:
    async with controlled() as (_, client):
        where = "/offsets/g/wait?partition=foo-0"
        assert (await client.get(f"{where}&timeout=1ms"))[0] == 408
        waiting = asyncio.create_task(client.get(f"{where}&offset=1"))
        await client.step("set-offset", group="g", partition="foo-0", offset=1)
        status, found = await waiting
        assert (status, found["foo-0"]["offset"]) == (200, 1)
        assert (await client.get(f"{where}&offset=2&timeout=1ms"))[0] == 408
        assert (await client.get("/offsets/g/wait"))[0] == 400


@pytest.mark.requirement("DP-CTL-52", "DP-CTL-53", "DP-CTL-54", "DP-API-97")
async def test_the_control_port_shows_groups_and_offsets() -> None:
    options = {"broker_configs": {"group.initial.rebalance.delay.ms": "0"}, "clock": "manual"}
    async with controlled(**options) as (mock, client):
        await client.step("set-offset", group="g", partition="foo-0", offset=0)
        mock.produce("foo", value="x")
        broker = next(each for each in (1, 2, 3, 4)
                      if not mock.cluster.coordinators.group_error("g", each))  # fmt: skip
        async with connect(mock, broker) as wire:
            one = await member(wire)
        _, found = await client.get("/groups/g/wait?state=Stable&members=1")
        assert found["members"][0]["assignment"] == ["foo-0"]
        assert (await client.get("/groups/g"))[1] == found
        assert (await client.get("/groups"))[1] == {"g": found}
        assert (
            found["members"][0] | {"session_ends_ms": 10_000, "member_id": one}
            == (found["members"][0])
        )
        assert (await client.get("/offsets/g"))[1]["foo-0"] == {
            "offset": 0, "leader_epoch": -1, "metadata": "", "committed_ms": 0, "lag": 1,
        }  # fmt: skip
        _, waiting = await client.get("/waiting")
        assert waiting["next_due_ms"] is not None
        assert (waiting["fetches"], waiting["joins"], waiting["syncs"]) == ([], {}, {})
        assert {"due_ms": 10_000, "name": f"group g: session of {one}"} in waiting["timers"]
        assert waiting["commits"] == {}
        assert (await client.get("/groups/nope"))[0] == 404
        assert (await client.get("/groups/g/wait?members=5&timeout=1ms"))[0] == 408
        assert (await client.get("/groups/g/wait?state=Sleeping"))[0] == 400


@pytest.mark.requirement("DP-CTL-54")
async def test_what_waits_is_shown() -> None:
    from tests.mockbroker.simulation.operations.test_requests_that_wait import fetch, produce

    async with controlled() as (mock, client):
        mock.hold_replication("foo-0")
        async with connect(mock) as produces, connect(mock) as fetches:
            produces.send(produces.frame(produce(), 9))
            fetches.send(fetches.frame(fetch(), 11))
            async with asyncio.timeout(10):
                while not (mock.cluster.fetches.waiting() and mock.records("foo")):
                    await asyncio.sleep(0.001)
            _, waiting = await client.get("/waiting")
        assert waiting["watched_logs"] == {"foo-0": 2}
        (found,) = waiting["fetches"]
        assert (found["broker"], found["partitions"], found["min_bytes"]) == (1, ["foo-0"], 1)


def test_committed_offsets_are_asserted(mock_kafka_factory: type[MockKafka]) -> None:
    mock = mock_kafka_factory(topics=["foo:2:1"])
    mock.set_offset("g", "foo-0", 3)
    mock.assert_committed("g", {"foo-0": 3})
    mock.assert_committed("g", {("foo", 0): 3})
    with pytest.raises(AssertionError, match="group 'g' has committed foo-0 3, not foo-1 0"):
        mock.assert_committed("g", {"foo-1": 0})
    assert mock.groups()["g"].state == "Empty"
