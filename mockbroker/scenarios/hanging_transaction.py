"""A transaction that no coordinator knows holds up readers of committed records (KIP-664)."""

from __future__ import annotations

from kproto.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import fetch, opened, produce
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

_PRODUCER_ID = 4000


@scenario(
    "hanging-transaction",
    "A transaction hangs: readers of committed records wait until an operator aborts it",
    "DP-CTL-59",
    "DP-CTL-09",
    "DP-CTL-34",
)
async def hanging_transaction(story: Story) -> None:
    async with (
        MockCluster(1, topics=["foo:1:1"], profile="kafka-4.1", clock="manual") as mock,
        opened(mock, 1) as connection,
    ):
        await produce(connection, "foo", "before")
        story.step("A record of a transaction arrives after the transaction has ended.")
        story.note("Brokers before 3.6 append it; its marker will never be written.")
        await story.run(
            mock,
            'append foo-0 {"records": [{"value": "late"}], "transactional": true, '
            f'"producer_id": {_PRODUCER_ID}, "producer_epoch": 0, "base_sequence": 0}}',
        )
        await produce(connection, "foo", "behind")
        found, seen = await fetch(connection, "foo", 0)
        story.check("a consumer reads all records", seen == [b"before", b"late", b"behind"])
        found, seen = await fetch(connection, "foo", 0, read_committed=True)
        stops = (seen, found.last_stable_offset, found.high_watermark) == ([b"before"], 1, 3)
        story.check("one of committed records stops before it", stops)
        story.step("Time passes. The coordinator has no transaction that could time out.")
        await story.run(mock, "advance 60m")
        found, _ = await fetch(connection, "foo", 0, read_committed=True)
        story.check("the last stable offset stands", found.last_stable_offset == 1)
        story.step("An operator looks for the producer.")
        request = DescribeProducersRequest(topics=[TopicRequest(name="foo", partition_indexes=[0])])
        answer = await connection.request(request, 0)
        (producer,) = answer.topics[0].partitions[0].active_producers
        hangs = (producer.producer_id, producer.current_txn_start_offset) == (_PRODUCER_ID, 1)
        story.check("DescribeProducers shows a transaction from offset 1 on", hangs)
        story.step("The operator aborts it, as `kafka-transactions.sh abort` does.")
        await story.run(mock, f"write-marker foo-0 {_PRODUCER_ID} abort")
        found, seen = await fetch(connection, "foo", 0, read_committed=True)
        goes_on = (seen, found.last_stable_offset) == ([b"before", b"behind"], 4)
        story.check("the consumer of committed records reads on, without it", goes_on)
