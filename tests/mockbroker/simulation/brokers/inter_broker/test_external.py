"""A broker of another process: the controller's words reach it, and the journal has both sides."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto.connection import RequestReceived, ServerConnection
from kproto.dialects import dialect
from mockbroker.errors import ClusterError
from mockbroker.simulation.brokers.inter_broker import client
from tests.mockbroker.simulation.brokers.inter_broker.heard import alter, heard, recorded, said
from tests.mockbroker.simulation.brokers.inter_broker.talking import talking
from tests.mockbroker.wire import PATIENCE, connect


class Elsewhere:
    """A broker implementation of somebody else's: it takes everything, and says so."""

    def __init__(self, codec_name: str, hang_up_on: int = 0) -> None:
        self.codec = dialect(codec_name)
        self.requests: list[tuple[int, int, Any]] = []
        self.port = 0
        self._hang_ups = hang_up_on

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = ServerConnection(codec=self.codec)
        while data := await reader.read(4096):
            wire.receive_data(data)
            while isinstance(event := wire.next_event(), RequestReceived):
                if self._hang_ups:
                    self._hang_ups -= 1
                    writer.close()
                    return
                header = event.header
                self.requests.append(
                    (header.request_api_key, header.request_api_version, event.body)
                )
                writer.write(wire.send_response(event, event.api.response()))
        writer.close()


@asynccontextmanager
async def elsewhere(codec: str = "kafka", port: int = 0, **faults: int) -> AsyncIterator[Elsewhere]:
    broker = Elsewhere(codec, **faults)
    server = await asyncio.start_server(broker.serve, "127.0.0.1", port)
    broker.port = server.sockets[0].getsockname()[1]
    try:
        yield broker
    finally:
        server.close()


@pytest.mark.parametrize(("profile", "codec"), [("kafka-2.4", "kafka"), ("kip-455-new",) * 2])
async def test_a_broker_elsewhere_is_told_like_any_other(profile: str, codec: str) -> None:
    async with elsewhere(codec) as there:
        at = ("127.0.0.1", there.port)
        async with talking(
            2, topics=["foo=1,2"], profile=profile, external_brokers={3: at}, clock="manual"
        ) as mock:
            assert alter(mock, [2, 3]) == 0
            mock.join_isr("foo-0", 3)
            await mock.settled()
            requests = heard(mock, 3)
            assert [(each.api_key, each.version, each.body) for each in requests] == there.requests
            rows = [row for each in requests for row in said(each)]
            assert rows == recorded(mock, 3)
            assert {4, 6} <= {key for key, _, _ in there.requests}
            # The other side is in the journal too.
            answers = mock.journal.select(broker_id=3, direction="response")
            assert [entry.correlation_id for entry in answers] == [
                each.correlation_id for each in requests
            ]
            assert {entry.dialect for entry in answers} == {codec}
            async with connect(mock) as wire:
                shown = (await wire.ask("Metadata", 5, topics=[])).brokers
            assert {(b.node_id, b.port) for b in shown if b.node_id == 3} == {(3, there.port)}
            assert str(there.port) not in mock.bootstrap


@pytest.mark.slow
async def test_it_may_come_late_and_hang_up() -> None:
    """What there is to say waits for it; what was not answered is said again."""
    async with elsewhere() as reserved:
        port = reserved.port
    async with talking(
        1, topics=["foo=1"], profile="kafka-2.4", external_brokers={2: ("127.0.0.1", port)}
    ) as mock:
        with pytest.raises(ClusterError, match="did not answer the controller"):
            await mock.settled(0.05)
        async with elsewhere(port=port, hang_up_on=2) as there:
            await mock.settled(PATIENCE)
            # Who lives, and foo-0; the first of them was said three times.
            assert [key for key, _, _ in there.requests] == [6, 6]
            assert [said(each) == [] for each in heard(mock, 2)] == [True, True, True, False]


async def test_a_stopped_one_is_told_nothing() -> None:
    async with elsewhere() as there:
        at = ("127.0.0.1", there.port)
        async with talking(2, profile="kafka-2.4", external_brokers={2: at}) as mock:
            await mock.settled()
            before = len(there.requests)
            await mock.stop_broker(2)
            mock.cluster.topics.add("foo=1")
            await mock.settled()
            assert len(there.requests) == before
            await mock.start_broker(2)
            await mock.settled()
            assert len(there.requests) > before


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"external_brokers": {1: ("h", 1)}}, "broker 1 is the controller"),
        ({"external_brokers": {2: ("h", 1)}, "profile": "kafka-4.1"}, "kafka-4.1 sends none"),
        ({"external_brokers": {2: ("h", 1)}, "inter_broker": False}, "requests are off"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ClusterError, match=problem):
        talking(**{"profile": "kafka-2.4", **options})


async def test_a_full_queue_is_reported_once_and_counted(monkeypatch, caplog):
    """Not a line for each request that is dropped."""
    monkeypatch.setattr(client, "_MAX_WAITING", 4)
    async with elsewhere() as there:
        port = there.port
    async with talking(
        2, topics=["foo=1,2"], profile="kafka-2.4", external_brokers={3: ("127.0.0.1", port)},
        clock="manual",
    ) as mock:  # fmt: skip
        for _ in range(10):
            mock.leave_isr("foo-0", 2)
            mock.join_isr("foo-0", 2)
        assert about_3(caplog) == [
            "broker 3 accepts no requests: 4 are queued, and the oldest are dropped from now on"
        ]
        async with elsewhere(port=port):
            await mock.settled()
    _, recovered = about_3(caplog)
    assert re.fullmatch(r"broker 3 accepts requests again: \d\d were dropped, 0 failed", recovered)


def about_3(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.message.startswith("broker 3 ")]


@pytest.mark.slow
async def test_a_broker_that_always_hangs_up_is_left_alone_longer_and_longer(monkeypatch, caplog):
    """Each of thousands of requests would connect three times at once, and keep a core busy."""
    slept: list[float] = []
    sleep = asyncio.sleep

    async def shortly(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    async with elsewhere(hang_up_on=10_000) as there:
        at = ("127.0.0.1", there.port)
        async with talking(
            2, topics=["foo=1,2"], profile="kafka-2.4", external_brokers={3: at}, clock="manual"
        ) as mock:
            await mock.settled()
            slept.clear()
            caplog.clear()
            monkeypatch.setattr(client.asyncio, "sleep", shortly)
            for _ in range(3):
                mock.leave_isr("foo-0", 2)
                mock.join_isr("foo-0", 2)
            await mock.settled()
            monkeypatch.undo()
    assert len(slept) >= 3 * 6
    assert set(slept) == {1.0}
    assert not caplog.records
