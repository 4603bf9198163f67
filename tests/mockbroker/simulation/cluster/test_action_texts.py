"""The text of every entry of the action log, and the topics that entries are about."""

from typing import Any

import pytest

from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state.action_texts import action_text, is_about
from mockbroker.simulation.state.actions import KINDS, PartitionChanged


def entries() -> list[dict[str, Any]]:
    cluster = Cluster(5, topics=["foo=1,2,3/2,3,1", "bar=3,1", "foo.bar=1"])
    cluster.reassignments.alter([("foo", [(1, [4, 3])])])
    Operations(cluster).join_isr(("foo", 1), 4)
    Operations(cluster).leave_isr(("bar", 0), 1)
    Operations(cluster).failover(2)
    Operations(cluster).stop_broker(5)
    return [action.to_dict() for action in cluster.log]


def test_partition_changes_are_shown_as_in_scenarios() -> None:
    found = [action_text(each) for each in entries() if each["kind"] == "PartitionChanged"]
    assert "foo-1  R 4,3,1,2  I 2,3,1  T 4,3  leader 2 epoch 0" in found
    assert any(line.endswith("no longer reassigning") for line in found)


def test_every_entry_has_one_line_with_its_members() -> None:
    found = entries()
    assert len({each["kind"] for each in found}) > 4
    for each in found:
        text = action_text(each)
        assert text
        assert "\n" not in text
        if each["kind"] == "BrokerChanged":
            assert text == "BrokerChanged  broker_id 5  live true -> false"


def test_the_target_in_a_text_is_that_of_the_model() -> None:
    cluster = Cluster(5, topics=["foo=1,2,3"])
    cluster.reassignments.alter([("foo", [(0, [5, 4])])])
    changed = [each for each in cluster.log if isinstance(each.change, PartitionChanged)]
    assert changed
    for each in changed:
        change = each.change
        assert isinstance(change, PartitionChanged)
        shown = f"  T {','.join(map(str, change.after.target or ()))}  "
        assert (shown in action_text(each.to_dict())) == (change.after.target is not None)


def test_entries_of_a_topic_and_of_a_partition() -> None:
    found = entries()
    of_foo = [each for each in found if is_about(each, "foo")]
    assert {each["kind"] for each in of_foo} >= {"TopicCreated", "PartitionChanged"}
    changed = [each for each in of_foo if each["kind"] == "PartitionChanged"]
    assert {each["topic"] for each in changed} == {"foo"}
    assert changed == [each for each in found if each.get("topic") == "foo"]
    of_partition = [each for each in found if is_about(each, "foo", 1)]
    assert {each["after"]["index"] for each in of_partition} == {1}
    assert not [each for each in found if is_about(each, "foo", 0)]


@pytest.mark.parametrize(
    ("path", "topic", "index", "expected"),
    [
        ("/brokers/topics/foo", "foo", None, True),
        ("/brokers/topics/foo", "foo", 1, False),
        ("/brokers/topics/foo/partitions/1/state", "foo", 1, True),
        ("/brokers/topics/foo/partitions/1/state", "foo", 11, False),
        ("/brokers/topics/foo.bar", "foo", None, False),
        ("/config/topics/foo", "foo", None, True),
        ("/admin/reassignments/foo/1", "foo", 1, True),
        ("/controller_epoch", "foo", None, False),
    ],
)
def test_znodes_of_a_topic(path: str, topic: str, index: int | None, expected: bool) -> None:
    entry = {"kind": "ZnodeWritten", "path": path, "after": "{}"}
    assert is_about(entry, topic, index) == expected


def test_elections_and_configs_of_a_topic() -> None:
    assert {"ElectionEnqueued", "ConfigChanged"} <= set(KINDS)
    election = {"kind": "ElectionEnqueued", "topics": [["foo", [0, 1]]]}
    assert is_about(election, "foo")
    assert is_about(election, "foo", 1)
    assert not is_about(election, "foo", 2)
    assert not is_about({"kind": "ElectionEnqueued", "topics": None}, "foo")
    config = {"kind": "ConfigChanged", "resource_type": 2, "resource_name": "foo"}
    assert is_about(config, "foo")
    assert not is_about({**config, "resource_type": 4}, "foo")
    assert not is_about(config, "foo", 0)
