"""``kproto admin`` against a mock cluster: what only the cluster can say, and what was sent."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kproto.cli.waiting import WaitIndicator
from kproto.error_codes import ErrorCode
from kproto.messages import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeClusterBroker,
    DescribeClusterResponse,
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
    ListPartitionReassignmentsResponse,
)
from mockbroker.running.mock_cluster import MockCluster
from mockbroker.simulation.state.cluster_parts import Broker
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


@pytest.mark.requirement("K455-55")
async def test_executing_adds_to_what_is_in_progress_and_the_rollback_restores(
    mock, plan, tmp_path
):
    before = mock.cluster.describe()["topics"]
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
    after = mock.cluster.describe()["topics"]
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
    assert mock.cluster.describe()["topics"]["foo"]["0"]["replicas"] == [1, 2, 3]


async def test_cancelling_nothing_cancels_nothing(mock, plan):
    assert (await reassign(mock, "--execute", plan(foo_0=[4, 5, 6]))).code == 0
    code, out, _ = await reassign(mock, "--cancel", "--preserve-throttles", plan())
    assert code == 0
    assert out.startswith("None of the specified partition reassignments are active.\n")
    assert (await reassign(mock, "--list")).out.count("foo-0") == 1


@pytest.mark.requirement("K860-04", "K860-06")
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


@pytest.mark.requirement("K860-04")
async def test_the_guard_says_what_it_does():
    code, out, _ = await admin("reassign-partitions", "--help")
    text = "Denies the ability to change a partition's replication factor as part of this "
    assert code == 0
    assert f"{text}reassignment through adding validation against it." in " ".join(out.split())


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
    assert [entry.broker_id for entry in mock.journal.select(api=46, direction="request")] == [2]
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


@pytest.mark.parametrize("name", ["topics", "kafka-topics", "kafka-topics.sh"])
async def test_kafkas_names_of_the_tools(mock, name):
    assert await at(mock, name, "--list") == (0, "bar\nfoo\n", "")


async def test_a_topic_by_its_id(mock):
    line = (await at(mock, "topics", "--describe", "--topic", "foo")).out.splitlines()[0]
    topic_id = line.partition("TopicId: ")[2].partition("\t")[0]
    described = await at(mock, "topics", "--describe", f"--topic-id={topic_id}")
    assert described.out.splitlines()[0] == line
    assert "Topic: bar" not in described.out


@pytest.mark.parametrize("tool", ["reassign-partitions", "topics"])
@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2", "no.invalid:9092"])
async def test_addresses_without_a_broker_fail_at_once(tool, address):
    code, out, err = await admin(tool, "--list", f"--bootstrap-server={address}")
    assert code == 1
    assert err.startswith("kproto: no broker can be reached: ")  # "no success within" after a wait
    assert err.count("\n") == 1
    assert out.startswith("Error")


async def test_a_terminal_shows_what_is_tried_and_why_again(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(WaitIndicator, "doing", lambda _self, what: shown.append(what))
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=500")
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        code, _, err = await admin(
            "topics", "--list", f"--bootstrap-server=127.0.0.1:{port}",
            f"--command-config={config}",
        )  # fmt: skip
    assert code == 1
    assert err.startswith("kproto: no success within 500 ms: ")
    assert shown[:2] == [f"127.0.0.1:{port}: connecting", f"127.0.0.1:{port}: listing topics"]
    assert shown[2].startswith(f"127.0.0.1:{port}: trying again after: ")


async def test_unrepresentable_plans_do_not_hang(mock, plan):
    code, out, _ = await reassign(mock, "--verify", plan(nope_0=[1], foo_9=[2]))
    assert code == 1  # Throttles of a topic that does not exist cannot be cleared.
    assert "There is no active reassignment of partition nope-0, but replica set is  rather " in out
    assert "There is no active reassignment of partition foo-9, but replica set is  rather " in out


# ---- log directories -----------------------------------------------------------------------------


def moves_accepted(code: int) -> Callable[[Any], Any]:
    """An AlterReplicaLogDirsResponse with the same code for whatever was asked."""

    def answer(call: Any) -> AlterReplicaLogDirsResponse:
        return AlterReplicaLogDirsResponse(
            results=[
                AlterReplicaLogDirTopicResult(
                    topic_name=topic.name,
                    partitions=[
                        AlterReplicaLogDirPartitionResult(partition_index=each, error_code=code)
                        for each in topic.partitions
                    ],
                )
                for directory in call.body.dirs
                for topic in directory.topics
            ]
        )

    return answer


def log_dirs(*rows: tuple[str, str, int, bool]) -> DescribeLogDirsResponse:
    """A DescribeLogDirsResponse; rows are (directory, topic, partition, is_future)."""
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResult(
                log_dir=directory,
                topics=[
                    DescribeLogDirsTopic(
                        name=topic,
                        partitions=[
                            DescribeLogDirsPartition(partition_index=index, is_future_key=is_future)
                        ],
                    )
                ],
            )
            for directory, topic, index, is_future in rows
        ]
    )


@pytest.fixture
def directories(tmp_path: Path) -> str:
    """Replicas of foo-0: on broker 1 to /b, on broker 2 anywhere, on broker 3 to /c."""
    path = tmp_path / "directories.json"
    row = {"topic": "foo", "partition": 0, "replicas": [1, 2, 3], "log_dirs": ["/b", "any", "/c"]}
    path.write_text(json.dumps({"partitions": [row]}))
    return f"--reassignment-json-file={path}"


async def test_log_directories_are_asked_for_until_the_replica_is_there(mock, directories):
    mock.on(34)(moves_accepted(ErrorCode.NONE))
    mock.on(34, times=1)(moves_accepted(ErrorCode.REPLICA_NOT_AVAILABLE))
    throttle = ["--replica-alter-log-dirs-throttle", "5"]
    code, out, _ = await reassign(mock, "--execute", directories, *throttle)
    assert code == 0
    # The last of Kafka's lines end with a blank.
    assert out.splitlines()[-4:] == [
        "The replica-alter-dir throttle limit was set to 5 B/s",
        "Successfully started partition reassignment for foo-0",
        "Successfully started moving log directory to /c for replica foo-0 with broker 3 ",
        "Successfully started moving log directory to /b for replica foo-0 with broker 1 ",
    ]
    assert [entry.broker_id for entry in mock.journal.select(api=34, direction="request")] == [
        1,
        3,
        1,
    ]
    assert configs_set(mock) == {("1", LOG_DIR_RATE): "5", ("3", LOG_DIR_RATE): "5"}


async def test_log_directories_that_are_never_there(mock, directories):
    mock.on(34)(moves_accepted(ErrorCode.REPLICA_NOT_AVAILABLE))
    code, out, err = await reassign(mock, "--execute", "--timeout=0", directories)
    text = "Timed out before log directory moves could be started for: foo-0-1,foo-0-3"
    assert (code, out.splitlines()[-1], err) == (1, text, f"kproto: {text}\n")


async def test_a_log_directory_that_does_not_exist(mock, directories):
    mock.on(34)(moves_accepted(ErrorCode.LOG_DIR_NOT_FOUND))
    code, out, err = await reassign(mock, "--execute", directories)
    assert (code, out.splitlines()[-1]) == (1, "Error: Failed to alter dir for foo-0-1")
    assert err.startswith("kproto: Failed to alter dir for foo-0-1: ")


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (
            [],
            "Partition foo-0 is not found in any live log dir on broker 1. There is likely an "
            "offline log directory on the broker.",
        ),
        ([("/b", "foo", 0, False)], "Reassignment of replica foo-0-1 completed successfully."),
        (
            [("/a", "foo", 0, False), ("/b", "foo", 0, True)],
            "Reassignment of replica foo-0-1 is still in progress.",
        ),
        (
            [("/a", "foo", 0, False), ("/x", "foo", 0, True)],
            "Partition foo-0 on broker 1 is being moved to log dir /x instead of /b.",
        ),
        (
            [("/a", "foo", 0, False)],
            "Partition foo-0 on broker 1 is not being moved from log dir /a to /b.",
        ),
    ],
)
async def test_how_a_move_between_log_directories_stands(mock, directories, rows, line):
    mock.script(35, log_dirs(*rows))
    code, out, _ = await reassign(mock, "--verify", directories)
    assert (code, out.splitlines()[2]) == (0, line)
    # Throttles stay while anything moves, or may.
    finished = len(rows) == 1
    assert ("Clearing broker-level throttles" in out) == finished


async def test_cancelling_a_move_sends_the_replica_back(mock, directories):
    mock.script(35, log_dirs(("/a", "foo", 0, False), ("/b", "foo", 0, True)))
    mock.on(34)(moves_accepted(ErrorCode.NONE))
    code, out, _ = await reassign(mock, "--cancel", "--preserve-throttles", directories)
    assert code == 0
    assert "Successfully started moving log directory to /a for replica foo-0 with broker 1" in out
    assert {each.path for body in sent(mock, 34) for each in body.dirs} == {"/a"}


# ---- on a terminal -------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this platform has no pseudo-terminals")
async def test_a_terminal_sees_what_is_waited_for_and_a_file_does_not(mock):
    def run_on_a_terminal() -> tuple[bytes, bytes]:
        ours, theirs = os.openpty()
        command = [sys.executable, "-m", "kproto", "admin", "topics", "--list"]
        command += ["--bootstrap-server", mock.bootstrap]
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=True
            )
            os.close(theirs)
            return done.stdout, terminal.read(65536)

    printed, shown = await asyncio.to_thread(run_on_a_terminal)
    assert printed == b"bar\nfoo\n"
    assert b"listing topics" in shown
