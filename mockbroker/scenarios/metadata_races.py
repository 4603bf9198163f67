"""A tool asks a broker for the replicas and the controller for the reassignments (KIP-860).

The two answers describe two moments, and the broker's metadata may be older still. In either order
of the two requests, some order of events makes the pair of answers wrong.
"""

from __future__ import annotations

from kproto.client import Admin, TopicPartition
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

FOO = TopicPartition("foo", 0)


@scenario(
    "metadata-race-describe-first",
    "Described during a reassignment, listed after it: five replicas, and no reassignment",
    "K860-13",
    "K860-16",
)
async def describe_first(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        story.step("A client describes foo.")
        replicas = await _described(admin)
        story.note(f"   replicas {replicas}")
        story.step("The reassignment ends.")
        await _finish(story, mock)
        story.show_actions(mock)
        story.step("The client lists reassignments.")
        ongoing = await admin.list_partition_reassignments()
        story.check("no reassignment is listed", not ongoing)
        story.check("to the client, foo-0 has five replicas", sorted(replicas) == [1, 2, 3, 4, 5])
        story.check(
            "foo-0 has three replicas", mock.cluster.topics.partition(*FOO).replicas == (3, 4, 5)
        )


@scenario(
    "metadata-race-list-first",
    "Listed after a reassignment, described by a broker with old metadata: as wrong",
    "K860-14",
    "K860-15",
)
async def list_first(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        story.step("The brokers stop receiving metadata; the reassignment ends.")
        for broker in mock.cluster.brokers:
            await story.run(mock, f"hold-metadata {broker}")
        await _finish(story, mock)
        story.show_actions(mock)
        story.step("A client lists reassignments. The controller, always up to date, answers.")
        ongoing = await admin.list_partition_reassignments()
        story.check("no reassignment is listed", not ongoing)
        story.step("The client describes foo. A broker answers from its old metadata.")
        replicas = await _described(admin)
        story.check("to the client, foo-0 has five replicas", sorted(replicas) == [1, 2, 3, 4, 5])
        story.step("The brokers receive metadata again.")
        for broker in mock.cluster.brokers:
            await story.run(mock, f"release-metadata {broker}")
        story.check("foo-0 has three replicas", await _described(admin) == [3, 4, 5])


async def _begin(story: Story, mock: MockCluster, admin: Admin) -> None:
    story.note("Brokers 1, 2 and 3 hold foo-0.")
    story.skip_actions(mock)
    story.step("An admin client asks for foo-0 on brokers 3, 4 and 5.")
    await admin.alter_partition_reassignments({FOO: [3, 4, 5]}).all()
    story.show_actions(mock)
    ongoing = await admin.list_partition_reassignments()
    moving = ongoing[FOO].adding_replicas, ongoing[FOO].removing_replicas
    story.check("4 and 5 are being added, 1 and 2 removed", moving == ([4, 5], [1, 2]))


async def _finish(story: Story, mock: MockCluster) -> None:
    await story.run(mock, "join-isr foo-0 4", "join-isr foo-0 5")


async def _described(admin: Admin) -> list[int]:
    described = await admin.describe_topics(["foo"]).all()
    return list(described["foo"].partitions[0].replicas)


def _cluster() -> MockCluster:
    return MockCluster(5, topics=["foo=1,2,3"], profile="kafka-4.1", clock="manual")
