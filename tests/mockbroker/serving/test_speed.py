"""Latency and bandwidth of a cluster's listeners: by broker and by listener, in both directions."""

from __future__ import annotations

import asyncio
import time

import pytest

from kproto.messages import ApiVersionsRequest, MetadataRequest
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from tests.mockbroker.wire import connected

LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,EXTERNAL://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT",
}


async def seconds(mock: MockCluster, address: str) -> float:
    """How long two requests take that are sent at once."""
    async with connected(mock, address) as wire:
        begun = time.monotonic()
        wire.send(wire.frame(ApiVersionsRequest(), 0), wire.frame(MetadataRequest(topics=[]), 1))
        await wire.receive()
        await wire.receive()
        return time.monotonic() - begun


@pytest.mark.requirement("DP-CTL-63")
async def test_latency_by_broker_and_by_listener() -> None:
    async with MockCluster(2, broker_configs=LISTENERS) as mock:
        mock.set_latency("40ms", "2/EXTERNAL")
        slow = {(1, "PLAINTEXT"): 0, (1, "EXTERNAL"): 0, (2, "PLAINTEXT"): 0, (2, "EXTERNAL"): 1}
        for where, expected in (
            (None, slow),
            (1, {**slow, (1, "PLAINTEXT"): 1, (1, "EXTERNAL"): 1}),
            ("external", dict.fromkeys(slow, 1) | {(2, "PLAINTEXT"): 0}),
        ):
            if where is not None:
                mock.set_latency(40, where)
            found = {
                (broker_id, name): await seconds(mock, address) >= 0.08
                for broker_id, listeners in mock.listeners.items()
                for name, address in listeners.items()
                if expected[broker_id, name]  # a machine may be slow, but is never too fast
            }
            assert all(found.values()), (where, found)
            for (broker_id, name), delayed in expected.items():
                pacing = mock._paces.of(broker_id, name)
                assert bool(pacing) == bool(delayed), (where, broker_id, name)
        mock.set_latency(0)
        assert not any(mock._paces.of(*each) for each in slow)
        with pytest.raises(ClusterError, match="nothing listens as 2/SSL; the brokers are 1, 2"):
            mock.set_latency(1, "2/SSL")
        with pytest.raises(ClusterError, match="not a broker id"):
            mock.set_bandwidth(1, "1/2/3")


@pytest.mark.requirement("DP-CTL-63")
async def test_bandwidth_bounds_both_directions_of_open_connections() -> None:
    async with MockCluster(1, topics=["foo:500:1"]) as mock:
        request = MetadataRequest(topics=None)
        async with connected(mock, mock.addresses[1]) as wire:
            whole = len((await wire.ask(request, 1)).encode(1))
            mock.set_bandwidth(whole * 10, 1)
            begun = time.monotonic()
            await wire.ask(request, 1)
            assert time.monotonic() - begun >= 0.09
            mock.set_bandwidth(0)
            await wire.ask(request, 1)


@pytest.mark.requirement("DP-CTL-63")
async def test_what_a_client_sent_before_it_left_still_arrives() -> None:
    async with MockCluster(1) as mock:
        mock.set_latency("1h")
        async with connected(mock, mock.addresses[1]) as wire:
            wire.send(wire.frame(ApiVersionsRequest(), 0))
            await wire.writer.drain()
        async with asyncio.timeout(10):
            while not mock.journal.select(event="disconnected"):
                await asyncio.sleep(0.001)
        assert len(mock.journal.select(api=18, direction="request")) == 1
