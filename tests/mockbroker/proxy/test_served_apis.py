"""API keys that a mock cluster answers in the place of the upstream."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kproto.client import Admin
from kproto.schema.model import ZERO_UUID
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.faults.documents import fault_of
from mockbroker.proxy.kafka_proxy import KafkaProxy, ProxyOptions
from mockbroker.proxy.served_apis import ServedApis
from tests.mockbroker.proxy.conftest import address, dial
from tests.support.requests import request_of
from tests.support.waiting import until

Proxied = Callable[..., Any]

LIST = request_of("ListPartitionReassignments", topics=None)


async def ranges(proxy: KafkaProxy, version: int = 0) -> dict[int, tuple[int, int]]:
    async with dial(proxy) as wire:
        body = await wire.ask("ApiVersions", version)
    return {each.api_key: (each.min_version, each.max_version) for each in body.api_keys}


def served(proxy: KafkaProxy) -> MockCluster:
    assert proxy.served is not None
    assert proxy.served.mock is not None
    return proxy.served.mock


@pytest.mark.requirement("DP-PROXY-34")
async def test_a_client_with_a_new_api_before_an_old_cluster(proxied: Proxied) -> None:
    topics = ["foo=1,2/2,3"]
    async with MockCluster(brokers=3, topics=topics, profile="kafka-2.3") as old:
        assert 45 not in await ranges(await proxied(old))
        proxy = await proxied(old, serve=[45, 46])
        old.journal.clear()
        async with Admin(proxy.bootstrap) as admin:
            await admin.alter_partition_reassignments({("foo", 1): [1, 3]}).all()
            pending = await admin.list_partition_reassignments()
            assert list(pending) == [("foo", 1)]
            served(proxy).join_isr("foo-1", 1)
            assert not await admin.list_partition_reassignments()
        # The cluster has had no request of the kind; the others it has.
        keys = {each.api_key for each in old.journal.select(direction="request")}
        assert not keys & {45, 46}
        assert 3 in keys
        assert old.cluster.topics["foo"].partitions[1].replicas == (2, 3)
        recorded = proxy.journal.select(api=45)
        assert [each.direction for each in recorded] == ["request", "response"]
        assert all(each.raw for each in recorded)
        assert any("PARTITION_REASSIGNMENTS" in line for line in proxy.notices())
        assert proxy.to_dict()["serve"] == [45, 46]


@pytest.mark.requirement("DP-PROXY-34", "DP-PROXY-22")
async def test_api_versions_list_what_is_served(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, profile="kafka-2.3") as old:
        plain = await ranges(await proxied(old))
        proxy = await proxied(
            old, serve=[46, 45, 16], serve_profile="kafka-4.1", profile="kafka-2.0"
        )
        both = await ranges(proxy)
        assert list(both) == sorted(both)
        own = served(proxy).served
        assert {key: both[key] for key in (45, 46, 16)} == {
            key: (own[key].lowest, own[key].highest) for key in (45, 46, 16)
        }
        assert plain[16] != both[16]


@pytest.mark.requirement("DP-PROXY-34", "DP-PROXY-25")
async def test_a_refusal_of_api_versions_lists_nothing_that_is_served(proxied: Proxied) -> None:
    async with (
        MockCluster(brokers=1, profile="kafka-2.4") as old,
        dial(await proxied(old, serve=[45, 46])) as wire,
    ):
        wire.send(wire.frame(request_of("ApiVersions"), 4))
        _, body = wire.codec.decode_response(await wire.receive(), api_key=18, api_version=0)
        assert (body.error_code, [each.api_key for each in body.api_keys]) == (35, [18])


@pytest.mark.requirement("DP-PROXY-34")
async def test_answers_give_the_proxys_addresses_and_the_upstreams_topic_ids(proxied):
    async with MockCluster(brokers=2, topics=["foo=2,1"], profile="kafka-4.0") as mock:
        proxy = await proxied(mock, serve=[10, 68])
        async with dial(proxy, 2) as wire:
            request = request_of("FindCoordinator", coordinator_keys=["g"])
            await wire.ask(request, 4)  # creates the topic that coordinators live on
            coordinator = (await wire.ask(request, 4)).coordinators[0]
            place = f"{coordinator.host}:{coordinator.port}"
            assert proxy.addresses[coordinator.node_id] == place
        beat = request_of(
            "ConsumerGroupHeartbeat",
            group_id="g",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["foo"],
            topic_partitions=[],
        )
        async with dial(proxy, coordinator.node_id) as wire:
            answer = await wire.ask(beat, 1)
            assert answer.error_code == 0
            own = mock.cluster.topics["foo"].topic_id
            assert [each.topic_id for each in answer.assignment.topic_partitions] == [own]
            # Groups of the upstream are others.
            groups = await wire.ask("ListGroups", 4)
            assert groups.groups == []


@pytest.mark.requirement("DP-PROXY-34")
async def test_topics_come_and_go_with_the_upstreams(proxied: Proxied) -> None:
    async with MockCluster(brokers=2, topics=["foo=1,2"], profile="kafka-2.3") as old:
        proxy = await proxied(old, serve=[45, 46])
        mock = served(proxy)
        mock.create_topic("own:1:1")
        old.create_topic("bar=2,1/1")
        async with dial(proxy) as wire:
            everything = request_of("Metadata", topics=None)
            await wire.ask(everything, 5)
            assert sorted(mock.cluster.topics) == ["bar", "foo", "own"]
            replicas = [each.replicas for each in mock.cluster.topics["bar"].partitions]
            assert replicas == [(2, 1), (1,)]
            old.cluster.topics.delete([("bar", ZERO_UUID)])
            names = [{"name": name} for name in ("bar", "own")]
            await wire.ask("Metadata", 5, topics=names, allow_auto_topic_creation=False)
            assert sorted(mock.cluster.topics) == ["foo", "own"]
            # What the mock cluster already has stays as it is.
            await wire.ask(everything, 5)
            assert sorted(mock.cluster.topics) == ["foo", "own"]


@pytest.mark.requirement("DP-PROXY-34")
async def test_the_controller_moves_with_the_upstreams(proxied: Proxied) -> None:
    async with MockCluster(brokers=3, profile="kafka-2.3") as old:
        old.failover(to=2)
        proxy = await proxied(old, serve=[45, 46], serve_profile="kafka-2.4")
        mock = served(proxy)
        assert mock.cluster.state.controller_id == 2
        async with dial(proxy, 2) as wire:
            assert (await wire.ask(LIST, 0)).error_code == 0
        async with dial(proxy, 3) as wire:
            assert (await wire.ask(LIST, 0)).error_code == 41
            old.failover(to=3)
            await wire.ask("Metadata", 5, topics=[])
            assert mock.cluster.state.controller_id == 3
            assert (await wire.ask(LIST, 0)).error_code == 0


@pytest.mark.requirement("DP-PROXY-34", "DP-PROXY-27")
async def test_answers_keep_their_order(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, profile="kafka-2.3") as old:
        proxy = await proxied(old, serve=[45, 46])
        async with dial(proxy) as wire:
            bodies: list[tuple[Any, int]] = [(LIST, 0), (request_of("Metadata", topics=[]), 5)] * 3
            wire.send(*(wire.frame(body, version) for body, version in bodies))
            for number, (body, version) in enumerate(bodies, 1):
                header, _ = wire.codec.decode_response(
                    await wire.receive(), api_key=body.API_KEY, api_version=version
                )
                assert header.correlation_id == number


@pytest.mark.requirement("DP-PROXY-34", "DP-PROXY-29")
async def test_rules_apply_to_what_is_served(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, profile="kafka-2.3") as old:
        proxy = await proxied(old, serve=[45, 46])
        proxy.load_faults(
            [
                fault_of({"api": 46, "error": "NOT_CONTROLLER", "apply": True, "times": 1}),
                fault_of({"api": 46, "error": "UNKNOWN_SERVER_ERROR", "times": 1}),
            ]
        )
        async with dial(proxy) as wire:
            assert [(await wire.ask(LIST, 0)).error_code for _ in range(3)] == [41, -1, 0]
        assert len(served(proxy).journal.select(api=46, direction="request")) == 2
        assert len(proxy.journal.select(event="upstream-answer")) == 1


@pytest.mark.requirement("DP-PROXY-34")
async def test_connections_end_together(proxied: Proxied) -> None:
    async with MockCluster(brokers=2, profile="kafka-2.3") as old:
        proxy = await proxied(old, serve=[46, 0])
        mock = served(proxy)
        async with dial(proxy, 2) as wire:
            await wire.ask(LIST, 0)
            assert (mock.connections(1), mock.connections(2)) == (0, 1)
        await until(lambda: not mock.connections(2), "the connection to the mock cluster ends")
        async with dial(proxy, 2) as wire:
            await wire.ask(LIST, 0)
            await mock.stop_broker(2)
            wire.send(wire.frame(LIST, 0))
            assert await wire.closed() == b""
        # A request without a response is answered by nobody, and the next one is.
        async with dial(proxy, 1) as wire:
            wire.send(wire.frame(request_of("Produce", acks=0, topic_data=[]), 9))
            assert (await wire.ask(LIST, 0)).error_code == 0
        assert len(mock.journal.select(api=0)) == 1


@pytest.mark.requirement("DP-PROXY-34")
async def test_a_request_that_nobody_can_read_goes_to_the_mock_cluster(proxied: Proxied) -> None:
    async with MockCluster(brokers=1, profile="kafka-2.3") as old:
        proxy = await proxied(old, serve=[46])
        old.journal.clear()
        async with dial(proxy) as wire:
            whole = wire.frame(LIST, 0)
            cut = (len(whole) - 8).to_bytes(4, "big") + whole[4:-4]
            wire.send(cut)
            assert await wire.closed() == b""
        assert [each.event for each in served(proxy).journal if each.api_key == 46] == ["malformed"]
        assert not old.journal.select(api=46)


@pytest.mark.requirement("DP-PROXY-34")
async def test_what_cannot_be_served() -> None:
    async with MockCluster(brokers=1) as mock:
        upstream = [address(mock.bootstrap)]
        for key, problem in [(18, "about the connection"), (36, "about the connection"),
                             (17, "about the connection"), (999, "does not serve API 999"),
                             (68, "of kafka-2.4 does not serve API 68")]:  # fmt: skip
            with pytest.raises(ClusterError, match=problem):
                KafkaProxy(
                    ProxyOptions(upstream=upstream, serve=[46, key], serve_profile="kafka-2.4")
                )


@pytest.mark.requirement("DP-PROXY-34")
async def test_serving_needs_the_upstream_at_the_start() -> None:
    async with MockCluster(brokers=1) as mock:
        upstream = [address(mock.bootstrap)]
    proxy = KafkaProxy(ProxyOptions(upstream=upstream, serve=[46]))
    with pytest.raises(ClusterError, match="needs the upstream's brokers and topics"):
        await proxy.start()
    assert proxy.connections == []


async def test_a_mock_cluster_that_has_stopped_ends_the_connection(proxied: Proxied) -> None:
    async with MockCluster(brokers=1) as mock:
        proxy = await proxied(mock, serve=[46])
        assert isinstance(proxy.served, ServedApis)
        await proxy.served.stop()
        async with dial(proxy) as wire:
            wire.send(wire.frame(LIST, 0))
            assert await asyncio.wait_for(wire.closed(), 10) == b""
            proxy.served.learn(None)
