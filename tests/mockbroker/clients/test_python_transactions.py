"""A transactional producer of confluent-kafka against a mock cluster: it commits, aborts, moves
offsets of a group, and is fenced."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from mockbroker import MockCluster
from tests.support.full import drawn
from tests.support.toolchain import require_module

PATIENCE = 60.0


def _transact(bootstrap: str) -> list[bytes]:
    """What a reader of committed records sees in "bar"."""
    kafka: Any = require_module("confluent_kafka")

    def producer() -> Any:
        made = kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover"})
        made.init_transactions(PATIENCE)
        return made

    def consumer(topic: str) -> Any:
        made = kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"of-{topic}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        made.subscribe([topic])
        return made

    def read(reader: Any, count: int) -> list[bytes]:
        found: list[bytes] = []
        deadline = time.monotonic() + PATIENCE
        while len(found) < count and time.monotonic() < deadline:
            found += [each.value() for each in reader.consume(count - len(found), 0.2)]
        return found

    first = producer()
    for text, commits in (("kept", True), ("dropped", False), ("kept too", True)):
        first.begin_transaction()
        first.produce("foo", text)
        first.flush(PATIENCE)
        (first.commit_transaction if commits else first.abort_transaction)(PATIENCE)
    source = consumer("foo")
    moved = read(source, 2)
    first.begin_transaction()
    for value in moved:
        first.produce("bar", value)
    offsets = source.position(source.assignment())
    first.send_offsets_to_transaction(offsets, source.consumer_group_metadata(), PATIENCE)
    first.commit_transaction(PATIENCE)
    first.begin_transaction()
    first.produce("bar", "zombie")
    first.flush(PATIENCE)
    second = producer()
    with pytest.raises(kafka.KafkaException) as raised:
        first.commit_transaction(PATIENCE)
    assert raised.value.args[0].fatal()
    second.begin_transaction()
    second.produce("bar", "last")
    second.commit_transaction(PATIENCE)
    target = consumer("bar")
    found = read(target, 3)
    for each in (source, target):
        each.close()
    return found


@pytest.mark.slow
@pytest.mark.requirement("DP-TXN-10", "DP-TXNOFF-02", "DP-TXN-05")
@pytest.mark.parametrize(
    "profile", drawn("profiles of transactions", ("kafka-2.4", "kafka-3.9", "kafka-4.4"), 1)
)
async def test_transactions_of_confluent_kafka(profile: str) -> None:
    async with MockCluster(3, topics=["foo:1:3", "bar:1:3"], profile=profile) as mock:
        found = await asyncio.wait_for(asyncio.to_thread(_transact, mock.bootstrap), 150)
        assert found == [b"kept", b"kept too", b"last"]
        assert [*mock.committed("of-foo").values()] == [5], "past the third record and two markers"
