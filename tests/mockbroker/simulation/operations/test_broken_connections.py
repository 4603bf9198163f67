"""The operation ``break-connections``."""

import pytest

from mockbroker import MockCluster
from mockbroker.errors import UnknownBrokerError
from mockbroker.faults import Fault
from tests.mockbroker.wire import connect


async def test_the_connections_of_one_broker_break_and_new_ones_are_accepted() -> None:
    async with MockCluster(2) as mock:
        async with connect(mock, 1) as broken, connect(mock, 2) as other:
            for wire in (broken, other):
                await wire.ask("Metadata", 9, topics=None)
            await mock.break_connections(1)
            assert await broken.closed() == b""
            assert mock.connections(1) == 0
            await other.ask("Metadata", 9, topics=None)
        async with connect(mock, 1) as wire:
            assert len((await wire.ask("Metadata", 9, topics=None)).brokers) == 2
        with pytest.raises(UnknownBrokerError):
            await mock.break_connections("7")


async def test_a_fault_rule_answers_first() -> None:
    async with MockCluster(1) as mock:
        mock.fault(Fault(api=3, steps_after=("break-connections self",)))
        async with connect(mock) as wire:
            await wire.ask("Metadata", 9, topics=None)
            assert await wire.closed() == b""
