"""What each release answers, one partition after another: codes, texts, and which rows there are.

The rows of Kafka 2.4, 3.9 (ZooKeeper) and KRaft are what real brokers (2.4.1, 3.9.2, 4.4.0) gave.
"""

from collections.abc import Sequence

import pytest

from kproto.schema.model import ZERO_UUID
from mockbroker.errors import ClusterError
from mockbroker.profiles import all_profiles, profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.elections.answers import DESIGNS
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.results import ElectLeadersResult, PartitionResult, TopicResult
from tests.mockbroker.simulated import simulated_cluster

PREFERRED, UNCLEAN = 0, 1
Row = tuple[int, int, str | None]

NEEDLESS = "Leader election not needed for topic partition."
NEEDLESS_2_4 = "Leader election not needed for topic partition"
NO_PARTITION = "The partition does not exist."
ZOOKEEPER = ("kip-183", "kafka-2.2", "kafka-2.4", "kafka-2.6")
ALL = (*ZOOKEEPER, "kafka-4.4")
NOT_NEEDED: dict[str, tuple[int, str | None]] = {
    "kip-183": (0, None),
    "kafka-2.2": (0, None),
    "kafka-2.4": (84, NEEDLESS_2_4),
    "kafka-2.6": (84, NEEDLESS),
    "kafka-4.4": (84, NEEDLESS),
}


def of(profile_name: str, *topics: str) -> Cluster:
    found = profile(profile_name)
    return simulated_cluster(4, topics=topics, elections=found.elections, release=found.software)


def rows(result: ElectLeadersResult) -> dict[str, list[Row]]:
    return {
        topic.name: [(r.partition_index, r.error_code, r.error_message) for r in topic.partitions]
        for topic in result.topics
    }


def refusal(strategy: str, name: str) -> str:
    return f"Failed to elect leader for partition {name} under strategy {strategy}"


PREFERRED_STRATEGY = "PreferredReplicaPartitionLeaderElectionStrategy"
UNCLEAN_STRATEGY = "OfflinePartitionLeaderElectionStrategy(true)"


@pytest.mark.requirement("A-29", "K183-10")
@pytest.mark.parametrize("profile_name", ALL)
def test_a_partition_that_is_led_by_its_preferred_replica(profile_name: str) -> None:
    cluster = of(profile_name, "foo=1,2/2,3")
    before = cluster.topics
    answer = cluster.elections.elect(PREFERRED, [("foo", [1, 0])])
    assert rows(answer) == {"foo": [(1, *NOT_NEEDED[profile_name]), (0, *NOT_NEEDED[profile_name])]}
    assert dict(cluster.topics) == dict(before)


@pytest.mark.requirement("A-29")
@pytest.mark.parametrize("profile_name", ALL)
def test_everything_is_named_unless_that_would_be_an_error(profile_name: str) -> None:
    cluster = of(profile_name, "bar=3,1", "foo=1,2/2,3")
    Operations(cluster).stop_broker(1)
    Operations(cluster).start_broker(1)
    Operations(cluster).join_isr(("foo", 0), 1)
    answer = rows(cluster.elections.elect(PREFERRED, None))
    assert cluster.topics.partition("foo", 0).leader == 1
    if NOT_NEEDED[profile_name][0] == 0:
        assert answer == {"bar": [(0, 0, None)], "foo": [(0, 0, None), (1, 0, None)]}
    elif profile_name == "kafka-4.4":
        assert answer == {"bar": [], "foo": [(0, 0, None)]}
    else:
        assert answer == {"foo": [(0, 0, None)]}


@pytest.mark.requirement("K183-08", "K183-10")
@pytest.mark.parametrize("profile_name", ZOOKEEPER)
def test_each_pair_once_and_no_topic_without_partitions(profile_name: str) -> None:
    cluster = of(profile_name, "foo=1,2/2,3")
    asked = [("foo", [0, 0, 9]), ("none", []), ("bar", [1]), ("foo", [1, 9, 0])]
    needless = NOT_NEEDED[profile_name]
    assert rows(cluster.elections.elect(PREFERRED, asked)) == {
        "foo": [(0, *needless), (9, 3, NO_PARTITION), (1, *needless)],
        "bar": [(1, 3, NO_PARTITION)],
    }
    assert cluster.elections.elect(PREFERRED, [("foo", [])]) == ElectLeadersResult(0, ())


