"""Brokers change their releases: what is refused, and that every part of a cluster follows."""

import random
from collections.abc import Iterator, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

import msgspec
import pytest

from kproto.client import Connection
from mockbroker import MockCluster
from mockbroker.errors import ClusterError
from mockbroker.profiles import all_profiles, profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.releases.rows import Row
from mockbroker.simulation.state.cluster_state import replay
from tests.support.full import FULL
from tests.support.requests import request_of
from tests.support.seeds import seed

RELEASES = [each.name for each in all_profiles() if not each.is_proposal]
ZOOKEEPER = [name for name in RELEASES if profile(name).mode == "zk"]
METADATA = "metadata.version"
KRAFT = [
    name for name in RELEASES if profile(name).mode == "kraft" and profile(name).line >= (3, 0)
]


def _levels(release: str) -> dict[str, int]:
    """The lowest levels of features that a cluster can have."""
    return {each.name: each.supported[0] for each in profile(release).features}


def _is_possible(before: str, after: str) -> bool:
    """Whether a release supports the lowest levels of a cluster of another one."""
    supported = {METADATA: (1, 1), **{f.name: f.supported for f in profile(after).features}}
    level = _levels(before).get(METADATA, 1)
    lowest, highest = supported[METADATA]
    return before != after and (profile(after).mode == "zk" or lowest <= level <= highest)


def _pairs(names: Sequence[str], count: int) -> list[tuple[str, str]]:
    every = [(one, other) for one in names for other in names if _is_possible(one, other)]
    return every if FULL else random.Random(seed()).sample(every, count)


# ---- every part follows --------------------------------------------------------------------------


def _rules(cluster: Cluster) -> dict[str, Any]:
    """Every table of rows and every release that a part of the cluster holds, by path."""
    return dict(_found(cluster, "cluster", set()))


