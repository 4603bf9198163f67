"""One real broker with configs of its own, and one of the mock's, reached through the same wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from kproto.dialects import dialect
from kproto.messages import ApiVersionsRequest
from tests.mockbroker.wire import Wire
from tests.real.kafka import RealKafka

__all__ = ["BROKER", "ONE_BROKER", "SingleKafka", "reach", "until"]

BROKER: Final = 1

ONE_BROKER: Final[Mapping[str, str]] = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Configs with which one broker serves groups and transactions; both sides have them."""

_POLL_SECONDS: Final = 0.1
_PATIENCE: Final = 60.0


class SingleKafka(RealKafka):
    """One broker with ``ONE_BROKER`` and ``configs``."""

    def __init__(
        self, release: str, folder: Path, *, zookeeper: bool = False, configs: Mapping[str, str]
    ) -> None:
        super().__init__(release, folder, zookeeper=zookeeper, broker_ids=(BROKER,))
        self._own = {**ONE_BROKER, **configs}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[BROKER]}"

    def _kraft_configs(self, broker_id: int) -> dict[str, str]:
        return {**super()._kraft_configs(broker_id), **self._own}

    def _zookeeper_configs(self, broker_id: int) -> dict[str, str]:
        return {**super()._zookeeper_configs(broker_id), **self._own}


@asynccontextmanager
async def reach(address: str) -> AsyncIterator[Wire]:
    """A connection to ``HOST:PORT`` on which ApiVersions 0 was answered."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        wire = Wire(reader, writer, dialect("kafka"))
        await wire.ask(ApiVersionsRequest(), 0)
        yield wire
    finally:
        writer.close()


async def until(wire: Wire, body: Any, version: int, wanted: Any) -> Any:
    """Send ``body`` until ``wanted`` accepts the answer, which is returned.

    Raises TimeoutError, with the last answer, after a minute.
    """
    answer: Any = None
    try:
        async with asyncio.timeout(_PATIENCE):
            while True:
                answer = await wire.ask(body, version)
                if wanted(answer):
                    return answer
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"the last answer was {answer}") from None
