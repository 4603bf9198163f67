"""Listeners, ports, stopping and starting brokers, the clock."""

import asyncio
import socket
from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.control import ControlServer
from mockbroker.errors import ClusterError, UnknownBrokerError
from mockbroker.options.addresses import parse_endpoint
from mockbroker.serving.endpoints import dialable, is_loopback, show
from mockbroker.simulation.state.cluster_parts import Broker
from tests.mockbroker.wire import PATIENCE, connect
from tests.support.requests import request_of


async def brokers_listed(mock: MockCluster, broker_id: int = 1) -> dict[int, str]:
    async with connect(mock, broker_id) as wire:
        answer = await wire.ask("Metadata", 12, topics=[])
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers}


async def test_every_broker_listens_where_metadata_says() -> None:
    async with MockCluster(brokers=4) as mock:
        assert mock.bootstrap == ",".join(mock.addresses.values())
        assert len(set(mock.addresses.values())) == 4
        for broker_id in mock.addresses:
            assert await brokers_listed(mock, broker_id) == mock.addresses


async def test_a_host_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_args: object, **_kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", refuse)
    mock = MockCluster(host="nowhere")
    for server in (mock, ControlServer(mock, host="nowhere", token="x")):
        with pytest.raises(OSError, match="cannot listen on 'nowhere': Name or service not known"):
            await server.start()


async def test_any_broker_ids() -> None:
    async with MockCluster(brokers=[Broker(7), Broker(3, rack="a")]) as mock:
        assert set(mock.addresses) == {3, 7}
        assert await brokers_listed(mock, 7) == mock.addresses


async def test_a_stopped_broker_refuses_and_comes_back_on_its_port() -> None:
    async with MockCluster(topics=["foo=2,1,3"]) as mock:
        before = mock.addresses
        async with connect(mock, 2) as wire:
            await mock.stop_broker(2)
            assert await wire.closed() == b""
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            async with connect(mock, 2):
                pass
        assert set(await brokers_listed(mock)) == {1, 3}
        with pytest.raises(ClusterError, match="already stopped"):
            await mock.stop_broker(2)
        await mock.start_broker(2)
        assert mock.addresses == before
        assert await brokers_listed(mock, 2) == before


async def test_brokers_that_do_not_exist_are_refused() -> None:
    async with MockCluster() as mock:
        for step in (mock.stop_broker, mock.start_broker):
            with pytest.raises(UnknownBrokerError):
                await step(9)
        with pytest.raises(UnknownBrokerError):
            mock.connections(9)


async def test_ports_in_a_row_and_a_taken_one() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        probe.listen()
        taken = probe.getsockname()[1]
        mock = MockCluster(brokers=1, port=taken)
        with pytest.raises(OSError, match="in use"):
            await mock.start()
        # A failed start leaves nothing open behind it.
        await mock.stop()
    async with MockCluster(brokers=1, port=taken) as mock:
        assert mock.bootstrap == f"127.0.0.1:{taken}"


async def test_stopping_twice_is_harmless_and_frees_the_ports() -> None:
    mock = MockCluster(brokers=2)
    await mock.start()
    async with connect(mock) as wire:
        await mock.stop()
        await mock.stop()
        assert await wire.closed() == b""
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        async with connect(mock):
            pass


@pytest.mark.parametrize(
    ("advertise", "expected"),
    [
        (("kafka.example", None), "kafka.example:{port}"),
        (("kafka.example", 9092), "kafka.example:{place}"),
    ],
)
async def test_what_metadata_tells_clients_to_dial(advertise, expected):
    async with MockCluster(advertise=advertise) as mock:
        listed = await brokers_listed(mock)
        for place, (broker_id, address) in enumerate(mock.addresses.items()):
            port = address.split(":")[1]
            assert listed[broker_id] == expected.format(port=port, place=9092 + place)


async def test_a_wildcard_listener_shows_something_dialable() -> None:
    async with MockCluster(host="0.0.0.0", brokers=1) as mock:
        assert mock.bootstrap.startswith("127.0.0.1:")
        assert await brokers_listed(mock) == mock.addresses


async def test_ipv6() -> None:
    try:
        async with MockCluster(host="::1", brokers=1) as mock, connect(mock) as wire:
            assert mock.bootstrap.startswith("[::1]:")
            assert (await wire.ask("Metadata", 12, topics=[])).brokers[0].host == "::1"
    except OSError:
        pytest.skip("no IPv6 here")


async def test_a_manual_clock_moves_by_advance_alone() -> None:
    async with MockCluster(
        brokers=4, topics=["foo=1,2,3"], clock="manual", auto_progress_ms=500
    ) as mock:
        mock.cluster.reassignments.alter([("foo", [(0, [1, 2, 4])])])
        await asyncio.sleep(0.05)
        assert mock.cluster.timers.now_ms == 0
        mock.advance(499)
        assert mock.cluster.topics.partition("foo", 0).reassigning
        mock.advance(1)
        assert not mock.cluster.topics.partition("foo", 0).reassigning
        assert mock.cluster.timers.now_ms == 500
        with pytest.raises(ClusterError, match="cannot go back"):
            mock.advance(-1)


