"""Brokers too old for TargetReplicas of KIP-455's draft: stuck reassignments, downgrades."""

from __future__ import annotations

from kproto.client import Admin, TopicPartition
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

DRAFT = "kip-455-new"
FOO = TopicPartition("foo", 0)
OLD_SOFTWARE = "4=0-2"
NEW_SOFTWARE = "4=0-3"


@scenario(
    "stuck-reassignment",
    "A reassignment to a broker too old for TargetReplicas is stuck until a failover",
    "K455-64",
)
async def stuck_reassignment(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap, dialect=DRAFT) as admin:
        story.note(
            "Brokers 1, 2 and 3 hold foo-0; 1 is the controller. Brokers 1 to 4 run the draft of"
        )
        story.note(
            "KIP-455. Broker 5 supports LeaderAndIsr up to version 2, which has no field for the"
        )
        story.note("target.")
        await story.run(mock, f"set-level 5 {OLD_SOFTWARE}")
        story.skip_actions(mock)
        story.step("An admin client asks for foo-0 on brokers 3, 4 and 5.")
        await admin.alter_partition_reassignments({FOO: [3, 4, 5]}).all()
        story.show_actions(mock)
        story.step("Broker 4 has received the target. It fetches, and joins the ISR.")
        await story.show(mock, "join-isr foo-0 4")
        story.step("Broker 5 has received a LeaderAndIsr that does not mention it.")
        await mock.settled()
        unknown = FOO not in mock.broker_knows(5).replicas
        story.check("it has read the request and hosts no replica of foo-0", unknown)
        with story.check_refused("it does not fetch"):
            await story.run(mock, "join-isr foo-0 5")
        story.step("Broker 5 is upgraded.")
        await story.show(mock, f"set-level 5 {NEW_SOFTWARE}")
        with story.check_refused("the upgrade alone changes nothing"):
            await story.run(mock, "join-isr foo-0 5")
        ongoing = await admin.list_partition_reassignments()
        story.check("the reassignment is still listed: stuck", FOO in ongoing)
        story.step("Broker 2 becomes the controller and sends everything on record again.")
        await story.show(mock, "failover 2")
        story.step("Now broker 5 fetches too, and the reassignment ends.")
        await story.show(mock, "join-isr foo-0 5")
        story.check(
            "foo-0 is on 3, 4, 5", mock.cluster.topics.partition(*FOO).replicas == (3, 4, 5)
        )
        story.check("no reassignment is listed", not await admin.list_partition_reassignments())


@scenario(
    "broker-downgrade",
    "A target broker is downgraded during a reassignment, which then never ends",
    "K455-65",
)
async def broker_downgrade(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap, dialect=DRAFT) as admin:
        story.note("All brokers run the draft of KIP-455.")
        story.skip_actions(mock)
        story.step("An admin client asks for foo-0 on brokers 4 and 5.")
        await admin.alter_partition_reassignments({FOO: [4, 5]}).all()
        story.show_actions(mock)
        story.step("Broker 5 is downgraded: it ignores targets from now on.")
        await story.run(mock, f"set-level 5 {OLD_SOFTWARE}")
        with story.check_refused("it stops fetching"):
            await story.run(mock, "join-isr foo-0 5")
        story.step("Broker 4 continues.")
        await story.show(mock, "join-isr foo-0 4")
        ongoing = await admin.list_partition_reassignments()
        story.check("the reassignment cannot end", ongoing[FOO].target_brokers == [4, 5])


@scenario(
    "controller-downgrade",
    "An older controller sends no targets: every reassignment pauses, but stays on record",
    "K455-65",
)
async def controller_downgrade(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap, dialect=DRAFT) as admin:
        story.note("All brokers but broker 2 run the draft of KIP-455.")
        await story.run(mock, f"set-level 2 {OLD_SOFTWARE}")
        story.skip_actions(mock)
        story.step("An admin client asks for foo-0 on brokers 4 and 5.")
        await admin.alter_partition_reassignments({FOO: [4, 5]}).all()
        story.show_actions(mock)
        story.step("Broker 2 becomes the controller. It sends LeaderAndIsr without the field.")
        await story.show(mock, "failover 2")
        for broker in (4, 5):
            with story.check_refused(f"broker {broker} stops"):
                await story.run(mock, f"join-isr foo-0 {broker}")
        state = mock.cluster.state.znodes["/brokers/topics/foo/partitions/0/state"]
        story.check("the target is still on record", '"targetReplicas":[4,5]' in state)
        story.step("A controller with the draft takes over, and the reassignment continues.")
        await story.show(mock, "failover 3")
        for broker in (4, 5):
            await story.run(mock, f"join-isr foo-0 {broker}")
        story.show_actions(mock)
        story.check("foo-0 is on 4, 5", mock.cluster.topics.partition(*FOO).replicas == (4, 5))


def _cluster() -> MockCluster:
    return MockCluster(5, topics=["foo=1,2,3"], profile=DRAFT, clock="manual")
