"""KIP-236's older draft through Kafka's protocol: what Admin reaches of it, and what not."""

import pytest

from kproto.client import Admin
from kproto.client.errors import BrokerError
from kproto.client.values import TopicPartition
from kproto.error_codes import ErrorCode
from mockbroker import MockCluster
from mockbroker.simulation.operations.simulated import Operations
from tests.mockbroker.simulation.reassignment.requesting import CANCEL, REQUESTS, legacy, moves
from tests.mockbroker.simulation.reassignment.walks import znode_writes
from tests.mockbroker.wire import connect

FOO = TopicPartition("foo", 0)


def six(profile: str = "kip-236-old") -> MockCluster:
    return MockCluster(6, topics=["foo=1,2,3"], profile=profile, clock="manual")


@pytest.mark.requirement("K236-12", "K236-01")
async def test_alter_list_and_roll_back() -> None:
    async with six() as mock, Admin(mock.bootstrap) as admin:
        since = len(mock.cluster.log)
        await admin.alter_partition_reassignments({FOO: [4, 5, 6]}).all()
        path, text = znode_writes(mock.cluster, since)[0]
        assert path == f"{REQUESTS}/request_0000000000"
        assert text == '{"version":1,"assignments":{"foo":{"0":[4,5,6]}},"legacy":false}'
        mock.join_isr("foo-0", 4)
        found = (await admin.list_partition_reassignments())[FOO]
        assert found.replicas == [1, 2, 3, 4, 5, 6]
        assert (found.adding_replicas, found.removing_replicas) == ([4, 5, 6], [1, 2, 3])
        await admin.alter_partition_reassignments({FOO: None}).all()
        assert await admin.list_partition_reassignments() == {}
        partition = mock.cluster.topics.partition("foo", 0)
        assert (partition.replicas, partition.isr) == ((1, 2, 3), (1, 2, 3))


@pytest.mark.requirement("K236-05", "K236-12")
async def test_refusals_have_codes_and_texts() -> None:
    async with six() as mock, Admin(mock.bootstrap) as admin:

        async def refusal(replicas: list[int] | None) -> tuple[int, str]:
            with pytest.raises(BrokerError) as caught:
                await admin.alter_partition_reassignments({FOO: replicas}).all()
            return caught.value.code, str(caught.value)

        assert (await refusal(None))[0] == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert (await refusal([4, 99]))[0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        legacy(mock.cluster, [4])
        code, text = await refusal([5])
        assert code == ErrorCode.REASSIGNMENT_IN_PROGRESS
        assert text.startswith("foo-0 is being reassigned already, by the other of the two ways")
        Operations(mock.cluster).write_znode(CANCEL, "")
        assert await refusal([4]) == (
            ErrorCode.POLICY_VIOLATION,
            "Reassignments are disabled while /admin/reassign_cancel exists.",
        )


@pytest.mark.requirement("K236-12")
async def test_only_the_controller_takes_requests() -> None:
    async with six() as mock, connect(mock, 2) as other:
        topics = [{"name": "foo", "partition_index": 0, "replicas": [4]}]
        altered = await other.ask("AlterPartitionReassignments", 0, topics=topics)
        listed = await other.ask("ListPartitionReassignments", 0, topics=None)
        assert (altered.error_code, listed.error_code) == (41, 41)
        assert mock.cluster.znodes.children("/admin/reassignments") == []


@pytest.mark.requirement("A-16")
@pytest.mark.parametrize(
    ("profile", "dropped"), [("kip-236-old", set()), ("kip-236-old-literal", {(5,)})]
)
async def test_the_profile_says_how_replicas_are_dropped(profile, dropped):
    """foo-0 goes from 4,5 to 5,3 and then to 5,6: 3 leads by then, and 5 lags."""
    mock = MockCluster(6, topics=["foo=4,5"], profile=profile, clock="manual")
    async with mock, Admin(mock.bootstrap) as admin:
        await admin.alter_partition_reassignments({FOO: [5, 3]}).all()
        mock.leave_isr("foo-0", 5)
        mock.join_isr("foo-0", 3)
        await mock.stop_broker(4)
        await mock.start_broker(4)
        mock.join_isr("foo-0", 4)
        await admin.alter_partition_reassignments({FOO: [5, 6]}).all()
        assert {replicas for replicas, _ in moves(mock.cluster)} == dropped
