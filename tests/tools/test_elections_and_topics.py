"""``kproto admin leader-election`` and ``topics`` against a mock cluster: results, refusals, exit
codes. ``test_against_kafka`` compares their output with Kafka's own tools, which needs Java."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mockbroker.running.mock_cluster import MockCluster
from mockbroker.simulation.operations.simulated import Operations
from tests.tools.commands import Outcome, at

PREFERRED = ("leader-election", "--election-type", "PREFERRED")
UNCLEAN = ("leader-election", "--election-type", "UNCLEAN")


@pytest.fixture
async def mock() -> AsyncIterator[MockCluster]:
    topics = ["foo=1,2/2,1", "bar=1,2"]
    async with MockCluster(brokers=3, topics=topics, profile="kafka-4.3", clock="manual") as mock:
        yield mock


def led_by_2(mock: MockCluster) -> None:
    """Let broker 2 lead every partition, with broker 1 in sync again."""
    Operations(mock.cluster).stop_broker(1)
    Operations(mock.cluster).start_broker(1)
    for tp in (("foo", 0), ("foo", 1), ("bar", 0)):
        Operations(mock.cluster).join_isr(tp, 1)


# ---- leader-election -----------------------------------------------------------------------------


async def test_one_partition_gets_its_preferred_leader(mock: MockCluster) -> None:
    led_by_2(mock)
    arguments = (*PREFERRED, "--topic", "foo", "--partition", "0")
    assert await at(mock, *arguments) == Outcome(
        0, "Successfully completed leader election (PREFERRED) for partitions foo-0\n", ""
    )
    assert [each.leader for each in mock.cluster.topics["foo"].partitions] == [1, 2]
    assert mock.cluster.topics["bar"].partitions[0].leader == 2
    assert await at(mock, *arguments) == Outcome(
        0, "Valid replica already elected for partitions foo-0\n", ""
    )


async def test_all_partitions_that_need_an_election(mock: MockCluster) -> None:
    led_by_2(mock)
    code, out, err = await at(mock, *PREFERRED, "--all-topic-partitions")
    assert (code, err) == (0, "")
    assert out == (
        "Successfully completed leader election (PREFERRED) for partitions bar-0, foo-0\n"
    )


async def test_partitions_of_a_file_succeed_and_fail_one_by_one(mock, tmp_path):
    led_by_2(mock)
    Operations(mock.cluster).leave_isr(("bar", 0), 1)
    path = tmp_path / "partitions.json"
    rows = [{"topic": topic, "partition": 0} for topic in ("foo", "bar", "none")]
    path.write_text(json.dumps({"partitions": rows}))
    code, out, err = await at(mock, *PREFERRED, f"--path-to-json-file={path}")
    lines = out.splitlines()
    assert lines[0] == ("Successfully completed leader election (PREFERRED) for partitions foo-0")
    failed = [line.split(": ")[1] for line in lines[1:]]
    assert failed == ["bar-0", "none-0"]
    assert (code, err) == (1, "kproto: 2 replica(s) could not be elected\n")


async def test_an_unclean_leader_is_elected_where_none_leads(mock: MockCluster) -> None:
    Operations(mock.cluster).leave_isr(("bar", 0), 2)
    Operations(mock.cluster).stop_broker(1)
    assert mock.cluster.topics["bar"].partitions[0].leader == -1
    code, out, _ = await at(mock, *UNCLEAN, "--topic=bar", "--partition=0")
    assert (code, out) == (
        0,
        "Successfully completed leader election (UNCLEAN) for partitions bar-0\n",
    )
    assert mock.cluster.topics["bar"].partitions[0].leader == 2


async def test_the_older_name_of_the_client_s_properties(mock: MockCluster, tmp_path: Path) -> None:
    led_by_2(mock)
    properties = tmp_path / "client.properties"
    properties.write_text("client.id=elector\n")
    code, _, err = await at(
        mock, *PREFERRED, "--all-topic-partitions", "--admin.config", str(properties)
    )
    assert (code, err) == (0, "--admin.config is deprecated; use --command-config\n")
    assert "elector" in {entry.client_id for entry in mock.journal.select(api=43)}


# ---- topics --------------------------------------------------------------------------------------


async def test_a_topic_is_created_once(mock: MockCluster) -> None:
    create = ("topics", "--create", "--topic", "a.b", "--partitions=2", "--replication-factor=2")
    code, out, err = await at(mock, *create, "--config", "retention.ms=5")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("WARNING: Due to limitations in metric names")
    assert out.splitlines()[1:] == ["Created topic a.b."]
    assert len(mock.cluster.topics["a.b"].partitions) == 2
    assert mock.cluster.configs.topic("a.b", "retention.ms").value == "5"
    code, _, err = await at(mock, *create)
    assert code == 1
    assert "already exists" in err
    code, out, err = await at(mock, *create, "--if-not-exists")
    assert (code, err) == (0, "")
    assert "Created" not in out


async def test_topics_are_selected_by_a_pattern(mock: MockCluster) -> None:
    assert (await at(mock, "topics", "--list")).out == "bar\nfoo\n"
    assert (await at(mock, "topics", "--list", "--topic", "b.*, none")).out == "bar\n"
    assert (await at(mock, "topics", "--list", "--topic", "none")).out == "\n"
    code, out, _ = await at(mock, "topics", "--list", "--topic", "(")
    assert (code, "( is an invalid regex." in out) == (1, True)


async def test_partitions_are_added_to_every_matching_topic(mock: MockCluster) -> None:
    alter = ("topics", "--alter", "--topic")
    assert await at(mock, *alter, "foo|bar", "--partitions=3") == Outcome(0, "", "")
    assert {len(each.partitions) for each in mock.cluster.topics.values()} == {3}
    placed = ("--partitions=4", "--replica-assignment", "1:2,1:2,1:2,3:1")
    assert (await at(mock, *alter, "foo", *placed)).code == 0
    assert mock.cluster.topics["foo"].partitions[3].replicas == (3, 1)
    code, out, _ = await at(mock, *alter, "none", "--partitions=3")
    assert (code, "Topic 'none' does not exist as expected" in out) == (1, True)
    assert await at(mock, *alter, "none", "--partitions=3", "--if-exists") == Outcome(0, "", "")


async def test_every_matching_topic_is_deleted(mock: MockCluster) -> None:
    assert await at(mock, "topics", "--delete", "--topic", "f.*") == Outcome(0, "", "")
    assert [*mock.cluster.topics] == ["bar"]
    code, out, _ = await at(mock, "topics", "--delete", "--topic", "foo")
    assert (code, "Topic 'foo' does not exist as expected" in out) == (1, True)
    assert await at(mock, "topics", "--delete", "--topic", "foo", "--if-exists") == Outcome(
        0, "", ""
    )