@pytest.mark.requirement("K183-25")
@pytest.mark.parametrize("profile_name", ZOOKEEPER)
def test_who_cannot_be_elected(profile_name: str) -> None:
    cluster = of(profile_name, "foo=4,1", "solo=4")
    Operations(cluster).stop_broker(4)
    asked: Sequence[tuple[str, Sequence[int]]] = [("foo", [0]), ("solo", [0])]
    preferred = rows(cluster.elections.elect(PREFERRED, asked))
    assert preferred == {
        "foo": [(0, 80, refusal(PREFERRED_STRATEGY, "foo-0"))],
        "solo": [(0, 80, refusal(PREFERRED_STRATEGY, "solo-0"))],
    }
    assert rows(cluster.elections.elect(PREFERRED, None)) == preferred
    assert rows(cluster.elections.elect(UNCLEAN, asked)) == {
        "foo": [(0, *NOT_NEEDED[profile_name])],
        "solo": [(0, 83, refusal(UNCLEAN_STRATEGY, "solo-0"))],
    }


@pytest.mark.requirement("REL-20")
@pytest.mark.parametrize(
    ("profile_name", "text"),
    [("kafka-2.5", "Value 7 must be one of [PREFERRED, UNCLEAN]"), ("kafka-2.6", None)],
)
def test_an_unknown_type_is_an_unknown_error(profile_name: str, text: str | None) -> None:
    """All that was named comes back as it was, repetitions and empty topics too."""
    cluster = of(profile_name, "foo=1,2")
    answer = cluster.elections.elect(7, [("foo", [0, 0]), ("nope", [1]), ("e", [])])
    row = PartitionResult(0, -1, text)
    assert answer == ElectLeadersResult(
        -1,
        (
            TopicResult("foo", (row, row)),
            TopicResult("nope", (PartitionResult(1, -1, text),)),
            TopicResult("e", ()),
        ),
    )
    assert cluster.elections.elect(7, None) == ElectLeadersResult(-1, ())


def test_every_profile_has_a_design() -> None:
    designs = {each.name: each.elections for each in all_profiles()}
    assert set(designs.values()) == set(DESIGNS)
    assert designs["kafka-1.0"] == designs["kafka-3.9-zk"] == designs["kip-455-new"] == "zookeeper"
    assert designs["kafka-3.9"] == designs["kafka-4.4"] == "kraft"


def test_an_unknown_design() -> None:
    with pytest.raises(ClusterError, match="elections 'x'; choose from kraft, zookeeper, kip-183"):
        simulated_cluster(4, elections="x")


@pytest.mark.parametrize("profile_name", ALL)
def test_a_topic_that_a_stopped_broker_still_has(profile_name: str) -> None:
    """It is being deleted until that broker is back; nobody names it, and nobody sees it."""
    cluster = of(profile_name, "foo=4,1/1,2", "bar=1,2")
    Operations(cluster).stop_broker(4)
    cluster.topics.delete([("foo", ZERO_UUID)])
    asked: Sequence[tuple[str, Sequence[int]]] = [("foo", [0, 1, 9])]
    gone = [(0, 3, NO_PARTITION), (1, 3, NO_PARTITION), (9, 3, NO_PARTITION)]
    if profile_name == "kafka-4.4":
        gone = [(index, 3, "No such topic as foo") for index in (0, 1, 9)]
        deleting = gone
    else:
        text = "The topic is being deleted"
        deleting = [(0, 17, text), (1, 17, text), (9, 3, NO_PARTITION)]
    for election_type in (PREFERRED, UNCLEAN):
        assert rows(cluster.elections.elect(election_type, asked)) == {"foo": deleting}
        assert "foo" not in rows(cluster.elections.elect(election_type, None))
    Operations(cluster).start_broker(4)
    assert rows(cluster.elections.elect(PREFERRED, asked)) == {"foo": gone}
    cluster.topics.delete([("bar", ZERO_UUID)])
    answer = rows(cluster.elections.elect(PREFERRED, [("bar", [0])]))
    assert [code for _, code, _ in answer["bar"]] == [3], "nobody was stopped"
