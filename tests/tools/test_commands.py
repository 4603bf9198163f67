"""``kproto admin`` against a mock cluster: what only the cluster can say, and what was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from kproto.messages import (
    DescribeClusterBroker,
    DescribeClusterResponse,
    ListPartitionReassignmentsResponse,
)
from mockbroker.mock_cluster import MockCluster
from mockbroker.model import Broker
from tests.tools.commands import Outcome, admin, at

RATES = {"leader.replication.throttled.rate", "follower.replication.throttled.rate"}
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
REPLICAS = {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}


@pytest.fixture
async def mock() -> AsyncIterator[MockCluster]:
    topics = ["foo=1,2,3/2,3,1", "bar=1,2,3"]
    async with MockCluster(brokers=6, topics=topics, profile="kafka-4.3", clock="manual") as mock:
        yield mock


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., str]:
    """Writes a plan, {"foo-0": replicas}, and returns the option that names it."""

    def write(**moves: list[int]) -> str:
        rows = []
        for name, replicas in moves.items():
            topic, index = name.rsplit("_", 1)
            rows.append({"topic": topic, "partition": int(index), "replicas": replicas})
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({"version": 1, "partitions": rows}))
        return f"--reassignment-json-file={path}"

    return write


def sent(mock: MockCluster, api: int) -> list[Any]:
    return [entry.decode().body for entry in mock.journal.select(api=api, direction="request")]


def configs_set(mock: MockCluster) -> dict[tuple[str, str], str | None]:
    return {
        (each.resource_name, config.name): config.value
        for body in sent(mock, 44)
        for each in body.resources
        for config in each.configs
    }


async def reassign(mock: MockCluster, *arguments: str) -> Outcome:
    return await at(mock, "reassign-partitions", *arguments)


@pytest.mark.requirement("K455-54")
@pytest.mark.requirement("K455-55")
async def test_executing_adds_to_what_is_in_progress_and_the_rollback_restores(
    mock, plan, tmp_path
):
    before = mock.cluster.state()["topics"]
    code, out, err = await reassign(mock, "--execute", plan(foo_0=[4, 5, 6]))
    assert (code, err) == (0, "")
    rollback = tmp_path / "rollback.json"
    rollback.write_text(out.splitlines()[2])
    code, out, _ = await reassign(mock, "--execute", "--additional", plan(bar_0=[1, 2, 4]))
    assert code == 0
    assert out.endswith("Successfully started partition reassignment for bar-0\n")
    assert (await reassign(mock, "--list")).out == (
        "Current partition reassignments:\n"
        "bar-0: replicas: 1,2,4,3. adding: 4. removing: 3.\n"
        "foo-0: replicas: 4,5,6,1,2,3. adding: 4,5,6. removing: 1,2,3.\n"
    )
    for broker in (4, 5, 6):
        mock.join_isr("foo-0", broker)
    mock.join_isr("bar-0", 4)
    assert (await reassign(mock, "--list")).out == "No partition reassignments found.\n"
    assert (await reassign(mock, "--execute", f"--reassignment-json-file={rollback}")).code == 0
    for broker in (1, 2, 3):
        mock.join_isr("foo-0", broker)
    after = mock.cluster.state()["topics"]
    assert after["foo"]["0"]["replicas"] == before["foo"]["0"]["replicas"]


@pytest.mark.requirement("K455-58")
async def test_throttles_are_set_by_incremental_alter_configs_and_cleared_at_the_end(mock, plan):
    move = plan(foo_0=[4, 2, 3], foo_1=[2, 3, 1])
    throttles = ["--throttle", "1000", "--replica-alter-log-dirs-throttle", "2000"]
    code, out, _ = await reassign(mock, "--execute", move, *throttles)
    assert code == 0
    assert "The inter-broker throttle limit was set to 1000 B/s\n" in out
    assert "The replica-alter-dir throttle limit was set to 2000 B/s\n" in out
    assert configs_set(mock) == {
        ("foo", "leader.replication.throttled.replicas"): "0:1,0:2,0:3,1:1,1:2,1:3",
        ("foo", "follower.replication.throttled.replicas"): "0:4",
    } | {(str(broker), name): "1000" for broker in (1, 2, 3, 4) for name in RATES}
    assert (await reassign(mock, "--verify", move)).out == (
        "Status of partition reassignment:\n"
        "Reassignment of partition foo-0 is still in progress.\n"
        "Reassignment of partition foo-1 is completed.\n"
        "\n"
    )
    mock.join_isr("foo-0", 4)
    mock.journal.clear()
    assert (await reassign(mock, "--verify", "--preserve-throttles", move)).code == 0
    assert configs_set(mock) == {}
    assert (await reassign(mock, "--verify", move)).out.endswith(
        "\nClearing broker-level throttles on brokers 1,2,3,4,5,6\n"
        "Clearing topic-level throttles on topic foo\n"
    )
    brokers = {(str(broker), name) for broker in range(1, 7) for name in (*RATES, LOG_DIR_RATE)}
    assert configs_set(mock) == dict.fromkeys(brokers | {("foo", name) for name in REPLICAS})


async def test_cancelling_also_stops_what_only_adds_replicas(mock, plan):
    add = plan(foo_0=[1, 2, 3, 4], bar_0=[1, 2, 3])
    assert (await reassign(mock, "--execute", add)).code == 0
    code, out, _ = await reassign(mock, "--cancel", "--preserve-throttles", add)
    assert (code, out) == (
        0,
        "Successfully cancelled partition reassignment for: foo-0\n"
        "None of the specified partition moves are active.",
    )
    assert mock.cluster.state()["topics"]["foo"]["0"]["replicas"] == [1, 2, 3]


async def test_cancelling_nothing_cancels_nothing(mock, plan):
    assert (await reassign(mock, "--execute", plan(foo_0=[4, 5, 6]))).code == 0
    code, out, _ = await reassign(mock, "--cancel", "--preserve-throttles", plan())
    assert code == 0
    assert out.startswith("None of the specified partition reassignments are active.\n")
    assert (await reassign(mock, "--list")).out.count("foo-0") == 1


@pytest.mark.requirement("K860-04")
@pytest.mark.requirement("K860-06")
async def test_the_guard_of_the_replication_factor(mock, plan):
    guard = "--disallow-replication-factor-change"
    code, out, err = await reassign(mock, "--execute", guard, plan(foo_0=[4, 5, 6], bar_0=[1]))
    assert code == 1
    assert out.splitlines()[-2:] == [
        "Error reassigning partition(s):",
        "bar-0: The replication factor is changed from 3 to 1",
    ]
    assert err == (
        "kproto: Error reassigning partition(s): "
        "bar-0: The replication factor is changed from 3 to 1\n"
    )
    assert [body.allow_replication_factor_change for body in sent(mock, 45)] == [False]
    assert "foo-0" in (await reassign(mock, "--list")).out


@pytest.mark.requirement("K860-12")
async def test_the_guard_against_a_cluster_that_lacks_it(plan):
    async with MockCluster(brokers=2, topics=["foo=1"], profile="kafka-3.9") as mock:
        guard = "--disallow-replication-factor-change"
        code, out, _ = await reassign(mock, "--execute", guard, plan(foo_0=[2]))
        assert code == 1
        assert "foo-0: The broker does not support the AllowReplicationFactorChange option" in out
        assert sent(mock, 45) == []
        assert (await reassign(mock, "--execute", plan(foo_0=[2]))).code == 0


async def test_controllers_are_asked_themselves(mock, plan):
    assert (await reassign(mock, "--execute", plan(foo_0=[4, 5, 6]))).code == 0
    mock.failover(2)
    quorum = [(each, *mock.addresses[each].split(":")) for each in (1, 2)]
    answer = DescribeClusterResponse(
        endpoint_type=2,
        cluster_id="c",
        controller_id=2,
        brokers=[
            DescribeClusterBroker(broker_id=each, host=host, port=int(port))
            for each, host, port in quorum
        ],
    )
    mock.script(60, answer)
    mock.journal.clear()
    controllers = f"--bootstrap-controller={mock.addresses[1]}"
    code, out, _ = await admin("reassign-partitions", "--list", controllers)
    assert (code, "foo-0: replicas: 4,5,6,1,2,3." in out) == (0, True)
    asked = mock.journal.select(api=46, direction="request")
    assert [entry.broker_id for entry in asked] == [2]
    assert mock.journal.select(api=3) == []
    code, out, _ = await admin(
        "reassign-partitions", "--cancel", "--preserve-throttles", plan(foo_0=[]), controllers
    )
    assert (code, out.splitlines()[0]) == (
        0,
        "Successfully cancelled partition reassignment for: foo-0",
    )


async def test_racks_are_respected_or_left_out(tmp_path):
    topics = tmp_path / "topics.json"
    topics.write_text('{"topics": [{"topic": "foo"}]}')
    asked = ["--generate", f"--topics-to-move-json-file={topics}"]
    brokers = [Broker(each, rack="ab"[each % 2] if each < 5 else None) for each in range(1, 6)]
    async with MockCluster(brokers=brokers, topics=["foo=1,3/1,3/1,3/1,3"]) as mock:
        code, out, _ = await reassign(mock, *asked, "--broker-list=1,2,3,4")
        assert code == 0
        proposed = json.loads(out.splitlines()[-1])["partitions"]
        assert all(sum(row["replicas"]) % 2 for row in proposed), "one broker of each rack"
        code, out, err = await reassign(mock, *asked, "--broker-list=1,2,3,4,5")
        text = "Not all brokers have rack information. Add --disable-rack-aware"
        assert (code, text in err, out.startswith(f"Error: {text}")) == (1, True, True)
        assert (
            await reassign(mock, *asked, "--broker-list=1,2,3,4,5", "--disable-rack-aware")
        ).code == 0


@pytest.mark.requirement("K455-57")
@pytest.mark.requirement("K860-16")
async def test_describe_shows_what_is_added_and_removed(mock, plan):
    await reassign(mock, "--execute", plan(foo_0=[4, 2, 5, 6]))
    lines = (await at(mock, "topics", "--describe", "--topic", "foo")).out.splitlines()
    assert "\tPartitionCount: 2\tReplicationFactor: 3\t" in lines[0]
    assert (
        "\tReplicas: 4,2,5,6,1,3\tIsr: 1,2,3\tAdding Replicas: 4,5,6\tRemoving Replicas: 1,3\t"
        in lines[1]
    )
    assert "Adding" not in lines[2]


@pytest.mark.parametrize(
    ("code", "shown"), [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, True), (7, False)]
)
async def test_describe_does_without_reassignments_that_it_may_not_list(mock, code, shown):
    mock.script(46, ListPartitionReassignmentsResponse(error_code=code, topics=[]))
    outcome = await at(mock, "topics", "--describe", "--topic", "bar")
    assert (outcome.code == 0, "Replicas: 1,2,3" in outcome.out) == (shown, shown)


async def test_describe_does_without_an_api_the_cluster_lacks(plan):
    async with MockCluster(brokers=1, topics=["foo=1"], apis={46: None, 75: None}) as mock:
        code, out, _ = await at(mock, "topics", "--describe")
        assert code == 0
        assert "Leader: 1\tReplicas: 1\tIsr: 1\tElr: N/A\tLastKnownElr: N/A\n" in out
        code, out, err = await reassign(mock, "--list")
        text = "The node does not support LIST_PARTITION_REASSIGNMENTS"
        assert (code, err) == (1, f"kproto: {text}\n")
        assert out == f"Error: org.apache.kafka.common.errors.UnsupportedVersionException: {text}\n"


async def test_a_topic_by_its_id(mock):
    line = (await at(mock, "topics", "--describe", "--topic", "foo")).out.splitlines()[0]
    topic_id = line.partition("TopicId: ")[2].partition("\t")[0]
    described = await at(mock, "topics", "--describe", f"--topic-id={topic_id}")
    assert described.out.splitlines()[0] == line
    assert "Topic: bar" not in described.out


@pytest.mark.parametrize("tool", ["reassign-partitions", "topics"])
async def test_nobody_there(tool, tmp_path):
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=200")
    code, out, err = await admin(
        tool, "--list", "--bootstrap-server=127.0.0.1:1", f"--command-config={config}"
    )
    assert code == 1
    assert err.startswith("kproto: nothing came of it within 200 ms: no broker can be reached")
    assert err.count("\n") == 1
    assert out.startswith("Error")


async def test_unrepresentable_plans_do_not_hang(mock, plan):
    code, out, _ = await reassign(mock, "--verify", plan(nope_0=[1], foo_9=[2]))
    assert code == 1  # Throttles of a topic that does not exist cannot be cleared.
    assert "There is no active reassignment of partition nope-0, but replica set is  rather " in out
    assert "There is no active reassignment of partition foo-9, but replica set is  rather " in out
