"""FindCoordinator (10) on the wire: versions, errors, texts."""

from typing import Any

import pytest

from kproto.error_codes import message
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
SHARE_KEY = f"g:{TOPIC_ID}:0"


def ask(broker: DirectBroker, version: int, *keys: str, kind: int = 0) -> list[Any]:
    """The rows of the answer; below version 4 the answer itself."""
    if version >= 4:
        answer = broker.ask("FindCoordinator", version, key_type=kind, coordinator_keys=list(keys))
        assert (answer.error_code, answer.node_id) == (0, 0)
        return list(answer.coordinators)
    return [broker.ask("FindCoordinator", version, key=keys[0], key_type=kind)]


@pytest.mark.requirement("DP-COORD-02", "DP-COORD-03")
@pytest.mark.parametrize("version", range(7))
def test_the_first_request_creates_the_topic_and_the_next_finds_the_coordinator(version):
    broker = DirectBroker(Cluster(3))
    (row,) = ask(broker, version, "g")
    assert (row.error_code, row.node_id, row.host, row.port) == (15, -1, "", -1)
    texts = {0: "", 1: message(15), 2: message(15), 3: message(15)}
    assert row.error_message == texts.get(version, "")
    (row,) = ask(broker, version, "g")
    leader = broker.cluster.topics.partition("__consumer_offsets", 3).leader
    assert (row.error_code, row.node_id, row.host) == (0, leader, "127.0.0.1")
    assert row.error_message == {1: "NONE", 2: "NONE", 3: "NONE"}.get(version, "")


@pytest.mark.requirement("DP-COORD-03")
@pytest.mark.parametrize("version", range(4, 7))
def test_each_of_several_keys_has_its_own_row(version: int) -> None:
    broker = DirectBroker(Cluster(3, topics=["__consumer_offsets=1/2/3/1/2"]))
    rows = ask(broker, version, "g", "h", "g", "")
    assert [row.key for row in rows] == ["g", "h", "g", ""]
    assert [row.node_id for row in rows] == [1, 2, 1, 1]  # 103 % 5, 104 % 5, 103 % 5, 0


@pytest.mark.requirement("DP-COORD-02", "DP-COORD-03")
def test_the_keys_of_the_first_request_all_fail() -> None:
    """As Kafka 4.4.0 answers them: the topic is made while the request is."""
    broker = DirectBroker(Cluster(1))
    assert [row.error_code for row in ask(broker, 6, "g", "h")] == [15, 15]
    assert [row.error_code for row in ask(broker, 6, "g", "h")] == [0, 0]


@pytest.mark.requirement("DP-COORD-03", "REL-04")
@pytest.mark.parametrize(("release", "text"), [("2.2", None), ("2.3", "NONE")])
def test_releases_before_2_3_send_no_text(release: str, text: str | None) -> None:
    cluster = Cluster(3, topics=["__consumer_offsets:50:3"])
    broker = DirectBroker(cluster, profile_name=f"kafka-{release}")
    (row,) = ask(broker, 2, "g")
    assert (row.error_code, row.error_message) == (0, text)


@pytest.mark.requirement("DP-COORD-04")
@pytest.mark.parametrize("version", range(1, 7))
def test_unknown_key_types_are_refused(version: int) -> None:
    broker = DirectBroker(Cluster(3))
    for row in ask(broker, version, "g", "h", kind=3):
        assert (row.error_code, row.node_id, row.error_message) == (42, -1, message(42))
    assert not broker.cluster.topics


@pytest.mark.requirement("DP-COORD-04")
@pytest.mark.parametrize(("release", "text"), [("3.8", message(42)), ("3.9", ""), ("4.4", "")])
def test_old_versions_do_not_find_share_coordinators(release: str, text: str) -> None:
    """Once Kafka has a name for the key type, its refusal has no text."""
    broker = DirectBroker(Cluster(3), profile_name=f"kafka-{release}")
    for row in ask(broker, 4, SHARE_KEY, kind=2):
        assert (row.error_code, row.error_message) == (42, text)


@pytest.mark.requirement("DP-COORD-01", "DP-COORD-02")
@pytest.mark.parametrize(
    ("kind", "key", "topic"),
    [
        (0, "g", "__consumer_offsets"),
        (1, "t", "__transaction_state"),
        (2, SHARE_KEY, "__share_group_state"),
    ],
)
def test_each_key_type_has_its_internal_topic(kind: int, key: str, topic: str) -> None:
    broker = DirectBroker(Cluster(3))
    assert ask(broker, 6, key, kind=kind)[0].error_code == 15
    assert list(broker.cluster.topics) == [topic]
    assert ask(broker, 6, key, kind=kind)[0].error_code == 0


@pytest.mark.requirement("DP-COORD-04")
def test_share_keys_need_version_6_and_their_form() -> None:
    broker = DirectBroker(Cluster(3, topics=["__share_group_state:50:3"]))
    for version in range(1, 6):
        (row,) = ask(broker, version, SHARE_KEY, kind=2)
        assert row.error_code == 42
    valid, invalid = ask(broker, 6, SHARE_KEY, "g", kind=2)
    assert valid.error_code == 0
    assert (invalid.error_code, invalid.error_message) == (42, "")


@pytest.mark.requirement("DP-COORD-04")
def test_before_4_0_no_share_key_has_a_coordinator() -> None:
    """As Kafka 3.9.2 answers them."""
    broker = DirectBroker(simulated_cluster(3, release=(3, 9)), profile_name="kafka-3.9")
    for version in range(1, 6):
        assert ask(broker, version, SHARE_KEY, kind=2)[0].error_code == 42
    assert [row.error_code for row in ask(broker, 6, SHARE_KEY, "g", kind=2)] == [15, 15]


@pytest.mark.requirement("DP-COORD-02")
@pytest.mark.parametrize("profile_name", ["kafka-1.1", "kafka-2.4"])
def test_zookeeper_clusters_create_the_topic_as_well(profile_name: str) -> None:
    release = (1, 1) if profile_name == "kafka-1.1" else (2, 4)
    cluster = simulated_cluster(3, reassignment="zookeeper-2.4", release=release)
    broker = DirectBroker(cluster, profile_name=profile_name)
    assert ask(broker, 1, "g")[0].error_code == 15
    assert ask(broker, 1, "g")[0].error_code == 0
    assert len(cluster.topics["__consumer_offsets"].partitions) == 50
