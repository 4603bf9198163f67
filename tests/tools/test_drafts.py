"""``kproto admin`` against a mock cluster of a draft: ``--profile kip-455-old|kip-455-new``, and a
folder of schemas."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kproto.dialects import load_dialect
from kproto.schema.jsontext import read_json
from kproto.schema.load import schemas_directory
from mockbroker.running.mock_cluster import MockCluster
from tests.tools.commands import Outcome, admin, at

OLD, NEW = "kip-455-old", "kip-455-new"
BOTH = pytest.mark.parametrize("mock", [OLD, NEW], indirect=True)
OLDER = pytest.mark.parametrize("mock", [OLD], indirect=True)
NEWER = pytest.mark.parametrize("mock", [NEW], indirect=True)


@pytest.fixture
async def mock(request: pytest.FixtureRequest) -> AsyncIterator[MockCluster]:
    topics = ["foo=1,2,3/2,3,1", "bar=1,2,3"]
    async with MockCluster(6, topics=topics, profile=request.param, clock="manual") as mock:
        yield mock


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., str]:
    """Writes a plan, foo_0=replicas, and returns the option that names it."""

    def write(text: str | None = None, /, **moves: list[int] | None) -> str:
        rows = []
        for name, replicas in moves.items():
            topic, index = name.rsplit("_", 1)
            rows.append({"topic": topic, "partition": int(index), "replicas": replicas})
        path = tmp_path / "plan.json"
        path.write_text(json.dumps({"version": 1, "partitions": rows}) if text is None else text)
        return f"--reassignment-json-file={path}"

    return write


async def reassign(mock: MockCluster, *arguments: str) -> Outcome:
    return await at(mock, "reassign-partitions", "--profile", mock.profile.name, *arguments)


def targets(mock: MockCluster) -> dict[str, list[int]]:
    return {
        f"{name}-{each.index}": list(each.target or ())
        for name, topic in mock.cluster.topics.items()
        for each in topic.partitions
        if each.reassigning
    }


def sent(mock: MockCluster, api: int) -> list[Any]:
    entries = mock.journal.select(api=api, direction="request")
    return [entry.decode(mock.dialect).body for entry in entries]


@BOTH
@pytest.mark.requirement("K455-50")
async def test_zookeeper_is_no_option_any_more(mock: MockCluster) -> None:
    outcome = await reassign(mock, "--list", "--zookeeper", "127.0.0.1:1")
    assert outcome.code == 2
    assert "No such option" in outcome.err
    assert outcome.out == ""
    assert not sent(mock, 46)
    assert not sent(mock, 18), "whoever connects asks for versions first"


@BOTH
@pytest.mark.requirement("K455-51", "A-39")
async def test_the_list_is_a_plan_that_asks_for_what_is_in_progress(mock, plan):
    assert (await reassign(mock, "--list")) == (0, "{}\n", "")
    await reassign(mock, "--execute", plan(foo_0=[6, 5, 4], bar_0=[4]))
    code, out, _ = await reassign(mock, "--list")
    assert code == 0
    rows = json.loads(out)["partitions"]
    assert {(row["topic"], row["partition"]): row["replicas"] for row in rows} == {
        ("foo", 0): [6, 5, 4],
        ("bar", 0): [4],
    }
    before = dict(mock.cluster.state.znodes)
    assert (await reassign(mock, "--execute", plan(out))).code == 0
    assert mock.cluster.state.znodes == before


@OLDER
@pytest.mark.requirement("K455-52")
async def test_a_plan_is_all_there_is_to_do(mock: MockCluster, plan: Callable[..., str]) -> None:
    await reassign(mock, "--execute", plan(foo_0=[4], foo_1=[5]))
    assert targets(mock) == {"foo-0": [4], "foo-1": [5]}
    code, out, _ = await reassign(mock, "--execute", plan(foo_0=[6]))
    assert code == 0
    assert targets(mock) == {"foo-0": [6]}
    assert "Successfully cancelled partition reassignment for: foo-1" in out
    assert "Successfully started partition reassignment for foo-0" in out
    code, out, _ = await reassign(mock, "--execute", plan("{}"))
    assert (code, targets(mock)) == (0, {})
    assert "Successfully cancelled partition reassignment for: foo-0" in out
    assert (await reassign(mock, "--execute", plan("{}"))).out == (
        "No partition reassignments found.\n"
    )


@OLDER
@pytest.mark.requirement("K455-53", "A-43")
@pytest.mark.parametrize("nothing", [None, []])
async def test_an_incremental_plan_alters_what_it_names(mock, plan, nothing):
    await reassign(mock, "--execute", plan(foo_0=[4], foo_1=[5]))
    calls = len(sent(mock, 45))
    outcome = await reassign(mock, "--execute", "--incremental", plan(foo_0=nothing, bar_0=[6]))
    assert outcome.code == 0
    assert targets(mock) == {"foo-1": [5], "bar-0": [6]}
    cancelled, started = sent(mock, 45)[calls:]
    assert cancelled.topics[0].partitions[0].replicas is None
    assert started.topics[0].partitions[0].replicas == [6]
    await reassign(mock, "--execute", "--incremental", plan(foo_1=nothing))
    assert targets(mock) == {"bar-0": [6]}


@OLDER
@pytest.mark.requirement("A-43")
async def test_null_replicas_need_the_option(mock: MockCluster, plan: Callable[..., str]) -> None:
    outcome = await reassign(mock, "--execute", plan(foo_0=None))
    assert outcome.code == 1
    assert "expected an array, not null" in outcome.err
    outcome = await reassign(mock, "--execute", plan(foo_0=[]))
    assert outcome.code == 1
    assert "Partition replica list cannot be empty" in outcome.err
    assert targets(mock) == {}


@NEWER
@pytest.mark.requirement("K455-54")
async def test_a_plan_adds_to_what_is_in_progress(mock, plan):
    await reassign(mock, "--execute", plan(foo_0=[4], foo_1=[5]))
    assert (await reassign(mock, "--execute", plan(foo_0=[6]))).code == 0
    assert targets(mock) == {"foo-0": [6], "foo-1": [5]}


@NEWER
@pytest.mark.requirement("K455-55")
async def test_the_rollback_plan_restores_the_replicas(mock, plan):
    _, out, _ = await reassign(mock, "--execute", plan(foo_0=[4, 5], foo_1=[6]))
    mock.join_isr("foo-0", 4)
    rollback = out.split("\n")[2]
    assert (await reassign(mock, "--execute", plan(rollback))).code == 0
    assert targets(mock) == {}
    assert mock.cluster.topics.partition("foo", 0).replicas == (1, 2, 3)
    assert mock.cluster.topics.partition("foo", 1).replicas == (2, 3, 1)


@NEWER
@pytest.mark.requirement("K455-56", "A-40")
async def test_cancel_all_is_one_request_that_names_nothing(mock, plan):
    await reassign(mock, "--execute", plan(foo_0=[4], bar_0=[5]))
    code, out, _ = await reassign(mock, "--cancel-all")
    assert (code, out) == (0, "Successfully cancelled 2 partition reassignments\n")
    assert sent(mock, 45)[-1].topics is None
    assert targets(mock) == {}
    assert (await reassign(mock, "--cancel-all")).out == "No partition reassignments found.\n"


@pytest.mark.parametrize("released", ["kafka-2.4", "kafka-4.1"])
@pytest.mark.requirement("K455-56")
async def test_cancel_all_of_a_released_broker_lists_and_cancels_each(released: str) -> None:
    topics = ["foo=1,2,3/2,3,1", "bar=1,2,3"]
    async with MockCluster(6, topics=topics, profile=released, clock="manual") as mock:

        async def cancel_all() -> Outcome:
            return await at(mock, "reassign-partitions", "--profile", NEW, "--cancel-all")

        assert (await cancel_all()).out == "No partition reassignments found.\n"
        moves = [("foo", [(0, [4, 5, 6]), (1, [5])]), ("bar", [(0, [3, 4])])]
        mock.cluster.reassignments.alter(moves)
        outcome = await cancel_all()
        assert outcome == (0, "Successfully cancelled 3 partition reassignments\n", "")
        assert not mock.cluster.reassignments.list_ongoing(None).topics
        # One draft's request, which is malformed here, each time; no retries.
        assert len(mock.journal.select(event="malformed")) == 2
        (cancelled,) = [
            entry.decode(mock.dialect).body
            for entry in mock.journal.select(api=45, direction="request")
            if not entry.event
        ]
        assert {
            (topic.name, each.partition_index, each.replicas)
            for topic in cancelled.topics
            for each in topic.partitions
        } == {("foo", 0, None), ("foo", 1, None), ("bar", 0, None)}


@BOTH
@pytest.mark.requirement("A-40")
async def test_each_draft_has_its_own_options(mock: MockCluster, plan: Callable[..., str]) -> None:
    other = "--cancel-all" if mock.profile.name == OLD else "--incremental"
    for option in (other, "--cancel", "--additional"):
        outcome = await reassign(mock, "--execute", plan(foo_0=[4]), option)
        assert outcome.code == 2
        assert "No such option" in outcome.err
    assert not sent(mock, 45)


@BOTH
@pytest.mark.requirement("K455-57")
async def test_describe_shows_targets_while_there_are_any(mock, plan):
    arguments = ("topics", "--profile", mock.profile.name, "--describe", "--topic", "foo")
    assert "targetReplicas" not in (await at(mock, *arguments)).out
    await reassign(mock, "--execute", plan(foo_0=[4, 5, 6]))
    lines = (await at(mock, *arguments)).out.splitlines()
    assert lines[1] == (
        "\tTopic: foo\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\ttargetReplicas: 4,5,6"
    )
    assert "targetReplicas" not in lines[2]
    for broker in (4, 5, 6):
        mock.join_isr("foo-0", broker)
    assert "targetReplicas" not in (await at(mock, *arguments)).out


@BOTH
@pytest.mark.requirement("K455-58")
async def test_throttles_are_configs_changed_by_the_brokers(mock, plan):
    offset = len(mock.cluster.log)
    outcome = await reassign(mock, "--execute", plan(foo_0=[4, 5, 6]), "--throttle", "1000")
    assert "The inter-broker throttle limit was set to 1000 B/s" in outcome.out
    names = {c.name for body in sent(mock, 44) for each in body.resources for c in each.configs}
    assert names == {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }
    causes = {a.cause for a in mock.cluster.log.since(offset) if a.kind == "ConfigChanged"}
    assert causes == {"incremental_alter_configs"}
    for broker in (4, 5, 6):
        mock.join_isr("foo-0", broker)
    outcome = await reassign(mock, "--verify", plan(foo_0=[4, 5, 6]))
    assert "Reassignment of partition foo-0 is completed." in outcome.out
    assert mock.cluster.configs.broker(4, "leader.replication.throttled.rate").is_default


@BOTH
async def test_a_broken_plan_is_one_clear_line(mock: MockCluster, plan: Callable[..., str]) -> None:
    for text, problem in {
        "{": "not valid JSON",
        '{"partitions": 7}': "partitions: expected an array",
        '{"version": 2}': "Not supported version field value 2",
    }.items():
        outcome = await reassign(mock, "--execute", plan(text))
        assert outcome.code == 1
        assert problem in outcome.err
        assert outcome.err.count("\n") == 1
    outcome = await reassign(mock, "--execute", plan(foo_0=[99]))
    assert (outcome.code, "Unknown broker id 99" in outcome.err) == (1, True)
    outcome = await reassign(mock, "--execute", plan(foo_7=[1]))
    assert (outcome.code, "Unable to find partition: foo-7" in outcome.err) == (1, True)
    assert targets(mock) == {}


@pytest.mark.parametrize("draft", [OLD, NEW])
@pytest.mark.parametrize("released", ["kafka-2.4", "kafka-4.1"])
async def test_brokers_of_another_dialect_are_refused_at_once(released, draft, plan):
    """Not after retries until the time-out: one request of the draft is sent by each command."""
    async with MockCluster(6, topics=["foo=1,2,3"], profile=released, clock="manual") as mock:
        commands = (
            ("reassign-partitions", "--list"),
            ("reassign-partitions", "--execute", plan(foo_0=[4])),
            ("topics", "--describe"),
        )
        for number, command in enumerate(commands, 1):
            code, out, err = await at(mock, *command, "--profile", draft)
            assert code == 1
            assert f"the brokers do not speak {draft}: " in err
            assert f"leave out --profile {draft}" in err
            assert err.count("\n") == 1
            assert "Error" in out
            assert len(mock.journal.select(event="malformed")) == number
        assert mock.cluster.describe()["topics"]["foo"]["0"]["replicas"] == [1, 2, 3]


# ---- a dialect of one's own ----------------------------------------------------------------------


@pytest.fixture
def drafts(tmp_path: Path) -> Path:
    """Metadata 14 with one more field, in a folder."""
    folder = tmp_path / "drafts"
    folder.mkdir()
    for kind in ("Request", "Response"):
        released = schemas_directory() / "kafka" / f"Metadata{kind}.json"
        schema = read_json(released.read_text("utf-8"), released.name)
        schema["validVersions"] = "0-14"
        if kind == "Response":
            schema["fields"].append({"name": "Region", "type": "string", "versions": "14+"})
        (folder / released.name).write_text(json.dumps(schema))
    return folder


async def test_a_folder_of_schemas_is_a_dialect(drafts: Path) -> None:
    codec = load_dialect(drafts, base="kafka")
    async with MockCluster(topics=["foo=1,2,3"], dialect=codec) as mock:
        for options, version in (([f"--dialect={drafts}"], 14), ([], 13)):
            code, out, _ = await at(mock, "topics", "--describe", "--topic", "foo", *options)
            assert (code, "Replicas: 1,2,3" in out) == (0, True)
            (*_, last) = mock.journal.select(api=3, direction="request")
            assert last.api_version == version
        plan = drafts.parent / "plan.json"
        plan.write_text('{"version": 1, "partitions": []}')
        code, out, err = await at(mock, "reassign-partitions", "--list", "--dialect", str(drafts))
        assert (code, out, err) == (0, "No partition reassignments found.\n", "")


async def test_dialects_that_cannot_be_used(drafts: Path) -> None:
    async with MockCluster() as mock:
        code, _, err = await at(mock, "topics", "--list", "--dialect", "no-such")
        assert (code, "no-such" in err, err.count("\n")) == (1, True, 1)
        (drafts / "MetadataRequest.json").write_text("{")
        code, _, err = await at(mock, "topics", "--list", "--dialect", str(drafts))
        assert (code, "MetadataRequest.json" in err) == (1, True)
    command = ["preferred-replica-election", "--zookeeper", "127.0.0.1:1"]
    code, _, err = await admin(*command, "--dialect", "kafka")
    assert (code, "--zookeeper asks none" in err) == (2, True)
