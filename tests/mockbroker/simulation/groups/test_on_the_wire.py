"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup on sockets: answers that wait, and for whom."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker import MockCluster
from tests.mockbroker.wire import PATIENCE, Wire, connect
from tests.support.requests import request_of

GROUP = "g"


def join(member_id: str = "", *, instance_id: str | None = None) -> Any:
    return request_of(
        "JoinGroup",
        group_id=GROUP,
        member_id=member_id,
        group_instance_id=instance_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        name="range",
        metadata=b"m",
    )


def sync(joined: Any, **assignments: bytes) -> Any:
    return request_of(
        "SyncGroup",
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[{"member_id": each, "assignment": data} for each, data in assignments.items()],
    )


@asynccontextmanager
async def cluster() -> AsyncIterator[MockCluster]:
    async with MockCluster(1, clock="manual", profile="kafka-4.4") as mock:
        async with connect(mock) as wire:
            found = request_of("FindCoordinator", coordinator_keys=[GROUP])
            await wire.ask(found, 4)
            answer = await wire.ask(found, 4)
            assert [each.error_code for each in answer.coordinators] == [ErrorCode.NONE]
        yield mock


async def member_id(wire: Wire) -> str:
    answer = await wire.ask(join(), 9)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    found: str = answer.member_id
    return found


async def state_becomes(mock: MockCluster, state: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (group := mock.cluster.groups.group(GROUP)) is None or group.state != state:
            await asyncio.sleep(0.001)


@pytest.mark.requirement("DP-GROUP-09", "DP-SYNC-07", "DP-BEAT-04", "DP-LEAVE-05")
async def test_two_members_form_a_group() -> None:
    async with cluster() as mock, connect(mock) as first, connect(mock) as second:
        one = await first.ask(join(await member_id(first)), 9)
        assert (one.generation_id, one.leader) == (1, one.member_id)
        await first.ask(sync(one, **{one.member_id: b"all"}), 5)

        # The second member's join waits for the first, which learns of it by a heartbeat.
        other = await member_id(second)
        second.send(second.frame(join(other), 9))
        await state_becomes(mock, "PreparingRebalance")
        beat = request_of("Heartbeat", group_id=GROUP, generation_id=1, member_id=one.member_id)
        assert (await first.ask(beat, 4)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        one = await first.ask(join(one.member_id), 9)
        _, two = second.codec.decode_response(await second.receive(), api_key=11, api_version=9)
        assert (one.generation_id, two.generation_id) == (2, 2)
        assert {each.member_id for each in one.members} == {one.member_id, other}
        assert (two.members, two.leader) == ([], one.member_id)

        # The follower's sync waits for the leader's.
        second.send(second.frame(sync(two), 5))
        mine = await first.ask(sync(one, **{one.member_id: b"1", other: b"2"}), 5)
        _, its = second.codec.decode_response(await second.receive(), api_key=14, api_version=5)
        assert (mine.assignment, its.assignment) == (b"1", b"2")

        leave = request_of("LeaveGroup", group_id=GROUP, members={"member_id": other})
        assert (await second.ask(leave, 5)).members[0].error_code == ErrorCode.NONE
        await state_becomes(mock, "PreparingRebalance")


@pytest.mark.requirement("DP-GROUP-16")
async def test_a_join_that_waits_holds_up_no_other_connection_and_outlives_its_own() -> None:
    async with cluster() as mock, connect(mock) as first, connect(mock) as third:
        one = await first.ask(join(await member_id(first)), 9)
        await first.ask(sync(one, **{one.member_id: b"all"}), 5)
        async with connect(mock) as second:
            other = await member_id(second)
            second.send(second.frame(join(other), 9))
            await state_becomes(mock, "PreparingRebalance")
            assert (await third.ask("ApiVersions", 0)).error_code == ErrorCode.NONE
        # The client has gone; its member stays until its time is up.
        one = await first.ask(join(one.member_id), 9)
        assert {each.member_id for each in one.members} == {one.member_id, other}
