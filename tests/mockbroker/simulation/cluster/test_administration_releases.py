"""Topics and configs as controllers of ZooKeeper's time administered them, and which configs each
release has. What real ones answer is compared in ``tests/real``; here is what that cannot show.
"""

import pytest

from kproto.schema.model import ZERO_UUID
from mockbroker.profiles import all_profiles, profile
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.configs import definitions
from mockbroker.simulation.configs.definitions import config_definitions
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.results import NewTopic
from tests.mockbroker.simulated import simulated_cluster

_ONE_OF = "Invalid value  for configuration cleanup.policy: String must be one of: compact, delete"


def zookeeper(brokers: int = 4, *topics: str, release: tuple[int, int] = (3, 9)) -> Cluster:
    return simulated_cluster(
        brokers, topics=topics, reassignment="zookeeper", release=release
    )  # fmt: skip


def test_the_same_broker_once_is_no_error_unknown_or_not() -> None:
    cluster = zookeeper()
    (made,) = cluster.topics.create([NewTopic("t", assignments=((0, (1, 9)),))])
    assert made.error_code == 0
    partition = cluster.topics.partition("t", 0)
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 9), (1,), 1)


def test_who_does_not_wait_is_told_so_and_it_is_done() -> None:
    cluster = zookeeper()
    (made,) = cluster.topics.create([NewTopic("t", assignments=((0, (1,)),))], wait_ms=0)
    assert (made.error_code, made.error_message, made.num_partitions) == (7, None, -1)
    assert made.topic_id == cluster.topics["t"].topic_id
    (grown,) = cluster.topics.add_partitions([("t", 3, None)], wait_ms=0)
    assert (grown.error_code, len(cluster.topics["t"].partitions)) == (7, 3)
    (gone,) = cluster.topics.delete([("t", ZERO_UUID)], wait_ms=-1)
    assert (gone.error_code, "t" in cluster.topics) == (7, False)
    (only,) = cluster.topics.create([NewTopic("t", 1, 1)], wait_ms=0, validate_only=True)
    assert (only.error_code, "t" in cluster.topics) == (0, False)


@pytest.mark.parametrize("first", [1, 2, 4])
@pytest.mark.parametrize("factor", [1, 2, 4])
def test_partitions_go_on_from_partition_0(first: int, factor: int) -> None:
    """Leaders in turn from the first one's, no broker twice, and each broker leads as often."""
    replicas = [(first - 1 + i) % 4 + 1 for i in range(factor)]
    cluster = zookeeper(4, f"t={','.join(map(str, replicas))}")
    assert cluster.topics.add_partitions([("t", 13, None)])[0].error_code == 0
    lists = [each.replicas for each in cluster.topics["t"].partitions]
    assert [each[0] for each in lists] == [(first - 1 + i) % 4 + 1 for i in range(13)]
    assert all(len(set(each)) == factor for each in lists)
    if factor == 2:
        followers = [each[1] for each in lists if each[0] == first]
        assert len(set(followers[1:])) > 1, "the followers shift in each round"


@pytest.mark.parametrize("release", [(2, 4), (3, 9)])
def test_partitions_are_added_in_vain_while_another_has_no_leader(release: tuple[int, int]) -> None:
    """Seen so on 2.4.1 and 3.9.2, which answer when their time-out is over; the partition stays."""
    cluster = zookeeper(4, "foo=4/1", "bar=1,4/2", release=release)
    Operations(cluster).stop_broker(4)
    (grown,) = cluster.topics.add_partitions([("foo", 3, None)])
    assert (grown.error_code, grown.error_message) == (7, None)
    assert cluster.topics.partition("foo", 2).leader in (1, 2, 3)
    (tried,) = cluster.topics.add_partitions([("foo", 4, None)], validate_only=True)
    assert (tried.error_code, len(cluster.topics["foo"].partitions)) == (0, 3)
    (other,) = cluster.topics.add_partitions([("bar", 3, None)])
    assert other.error_code == 0
    kraft = Cluster(4, topics=["foo=4/1"])
    Operations(kraft).stop_broker(4)
    (grown,) = kraft.topics.add_partitions([("foo", 3, None)])
    assert grown.error_code == 0


