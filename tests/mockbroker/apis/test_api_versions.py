"""ApiVersions: who the client is (KIP-511), where it meant to go (KIP-1242), features (KIP-584)."""

from typing import Any

import pytest

from mockbroker.profiles import all_profiles, profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.features.release_features import features_of
from mockbroker.simulation.releases.release import NEWEST, Release
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of


def hello(name: str = "test", version: str = "1", **fields: object) -> Any:
    return request_of(
        "ApiVersions", client_software_name=name, client_software_version=version, **fields
    )


@pytest.mark.parametrize("name", ["a", "A9", "kafka-python", "apache.kafka-java", "0", "a.-.b"])
def test_names_that_kip_511_allows(name: str) -> None:
    asked = DirectBroker(Cluster())
    for body in (hello(name), hello(version=name)):
        assert asked.ask(body, 3).error_code == 0
    seen = [str(entry.client_software) for entry in asked.journal.select(direction="request")]
    assert seen == [f"{name} 1", f"test {name}"]


@pytest.mark.parametrize("name", ["", "-a", "a-", ".a", "a.", "a b", "a_b", "é", "a/1", "a\n"])
@pytest.mark.parametrize("version", [3, 4, 5])
def test_names_that_kip_511_forbids(name: str, version: int) -> None:
    asked = DirectBroker(Cluster())
    for body in (hello(name), hello(version=name)):
        answer = asked.ask(body, version)
        assert (answer.error_code, answer.api_keys) == (42, [])
    assert not any(entry.client_software for entry in asked.journal)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_before_version_3_nobody_says_who_they_are(version: int) -> None:
    assert DirectBroker(Cluster()).ask("ApiVersions", version).error_code == 0


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "expected"),
    [
        (None, -1, 0),
        (None, 9, 42),
        (None, -2, 42),
        ("mine", -1, 42),
        ("other", -1, 42),
        ("mine", 1, 0),
        ("mine", 2, 129),
        ("other", 1, 129),
        ("", 1, 129),
    ],
)
def test_a_connection_that_went_astray(cluster_id: str | None, node_id: int, expected: int) -> None:
    asked = DirectBroker(simulated_cluster(cluster_id="mine"))
    answer = asked.ask(hello(cluster_id=cluster_id, node_id=node_id), 5)
    assert answer.error_code == expected
    assert bool(answer.api_keys) == (expected == 0)


def test_rows_are_the_profile_in_order() -> None:
    for each in all_profiles():
        asked = DirectBroker(Cluster(), profile_name=each.name)
        answer = asked.ask(hello(), each.versions[18].highest)
        rows = [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys]
        assert rows == [(key, v.lowest, v.highest) for key, v in each.versions.items()]


def test_features_of_a_kraft_cluster() -> None:
    asked = DirectBroker(simulated_cluster(release=(4, 1)), profile_name="kafka-4.1")
    answer = asked.ask(hello(), 4)
    supported = {row.name: (row.min_version, row.max_version) for row in answer.supported_features}
    finalized = {
        row.name: (row.min_version_level, row.max_version_level)
        for row in answer.finalized_features
    }
    assert (supported["metadata.version"], supported["share.version"]) == ((7, 27), (0, 1))
    assert finalized["metadata.version"] == (27, 27)
    assert "share.version" not in finalized
    assert set(finalized) < set(supported)
    assert answer.finalized_features_epoch >= 0


def test_version_3_hides_what_its_clients_take_for_malformed() -> None:
    answer = DirectBroker(Cluster(), profile_name="kafka-4.1").ask(hello(), 3)
    assert [row.name for row in answer.supported_features] == ["metadata.version"]
    assert all(row.min_version > 0 for row in answer.supported_features)


@pytest.mark.requirement("REL-11")
def test_a_zookeeper_cluster_has_no_features() -> None:
    cluster = simulated_cluster(reassignment="zookeeper", release=(3, 9))
    answer = DirectBroker(cluster, profile_name="kafka-3.9-zk").ask(hello(), 4)
    assert answer.supported_features == answer.finalized_features == []
    assert answer.finalized_features_epoch == 0
    before = simulated_cluster(reassignment="zookeeper-2.5", release=(2, 6))
    before_features = DirectBroker(before, profile_name="kafka-2.6").ask(hello(), 3)
    assert before_features.finalized_features_epoch == -1


OF_EACH_RELEASE = {
    (3, 2): [],
    (3, 3): [1, 7, 7], (3, 4): [1, 8, 8], (3, 5): [1, 11, 11], (3, 6): [1, 14, 14],
    (3, 7): [1, 19, 19], (3, 8): [1, 20, 20], (3, 9): [1, 21, 21, "kraft 1 0"],
    (4, 0): [7, 25, 25, "kraft 1 1", "transaction 2 2", "group 1 1", "elr 1 0"],
    (4, 1): [7, 27, 27, "kraft 1 1", "transaction 2 2", "group 1 1", "elr 1 0", "share 1 0"],
    (4, 2): [7, 29, 29, "kraft 1 1", "transaction 2 2", "group 1 1", "elr 1 0", "share 1 1",
             "streams 1 1"],
    (4, 3): [7, 30, 30, "kraft 1 1", "transaction 2 2", "group 1 1", "elr 1 0", "share 1 1",
             "streams 1 1"],
    (4, 4): [7, 33, 33, "kraft 1 1", "transaction 2 2", "group 1 1", "elr 1 0", "share 2 2",
             "streams 1 1"],
}  # fmt: skip
"""Lowest, highest and default metadata.version, then highest and default level of each other."""


@pytest.mark.requirement("REL-15")
def test_the_features_of_each_release() -> None:
    for number, expected in OF_EACH_RELEASE.items():
        found: list[int | str] = []
        for name, (lowest, highest), level in features_of(Release(number)):
            if name == "metadata.version":
                found += [lowest, highest, level]
            else:
                assert lowest == 0
                short = name.removesuffix(".version").replace("eligible.leader.replicas", "elr")
                found.append(f"{short} {highest} {level}")
        assert found == expected, number


def test_features_only_grow() -> None:
    """A later release supports everything an earlier one did, at least as far."""
    releases = [(3, 2), (3, 3), *((3, minor) for minor in range(4, 10)), (4, 0), (4, 1), (4, 4)]
    known: dict[str, int] = {}
    for release in releases:
        features = {each.name: each.supported[1] for each in features_of(Release(release))}
        assert all(features.get(name, -1) >= highest for name, highest in known.items())
        known = features
    assert features_of(Release((9, 9))) == features_of(NEWEST)
    assert features_of(Release((3, 2))) == ()


def test_the_summary_names_what_differs() -> None:
    assert "forward" in profile("kafka-3.9").summary
    assert "NOT_CONTROLLER" in profile("kafka-3.9-zk").summary
    assert "lists no API" in profile("kafka-2.3").summary
    assert "lists ApiVersions" in profile("kafka-2.4").summary


def test_a_later_request_carries_the_name() -> None:
    """On the same connection only: here each request has its own."""
    asked = DirectBroker(Cluster())
    asked.ask(hello("one"), 3)
    asked.ask("Metadata", 9, topics=[])
    (entry,) = asked.journal.select(api=3, direction="request")
    assert entry.client_software is None
