"""An acknowledged record is lost, because a replica without it becomes the leader."""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import fetch, opened, produce
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story
from mockbroker.simulation.state.actions import RecordsLost

__all__: list[str] = []


@scenario(
    "unclean-loss",
    "An unclean election loses an acknowledged record, and a consumer learns of it (KIP-320)",
    "DP-CTL-59",
    "DP-CTL-12",
)
async def unclean_loss(story: Story) -> None:
    async with MockCluster(3, topics=["foo=1,2,3"], profile="kafka-4.1", clock="manual") as mock:
        async with opened(mock, 1) as leader:
            story.step("A producer sends two records with acks all; broker 2 misses the second.")
            kept = await produce(leader, "foo", "kept")
            await story.run(mock, "leave-isr foo-0 2")
            lost = await produce(leader, "foo", "lost")
            story.check(
                "both are acknowledged",
                (kept.error_code, lost.error_code, lost.base_offset) == (0, 0, 1),
            )
            _, values = await fetch(leader, "foo", 0)
            story.check("a consumer reads both", values == [b"kept", b"lost"])
        story.step("Brokers 1 and 3 are lost, and broker 2 is elected although it lacks a record.")
        await story.run(mock, "unclean-election foo-0 2")
        losses = [each.change for each in mock.cluster.log if isinstance(each.change, RecordsLost)]
        story.check(
            "the action log tells that one acknowledged record is lost",
            losses == [RecordsLost("foo", 0, 1, 1, 1)],
        )
        async with opened(mock, 2) as leader:
            story.step("The consumer goes on at offset 2 of epoch 0, with the new leader.")
            part, values = await fetch(leader, "foo", 2, epoch=0, read_epoch=0)
            fenced = ErrorCode.FENCED_LEADER_EPOCH
            story.check("its leader epoch is too old: error 74", part.error_code == fenced)
            part, values = await fetch(leader, "foo", 2, epoch=1, read_epoch=0)
            diverging = part.diverging_epoch
            story.check(
                "the leader says that epoch 0 ends at offset 1",
                (diverging.epoch, diverging.end_offset) == (0, 1),
            )
            story.step("A producer sends another record, which gets the offset of the lost one.")
            new = await produce(leader, "foo", "new")
            story.check("its offset is 1", new.base_offset == 1)
            _, values = await fetch(leader, "foo", 0)
            story.check("the log is kept, new", values == [b"kept", b"new"])