FIRST_OF_KRAFT = {1: 0, 2: 0, 3: 2, 5: 2, 6: 5, 10: 5, 11: 0, 13: 0, 14: 13, 30: 0, 64: 34, 70: 34}
"""By the number of partitions, the first key of Kafka 3.9.2's ``TimelineHashMap`` with these."""


@pytest.mark.parametrize(("present", "model"), FIRST_OF_KRAFT.items())
def test_new_partitions_have_as_many_replicas_as_one_that_the_era_takes(present, model):
    topic = "t=" + "/".join("1,2,3" if index == model else "1" for index in range(present))
    cluster = Cluster(4, topics=[topic])
    (refused,) = cluster.topics.add_partitions([("t", present + 1, [[1]])])
    assert refused.error_code == 39
    (grown,) = cluster.topics.add_partitions([("t", present + 1, None)])
    assert grown.error_code == 0
    assert len(cluster.topics.partition("t", present).replicas) == 3
    cluster = zookeeper(4, topic)
    (grown,) = cluster.topics.add_partitions([("t", present + 1, None)])
    assert len(cluster.topics.partition("t", present).replicas) == (3 if model == 0 else 1)


APPEND, SUBTRACT = 2, 3
THROTTLED = "leader.replication.throttled.replicas"


@pytest.mark.requirement("REL-17")
@pytest.mark.parametrize(
    ("name", "appended", "twice", "subtracted"),
    [
        ("kafka-2.5", None, "0:1,0:1", None),
        ("kafka-2.6", ",0:1", "0:1,0:1", ""),
        ("kafka-3.2-zk", ",0:1", "0:1,0:1", ""),
        ("kafka-3.3-zk", "0:1", "0:1", ""),
    ],
)
def test_lists_were_texts_before_3_3(name, appended, twice, subtracted):
    """To 2.5 a list without a value of its own ended in a null pointer (Kafka 2.4.1); then its
    default was an item, too, also an empty one (2.8.2). None stands for error -1."""
    assert _edited(name, None, APPEND) == appended
    assert _edited(name, None, SUBTRACT) == subtracted
    assert _edited(name, "0:1", APPEND) == twice
    assert _edited(name, "0:1,0:2,0:1", SUBTRACT) == "0:2,0:1"


@pytest.mark.requirement("CONFIG-21", "REL-17")
@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("kafka-2.4", 42, _ONE_OF), ("kafka-3.9-zk", 40, _ONE_OF), ("kafka-4.1", 40, _ONE_OF),
        ("kafka-4.2", 40, "Configuration 'cleanup.policy' values must not be empty."),
    ],
)  # fmt: skip
def test_empty_items_of_lists_are_refused(name: str, code: int, why: str) -> None:
    cluster = _of(name)
    for value in (",compact", "compact,", ",", "compact,,delete"):
        (result,) = cluster.config_changes.alter_incrementally(
            [(2, "t", [("cleanup.policy", 0, value)])]
        )
        assert result.error_code == code
        assert (result.error_message or "").endswith(why)
    for value in ("", " ", "compact, delete", "compact,compact"):
        (result,) = cluster.config_changes.alter_incrementally(
            [(2, "t", [("cleanup.policy", 0, value)])]
        )
        assert not result.error_code


@pytest.mark.requirement("CONFIG-21")
@pytest.mark.parametrize(("name", "code"), [("kafka-4.1", 0), ("kafka-4.4", 42)])
def test_items_of_brokers_lists_differ_since_4_2(name: str, code: int) -> None:
    for value in ("compact,compact", "compact,delete,compact"):
        (result,) = _of(name).config_changes.alter_incrementally(
            [(4, "1", [("log.cleanup.policy", APPEND, value)])]
        )
        text = "Configuration 'log.cleanup.policy' values must not be duplicated."
        assert (result.error_code, result.error_message) == (code, text if code else None)