async def test_the_wall_clock_makes_progress_by_itself() -> None:
    async with MockCluster(brokers=4, topics=["foo=1,2,3"], auto_progress_ms=5) as mock:
        mock.cluster.reassignments.alter([("foo", [(0, [1, 2, 4])])])
        async with asyncio.timeout(PATIENCE):
            while mock.cluster.topics.partition("foo", 0).reassigning:
                await asyncio.sleep(0.005)


async def test_without_auto_progress_nothing_moves() -> None:
    async with MockCluster(brokers=4, topics=["foo=1,2,3"]) as mock, connect(mock) as wire:
        mock.cluster.reassignments.alter([("foo", [(0, [1, 2, 4])])])
        mock.advance(10_000_000)
        for _ in range(3):
            answer = await wire.ask("ListPartitionReassignments", 0)
            assert answer.topics[0].partitions[0].adding_replicas == [4]
        mock.join_isr(("foo", 0), 4)
        assert (await wire.ask("ListPartitionReassignments", 0)).topics == []


async def test_time_stamps_follow_the_wall_clock_and_what_was_skipped() -> None:
    async with MockCluster(topics=["foo=1,2,3"]) as mock:
        before = mock.cluster.timers.now_ms
        mock.advance(3_600_000)
        mock.leave_isr("foo-0", 3)
        at = mock.cluster.log[-1].at_ms
        assert 3_600_000 <= at - before < 3_600_000 + PATIENCE * 1000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("host:65535", ("host", 65535)),
        ("[::1]:9092", ("::1", 9092)),
        ("host", ("host", None)),
        ("[::1]", ("::1", None)),
    ],
)
def test_an_address_is_read(text: str, expected: tuple[str, int | None]) -> None:
    assert parse_endpoint(text) == expected
    if expected[1] is not None:
        assert show(*expected) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["", ":1", "host:x", "host:65536", "::1", "[::1", "[::1]x", "a b:1"]
)
def test_a_bad_address_is_refused(text: str) -> None:
    with pytest.raises(ClusterError):
        parse_endpoint(text)


def test_loopback() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.1.2.3", "localhost", "::1"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "", "127.example.com"]))
    assert dialable("0.0.0.0") == "127.0.0.1"


@pytest.mark.parametrize("enabled", [False, True])
async def test_topics_are_created_by_metadata_only_if_asked_for(enabled: bool) -> None:
    """And the broker's config says which, so that clients see what they get."""
    name = "auto.create.topics.enable"
    async with MockCluster(auto_create_topics=enabled) as mock, connect(mock) as wire:
        body = request_of("Metadata", name="new")
        for _ in range(2):
            await wire.ask(body, 12)
        assert ("new" in mock.cluster.topics) == enabled
        assert mock.cluster.configs.broker(1, name).value == str(enabled).lower()


async def test_configs_racks_and_features_of_the_cluster(caplog: pytest.LogCaptureFixture) -> None:
    async with MockCluster(
        3,
        broker_configs={"num.partitions": "7", "some.plugin": "x"},
        own_broker_configs={2: {"num.partitions": "8", "broker.rack": "b", "other": "y"}},
        racks={1: "a"},
        features={"transaction.version": 1},
    ) as mock:
        values = [mock.cluster.configs.broker(each, "num.partitions").value for each in (1, 2, 3)]
        assert values == ["7", "8", "7"]
        assert [each.rack for each in mock.cluster.brokers.values()] == ["a", "b", None]
        assert mock.cluster.configs.broker(2, "broker.rack").value == "b"
        assert mock.cluster.features.level("transaction.version") == 1
        async with connect(mock) as wire:
            answer = await wire.ask(
                "ApiVersions", 4, client_software_name="a", client_software_version="1"
            )
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        assert (levels["transaction.version"], levels["group.version"]) == (1, 1)
    assert [each.getMessage() for each in caplog.records if each.name == "mockbroker"] == [
        "broker configs that the mock does not know have no effect: other, some.plugin"
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"own_broker_configs": {9: {"a": "b"}}}, "there is no broker 9"),
        ({"racks": {9: "a"}}, "no broker 9: its rack cannot be set"),
        ({"features": {"x": 1}}, "the release has no feature 'x'; its features: metadata.version"),
        ({"features": {"transaction.version": 3}}, "transaction.version at levels 0 to 2, not 3"),
        ({"features": {"x": 1}, "profile": "kafka-3.9-zk"}, "its features: none"),
    ],
)
def test_options_of_brokers_that_do_not_fit(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ClusterError, match=problem):
        MockCluster(2, **{"profile": "kafka-4.4", **options})


async def test_an_advertised_listener_that_is_not_set_is_a_default() -> None:
    """``advertised.listeners`` is null then; brokers advertise their listeners."""
    name, own = "advertised.listeners", "PLAINTEXT://elsewhere:9092"
    async with MockCluster(2, own_broker_configs={2: {name: own}}) as mock:
        unset, given = (mock.cluster.configs.broker(each, name) for each in (1, 2))
        assert (unset.value, unset.source, unset.synonyms) == (None, 5, ())
        assert (given.value, given.source) == (own, 4)
        assert mock.cluster.configs.broker(1, "listeners").source == 4


async def test_static_configs_of_the_brokers() -> None:
    async with MockCluster(broker_configs={"num.partitions": "7"}) as mock:
        assert mock.cluster.configs.broker(2, "num.partitions").value == "7"
