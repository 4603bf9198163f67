"""Another broker becomes the controller in the midst of a reassignment: what each design keeps."""

from __future__ import annotations

from kproto.client import Admin, TopicPartition
from mockbroker.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

FOO = TopicPartition("foo", 0)


@scenario(
    "failover-kip-455-new",
    "KIP-455, newer draft: the target stays on record until the end, so nothing is lost",
    "K455-37",
    "K455-38",
)
async def newer_draft(story: Story) -> None:
    async with _cluster("kip-455-new") as mock, _admin(mock, "kip-455-new") as admin:
        await _half_way(story, mock, admin)
        story.step("Broker 2 takes over. It reads the state znodes, and tells all brokers again.")
        mock.failover(2)
        story.looks(mock)
        _all_the_way(story, mock)


@scenario(
    "failover-kip-455-old",
    "KIP-455, older draft: the target shrinks on the way, so its beginning is forgotten",
    "K455-31",
    "A-12",
)
async def older_draft(story: Story) -> None:
    async with _cluster("kip-455-old") as mock, _admin(mock, "kip-455-old") as admin:
        await _half_way(story, mock, admin)
        story.step("Broker 2 takes over. On record is what is left of the target: 5 and 6.")
        mock.failover(2)
        story.looks(mock)
        story.step("Brokers 5 and 6 catch up. Which replicas were to go, nobody knows.")
        mock.join_isr(FOO, 5)
        mock.join_isr(FOO, 6)
        story.looks(mock)
        replicas = mock.cluster.partition(*FOO).replicas
        story.holds("foo-0 is left on all six brokers", set(replicas) == {1, 2, 3, 4, 5, 6})


@scenario(
    "failover-zookeeper",
    "Kafka 2.4 to 3.9 with ZooKeeper: adding and removing replicas are on record in the topic",
    "K455-38",
)
async def shipped_zookeeper(story: Story) -> None:
    async with _cluster("kafka-2.8-zk") as mock, _admin(mock, "kafka") as admin:
        await _half_way(story, mock, admin)
        story.step("Broker 2 takes over. It reads the topic znodes, and resumes.")
        mock.failover(2)
        story.looks(mock)
        ongoing = await admin.list_partition_reassignments()
        story.holds("4, 5, 6 are still being added", ongoing[FOO].adding_replicas == [4, 5, 6])
        _all_the_way(story, mock)


@scenario(
    "failover-kraft",
    "KRaft: the reassignment is part of the partition's own record",
    "K455-38",
)
async def kraft(story: Story) -> None:
    async with _cluster("kafka-4.1") as mock, _admin(mock, "kafka") as admin:
        await _half_way(story, mock, admin)
        story.step("Broker 2 takes over. There is nothing to read, and nobody to tell.")
        mock.failover(2)
        story.looks(mock)
        _all_the_way(story, mock)


@scenario(
    "failover-kip-236-new",
    "KIP-236, newer draft: a cancellation that nobody was there to see is carried out first",
    "K236-01",
)
async def cancelled_without_a_controller(story: Story) -> None:
    async with _cluster("kip-236-new") as mock:
        story.says("The page's controller acts on znodes; a tool writes them.")
        story.skips(mock)
        story.step("A plan moves foo-0 to 4, 5, 6.")
        mock.write_znode("/admin/reassign_partitions", _plan([4, 5, 6]))
        story.looks(mock)
        story.step("The controller dies in the midst of the cancellation, at its third change.")
        mock.kill_controller_after(3)
        with story.refused("the tool is not answered"):
            mock.write_znode("/admin/cancel_reassignment_in_progress", "")
        story.looks(mock)
        replicas = mock.cluster.partition(*FOO).replicas
        story.holds("the next one rolled back: foo-0 is on 1, 2, 3", replicas == (1, 2, 3))
        left = mock.cluster.znode_children("/admin")
        story.holds(
            "plan and cancellation are gone",
            not {"reassign_partitions", "cancel_reassignment_in_progress"} & {*left},
        )


@scenario(
    "failover-kip-236-old",
    "KIP-236, older draft: requests made while there is no controller are taken up by the next",
    "K236-60",
    "K236-61",
)
async def requested_without_a_controller(story: Story) -> None:
    async with _cluster("kip-236-old") as mock:
        story.skips(mock)
        story.step("A request for foo-0 on 1, 2, 4 is taken up: it has a znode of its own now.")
        request = '{"version":1,"assignments":{"foo":{"0":[1,2,4]}}}'
        mock.append_znode("/admin/reassignment_requests/request_", request)
        story.looks(mock)
        story.step("Another one comes while the controller is dying.")
        mock.kill_controller_after(1)
        with story.refused("it is not answered"):
            mock.append_znode(
                "/admin/reassignment_requests/request_", request.replace("1,2,4", "1,2,5")
            )
        story.looks(mock)
        requests = mock.cluster.znode_children("/admin/reassignment_requests")
        story.holds("the successor has taken it up", not requests)
        target = mock.cluster.partition(*FOO).target
        story.holds("foo-0 is on its way to 1, 2, 5", target == (1, 2, 5))


async def _half_way(story: Story, mock: MockCluster, admin: Admin) -> None:
    story.says("Brokers 1, 2 and 3 hold foo-0; 1 is the controller.")
    story.skips(mock)
    story.step("An admin client asks for foo-0 on brokers 4, 5 and 6; broker 4 catches up.")
    await admin.alter_partition_reassignments({FOO: [4, 5, 6]}).all()
    mock.join_isr(FOO, 4)
    story.looks(mock)


def _all_the_way(story: Story, mock: MockCluster) -> None:
    story.step("Brokers 5 and 6 catch up.")
    mock.join_isr(FOO, 5)
    mock.join_isr(FOO, 6)
    story.looks(mock)
    story.holds("foo-0 is on 4, 5, 6", mock.cluster.partition(*FOO).replicas == (4, 5, 6))


def _plan(replicas: list[int]) -> str:
    return f'{{"version":1,"partitions":[{{"topic":"foo","partition":0,"replicas":{replicas}}}]}}'


def _cluster(profile: str) -> MockCluster:
    return MockCluster(6, topics=["foo=1,2,3"], profile=profile, clock="manual")


def _admin(mock: MockCluster, dialect: str) -> Admin:
    return Admin(mock.bootstrap, dialect=dialect)
