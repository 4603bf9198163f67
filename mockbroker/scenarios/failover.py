"""The controller moves during a reassignment: what each design keeps on record."""

from __future__ import annotations

from kproto.client import Admin, TopicPartition
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

FOO = TopicPartition("foo", 0)
REQUESTS = "/admin/reassignment_requests"


@scenario(
    "failover-kip-455-new",
    "KIP-455, newer draft: the target stays on record until the end, so nothing is lost",
    "K455-37",
    "K455-38",
)
async def newer_draft(story: Story) -> None:
    async with _cluster("kip-455-new") as mock, _admin(mock, "kip-455-new") as admin:
        await _begin(story, mock, admin)
        story.step("Broker 2 takes over. It reads the state znodes and notifies all brokers again.")
        await story.show(mock, "failover 2")
        await _finish(story, mock)


@scenario(
    "failover-kip-455-old",
    "KIP-455, older draft: the recorded target shrinks step by step, so its start is lost",
    "K455-31",
    "A-12",
)
async def older_draft(story: Story) -> None:
    async with _cluster("kip-455-old") as mock, _admin(mock, "kip-455-old") as admin:
        await _begin(story, mock, admin)
        story.step("Broker 2 takes over. Only the rest of the target is on record: 5 and 6.")
        await story.show(mock, "failover 2")
        story.step("Brokers 5 and 6 catch up. The replicas to remove are on record nowhere.")
        await story.show(mock, "join-isr foo-0 5", "join-isr foo-0 6")
        replicas = mock.cluster.topics.partition(*FOO).replicas
        story.check("foo-0 stays on all six brokers", set(replicas) == {1, 2, 3, 4, 5, 6})


@scenario(
    "failover-zookeeper",
    "Kafka 2.4 to 3.9 with ZooKeeper: adding and removing replicas are on record in the topic",
    "K455-38",
)
async def shipped_zookeeper(story: Story) -> None:
    async with _cluster("kafka-2.8-zk") as mock, _admin(mock, "kafka") as admin:
        await _begin(story, mock, admin)
        story.step("Broker 2 takes over. It reads the topic znodes and resumes.")
        await story.show(mock, "failover 2")
        ongoing = await admin.list_partition_reassignments()
        story.check("4, 5, 6 are still being added", ongoing[FOO].adding_replicas == [4, 5, 6])
        await _finish(story, mock)


@scenario(
    "failover-kraft", "KRaft: the reassignment is part of the partition's own record", "K455-38"
)
async def kraft(story: Story) -> None:
    async with _cluster("kafka-4.1") as mock, _admin(mock, "kafka") as admin:
        await _begin(story, mock, admin)
        story.step("Broker 2 takes over. It has nothing to read and no broker to notify.")
        await story.show(mock, "failover 2")
        await _finish(story, mock)


@scenario(
    "failover-kip-236-new",
    "KIP-236, newer draft: the next controller carries out an unnoticed cancellation first",
    "K236-01",
)
async def cancelled_without_a_controller(story: Story) -> None:
    async with _cluster("kip-236-new") as mock:
        story.note("In this draft a tool writes znodes and the controller acts on them.")
        story.skip_actions(mock)
        story.step("A plan moves foo-0 to 4, 5, 6.")
        await story.show(mock, f"write-znode /admin/reassign_partitions {_plan([4, 5, 6])}")
        story.step(
            "A tool cancels, and the controller dies at its third change of the cancellation."
        )
        await story.run(mock, "kill-controller-after 3")
        with story.check_refused("the tool gets no answer"):
            await story.run(mock, "write-znode /admin/cancel_reassignment_in_progress")
        story.show_actions(mock)
        replicas = mock.cluster.topics.partition(*FOO).replicas
        story.check(
            "the next controller has rolled back: foo-0 is on 1, 2, 3", replicas == (1, 2, 3)
        )
        left = mock.cluster.znodes.children("/admin")
        story.check(
            "the plan and the cancellation are deleted",
            not {"reassign_partitions", "cancel_reassignment_in_progress"} & {*left},
        )


@scenario(
    "failover-kip-236-old",
    "KIP-236, older draft: the next controller takes up requests made without a controller",
    "K236-60",
    "K236-61",
)
async def requested_without_a_controller(story: Story) -> None:
    async with _cluster("kip-236-old") as mock:
        story.skip_actions(mock)
        story.step("The controller takes up a request for foo-0 on 1, 2, 4: it has a znode.")
        await story.show(mock, f"append-znode {REQUESTS}/request_ {_request('1,2,4')}")
        story.step("Another request arrives while the controller is dying.")
        await story.run(mock, "kill-controller-after 1")
        with story.check_refused("the request gets no answer"):
            await story.run(mock, f"append-znode {REQUESTS}/request_ {_request('1,2,5')}")
        story.show_actions(mock)
        requests = mock.cluster.znodes.children(REQUESTS)
        story.check("the next controller has taken it up", not requests)
        target = mock.cluster.topics.partition(*FOO).target
        story.check("foo-0 is moving to 1, 2, 5", target == (1, 2, 5))


async def _begin(story: Story, mock: MockCluster, admin: Admin) -> None:
    story.note("Brokers 1, 2 and 3 hold foo-0; 1 is the controller.")
    story.skip_actions(mock)
    story.step("An admin client asks for foo-0 on brokers 4, 5 and 6; broker 4 catches up.")
    await admin.alter_partition_reassignments({FOO: [4, 5, 6]}).all()
    await story.show(mock, "join-isr foo-0 4")


async def _finish(story: Story, mock: MockCluster) -> None:
    story.step("Brokers 5 and 6 catch up.")
    await story.show(mock, "join-isr foo-0 5", "join-isr foo-0 6")
    story.check("foo-0 is on 4, 5, 6", mock.cluster.topics.partition(*FOO).replicas == (4, 5, 6))


def _plan(replicas: list[int]) -> str:
    return f'{{"version":1,"partitions":[{{"topic":"foo","partition":0,"replicas":{replicas}}}]}}'


def _request(replicas: str) -> str:
    return f'{{"version":1,"assignments":{{"foo":{{"0":[{replicas}]}}}}}}'


def _cluster(profile: str) -> MockCluster:
    return MockCluster(6, topics=["foo=1,2,3"], profile=profile, clock="manual")


def _admin(mock: MockCluster, dialect: str) -> Admin:
    return Admin(mock.bootstrap, dialect=dialect)