@pytest.mark.requirement("CONFIG-21")
@pytest.mark.parametrize(
    ("name", "shown"), [("kafka-4.1", "compact,compact"), ("kafka-4.2", "compact")]
)
def test_items_of_topics_lists_are_shown_once_since_4_2(name: str, shown: str) -> None:
    cluster = _of(name)
    operation = ("cleanup.policy", 0, "compact,compact")
    cluster.config_changes.alter_incrementally([(2, "t", [operation])])
    assert cluster.configs.topic("t", "cleanup.policy").value == shown


@pytest.mark.requirement("REL-17")
@pytest.mark.parametrize(("name", "code"), [("kafka-2.8-zk", 42), ("kafka-3.9-zk", 40)])
def test_appended_lists_keep_their_empty_items(name: str, code: int) -> None:
    def edit(how: int, value: str) -> int:
        (result,) = cluster.config_changes.alter_incrementally(
            [(2, "t", [("cleanup.policy", how, value)])]
        )
        return result.error_code

    cluster = _of(name)
    assert edit(0, "delete") == 0
    assert edit(APPEND, ",compact") == code
    assert edit(APPEND, "") == code
    assert edit(APPEND, "compact,compact") == 0
    assert cluster.configs.topic("t", "cleanup.policy").value == "delete,compact,compact"
    assert edit(0, "delete") == 0
    assert edit(SUBTRACT, "delete") == 0
    assert edit(APPEND, "compact,") == (code if name == "kafka-2.8-zk" else 0)


def _edited(name: str, before: str | None, operation: int) -> str | None:
    cluster = _of(name)
    topic = (2, "t")
    if before is not None:
        cluster.config_changes.alter_incrementally([(*topic, [(THROTTLED, 0, before)])])
    (result,) = cluster.config_changes.alter_incrementally(
        [(*topic, [(THROTTLED, operation, "0:1")])]
    )
    if result.error_code:
        assert result.error_code == -1
        assert "is null" in (result.error_message or "")
        return None
    return cluster.configs.topic("t", THROTTLED).value


@pytest.mark.requirement("REL-16", "REL-18", "REL-19")
@pytest.mark.parametrize(
    ("name", "bad_value", "unknown", "repeated"),
    [
        ("kafka-2.6", 42, (-1, 'Topic "u" does not exist.'), "keys : retention.ms"),
        ("kafka-2.7", 42, (3, "The topic 'u' does not exist."), "keys : retention.ms"),
        ("kafka-3.1-zk", 42, (3, "The topic 'u' does not exist."), "keys : retention.ms"),
        ("kafka-3.2-zk", 42, (3, "The topic 'u' does not exist."), "keys"),
        ("kafka-3.3-zk", 40, (3, "The topic 'u' does not exist."), "keys"),
    ],
)
def test_configs_are_refused_as_by_their_release(name, bad_value, unknown, repeated):
    """From the classes of each release; 2.4.1 was seen to answer so."""
    cluster = _of(name)
    good = ("retention.ms", 0, "1")
    rows = [
        (2, "t", [("retention.ms", 0, "soon")]),
        (2, "t", [("retention.ms", APPEND, "1")]),
        (2, "u", [good]),
        (2, "t", [good, good]),
    ]
    results = [cluster.config_changes.alter_incrementally([row])[0] for row in rows]
    assert [each.error_code for each in results] == [bad_value, bad_value, unknown[0], 42]
    assert results[2].error_message == unknown[1]
    assert results[3].error_message == f"Error due to duplicate config {repeated}"


