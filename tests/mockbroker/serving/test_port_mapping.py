"""Clients reach brokers through forwarded ports that nobody knows before the cluster runs.

A relay in front of each broker stands for the port mapping of a container. ``advertise`` puts the
relays into Metadata, as docs/how-to/testcontainers.md does.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.errors import ClusterError
from tests.mockbroker.control.test_command_line import ctl


class Relays:
    """``ports`` has a forwarded port for each broker, ``connections`` how often each was used."""

    def __init__(self, mock: MockCluster) -> None:
        self.ports: dict[int, int] = {}
        self.connections: Counter[int] = Counter()
        self._mock = mock
        self._servers: list[asyncio.Server] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        for broker_id in self._mock.addresses:
            server = await asyncio.start_server(self._accept(broker_id), "127.0.0.1", 0)
            self._servers.append(server)
            self.ports[broker_id] = server.sockets[0].getsockname()[1]

    def _accept(self, broker_id: int):
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections[broker_id] += 1
            host, port = self._mock.addresses[broker_id].split(":")
            inner_reader, inner_writer = await asyncio.open_connection(host, int(port))
            self._writers += [writer, inner_writer]
            await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))

        return relay

    def close(self) -> None:
        for end in [*self._servers, *self._writers]:
            end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def relayed(mock: MockCluster) -> AsyncIterator[Relays]:
    relays = Relays(mock)
    await relays.open()
    try:
        yield relays
    finally:
        relays.close()


@contextlib.asynccontextmanager
async def controlled(mock: MockCluster) -> AsyncIterator[str]:
    control = ControlServer(mock)
    await control.start()
    try:
        yield control.url
    finally:
        await control.stop()


async def test_a_released_client_works_through_mapped_ports(capsys):
    """Its bootstrap is one mapped port; it finds the controller and the other brokers by theirs."""
    kafka = pytest.importorskip("kafka")

    def administer(bootstrap: str) -> dict[int, tuple[str, int]]:
        client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            client.create_topics({"foo": {"num_partitions": 2, "replication_factor": 2}})
            brokers = client.describe_cluster()["brokers"]
        finally:
            client.close()
        return {each["broker_id"]: (each["host"], each["port"]) for each in brokers}

    async with MockCluster(3) as mock, relayed(mock) as relays, controlled(mock) as url:
        for broker_id, port in relays.ports.items():
            words = ("advertise", str(broker_id), f"127.0.0.1:{port}")
            assert (await asyncio.to_thread(ctl, capsys, url, *words))[0] == 0
        mock.failover(2)  # the client has to leave the broker that it knows
        bootstrap = f"127.0.0.1:{relays.ports[1]}"
        seen = await asyncio.to_thread(administer, bootstrap)
        assert seen == {each: ("127.0.0.1", port) for each, port in relays.ports.items()}
        assert relays.connections[1] > 0 < relays.connections[2]
        # None went past a relay.
        assert len({each.connection_id for each in mock.journal}) <= relays.connections.total()
        assert set(mock.cluster.topics) == {"foo"}


async def test_an_advertised_address_survives_a_restart() -> None:
    async with MockCluster(2) as mock:
        listening = dict(mock.addresses)
        mock.advertise(2, "[::1]:40000")
        await mock.stop_broker(2)
        await mock.start_broker(2)
        broker = mock.cluster.controller.broker(2)
        assert (broker.host, broker.port) == ("::1", 40000)
        assert mock.addresses == listening
        for address, problem in [
            ("localhost", "has no port"),
            ("localhost:0", "has no port"),
            ("::1:9", "in brackets"),
            ("a b:9", "has no host"),
        ]:
            with pytest.raises(ClusterError, match=problem):
                mock.advertise(2, address)
        with pytest.raises(ClusterError):
            mock.advertise(9, "localhost:9092")
        assert mock.cluster.controller.broker(2) == broker
