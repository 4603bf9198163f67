"""The steps of a program about transactions, on one side.

A step names a transactional producer by a short name of the program's own. Requests go in versions
of both protocols of transactions; after each end the side waits until the markers are written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kproto.messages import AddOffsetsToTxnRequest, DescribeTransactionsRequest
from tests.real.data.requests import produce_rows
from tests.real.data.side import CLOSED
from tests.real.data.transactions import CLIENTS, VERSION_2, Producer
from tests.real.programs.model import ProgramStep
from tests.real.walks.generator import TRANSACTIONAL

if TYPE_CHECKING:
    from tests.real.walks.walker import Walker

__all__ = ["Transactions"]

TIMEOUT_MS: Final = 600_000
OLDEST_PRODUCE: Final = 3
ADDING_PRODUCE: Final = 12
"""The first version of Produce with which a leader adds the partition to the transaction."""


class _Transactional(Producer):
    """``members`` are the partitions of the open transaction."""

    def __init__(self, walker: Walker, name: str) -> None:
        super().__init__(walker, name, f"{walker.topic}.{name}")
        self.members: set[int] = set()
        self.sequences: dict[tuple[int, int, int], int] = {}

    def next_sequence(self, partition: int) -> int:
        return self.sequences.get((self.producer_id, self.epoch, partition), 0)

    def sent(self, partition: int, count: int) -> None:
        key = (self.producer_id, self.epoch, partition)
        self.sequences[key] = self.sequences.get(key, 0) + count


class Transactions:
    def __init__(self, walker: Walker) -> None:
        self._walker = walker
        self._topic = f"{walker.topic}.{TRANSACTIONAL}"
        self._producers: dict[str, _Transactional] = {}
        self.steps: Mapping[str, Callable[[ProgramStep], Awaitable[None]]] = {
            "txn-init": self._init,
            "txn-add": self._add,
            "txn-produce": self._produce,
            "txn-offsets": self._offsets,
            "txn-end": self._end,
            "txn-describe": self._describe,
        }

    def _producer(self, step: ProgramStep) -> _Transactional:
        name = step["producer"]
        if name not in self._producers:
            self._producers[name] = _Transactional(self._walker, name)
        return self._producers[name]

    async def _init(self, step: ProgramStep) -> None:
        self._walker.use(22, step)
        producer = self._producer(step)
        await producer.init(quiet=False, timeout_ms=TIMEOUT_MS)
        producer.members.clear()

    async def _add(self, step: ProgramStep) -> None:
        await self._added(self._producer(step), step["rows"], int(step["at"]) % (CLIENTS + 1))

    async def _added(
        self, producer: _Transactional, partitions: list[int], version: int = CLIENTS
    ) -> None:
        body = producer.add(*partitions, topic=self._topic, version=version)
        answer = await self._walker.ask(body, version=version)
        rows = answer.results_by_topic_v3_and_below[0].results_by_partition
        if all(row.partition_error_code == 0 for row in rows):
            producer.members.update(partitions)

    async def _produce(self, step: ProgramStep) -> None:
        """A leader only verifies older versions, so the partition is added before."""
        producer, partition = self._producer(step), step["partition"]
        adds = self._walker.served_version(0) >= ADDING_PRODUCE
        if partition not in producer.members and not adds:
            await self._added(producer, [partition])
            if partition not in producer.members:
                return
        since = OLDEST_PRODUCE if partition in producer.members else ADDING_PRODUCE
        version = self._walker.use(0, step, since=since)
        values = [b"%d.%d" % (step["tag"], each) for each in range(step["records"])]
        data = producer.batch(
            *values, base_sequence=max(producer.next_sequence(partition) + step.get("skip", 0), 0)
        )
        rows = (self._topic, partition, data)
        body = produce_rows(self._walker, rows, transactional_id=producer.id)
        answer = await self._walker.ask(body, broker=self._walker.leader(TRANSACTIONAL, partition))
        if answer is CLOSED:
            return
        row = answer.responses[0].partition_responses[0]
        if row.error_code == 0:
            if not step.get("skip"):
                producer.sent(partition, len(values))
            if version >= ADDING_PRODUCE:
                producer.members.add(partition)

    async def _offsets(self, step: ProgramStep) -> None:
        producer, group = self._producer(step), f"{self._walker.topic}.{step['group']}"
        newest = self._walker.served_version(28)
        if newest >= VERSION_2 and int(step["at"]) % 2:
            self._walker.use(28, step, since=VERSION_2)
        else:
            self._walker.use(25, step)
            body = AddOffsetsToTxnRequest(
                transactional_id=producer.id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                group_id=group,
            )
            await self._walker.ask(body)
            self._walker.use(28, step, until=VERSION_2 - 1)
        rows = [(index, offset) for index, offset in step["rows"]]
        await self._walker.ask(producer.offsets(*rows, topic=self._topic, group=group))

    async def _end(self, step: ProgramStep) -> None:
        producer = self._producer(step)
        version = self._walker.use(26, step)
        await producer.ended(commit=step["commit"], version=version)
        producer.members.clear()

    async def _describe(self, step: ProgramStep) -> None:
        self._walker.use(65, step)
        body: Any = DescribeTransactionsRequest(transactional_ids=[self._producer(step).id])
        await self._walker.ask(body, broker=self._walker.transactions)
