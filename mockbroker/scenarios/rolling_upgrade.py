"""Rolling upgrades, one broker at a time, as clients see them."""

from __future__ import annotations

from collections.abc import Mapping

from kproto.client import Connection
from kproto.errors import KprotoError
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.scenarios.data_clients import fetch, opened, produce
from mockbroker.scenarios.registry import scenario
from mockbroker.scenarios.story import Story

__all__: list[str] = []

_METADATA = "metadata.version"
_PRODUCE, _CREATE_TOPICS = 0, 19


@scenario(
    "rolling-upgrade-zookeeper",
    "A cluster goes from 2.8 to 3.9 with ZooKeeper, leaves ZooKeeper, and goes on to 4.4",
    "UPGRADE-03",
    "UPGRADE-06",
    "UPGRADE-08",
    "UPGRADE-09",
)
async def with_zookeeper(story: Story) -> None:
    async with _cluster("kafka-2.8-zk") as mock:
        await _produce(story, mock, "one")
        story.check("brokers serve Produce 0 to 9", await _versions(mock, 1) == (0, 9))
        await _roll(story, mock, "kafka-3.9-zk")
        story.check("brokers serve Produce 0 to 11", await _versions(mock, 1) == (0, 11))
        await _produce(story, mock, "two")
        story.step("KRaft controllers take over. The brokers keep their software.")
        await story.run(mock, "migrate-to-kraft")
        async with opened(mock, 1) as connection:
            answer = await connection.request(MetadataRequest(topics=[]))
        story.check(
            "Metadata names a live broker as the controller", answer.controller_id in (1, 2, 3)
        )
        story.check("brokers have no features yet", await _features(mock, 1) == {})
        await _roll(story, mock, "kafka-3.9")
        story.check(f"brokers have {_METADATA} at 21", (await _features(mock, 1))[_METADATA] == 21)
        await _end(story, mock)


@scenario(
    "rolling-upgrade-kraft",
    "A KRaft cluster goes from 3.3 to 3.9 and 4.4, and its features follow when all brokers have",
    "UPGRADE-05",
    "UPGRADE-08",
    "UPGRADE-09",
    "FEAT-18",
)
async def with_kraft(story: Story) -> None:
    async with _cluster("kafka-3.3") as mock:
        await _produce(story, mock, "one")
        story.check(f"{_METADATA} is 7", (await _features(mock, 1))[_METADATA] == 7)
        story.step("One broker of three runs Kafka 3.9.")
        await story.run(mock, "upgrade 3 kafka-3.9")
        story.check(f"{_METADATA} is still 7", (await _features(mock, 3))[_METADATA] == 7)
        story.step("It is too early to raise the level.")
        await story.run(mock, "failover 3")
        text = await _finalize(mock, 21)
        story.check("the answer names broker 1", "Broker 1 only supports versions 1-7" in text)
        await _roll(story, mock, "kafka-3.9", brokers=(1, 2))
        await _produce(story, mock, "two")
        story.step("All brokers run Kafka 3.9. The level is raised.")
        story.check("it is accepted", await _finalize(mock, 21) == "")
        story.step("There is no way back to 3.3.")
        with story.check_refused("kafka-3.3 does not support the level"):
            await mock.run_command("upgrade 1 kafka-3.3")
        await _end(story, mock)


async def _end(story: Story, mock: MockCluster) -> None:
    """From 3.9 to 4.4, which removes old versions of requests (KIP-896)."""
    async with opened(mock, 1) as old:
        story.step(f"A client has a connection to broker 1: {await _served(old)}.")
        await _roll(story, mock, "kafka-4.4")
        story.check("its connection has broken", await _is_broken(old))
    low, high = await _versions(mock, 1)
    story.check(f"brokers serve Produce {low} to {high}", (low, high) == (0, 13))
    async with opened(mock, 1) as new:
        story.step("A client from before 2.1 sends CreateTopics 1.")
        story.check("the version is no longer served", 1 not in _range(new, _CREATE_TOPICS))
    story.check(f"{_METADATA} is still 21", (await _features(mock, 1))[_METADATA] == 21)
    story.step("All brokers run Kafka 4.4. The level is raised.")
    story.check("it is accepted", await _finalize(mock, 33) == "")
    story.check(f"{_METADATA} is 33", (await _features(mock, 2))[_METADATA] == 33)
    await _produce(story, mock, "three")
    async with opened(mock, _leader(mock)) as connection:
        _, values = await fetch(connection, "foo", 0)
    story.check("no record is lost", values == [b"one", b"two", b"three"])


def _cluster(profile: str) -> MockCluster:
    return MockCluster(3, topics=["foo=1,2,3"], profile=profile, clock="manual")


async def _roll(
    story: Story, mock: MockCluster, release: str, brokers: tuple[int, ...] = (1, 2, 3)
) -> None:
    names = f"Broker {brokers[0]}" if len(brokers) == 1 else "One broker after the other"
    story.step(f"{names} restarts with {release}.")
    for broker_id in brokers:
        await story.run(mock, f"upgrade {broker_id} {release}")
        partition = mock.cluster.controller.partition(("foo", 0))
        story.check("all replicas are in sync", set(partition.isr) == {1, 2, 3})


def _leader(mock: MockCluster) -> int:
    return mock.cluster.controller.partition(("foo", 0)).leader


async def _produce(story: Story, mock: MockCluster, value: str) -> None:
    leader = _leader(mock)
    async with opened(mock, leader) as connection:
        answer = await produce(connection, "foo", value)
    story.check(f"a producer writes {value!r} to broker {leader}", answer.error_code == 0)


def _range(connection: Connection, api_key: int) -> range:
    served = (connection.peer_versions or {})[api_key]
    return range(served.lowest, served.highest + 1)


async def _versions(mock: MockCluster, broker_id: int) -> tuple[int, int]:
    async with opened(mock, broker_id) as connection:
        found = _range(connection, _PRODUCE)
        return found.start, found.stop - 1


async def _served(connection: Connection) -> str:
    found = _range(connection, _CREATE_TOPICS)
    return f"CreateTopics {found.start} to {found.stop - 1}"


async def _features(mock: MockCluster, broker_id: int) -> Mapping[str, int]:
    async with opened(mock, broker_id) as connection:
        request = ApiVersionsRequest(client_software_name="story", client_software_version="1")
        answer = await connection.request(request, 3)
    return {each.name: each.max_version_level for each in answer.finalized_features}


async def _finalize(mock: MockCluster, level: int) -> str:
    """Raise metadata.version; the text of the refusal, if it is one."""
    update = FeatureUpdateKey(feature=_METADATA, max_version_level=level)
    async with opened(mock, 1) as connection:
        answer = await connection.request(UpdateFeaturesRequest(feature_updates=[update]), 1)
    texts = [answer.error_message, *(each.error_message for each in answer.results)]
    codes = [answer.error_code, *(each.error_code for each in answer.results)]
    return next((text or "" for code, text in zip(codes, texts, strict=True) if code), "")


async def _is_broken(connection: Connection) -> bool:
    try:
        await connection.request(MetadataRequest(topics=[]))
    except (KprotoError, OSError):
        return True
    return False
