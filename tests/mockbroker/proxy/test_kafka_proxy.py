"""A proxy with sockets, in front of a mock cluster."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kproto.capture import JournalCapture
from kproto.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.faults.documents import fault_of
from mockbroker.options import Limits
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions
from tests.mockbroker.proxy.conftest import address, dial
from tests.mockbroker.replay.recorded import extracted
from tests.mockbroker.wire import PATIENCE, connect
from tests.support.ports import free_ports
from tests.support.requests import request_of
from tests.support.toolchain import require_module
from tests.support.waiting import until

Proxied = Callable[..., Any]


def ports(addresses: dict[int, str]) -> dict[int, int]:
    return {broker_id: address(text)[1] for broker_id, text in addresses.items()}


@pytest.mark.requirement("DP-PROXY-01", "DP-PROXY-02", "DP-PROXY-03", "DP-PROXY-20", "DP-PROXY-51")
async def test_every_api_names_the_proxys_listeners(proxied: Proxied) -> None:
    async with MockCluster(brokers=3, topics=["foo:3:3"]) as mock:
        proxy = await proxied(mock)
        own = ports(proxy.addresses)
        assert sorted(own) == [1, 2, 3]
        assert not set(own.values()) & set(ports(mock.addresses).values())
        async with dial(proxy) as wire:
            metadata = await wire.ask("Metadata", 12, topics=[])
            assert {each.node_id: each.port for each in metadata.brokers} == own
            cluster = await wire.ask("DescribeCluster", 0)
            assert {each.broker_id: each.port for each in cluster.brokers} == own
            # The first request creates the topic that coordinators live on.
            await wire.ask("FindCoordinator", 0, key="g")
            for version in (0, 3):
                found = await wire.ask("FindCoordinator", version, key="g")
                assert own[found.node_id] == found.port
            found = await wire.ask("FindCoordinator", 4, coordinator_keys=["g", "h"])
            assert [own[each.node_id] for each in found.coordinators] == [
                each.port for each in found.coordinators
            ]


@pytest.mark.requirement("DP-PROXY-21")
async def test_a_listener_leads_to_its_own_broker(proxied: Proxied) -> None:
    async with MockCluster(brokers=3) as mock:
        proxy = await proxied(mock)
        mock.journal.clear()
        for broker_id in (2, 3):
            async with dial(proxy, broker_id) as one, dial(proxy, broker_id) as other:
                await one.ask("ApiVersions", 0)
                await other.ask("ApiVersions", 0)
            entries = mock.journal.select(direction="request", broker_id=broker_id)
            assert len({each.connection_id for each in entries}) == 2
            recorded = proxy.journal.select(direction="request", broker_id=broker_id)
            assert len(recorded) == 2


@pytest.mark.requirement("DP-PROXY-20")
async def test_a_broker_that_comes_later_gets_a_listener(proxied: Proxied) -> None:
    async with MockCluster(brokers=3) as mock:
        await mock.stop_broker(3)
        proxy = await proxied(mock)
        assert sorted(proxy.addresses) == [1, 2]
        await mock.start_broker(3)
        async with dial(proxy) as wire:
            metadata = await wire.ask("Metadata", 12, topics=[])
        third = next(each for each in metadata.brokers if each.node_id == 3)
        assert proxy.addresses[3] == f"{third.host}:{third.port}"
        async with dial(proxy, 3) as wire:
            await wire.ask("ApiVersions", 0)
        # One that goes keeps its listener, and is found behind it when it is back.
        await mock.stop_broker(3)
        async with dial(proxy, 3) as wire:
            assert await wire.closed() == b""
        await mock.start_broker(3)
        async with dial(proxy, 3) as wire:
            await wire.ask("ApiVersions", 0)


@pytest.mark.requirement("DP-PROXY-20", "DP-PROXY-50")
async def test_ports_and_host_that_it_is_told(proxied: Proxied) -> None:
    async with MockCluster(brokers=2) as mock:
        base = free_ports(2, in_a_row=True)[0] - 1
        proxy = await proxied(mock, broker_port_base=base, advertise=("localhost", 30_000))
        assert ports(proxy.addresses) == {1: base + 1, 2: base + 2}
        async with dial(proxy) as wire:
            metadata = await wire.ask("Metadata", 12, topics=[])
        named = {each.node_id: (each.host, each.port) for each in metadata.brokers}
        assert named == {1: ("localhost", 30_001), 2: ("localhost", 30_002)}


@pytest.mark.requirement("DP-PROXY-25", "DP-PROXY-55")
async def test_requests_above_the_profile_are_refused(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, profile="kafka-4.4") as mock:
        proxy = await proxied(mock, profile="kafka-2.4")
        mock.journal.clear()
        async with dial(proxy) as wire:
            wire.send(wire.frame(request_of("ApiVersions"), 4))
            frame = await wire.receive()
            _, body = proxy.dialect.decode_response(frame, api_key=18, api_version=0)
            assert body.error_code == 35
            assert [(row.api_key, row.max_version) for row in body.api_keys] == [(18, 3)]
            versions = await wire.ask(
                "ApiVersions", 3, client_software_name="a", client_software_version="1"
            )
            assert {row.api_key: row.max_version for row in versions.api_keys}[3] == 9
            wire.send(wire.frame(request_of("Metadata", topics=[]), 10))
            assert await wire.closed() == b""
        assert [(each.api_key, each.api_version) for each in
                mock.journal.select(direction="request")] == [(18, 3)]  # fmt: skip
        assert [each.note for each in proxy.journal.select(event="unsupported", api=3)] == [
            "versions 0-9 pass"
        ]


@pytest.mark.requirement("DP-PROXY-33")
async def test_an_upstream_that_is_gone(proxied: Proxied) -> None:
    async with MockCluster(brokers=2) as mock:
        proxy = await proxied(mock)
        async with dial(proxy, 2) as wire:
            await wire.ask("ApiVersions", 0)
            await mock.stop_broker(2)
            assert await wire.closed() == b""
        async with dial(proxy, 2) as wire:
            assert await wire.closed() == b""
        (unreachable,) = proxy.journal.select(event="upstream-unreachable")
        assert mock.addresses[2] in unreachable.note


async def test_an_upstream_that_is_not_there_yet(caplog: pytest.LogCaptureFixture) -> None:
    (port,) = free_ports(1)
    async with KafkaProxy(ProxyOptions(upstream=[("127.0.0.1", port)])) as proxy:
        assert proxy.addresses == {}
        assert f"upstream 127.0.0.1:{port}: " in caplog.text
        assert "the brokers' listeners open when a client asks" in caplog.text
        async with MockCluster(brokers=1, port=port) as _, dial(proxy) as wire:
            metadata = await wire.ask("Metadata", 12, topics=[])
        assert [each.node_id for each in metadata.brokers] == [1]
        assert sorted(proxy.addresses) == [1]


@pytest.mark.requirement("DP-PROXY-52")
@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "this looks like TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "this looks like HTTP"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "this looks like SSH"),
        (b"\0\0\0\4\0\0\0\0", "no complete header"),
    ],
)
async def test_foreign_bytes(proxied: Proxied, sent: bytes, kind: str) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        async with dial(proxy) as wire:
            wire.send(sent)
            assert await wire.closed() == b""
        (malformed,) = proxy.journal.select(event="malformed")
        assert kind in malformed.note


@pytest.mark.requirement("DP-PROXY-35")
async def test_limits_are_those_of_the_cluster(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock, limits=Limits(max_connections=1, max_frame_bytes=1000))
        async with dial(proxy) as wire:
            wire.send(b"\0\0\x10\0")
            assert await wire.closed() == b""
        await until(lambda: not proxy.connections, "the end of the connection")
        async with dial(proxy) as wire:
            await wire.ask("ApiVersions", 0)
            async with dial(proxy) as another:
                assert await another.closed() == b""
            await wire.ask("ApiVersions", 0)
        idle = await proxied(mock, limits=Limits(idle_timeout_ms=40))
        async with dial(idle) as wire:
            assert await wire.closed() == b""
        for at, event, note in (
            (proxy, "malformed", "frame size 4096 is more than the 1000 allowed"),
            (proxy, "over-limit", "the broker has 1 connections, its limit"),
            (idle, "idle", "no bytes were received or sent for 40 ms"),
        ):
            assert [each.note for each in at.journal.select(event=event)] == [note]


@pytest.mark.slow
@pytest.mark.requirement("DP-PROXY-26", "DP-PROXY-57")
async def test_a_client_that_does_not_read_stops_the_upstream() -> None:
    """The upstream has a large answer; what waits in the proxy stays bounded."""
    size = 100 << 20
    stalled = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        writer.write((size - 4).to_bytes(4, "big") + request[4:8])
        chunk = b"x" * 65536
        try:
            for _ in range(size // len(chunk)):
                writer.write(chunk)
                try:
                    async with asyncio.timeout(1):
                        await writer.drain()
                except TimeoutError:
                    stalled.set()
                    await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    upstream = [("127.0.0.1", server.sockets[0].getsockname()[1])]
    async with KafkaProxy(ProxyOptions(upstream=upstream)) as proxy, dial(proxy) as wire:
        wire.send(wire.frame(request_of("Heartbeat"), 4))
        async with asyncio.timeout(PATIENCE):
            await stalled.wait()
        (connection,) = proxy.connections
        assert connection.held_bytes < 4 << 20
        # It goes on once the client reads.
        async with asyncio.timeout(PATIENCE):
            got = await wire.reader.readexactly(size // 2)
        assert got[4:8] == (1).to_bytes(4, "big")
    server.close()


@pytest.mark.requirement("DP-PROXY-21", "DP-PROXY-27")
@pytest.mark.parametrize("detail", ["frames", "headers"])
async def test_kafka_python_through_the_proxy(proxied: Proxied, detail: str) -> None:
    kafka: Any = require_module("kafka")
    async with MockCluster(brokers=3, topics=["foo:3:2"]) as mock:
        proxy = await proxied(mock, detail=detail)
        mock.journal.clear()

        def work() -> int:
            servers = {"bootstrap_servers": proxy.bootstrap}
            producer = kafka.KafkaProducer(**servers)
            for number in range(100):
                producer.send("foo", b"%d" % number)
            producer.flush(10)
            producer.close(10)
            consumer = kafka.KafkaConsumer(
                "foo", group_id="g", auto_offset_reset="earliest", **servers
            )
            count = 0
            while count < 100:
                count += sum(map(len, consumer.poll(10_000).values()))
            consumer.commit()
            consumer.close()
            return count

        assert await asyncio.wait_for(asyncio.to_thread(work), 60) == 100
        # Nothing went past the proxy. (What a client sends as it closes may end there.)
        seen = {(each.api_key, each.correlation_id, each.client_id)
                for each in proxy.journal.select(direction="request")}  # fmt: skip
        own = {(each.api_key, each.correlation_id, each.client_id)
               for each in mock.journal.select(direction="request")}  # fmt: skip
        assert own <= seen
        assert {0, 1, 3, 10, 11, 14} <= {key for key, _, _ in own}


@pytest.mark.requirement("DP-PROXY-30")
async def test_the_mock_answers_from_a_recording_of_the_proxy(proxied: Proxied) -> None:
    """What the upstream said, with the mock's addresses in the place of the proxy's; an answer that
    a rule changed is the one that the client had."""
    questions: list[tuple[Any, int]] = [
        (request_of("Metadata", topics=None), 12),
        (request_of("DescribeCluster"), 0),
        (request_of("ListGroups"), 4),
    ]
    async with MockCluster(brokers=3, topics=["recorded:2:3"]) as mock:
        proxy = await proxied(mock)
        proxy.load_faults([fault_of({"api": "ListGroups", "error": "COORDINATOR_NOT_AVAILABLE"})])
        async with dial(proxy) as wire:
            recorded = [await wire.ask(body, version) for body, version in questions]
        assert [each.error_code for each in recorded[2:]] == [15]
    replaying = MockCluster(brokers=3)
    replaying.replay(extracted(proxy.journal))
    async with replaying, connect(replaying) as wire:
        again = [await wire.ask(body, version) for body, version in questions]
    own = ports(replaying.addresses)
    for body in again[:2]:
        assert {each.port for each in body.brokers} == set(own.values())
    for body in (*recorded[:2], *again[:2]):
        for each in body.brokers:
            each.port = 0
    assert again == recorded
    assert not replaying.journal.select(event="replay-miss")


@pytest.mark.requirement("DP-PROXY-30")
async def test_a_capture_of_the_proxy_is_read_back(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock)
        capture = JournalCapture()
        packets = [capture.start()]
        proxy.journal.sink = lambda entry: packets.append(capture.add(entry))
        async with dial(proxy) as wire:
            await wire.ask("Metadata", 12, topics=[])
        await until(lambda: any(each.event == "disconnected" for each in proxy.journal), "the end")
    raw = [each.raw for each in proxy.journal if each.raw]
    assert len(raw) == 2
    assert all(frame in b"".join(packets) for frame in raw)


async def test_an_upstream_that_names_too_many_brokers_gets_no_more_listeners(proxied):
    brokers = [MetadataResponseBroker(node_id=n, host="h", port=9092) for n in range(3, 100_003)]
    flood = MetadataResponse(brokers=brokers, topics=[])
    async with MockCluster(brokers=2) as mock:
        proxy = await proxied(mock, max_targets=5)
        async with dial(proxy) as wire:
            assert len((await wire.ask("Metadata", 12, topics=[])).brokers) == 2
            mock.script(3, flood)
            wire.send(wire.frame(request_of("Metadata", topics=[]), 12))
            assert await wire.closed() == b""
        assert len(proxy.addresses) == 5
        assert len(proxy.to_dict()["listeners"]) == 1 + 5
        notes = [entry.note for entry in proxy.journal if entry.event]
        assert any("names more than 5 brokers and controllers" in note for note in notes)
        async with dial(proxy, 1) as wire:
            assert (await wire.ask("ApiVersions", 0)).error_code == 0


@pytest.mark.parametrize("most", [0, 100_001])
def test_a_number_of_targets_that_makes_no_sense_is_refused(most: int) -> None:
    with pytest.raises(ClusterError, match=f"max_targets is {most}; it must be between 1 and"):
        ProxyOptions(upstream=[("localhost", 1)], max_targets=most)
