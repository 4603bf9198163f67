"""The coordinator of a group moves while a member commits."""

from __future__ import annotations

import asyncio

from kproto.error_codes import ErrorCode
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import GroupMember, commit, coordinator_of, opened
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []


@scenario(
    "coordinator-moves",
    "The coordinator moves during a commit: the member finds the new one and commits again",
    "DP-CTL-59",
    "DP-CTL-26",
    "DP-CTL-27",
)
async def coordinator_moves(story: Story) -> None:
    async with MockCluster(3, topics=["foo:1:1"], profile="kafka-4.1", clock="manual") as mock:
        await story.run(mock, "load-coordinator group g", "finish-loading group g")
        async with opened(mock, 1) as first:
            old = await coordinator_of(first, "g")
        new = old % 3 + 1
        async with opened(mock, old) as there, opened(mock, new) as here:
            member = GroupMember(there, "g", "foo")
            story.step(f"A consumer joins the group g at broker {old}, its coordinator.")
            story.check("it is a member", not await member.join() and await member.sync() == [0])
            story.step("Its commits are held; it commits offset 7.")
            await story.run(mock, "hold-commits g")
            waiting = asyncio.create_task(commit(there, "g", "foo", 7, member))
            await asyncio.sleep(0)
            while not mock.cluster.offsets.waiting_commits():
                await asyncio.sleep(0)
            story.step(f"The coordinator moves to broker {new} before the commit is stored.")
            await story.run(mock, f"move-coordinator group g {new}")
            code = await waiting
            story.check("the commit fails with error 16", code == ErrorCode.NOT_COORDINATOR)
            story.check("no offset is committed", mock.committed("g") == {})
            await story.run(mock, "release-commits g")
            story.step("The consumer looks for the coordinator again.")
            story.check(f"it is broker {new}", await coordinator_of(there, "g") == new)
            story.step("The new coordinator is still loading the group.")
            await story.run(mock, "load-coordinator group g")
            code = await commit(here, "g", "foo", 7, member)
            loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            story.check("a commit fails with error 14", code == loading)
            await story.run(mock, "finish-loading group g")
            story.step("It has loaded the group. The consumer commits once more.")
            code = await commit(here, "g", "foo", 7, member)
            story.check("the same member and generation are known there", code == ErrorCode.NONE)
            story.check("offset 7 is committed", mock.committed("g") == {("foo", 0): 7})
