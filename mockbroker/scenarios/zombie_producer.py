"""Two instances of a transactional producer: the older one is fenced."""

from __future__ import annotations

from typing import Any

from kproto.error_codes import ErrorCode
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import (
    add_partition,
    end_transaction,
    fetch,
    init_producer,
    opened,
    produce,
)
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []


@scenario(
    "zombie-producer",
    "A producer that was taken for dead comes back: its transaction is aborted, and it is fenced",
    "DP-CTL-59",
    "DP-CTL-32",
)
async def zombie_producer(story: Story) -> None:
    async with MockCluster(1, topics=["foo:1:1"], profile="kafka-4.1", clock="manual") as mock:
        await story.run(mock, "load-coordinator transaction pay", "finish-loading transaction pay")
        async with opened(mock, 1) as zombie, opened(mock, 1) as successor:
            story.step("A producer begins a transaction with the transactional id pay.")
            old = await init_producer(zombie, "pay")
            code = await add_partition(zombie, "pay", "foo", old)
            named: dict[str, Any] = {"producer_id": old.producer_id, "transactional_id": "pay"}
            first = await produce(
                zombie, "foo", "half", producer_epoch=old.producer_epoch, sequence=0, **named
            )
            story.check("its record is in the log", (code, first.error_code) == (0, 0))
            story.step("It hangs. Another instance is started in its place.")
            busy = await init_producer(successor, "pay")
            aborts = busy.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            story.check("the coordinator aborts the transaction first: error 51", aborts)
            new = await init_producer(successor, "pay")
            same_id = new.producer_id == old.producer_id
            story.check("it has the same producer id", same_id)
            story.check("its epoch is higher", new.producer_epoch > old.producer_epoch)
            _, seen = await fetch(successor, "foo", 0, read_committed=True)
            story.check("the record of the open transaction is not seen", seen == [])
            story.step("The first instance wakes up and goes on.")
            answer = await produce(
                zombie, "foo", "other half", producer_epoch=old.producer_epoch, sequence=1, **named
            )
            refused = answer.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
            story.check("its record is refused with error 47", refused)
            code = await end_transaction(zombie, "pay", old, committed=True)
            story.check("its commit is refused with error 90", code == ErrorCode.PRODUCER_FENCED)
            story.step("The second instance sends both records and commits.")
            code = await add_partition(successor, "pay", "foo", new)
            for sequence, value in enumerate(("half", "other half")):
                answer = await produce(
                    successor,
                    "foo",
                    value,
                    producer_epoch=new.producer_epoch,
                    sequence=sequence,
                    **named,
                )
                code = code or answer.error_code
            code = code or await end_transaction(successor, "pay", new, committed=True)
            story.check("no request fails", code == ErrorCode.NONE)
            _, seen = await fetch(successor, "foo", 0, read_committed=True)
            once = seen == [b"half", b"other half"]
            story.check("a consumer of committed records reads each of them once", once)