def _of(name: str) -> Cluster:
    chosen = profile(name)
    return simulated_cluster(
        4, topics=["t=1,2"], reassignment="zookeeper", release=chosen.software
    )  # fmt: skip


def test_a_stopped_broker_is_no_broker() -> None:
    cluster = zookeeper(3, "t=1,2,3")
    Operations(cluster).stop_broker(3)
    (row,) = cluster.topics.add_partitions([("t", 2, [[1, 2, 3]])])
    assert row.error_message == "Unknown broker(s) in replica assignment: 3."
    (row,) = cluster.topics.add_partitions([("t", 2, None)])
    assert row.error_message == "Replication factor: 3 larger than available brokers: 2."
    (created,) = cluster.topics.create([NewTopic("u", 1, 3)])
    assert (created.error_code, created.error_message) == (
        38,
        "Replication factor: 3 larger than available brokers: 2.",
    )


def test_checks_come_in_the_eras_order() -> None:
    """What is wrong twice is told of once: KRaft looks at the name first, ZooKeeper's at nulls."""
    wrong = NewTopic("a b", configs=(("retention.ms", None),))
    (zk,) = zookeeper().topics.create([wrong])
    (kraft,) = Cluster(3).topics.create([wrong])
    assert (zk.error_code, kraft.error_code) == (40, 17)


# ---- configs by release --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("message.format.version", {(0, 10), (2, 4), (3, 9)}),
        ("compression.gzip.level", {(3, 9), (4, 0), (4, 2), (4, 3), (4, 4)}),
        ("remote.copy.lag.ms", {(4, 4)}),
        ("max.decompressed.message.bytes", {(4, 2), (4, 4)}),
        ("segment.bytes", {(0, 10), (2, 4), (3, 9), (4, 0), (4, 2), (4, 3), (4, 4)}),
    ],
)
def test_a_config_is_there_in_its_releases_alone(name: str, releases: set[tuple[int, int]]) -> None:
    some = [(0, 10), (2, 4), (3, 9), (4, 0), (4, 2), (4, 3), (4, 4)]
    assert {each for each in some if name in config_definitions(Release(each)).topic} == releases


@pytest.mark.parametrize("release", [each.software for each in all_profiles()])
def test_no_config_has_two_rows_in_a_release(release: Release) -> None:
    for rows in (definitions._TOPIC, definitions._BROKER):
        held = [row.name for row in rows if release.is_in_lines(row.since, row.until)]
        assert len(held) == len(set(held))
    defined = config_definitions(release)
    assert all(each.synonym in defined.broker for each in defined.topic.values() if each.synonym)


def test_a_config_of_another_release_is_unknown() -> None:
    asked = [(2, "t", [("message.format.version", 0, "2.0")])]
    (old,) = zookeeper(1, "t=1").config_changes.alter_incrementally(asked)
    (new,) = Cluster(1, topics=["t=1"]).config_changes.alter_incrementally(asked)
    assert (old.error_code, new.error_code) == (0, 40)


@pytest.mark.requirement("REL-13")
@pytest.mark.parametrize(
    ("release", "text"), [((3, 0), "already exists"), ((3, 1), "is marked for deletion")]
)
def test_a_topic_cannot_be_made_anew_while_a_stopped_broker_still_has_it(release, text):
    """Real Kafka 3.9.2 with ZooKeeper keeps the deletion until the broker is back; 2.4.1 does, and
    does not say so."""
    cluster = simulated_cluster(3, topics=["foo=1,2"], reassignment="zookeeper", release=release)
    Operations(cluster).stop_broker(2)
    cluster.topics.delete([("foo", ZERO_UUID)])
    (result,) = cluster.topics.create([NewTopic("foo", 1, 1)])
    assert (result.error_code, result.error_message) == (36, f"Topic 'foo' {text}.")
    Operations(cluster).start_broker(2)
    (result,) = cluster.topics.create([NewTopic("foo", 1, 1)])
    assert result.error_code == 0
