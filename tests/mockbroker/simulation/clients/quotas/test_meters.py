"""Clients that exceed their quotas are throttled, by the cluster's clock."""

from typing import Any

import pytest

from mockbroker import MockCluster
from mockbroker.simulation.clients.quotas.client_quotas import Alteration, Entity
from mockbroker.simulation.clients.quotas.meters import SampledRate
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.serving.test_throttling import answers_in_time, ask_as
from tests.mockbroker.simulation.operations.test_requests_that_wait import fetch, first, produce
from tests.mockbroker.wire import Wire, connect
from tests.support.requests import request_of

CLIENT: Entity = (("client-id", "wire"),)
USER: Entity = (("user", "ANONYMOUS"),)
METADATA = request_of("Metadata", topics=None)


def limit(cluster: Cluster, entity: Entity, key: str, value: float | None) -> None:
    (result,) = cluster.quotas.alter([Alteration(entity, [(key, value)])])
    assert result.error_code == 0


@pytest.mark.requirement("QUOTA-14")
def test_a_rate_is_that_of_eleven_windows() -> None:
    rate = SampledRate()
    assert rate.measure(5_000) == 0
    rate.record(1_000, 5_000)
    assert (rate.window_ms(5_000), rate.measure(5_000)) == (10_000, 100)
    rate.record(1_000, 5_500)
    assert (rate.window_ms(5_500), rate.measure(5_500)) == (10_500, 2_000_000 / 10_500)
    rate.record(1_000, 15_999)
    # The first window is complete, and counts until it is eleven windows old.
    assert (rate.window_ms(15_999), rate.measure(15_999)) == (10_999, 3_000_000 / 10_999)
    assert rate.measure(16_500) == 1_000_000 / 10_501
    assert rate.measure(30_000) == 0


@pytest.mark.requirement("QUOTA-14", "QUOTA-17")
def test_the_throttle_time_brings_the_rate_back_to_the_quota() -> None:
    cluster = Cluster(1)
    meters = cluster.meters
    assert meters.produce("alice", "a", 10**9) == 0
    limit(cluster, (("user", "alice"),), "producer_byte_rate", 1_000)
    assert meters.produce("alice", "a", 10_000) == 0
    assert meters.produce("bob", "a", 10**9) == 0
    # 20,000 bytes in 10 s are 2,000 a second: another 10 s make it 1,000.
    assert meters.produce("alice", "b", 10_000) == 10_000
    cluster.turns.advance(10_999)
    assert meters.produce("alice", "a", 0) == 20_000 - 10_999
    cluster.turns.advance(11_000)
    assert meters.produce("alice", "a", 0) == 0
    assert meters.produce("alice", "a", 11_000) == 1_000


@pytest.mark.requirement("QUOTA-15")
def test_what_a_throttled_fetch_would_return_does_not_count() -> None:
    cluster = Cluster(1)
    limit(cluster, CLIENT, "consumer_byte_rate", 100)
    assert cluster.meters.fetch("", "wire", 1_000) == 0
    assert cluster.meters.fetch("", "wire", 1_000) == 10_000
    assert cluster.meters.fetch("", "wire", 1_000) == 10_000
    assert cluster.meters.fetch("", "wire", 0) == 0


@pytest.mark.requirement("QUOTA-16")
def test_requests_take_a_millisecond() -> None:
    cluster = Cluster(1)
    limit(cluster, CLIENT, "request_percentage", 0.01)
    assert cluster.meters.request("", "wire") == 0
    assert cluster.meters.request("", "wire") == 1_000
    limit(cluster, CLIENT, "request_percentage", 0.025)
    # Three requests in 10 s are 0.03 percent, a fifth over the quota, and thus 2 s.
    assert cluster.meters.request("", "wire") == 1_000
    limit(cluster, CLIENT, "request_percentage", 0.0375)
    # Four are 0.04 percent, a fifteenth over it.
    assert cluster.meters.request("", "wire") == 667


async def cluster_with(entity: Entity, key: str, value: float) -> MockCluster:
    mock = MockCluster(topics=["foo:1:1"], profile="kafka-4.4", clock="manual")
    limit(mock.cluster, entity, key, value)
    return mock


async def asked(mock: MockCluster, body: Any, version: int, client_id: str = "wire") -> Any:
    """The answer on a connection of its own, since a throttled one is muted."""
    async with connect(mock) as wire:
        return await ask_as(wire, client_id, body, version)


@pytest.mark.requirement("QUOTA-14", "DP-PRODUCE-43")
async def test_a_producer_over_its_quota_is_muted() -> None:
    async with await cluster_with(CLIENT, "producer_byte_rate", 1) as mock:
        async with connect(mock) as wire:
            answer = await wire.ask(produce(), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
            assert answer.throttle_time_ms > 10_000
            assert not await answers_in_time(wire)
        assert (await asked(mock, produce(), 9)).throttle_time_ms > answer.throttle_time_ms
        assert (await asked(mock, produce(), 9, "other")).throttle_time_ms == 0
        assert (await asked(mock, METADATA, 9)).throttle_time_ms == 0
        limit(mock.cluster, CLIENT, "producer_byte_rate", None)
        assert (await asked(mock, produce(), 9)).throttle_time_ms == 0


async def _muted(wire: Wire) -> bool:
    return not await answers_in_time(wire)


@pytest.mark.requirement("QUOTA-15", "DP-FETCH-21")
async def test_a_consumer_over_its_quota_gets_nothing_until_later() -> None:
    async with await cluster_with(USER, "consumer_byte_rate", 1) as mock:
        await asked(mock, produce(), 9)
        async with connect(mock) as wire:
            answer = await wire.ask(fetch(), 11)
            assert (answer.responses, answer.error_code) == ([], 0)
            assert answer.throttle_time_ms > 0
            assert await _muted(wire)
        limit(mock.cluster, USER, "consumer_byte_rate", 10**6)
        answer = await asked(mock, fetch(), 11)
        assert answer.throttle_time_ms == 0
        assert first(answer).records


@pytest.mark.requirement("QUOTA-16")
async def test_a_client_over_its_share_of_time_is_muted() -> None:
    async with await cluster_with(CLIENT, "request_percentage", 0.001) as mock:
        async with connect(mock) as wire:
            assert (await wire.ask(METADATA, 9)).throttle_time_ms == 1_000
        assert (await asked(mock, METADATA, 9, "other")).throttle_time_ms == 0
