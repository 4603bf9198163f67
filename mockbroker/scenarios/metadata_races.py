"""A tool asks one broker for the replicas and the controller for the reassignments (KIP-860).

The two answers are of two moments, and the broker's may be older still. Whichever is asked first,
there is an order of events that makes the pair a lie.
"""

from __future__ import annotations

from kproto.client import Admin, TopicPartition
from mockbroker.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

FOO = TopicPartition("foo", 0)


@scenario(
    "metadata-race-describe-first",
    "Described while it moves, listed when it has arrived: five replicas, and nothing moves",
    "K860-13",
    "K860-16",
)
async def describe_first(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        story.step("A client describes foo.")
        replicas = await _described(admin)
        story.says(f"   replicas {replicas}")
        story.step("The reassignment ends.")
        _arrive(mock)
        story.looks(mock)
        story.step("The client lists reassignments.")
        ongoing = await admin.list_partition_reassignments()
        story.holds("nothing is listed", not ongoing)
        story.holds("five replicas, it seems, for good", sorted(replicas) == [1, 2, 3, 4, 5])
        story.holds("there are three", mock.cluster.partition(*FOO).replicas == (3, 4, 5))


@scenario(
    "metadata-race-list-first",
    "Listed when it has arrived, described by a broker that has not heard: the same lie",
    "K860-14",
    "K860-15",
)
async def list_first(story: Story) -> None:
    async with _cluster() as mock, Admin(mock.bootstrap) as admin:
        await _begin(story, mock, admin)
        story.step("Metadata reaches no broker any more; the reassignment ends.")
        for broker in mock.cluster.brokers:
            mock.hold_metadata(broker)
        _arrive(mock)
        story.looks(mock)
        story.step("A client lists reassignments: the controller answers, who always knows.")
        ongoing = await admin.list_partition_reassignments()
        story.holds("nothing is listed", not ongoing)
        story.step("The client describes foo: a broker answers what it knows.")
        replicas = await _described(admin)
        story.holds("five replicas, it seems, for good", sorted(replicas) == [1, 2, 3, 4, 5])
        story.step("Metadata arrives.")
        for broker in mock.cluster.brokers:
            mock.release_metadata(broker)
        story.holds("there are three", await _described(admin) == [3, 4, 5])


async def _begin(story: Story, mock: MockCluster, admin: Admin) -> None:
    story.says("Brokers 1, 2 and 3 hold foo-0.")
    story.skips(mock)
    story.step("An admin client asks for foo-0 on brokers 3, 4 and 5.")
    await admin.alter_partition_reassignments({FOO: [3, 4, 5]}).all()
    story.looks(mock)
    ongoing = await admin.list_partition_reassignments()
    moving = ongoing[FOO].adding_replicas, ongoing[FOO].removing_replicas
    story.holds("4 and 5 are being added, 1 and 2 removed", moving == ([4, 5], [1, 2]))


def _arrive(mock: MockCluster) -> None:
    mock.join_isr(FOO, 4)
    mock.join_isr(FOO, 5)


async def _described(admin: Admin) -> list[int]:
    described = await admin.describe_topics(["foo"]).all()
    return list(described["foo"].partitions[0].replicas)


def _cluster() -> MockCluster:
    return MockCluster(5, topics=["foo=1,2,3"], profile="kafka-4.1", clock="manual")
