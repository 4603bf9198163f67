"""Brokers too old for the TargetReplicas of KIP-455's draft: stuck reassignments, downgrades."""

from __future__ import annotations

from kproto.client import Admin, TopicPartition
from kproto.schema.versions import Versions
from mockbroker.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

DRAFT = "kip-455-new"
FOO = TopicPartition("foo", 0)
OLD_SOFTWARE = {4: Versions(0, 2)}
NEW_SOFTWARE = {4: Versions(0, 3)}


@scenario(
    "stuck-reassignment",
    "A reassignment to a broker too old for TargetReplicas stays stuck, until another controller",
    "K455-64",
)
async def stuck_reassignment(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap, dialect=DRAFT) as admin:
        story.says(
            "Brokers 1, 2 and 3 hold foo-0; 1 is the controller. Brokers 1 to 4 run the draft of"
        )
        story.says(
            "KIP-455. Broker 5 does not: it knows LeaderAndIsr up to version 2, which has no field"
        )
        story.says("for the target.")
        await mock.set_level(5, OLD_SOFTWARE)
        story.skips(mock)
        story.step("An admin client asks for foo-0 on brokers 3, 4 and 5.")
        await admin.alter_partition_reassignments({FOO: [3, 4, 5]}).all()
        story.looks(mock)
        story.step("Broker 4 was told of the target. It fetches, and joins.")
        mock.join_isr(FOO, 4)
        story.looks(mock)
        story.step("Broker 5 got a LeaderAndIsr that names it nowhere.")
        await mock.settled()
        unknown = FOO not in mock.broker_knows(5).replicas
        story.holds("it has read the request, and hosts nothing of foo-0", unknown)
        with story.refused("it does not fetch"):
            mock.join_isr(FOO, 5)
        story.step("Broker 5 is upgraded.")
        await mock.set_level(5, NEW_SOFTWARE)
        story.looks(mock)
        with story.refused("that alone changes nothing"):
            mock.join_isr(FOO, 5)
        ongoing = await admin.list_partition_reassignments()
        story.holds("the reassignment is still listed: stuck", FOO in ongoing)
        story.step(
            "The controller restarts; broker 2 takes over and sends what is on record again."
        )
        mock.failover(2)
        story.looks(mock)
        story.step("Now broker 5 fetches as well, and the reassignment ends.")
        mock.join_isr(FOO, 5)
        story.looks(mock)
        story.holds("foo-0 is on 3, 4, 5", mock.cluster.partition(*FOO).replicas == (3, 4, 5))
        story.holds("nothing is listed", not await admin.list_partition_reassignments())


@scenario(
    "broker-downgrade",
    "A target is downgraded in the midst of a reassignment, which cannot end any more",
    "K455-65",
)
async def broker_downgrade(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap, dialect=DRAFT) as admin:
        story.says("All brokers run the draft of KIP-455.")
        story.skips(mock)
        story.step("An admin client asks for foo-0 on brokers 4 and 5.")
        await admin.alter_partition_reassignments({FOO: [4, 5]}).all()
        story.looks(mock)
        story.step("Broker 5 is downgraded: it takes no notice of targets any more.")
        await mock.set_level(5, OLD_SOFTWARE)
        with story.refused("it stops fetching"):
            mock.join_isr(FOO, 5)
        story.step("Broker 4 goes on.")
        mock.join_isr(FOO, 4)
        story.looks(mock)
        ongoing = await admin.list_partition_reassignments()
        story.holds("the reassignment cannot end", ongoing[FOO].target_brokers == [4, 5])


@scenario(
    "controller-downgrade",
    "An older controller tells nobody of targets: every reassignment stops, and is not forgotten",
    "K455-65",
)
async def controller_downgrade(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap, dialect=DRAFT) as admin:
        story.says("All brokers run the draft of KIP-455, but for broker 2.")
        await mock.set_level(2, OLD_SOFTWARE)
        story.skips(mock)
        story.step("An admin client asks for foo-0 on brokers 4 and 5.")
        await admin.alter_partition_reassignments({FOO: [4, 5]}).all()
        story.looks(mock)
        story.step("Broker 2 becomes the controller. It sends LeaderAndIsr without the field.")
        mock.failover(2)
        story.looks(mock)
        for broker in (4, 5):
            with story.refused(f"broker {broker} stops"):
                mock.join_isr(FOO, broker)
        state = mock.cluster.znodes["/brokers/topics/foo/partitions/0/state"]
        story.holds("the target is still on record", '"targetReplicas":[4,5]' in state)
        story.step("A controller that knows the draft takes over, and everything goes on.")
        mock.failover(3)
        story.looks(mock)
        for broker in (4, 5):
            mock.join_isr(FOO, broker)
        story.looks(mock)
        story.holds("foo-0 is on 4, 5", mock.cluster.partition(*FOO).replicas == (4, 5))


def _cluster() -> MockCluster:
    return MockCluster(5, topics=["foo=1,2,3"], profile=DRAFT, clock="manual")