def _found(part: Any, path: str, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if id(part) in seen:
        return
    seen.add(id(part))
    if isinstance(part, Release):
        yield path, part.now
    elif part and isinstance(part, tuple | list) and isinstance(part[0], Row):
        yield path, tuple(part)
    elif isinstance(part, msgspec.Struct) and "Answers" in type(part).__name__:
        yield path, part
    elif isinstance(part, FunctionType | MethodType | ModuleType | type):
        return
    elif type(part).__module__.startswith("mockbroker.simulation"):
        names = vars(part) if hasattr(part, "__dict__") else getattr(part, "__struct_fields__", ())
        for name in sorted(names):
            yield from _found(getattr(part, name), f"{path}.{name}", seen)


async def _roll(mock: MockCluster, release: str) -> None:
    for broker_id in mock.cluster.brokers:
        await mock.upgrade(broker_id, release)


@pytest.mark.requirement("UPGRADE-09")
@pytest.mark.parametrize("names", [ZOOKEEPER, KRAFT], ids=["zookeeper", "kraft"])
async def test_every_part_follows_the_release(names: Sequence[str]) -> None:
    for before, after in _pairs(names, 12):
        fresh = MockCluster(2, profile=after, clock="manual")
        async with MockCluster(
            2, profile=before, clock="manual", features=_levels(before)
        ) as upgraded:
            await _roll(upgraded, after)
            mine, expected = _rules(upgraded.cluster), _rules(fresh.cluster)
        assert len(expected) > 90
        assert mine == expected, (before, after)


@pytest.mark.requirement("UPGRADE-06", "UPGRADE-09")
async def test_every_part_leaves_zookeeper() -> None:
    fresh = MockCluster(2, profile="kafka-3.6", clock="manual")
    async with MockCluster(2, profile="kafka-3.6-zk", clock="manual") as upgraded:
        await upgraded.migrate_to_kraft()
        await _roll(upgraded, "kafka-3.6")
        mine, expected = _rules(upgraded.cluster), _rules(fresh.cluster)
        assert mine == expected
        assert upgraded.cluster.features.features == fresh.cluster.features.features


# ---- what clients see ----------------------------------------------------------------------------


async def _answers(mock: MockCluster, broker_id: int) -> list[Any]:
    host, _, port = mock.addresses[broker_id].rpartition(":")
    described = [
        {"resource_type": 4, "resource_name": str(broker_id)},
        {"resource_type": 2, "resource_name": "foo"},
    ]
    topics = [
        {"name": "bad name", "num_partitions": 1, "replication_factor": 1},
        {"name": "many", "num_partitions": 1, "replication_factor": 7},
        {"name": "none", "num_partitions": 0, "replication_factor": 1},
    ]
    answers: list[Any] = []
    async with await Connection.open(host, int(port)) as connection:
        served = connection.peer_versions or {}
        answers.append(dict(served))
        if 32 in served:
            answer = await connection.request(request_of("DescribeConfigs", resources=described))
            answers += [
                {each.name: each for each in result.configs if "listeners" not in each.name}
                for result in answer.results
            ]
        answers.append(
            await connection.request(request_of("CreateTopics", topics=topics, timeout_ms=1000))
        )
        if served[18].highest >= 3:
            request = request_of(
                "ApiVersions", client_software_name="a", client_software_version="1"
            )
            answer = await connection.request(request, 3)
            answers.append(sorted((f.name, f.max_version) for f in answer.supported_features))
    return answers


@pytest.mark.requirement("UPGRADE-08")
@pytest.mark.parametrize("names", [ZOOKEEPER, KRAFT], ids=["zookeeper", "kraft"])
async def test_an_upgraded_cluster_answers_like_a_new_one(names: Sequence[str]) -> None:
    for before, after in _pairs(names, 6):
        options: dict[str, Any] = {"topics": ["foo=1,2"], "clock": "manual"}
        async with (
            MockCluster(2, profile=before, features=_levels(before), **options) as mock,
            MockCluster(2, profile=after, **options) as fresh,
        ):
            await _roll(mock, after)
            if mock.cluster.state.controller_id != 1:
                await mock.run_command("failover 1")
            for broker_id in (1, 2):
                mine, expected = await _answers(mock, broker_id), await _answers(fresh, broker_id)
                assert mine == expected, (before, after)


@pytest.mark.requirement("UPGRADE-04", "UPGRADE-08")
async def test_brokers_of_two_releases() -> None:
    async with MockCluster(3, topics=["foo=1,2,3"], profile="kafka-3.9", clock="manual") as mock:
        old = await _answers(mock, 1)
        await mock.upgrade(3, "kafka-4.4")
        assert await _answers(mock, 1) == old
        host, _, port = mock.addresses[3].rpartition(":")
        async with await Connection.open(host, int(port)) as connection:
            assert connection.peer_versions == profile("kafka-4.4").versions
        assert mock.cluster.controller.partition(("foo", 0)).isr == (1, 2, 3)
        # A later reader of the log has the same state.
        replayed = replay(mock.cluster.state.cluster_id, mock.cluster.log)
        assert replayed.brokers[3].software == "kafka-4.4"


@pytest.mark.requirement("UPGRADE-08")
async def test_a_stopped_broker_stays_stopped() -> None:
    async with MockCluster(2, topics=["foo=1,2"], profile="kafka-4.0", clock="manual") as mock:
        await mock.stop_broker(2)
        await mock.upgrade(2, "kafka-4.1")
        assert not mock.cluster.brokers[2].live
        await mock.start_broker(2)
        assert mock.cluster.upgrades.software_of(2).name == "kafka-4.1"


@pytest.mark.requirement("FEAT-18")
async def test_a_level_needs_every_live_broker() -> None:
    async with MockCluster(2, profile="kafka-3.9", clock="manual") as mock:
        await mock.upgrade(1, "kafka-4.1")
        await mock.run_command("failover 1")
        host, _, port = mock.addresses[1].rpartition(":")
        raised = request_of("UpdateFeatures", feature="metadata.version", max_version_level=27)
        share = request_of("UpdateFeatures", feature="group.version", max_version_level=1)
        async with await Connection.open(host, int(port)) as connection:
            answer = await connection.request(raised)
            assert answer.error_code == 95
            assert str(answer.error_message).endswith("Broker 2 only supports versions 1-21")
            answer = await connection.request(share)
            assert str(answer.error_message).endswith("Broker 2 does not support this feature.")
            await mock.stop_broker(2)
            assert (await connection.request(raised)).error_code == 0
        await mock.start_broker(2)


# ---- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        pytest.param(
            "kafka-4.4", "kip-860", "proposals were never released",
            marks=pytest.mark.requirement("UPGRADE-01"),
        ),
        pytest.param(
            "kafka-3.9", "kafka-3.9-zk", "keeps its metadata in ZooKeeper, and the cluster does",
            marks=pytest.mark.requirement("UPGRADE-02"),
        ),
        pytest.param(
            "kafka-2.8-zk", "kafka-4.4", "`migrate-to-kraft` comes first",
            marks=pytest.mark.requirement("UPGRADE-03"),
        ),
        pytest.param(
            "kafka-2.8", "kafka-3.9", "an early access",
            marks=pytest.mark.requirement("UPGRADE-04"),
        ),
        pytest.param(
            "kafka-4.4", "kafka-3.9", "metadata.version is 33, and kafka-3.9 supports 1 to 21",
            marks=pytest.mark.requirement("UPGRADE-05"),
        ),
        pytest.param(
            "kafka-3.3", "kafka-3.2", "metadata.version is 7, and kafka-3.2 lacks the feature",
            marks=pytest.mark.requirement("UPGRADE-05"),
        ),
    ],
)  # fmt: skip
async def test_refused(before: str, after: str, reason: str) -> None:
    mock = MockCluster(2, profile=before, clock="manual")
    length = len(mock.cluster.log)
    with pytest.raises(ClusterError, match=reason):
        await mock.upgrade(1, after)
    assert len(mock.cluster.log) == length, "a refusal changes nothing"


@pytest.mark.requirement("UPGRADE-03", "UPGRADE-06")
async def test_a_broker_leaves_zookeeper_with_a_bridge_release() -> None:
    mock = MockCluster(2, profile="kafka-3.9-zk", clock="manual")
    await mock.migrate_to_kraft()
    with pytest.raises(
        ClusterError, match=r"with a release from 3\.4 to 3\.9, not with kafka-4\.0"
    ):
        await mock.upgrade(1, "kafka-4.0")


@pytest.mark.requirement("UPGRADE-06")
@pytest.mark.parametrize(
    ("release", "reason"),
    [
        ("kafka-3.9", "does not keep its metadata in ZooKeeper"),
        ("kafka-3.3-zk", "broker 1 runs kafka-3.3-zk"),
        ("kip-455-new", "never released"),
    ],
)
async def test_a_migration_is_refused(release: str, reason: str) -> None:
    mock = MockCluster(2, profile=release, clock="manual")
    with pytest.raises(ClusterError, match=reason):
        await mock.migrate_to_kraft()


@pytest.mark.requirement("UPGRADE-07")
async def test_a_migration_waits_for_reassignments() -> None:
    mock = MockCluster(3, topics=["foo=1,2"], profile="kafka-3.9-zk", clock="manual")
    mock.cluster.reassignments.alter([("foo", [(0, (2, 3))])])
    with pytest.raises(ClusterError, match="reassignments are in progress"):
        await mock.migrate_to_kraft()
    mock.cluster.reassignments.alter([("foo", [(0, None)])])
    await mock.migrate_to_kraft()
    assert mock.cluster.reassignments.name == "kraft"
