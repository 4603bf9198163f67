"""``kproto admin`` through a real ZooKeeper, against a mock cluster on it; and by the brokers."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mockbroker.running.mock_cluster import MockCluster
from mockbroker.simulation.state.actions import ZnodeWritten
from tests.support.toolchain import require_module
from tests.support.waiting import until
from tests.support.zookeeper import running_server
from tests.tools.commands import Outcome, admin, at

TOPICS = ["foo=1,2,3", "bar=2,1"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    require_module("kazoo")
    with running_server() as address:
        yield address


@pytest.fixture
async def place(server: str, request: pytest.FixtureRequest) -> AsyncIterator[tuple[str, Any]]:
    """A ZooKeeper path with a cluster of the profile at it."""
    profile = request.param
    where = f"{server}/{request.node.name.translate({ord(c): '-' for c in '[]'})}"
    async with MockCluster(5, topics=TOPICS, profile=profile, zookeeper=where) as mock:
        yield where, mock


def at_profile(profile: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("place", [profile], indirect=True)


async def through(where: str, *arguments: str, profile: str = "kip-236-new") -> Outcome:
    words = ("reassign-partitions", "--profile", profile, "--zookeeper", where)
    return await admin(*words, *arguments)


def plan_file(folder: Path, topic: str, replicas: list[int]) -> str:
    path = folder / f"{topic}.json"
    row = {"topic": topic, "partition": 0, "replicas": replicas}
    path.write_text(json.dumps({"version": 1, "partitions": [row]}))
    return f"--reassignment-json-file={path}"


@pytest.mark.java
@at_profile("kip-236-new")
@pytest.mark.requirement("K236-30", "K236-31", "K236-36")
async def test_reassign_cancel_and_queue(place: tuple[str, MockCluster], tmp_path: Path) -> None:
    where, mock = place
    outcome = await through(where, "--execute", plan_file(tmp_path, "foo", [1, 2, 4]))
    assert (outcome.code, outcome.err) == (0, "")
    outcome = await through(where, "--verify", plan_file(tmp_path, "foo", [1, 2, 4]))
    assert outcome.out == (
        "Status of partition reassignment: \nReassignment of partition foo-0 is still in progress\n"
    )
    outcome = await through(where, "--cancel")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "Rolling back the current pending reassignments Map(foo-0 -> Map(replicas -> "
        "Buffer(1, 2, 4), original_replicas -> Buffer(1, 2, 3)))",
        "Successfully submitted cancellation of reassignments.",
        "The cancelled pending reassignments throttle was removed.",
        "Please run --verify to have the previous reassignments (not just the cancelled "
        "reassignments in progress) throttle removed.",
    ]
    await until(
        lambda: mock.cluster.topics.partition("foo", 0).replicas == (1, 2, 3), "rolled back"
    )
    outcome = await through(where, "--verify", plan_file(tmp_path, "foo", [1, 2, 4]))
    assert "foo-0 was cancelled or failed" in outcome.out
    outcome = await through(where, "--execute-queue", plan_file(tmp_path, "bar", [4, 5]))
    assert outcome.code == 0
    outcome = await through(where, "--verify-queue", plan_file(tmp_path, "bar", [4, 5]))
    assert "bar-0 is still in progress" in outcome.out


@pytest.mark.java
@at_profile("kip-236-old")
@pytest.mark.requirement("K236-50")
async def test_the_older_draft(place: tuple[str, MockCluster], tmp_path: Path) -> None:
    where, mock = place
    moving = plan_file(tmp_path, "foo", [1, 2, 4])
    assert (await through(where, "--execute", moving, profile="kip-236-old")).code == 0
    assert (await through(where, "--cancel", profile="kip-236-old")).code == 0
    assert await mock.take(mock.read_znode, "/admin/reassign_cancel") is not None
    refused = await through(where, "--execute", moving, profile="kip-236-old")
    assert (refused.code, "disabled" in refused.err) == (1, True)
    outcome = await through(where, "--remove-cancel", profile="kip-236-old")
    assert outcome.out == "Successfully remove the znode /admin/reassign_cancel\n"
    assert await mock.take(mock.read_znode, "/admin/reassign_cancel") is None


@pytest.mark.java
@at_profile("kafka-2.3")
@pytest.mark.requirement("K183-20")
async def test_an_election_through_zookeeper_is_warned_about_and_held(place):
    where, mock = place
    await mock.take(mock.leave_isr, "bar-0", 1)
    outcome = await admin("preferred-replica-election", "--zookeeper", where)
    assert outcome.code == 0
    assert outcome.err.startswith("Warning: --zookeeper is deprecated and will be removed in a")
    assert "Use --bootstrap-server instead" in outcome.err
    assert "Warning" not in outcome.out
    assert "Successfully started preferred replica election for partitions bar-0,foo-0" in (
        outcome.out
    )
    assert not mock.journal.select(api=43)

    def written() -> set[str]:
        return {a.change.path for a in mock.cluster.log if isinstance(a.change, ZnodeWritten)}

    await until(lambda: "/admin/preferred_replica_election" in written(), "the controller saw it")


@pytest.mark.slow
async def test_a_zookeeper_that_is_not_there_is_one_clear_line() -> None:
    outcome = await through("127.0.0.1:1/x", "--cancel")
    assert outcome.code == 1
    assert "127.0.0.1:1" in outcome.err
    assert outcome.err.count("\n") == 1


# ---- by the brokers ------------------------------------------------------------------------------


@pytest.mark.requirement("K183-21")
async def test_an_election_by_the_brokers(tmp_path: Path) -> None:
    async with MockCluster(3, topics=["foo=1,2,3"], profile="kafka-2.3") as mock:
        await mock.stop_broker(1)
        await mock.start_broker(1)
        mock.join_isr("foo-0", 1)
        assert mock.cluster.topics.partition("foo", 0).leader != 1
        outcome = await at(mock, "preferred-replica-election")
        assert outcome == (
            0,
            "Successfully completed preferred leader election for partitions foo-0\n",
            "",
        )
        assert mock.cluster.topics.partition("foo", 0).leader == 1
        (request,) = mock.journal.select(api=43, direction="request")
        assert request.decode().body.topic_partitions is None
        some = tmp_path / "some.json"
        some.write_text('{"partitions": [{"topic": "foo", "partition": 7}]}')
        outcome = await at(mock, "preferred-replica-election", f"--path-to-json-file={some}")
        assert outcome.code == 1
        assert "Error completing preferred leader election for partition: foo-7: " in outcome.out
        assert "1 preferred replica(s) could not be elected" in outcome.err


@pytest.mark.requirement("K183-21")
async def test_what_needed_no_election_is_told_apart_since_2_4(tmp_path: Path) -> None:
    async with MockCluster(3, topics=["foo=1,2,3"], profile="kafka-2.4") as mock:
        some = tmp_path / "some.json"
        some.write_text('{"partitions": [{"topic": "foo", "partition": 0}]}')
        outcome = await at(mock, "preferred-replica-election", f"--path-to-json-file={some}")
    assert outcome == (0, "Preferred replica already elected for partitions foo-0\n", "")


@pytest.mark.requirement("K183-22")
async def test_both_ways_at_once_are_refused() -> None:
    async with MockCluster(1, topics=["foo=1"]) as mock:
        outcome = await at(mock, "preferred-replica-election", "--zookeeper", "127.0.0.1:1")
        assert (outcome.code, outcome.out) == (2, "")
        assert "Only one of --zookeeper and --bootstrap-server" in outcome.err
        assert not mock.journal.select(direction="request")
    outcome = await admin("preferred-replica-election")
    assert (outcome.code, "either --bootstrap-server or --zookeeper" in outcome.err) == (2, True)


@pytest.mark.requirement("K183-23")
async def test_help_says_what_a_preferred_replica_is() -> None:
    outcome = await admin("kafka-preferred-replica-election.sh", "--help")
    text = " ".join(outcome.out.split())
    assert "The preferred replica of a partition is the first in its list of replicas" in text
    assert "Not needed where brokers have auto.leader.rebalance.enable=true" in text


@pytest.mark.requirement("A-40")
async def test_each_draft_has_its_own_cancellation() -> None:
    for profile, option in [
        ("kafka", "--cancel-all"),
        ("kip-236-new", "--remove-cancel"),
        ("kip-236-new", "--execute-extra"),
        ("kip-236-old", "--execute-queue"),
        ("kip-236-old", "--list"),
    ]:
        outcome = await admin("reassign-partitions", "--profile", profile, option)
        assert outcome.code == 2
        assert "No such option" in outcome.err
    outcome = await admin("reassign-partitions", "--profile", "kip-236-new", "--cancel")
    assert 'Missing required argument "[zookeeper]"' in outcome.err
    outcome = await admin("reassign-partitions", "--profile=nope", "--cancel")
    assert (outcome.code, "the profiles of this tool are kafka, kip-455-old" in outcome.err) == (
        2,
        True,
    )
