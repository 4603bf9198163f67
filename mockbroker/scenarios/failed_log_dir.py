"""A log directory of a broker fails, and is mended (KIP-112, KIP-858)."""

from __future__ import annotations

from kproto.error_codes import ErrorCode
from kproto.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kproto.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import opened, produce
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []


@scenario(
    "failed-log-dir",
    "A disk of a broker fails: its leaders move, and clients that ask it get a storage error",
    "DP-CTL-59",
    "DP-CTL-16",
)
async def failed_log_dir(story: Story) -> None:
    async with MockCluster(
        2,
        topics=["foo=1,2/1,2"],
        profile="kafka-4.1",
        clock="manual",
        broker_configs={"log.dirs": "/disk-1,/disk-2"},
    ) as mock:
        story.note("Broker 1 leads foo-0, which is on its first disk, and foo-1 on its second.")
        story.skip_actions(mock)
        story.step("The first disk of broker 1 fails.")
        await story.show(mock, "fail-log-dir 1 /disk-1")
        leaders = [each.leader for each in mock.cluster.topics["foo"].partitions]
        story.check("broker 2 leads foo-0, and broker 1 still foo-1", leaders == [2, 1])
        story.step("A producer that does not know yet sends to broker 1.")
        async with opened(mock, 1) as connection:
            answer = await produce(connection, "foo", "x")
            failed = answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            story.check("it gets error 56", failed)
            described = await connection.request(DescribeLogDirsRequest(topics=None), 2)
            codes = {each.log_dir: each.error_code for each in described.results}
            shown = codes == {"/disk-1": ErrorCode.KAFKA_STORAGE_ERROR, "/disk-2": 0}
            story.check("DescribeLogDirs has the same error for the disk", shown)
            request = MetadataRequest(topics=[MetadataRequestTopic(name="foo")])
            found = (await connection.request(request, 9)).topics[0].partitions
            offline = [each.offline_replicas for each in found] == [[1], []]
            story.check("Metadata lists the replica of foo-0 as offline", offline)
        story.step("The producer refreshes its metadata and sends to broker 2.")
        async with opened(mock, 2) as connection:
            answer = await produce(connection, "foo", "x")
            story.check("the record is appended", answer.error_code == ErrorCode.NONE)
        story.step("The disk is replaced. Broker 1 restarts, which it has to for that.")
        await story.run(mock, "mend-log-dir 1 /disk-1", "join-isr foo-0 1")
        in_sync = mock.cluster.topics.partition("foo", 0).isr == (2, 1)
        story.check("its replica has caught up and is in the ISR", in_sync)
