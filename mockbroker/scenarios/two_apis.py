"""A partition reassigned both through ``/admin/reassign_partitions`` and through the API."""

from __future__ import annotations

from kproto.client import Admin, TopicPartition
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

DRAFT = "kip-455-new"
FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
ZNODE = "/admin/reassign_partitions"
PLAN = (
    '{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[4,5]},'
    '{"topic":"bar","partition":0,"replicas":[4,5]}]}'
)


@scenario(
    "two-apis-draft",
    "KIP-455, newer draft: after a failover the znode wins, and the API's change is lost",
    "K455-39",
    "K455-60",
    "K455-63",
)
async def znode_wins(story: Story) -> None:
    async with (
        _cluster("kip-455-new") as mock,
        Admin(mock.bootstrap, dialect="kip-455-new") as admin,
    ):
        await _both(story, mock, admin)
        plan = mock.cluster.state.znodes[ZNODE]
        story.check("the znode still asks for foo-0 on 4, 5", '"topic":"foo"' in plan)
        story.step("Broker 2 takes over and follows the znode.")
        await story.show(mock, "failover 2")
        ongoing = await admin.list_partition_reassignments()
        story.check("foo-0 is moving to 4, 5 again", ongoing[FOO].target_brokers == [4, 5])


@scenario(
    "two-apis-shipped",
    "Kafka 2.4 to 3.9 with ZooKeeper: the API removes its partition from the znode, and wins",
    "K455-63",
)
async def api_wins(story: Story) -> None:
    async with _cluster("kafka-2.8-zk") as mock, Admin(mock.bootstrap) as admin:
        await _both(story, mock, admin)
        plan = mock.cluster.state.znodes[ZNODE]
        story.check("the znode asks for bar-0 only", '"topic":"foo"' not in plan)
        story.step("Broker 2 takes over.")
        await story.show(mock, "failover 2")
        ongoing = await admin.list_partition_reassignments()
        story.check("foo-0 is still moving to 6", ongoing[FOO].adding_replicas == [6])
        story.step("All replicas catch up; the empty znode is deleted.")
        await story.run(mock, "join-isr foo-0 6")
        for broker in (4, 5):
            await story.run(mock, f"join-isr bar-0 {broker}")
        story.show_actions(mock)
        story.check("the plan is deleted", ZNODE not in mock.cluster.state.znodes)


async def _both(story: Story, mock: MockCluster, admin: Admin) -> None:
    story.note("Brokers 1 and 2 hold foo-0, brokers 2 and 3 bar-0.")
    story.skip_actions(mock)
    story.step("A tool submits a plan through ZooKeeper: both partitions on brokers 4 and 5.")
    await story.show(mock, f"write-znode {ZNODE} {PLAN}")
    story.step("An admin client asks for foo-0 on broker 6.")
    await admin.alter_partition_reassignments({FOO: [6]}).all()
    story.show_actions(mock)
    ongoing = await admin.list_partition_reassignments()
    story.check("foo-0 is moving to 6", ongoing[FOO].target_brokers == [6])


def _cluster(profile: str) -> MockCluster:
    return MockCluster(6, topics=["foo=1,2", "bar=2,3"], profile=profile, clock="manual")
