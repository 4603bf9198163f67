"""Three meanings of taking a reassignment back, and what guards the replication factor."""

from __future__ import annotations

from kproto.client import Admin, InvalidReplicationFactorError, TopicPartition
from mockbroker.mock_cluster import MockCluster
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
        story.looks(mock)
        replicas = mock.cluster.partition(*FOO).replicas
        story.holds("foo-0 has a replica more than before: 1, 2, 3, 4", replicas == (1, 2, 3, 4))
        story.step("Whoever wants three asks for three.")
        await admin.alter_partition_reassignments({FOO: [1, 2, 3]}).all()
        story.looks(mock)
        story.holds("foo-0 is on 1, 2, 3", mock.cluster.partition(*FOO).replicas == (1, 2, 3))


@scenario(
    "cancel-is-a-revert",
    "Kafka as it ships: cancelling takes every added replica away again",
    "K455-02",
)
async def revert(story: Story) -> None:
    async with _cluster("kafka-4.1") as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        story.step("The client cancels.")
        await admin.alter_partition_reassignments({FOO: None}).all()
        story.looks(mock)
        replicas = mock.cluster.partition(*FOO).replicas
        story.holds("foo-0 is on 1, 2, 3 again", set(replicas) == {1, 2, 3})


@scenario(
    "rollback",
    "KIP-236, newer draft: seven steps back to where a partition was",
    "K236-01",
    "K236-20",
)
async def rollback(story: Story) -> None:
    async with _cluster("kip-236-new") as mock:
        story.says("Brokers 1, 2 and 3 hold foo-0.")
        story.skips(mock)
        story.step("A plan moves foo-0 to 1, 2, 4, and 4 catches up on nothing yet.")
        plan = '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,2,4]}]}'
        mock.write_znode("/admin/reassign_partitions", plan)
        story.looks(mock)
        story.step("A tool creates the znode that cancels.")
        mock.write_znode("/admin/cancel_reassignment_in_progress", "")
        story.looks(mock)
        replicas = mock.cluster.partition(*FOO).replicas
        story.holds("foo-0 is on 1, 2, 3", replicas == (1, 2, 3))


@scenario(
    "replication-factor-guard",
    "KIP-860: who believes a partition to have six replicas, while it moves, is stopped",
    "K860-06",
    "K860-17",
)
async def guard(story: Story) -> None:
    async with _cluster("kafka-4.1") as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        described = await admin.describe_topics(["foo"]).all()
        seen = described["foo"].partitions[0].replicas
        story.step(f"Metadata shows foo-0 on {len(seen)} brokers, for the time being.")
        story.holds("six are seen", sorted(seen) == [1, 2, 3, 4, 5, 6])
        story.step("The reassignment ends.")
        for broker in (5, 6):
            mock.join_isr(FOO, broker)
        story.looks(mock)
        story.step("The client took that for the replication factor: it asks for six, guarded.")
        result = admin.alter_partition_reassignments(
            {FOO: [1, 2, 3, 4, 5, 6]}, allow_replication_factor_change=False
        )
        try:
            await result.values[FOO]
        except InvalidReplicationFactorError as error:
            story.holds(f"it is refused (38): {error}", "from 3 to 6" in str(error))
        else:
            story.holds("it is refused (38)", False)
        story.step("Without the guard it would be believed.")
        await admin.alter_partition_reassignments({FOO: [1, 2, 3, 4, 5, 6]}).all()
        for broker in (1, 2, 3):
            mock.join_isr(FOO, broker)
        story.looks(mock)
        replicas = mock.cluster.partition(*FOO).replicas
        story.holds("foo-0 has six replicas for good", len(replicas) == 6)


async def _begin(story: Story, mock: MockCluster, admin: Admin) -> None:
    story.says("Brokers 1, 2 and 3 hold foo-0.")
    story.skips(mock)
    story.step("An admin client asks for foo-0 on brokers 4, 5 and 6; broker 4 catches up.")
    await admin.alter_partition_reassignments({FOO: [4, 5, 6]}).all()
    mock.join_isr(FOO, 4)
    story.looks(mock)


def _cluster(profile: str) -> MockCluster:
    return MockCluster(6, topics=["foo=1,2,3"], profile=profile, clock="manual")
