"""The three meanings of cancelling a reassignment, and the guard on the replication factor."""

from __future__ import annotations

from kproto.client import Admin, InvalidReplicationFactorError, TopicPartition
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

DRAFT = "kip-455-new"
FOO = TopicPartition("foo", 0)


@scenario(
    "cancel-is-no-revert",
    "KIP-455, newer draft: cancelling keeps the replicas that have caught up",
    "K455-43",
    "K455-44",
)
async def no_revert(story: Story) -> None:
    async with (
        _cluster("kip-455-new") as mock,
        Admin(mock.bootstrap, dialect="kip-455-new") as admin,
    ):
        await _begin(story, mock, admin)
        story.step("The client cancels.")
        await admin.alter_partition_reassignments({FOO: None}).all()
        story.show_actions(mock)
        replicas = mock.cluster.topics.partition(*FOO).replicas
        story.check("foo-0 has one replica more than before: 1, 2, 3, 4", replicas == (1, 2, 3, 4))
        story.step("To get back to three replicas, the client asks for them.")
        await admin.alter_partition_reassignments({FOO: [1, 2, 3]}).all()
        story.show_actions(mock)
        story.check(
            "foo-0 is on 1, 2, 3", mock.cluster.topics.partition(*FOO).replicas == (1, 2, 3)
        )


@scenario("cancel-is-a-revert", "Released Kafka: cancelling removes every added replica", "K455-02")
async def revert(story: Story) -> None:
    async with _cluster("kafka-4.1") as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        story.step("The client cancels.")
        await admin.alter_partition_reassignments({FOO: None}).all()
        story.show_actions(mock)
        replicas = mock.cluster.topics.partition(*FOO).replicas
        story.check("foo-0 is on 1, 2, 3 again", set(replicas) == {1, 2, 3})


@scenario(
    "rollback",
    "KIP-236, newer draft: seven steps back to the original replicas",
    "K236-01",
    "K236-20",
)
async def rollback(story: Story) -> None:
    async with _cluster("kip-236-new") as mock:
        story.note("Brokers 1, 2 and 3 hold foo-0.")
        story.skip_actions(mock)
        story.step("A plan moves foo-0 to 1, 2, 4. Broker 4 has not caught up yet.")
        plan = '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2,4]}]}'
        await story.show(mock, f"write-znode /admin/reassign_partitions {plan}")
        story.step("A tool creates the cancellation znode.")
        await story.show(mock, "write-znode /admin/cancel_reassignment_in_progress")
        replicas = mock.cluster.topics.partition(*FOO).replicas
        story.check("foo-0 is on 1, 2, 3", replicas == (1, 2, 3))


@scenario(
    "replication-factor-guard",
    "KIP-860: a client that mistakes moving replicas for the replication factor is refused",
    "K860-06",
    "K860-17",
)
async def guard(story: Story) -> None:
    async with _cluster("kafka-4.1") as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        described = await admin.describe_topics(["foo"]).all()
        seen = described["foo"].partitions[0].replicas
        story.step(f"For now, Metadata shows foo-0 on {len(seen)} brokers.")
        story.check("the client sees six replicas", sorted(seen) == [1, 2, 3, 4, 5, 6])
        story.step("The reassignment ends.")
        for broker in (5, 6):
            await story.run(mock, f"join-isr foo-0 {broker}")
        story.show_actions(mock)
        story.step("The client takes that for the replication factor: it asks for six, guarded.")
        result = admin.alter_partition_reassignments(
            {FOO: [1, 2, 3, 4, 5, 6]}, allow_replication_factor_change=False
        )
        try:
            await result.values[FOO]
        except InvalidReplicationFactorError as error:
            story.check(f"the request is refused (38): {error}", "from 3 to 6" in str(error))
        else:
            story.check("the request is refused (38)", False)
        story.step("Without the guard the request is accepted.")
        await admin.alter_partition_reassignments({FOO: [1, 2, 3, 4, 5, 6]}).all()
        for broker in (1, 2, 3):
            await story.run(mock, f"join-isr foo-0 {broker}")
        story.show_actions(mock)
        replicas = mock.cluster.topics.partition(*FOO).replicas
        story.check("foo-0 has six replicas permanently", len(replicas) == 6)


async def _begin(story: Story, mock: MockCluster, admin: Admin) -> None:
    story.note("Brokers 1, 2 and 3 hold foo-0.")
    story.skip_actions(mock)
    story.step("An admin client asks for foo-0 on brokers 4, 5 and 6; broker 4 catches up.")
    await admin.alter_partition_reassignments({FOO: [4, 5, 6]}).all()
    await story.show(mock, "join-isr foo-0 4")


def _cluster(profile: str) -> MockCluster:
    return MockCluster(6, topics=["foo=1,2,3"], profile=profile, clock="manual")
