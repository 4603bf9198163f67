"""A group rebalances again and again, because a member disturbs it each time it is stable."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from kproto.error_codes import ErrorCode
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import GroupMember, coordinator_of, opened
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

_ROUNDS = 3


@scenario(
    "rebalance-storm",
    "A group rebalances as soon as it is stable, and its members do no work",
    "DP-CTL-59",
    "DP-CTL-19",
)
async def rebalance_storm(story: Story) -> None:
    async with (
        MockCluster(3, topics=["foo:3:1"], profile="kafka-4.1", clock="manual") as mock,
        AsyncExitStack() as stack,
    ):
        await story.run(mock, "load-coordinator group g", "finish-loading group g")
        broker = await coordinator_of(await stack.enter_async_context(opened(mock, 1)), "g")
        members = [
            GroupMember(await stack.enter_async_context(opened(mock, broker)), "g", "foo")
            for _ in range(3)
        ]
        story.step("Three consumers join the group g one after another.")
        for count in range(1, 4):
            await _rebalance(story, mock, members[:count], new=members[count - 1])
        for number in range(1, _ROUNDS + 1):
            story.step(f"Storm, round {number}: the coordinator begins a rebalance.")
            before = mock.groups()["g"].generation
            await story.run(mock, "rebalance g")
            codes = [await each.heartbeat() for each in members]
            story.check(
                "each heartbeat has error 27",
                codes == [ErrorCode.REBALANCE_IN_PROGRESS] * len(members),
            )
            await _rebalance(story, mock, members)
            story.check("the generation is one higher", mock.groups()["g"].generation == before + 1)


async def _rebalance(
    story: Story, mock: MockCluster, members: list[GroupMember], new: GroupMember | None = None
) -> None:
    """Let all members join, after a new one has, and then sync."""
    joining = [] if new is None else [asyncio.create_task(new.join())]
    if len(members) > 1:
        await mock.wait_for_group("g", state="PreparingRebalance")
    codes = await asyncio.gather(*joining, *(each.join() for each in members if each is not new))
    story.check(f"{len(members)} members have joined", not any(codes))
    assigned = await asyncio.gather(*(each.sync() for each in members))
    story.check(
        "each has a partition of its own",
        sorted(index for each in assigned for index in each) == list(range(len(members))),
    )
    story.check("the group is stable", mock.groups()["g"].state == "Stable")
