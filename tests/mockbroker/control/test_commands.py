"""Every command of the table is reachable by every surface, and no surface has another."""

from __future__ import annotations

import re

import click
import pytest

from kspec.errors import KspecError
from kspec.steps import check_step, take_step
from mockbroker import MockCluster
from mockbroker.cli.ctl import ctl
from mockbroker.control import ROUTES, ControlServer
from mockbroker.control.openapi import document
from mockbroker.errors import ClusterError, FaultError
from mockbroker.faults import Fault
from mockbroker.running.threaded import ThreadedCluster
from mockbroker.scenarios import Story
from mockbroker.simulation.coordinators.coordinator_kinds import CoordinatorKind
from mockbroker.simulation.groups.classic.classic_group import JoinRequest
from mockbroker.simulation.groups.consumer.consumer_group import ConsumerGroup
from mockbroker.simulation.groups.streams.streams_group import Member, StreamsGroup
from mockbroker.simulation.log.batches.batch_header import BatchHeader
from mockbroker.simulation.operations import COMMANDS, STEPS, Command, parse_command
from tests.mockbroker.control.test_command_line import run_here
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.simulation.transactions.transacting import Producer

CALLS = [
    "create-topic bar:2:3",
    "create-topic baz:1:1",
    "add-partitions baz 2",
    "leave-isr foo-0 3",
    "join-isr foo-0 3",
    "append foo-0 one",
    'append foo-0 [{"key": "k", "value": "two"}, {"value": "three"}]',
    "hold-replication foo-0 2",
    "append foo-0 four words in it",
    "replicate foo-0 2 4",
    "release-replication foo-0",
    "lag-high-watermark foo-0 1",
    "truncate foo-0 3",
    "corrupt-batch foo-0 0 crc",
    "roll-segment foo-0",
    "apply-retention foo-0",
    "compact",
    "jump-log-start foo-0 1",
    "unclean-election foo-0 2",
    "forget-producer foo-0",
    "forget-producer foo-0 7",
    "hold-produces",
    "release-produces",
    "hold-fetches foo-0",
    "release-fetches foo-0",
    "complete-fetches",
    "expire-fetch-session 1",
    "diverge foo-0 0 1",
    "hold-joins g",
    "complete-join g",
    "rebalance g",
    "set-generation g 7",
    "fence-instance g one",
    'set-target-assignment c {"one": ["foo-0"]}',
    "hold-assignment c",
    "release-assignment c",
    "release-assignor c",
    "shutdown-application s m",
    "set-delivery-count h foo-0 0 3",
    "expire-locks h foo-0",
    "expire-locks h",
    "expire-share-session h one",
    "expire-member g one",
    "remove-member g two",
    "hold-commits g",
    "release-commits g",
    "set-offset g foo-0 1",
    "drop-offset g foo-0",
    "delete-topic baz",
    "hold-markers t",
    "abort-transaction t",
    "release-markers",
    "fence-producer t",
    "set-producer-epoch t 7",
    "expire-transaction u",
    'append foo-0 {"records": [{}], "producer_id": 7, "producer_epoch": 0, "base_sequence": 0}',
    "write-marker foo-0 7 abort",
    "load-coordinator group g",
    "finish-loading group g",
    "move-coordinator group g 2",
    "hold-metadata 4",
    "release-metadata 4",
    "close-listener 4",
    "open-listener 4",
    "stop-broker 4",
    "start-broker 4",
    "fail-log-dir 4 /var/lib/kafka/data",
    "mend-log-dir 4",
    "set-level 4 4=0-2",
    "advertise 4 localhost:32768",
    "make-sink foo",
    "make-source foo one",
    "throttle-client reader 500ms",
    "advance 2000ms",
    "propagation 0ms",
    "hold-elections",
    "release-elections",
    "write-znode /admin/mine some text",
    "delete-znode /admin/mine",
    "append-znode /admin/mine- ",
    "failover 2",
    "expire-session 4",
    "resign-controller",
    "kill-controller-after 9",
]
"""Each command once, in an order in which the cluster can carry all of them out."""

NOT_COMMANDS = {
    "cluster", "consume", "data-actions", "fault", "frame", "group", "groups", "journal", "log",
    "offsets", "produce", "scenario", "state", "telemetry", "tokens", "transaction",
    "transactions", "waiting", "znode",
}  # fmt: skip
"""What else ``mockbroker ctl`` has: it reads, or administers the control port."""


def cluster() -> MockCluster:
    made = MockCluster(4, topics=["foo=1,2,3"], profile="kafka-2.4", clock="manual")
    prepare(made)
    return made


def prepare(mock: MockCluster) -> None:
    """Let there be what the calls act on."""
    join_group(mock)
    begin_transactions(mock)


def join_group(mock: MockCluster) -> None:
    """Let three static members join group g; the simulated time stands, so they wait. There are an
    empty consumer group c, a streams group s with member m, and a partition of share group h."""
    for instance in ("one", "two", "three"):
        request = JoinRequest("g", "", "consumer", (("range", b""),), 10_000, 60_000, instance)
        mock.cluster.groups.join(request, lambda result: None)
    # No client of this release makes a consumer or streams group.
    mock.cluster.groups.consumer._groups["c"] = ConsumerGroup("c")
    mock.cluster.groups.streams._groups["s"] = StreamsGroup("s", members={"m": Member("m")})
    share_partition(mock)


def share_partition(mock: MockCluster) -> None:
    """Let a member of share group h have records of foo-0, if there is that topic."""
    topic = mock.cluster.topics.get("foo")
    if topic is None:
        return
    fetches, key = mock.cluster.share_fetches, (topic.topic_id, 0)
    fetches.initialize("h", frozenset({key}))
    share = fetches.partition("h", key)
    assert share is not None
    share.begin_at(0, 0)
    records = BatchHeader(0, 0, 0, 2, 0, 0, 4, 0, 0, -1, -1, -1, 5)
    acquired = share.acquire("one", [records], [], 0, most=5, batch_size=5, strict=False)
    assert acquired == [(0, 4, 1)]


def begin_transactions(mock: MockCluster) -> None:
    """Let the transactional ids t and u have open transactions."""
    cluster = mock.cluster
    for kind in (CoordinatorKind.TRANSACTION, CoordinatorKind.GROUP):
        cluster.coordinators.find(kind, "t", 1)
    for name in "tu":
        producer = Producer(cluster, name, version=0)
        assert (producer.init().code, producer.add(("__consumer_offsets", 0))) == (0, 0)


def words(text: str) -> list[str]:
    """A call as the words of a command line, without the optional arguments that it lacks."""
    command = parse_command(text).command
    return [command.name, *text.split(" ", len(command.arguments))[1:]]


def test_the_calls_cover_the_table() -> None:
    assert {parse_command(text).command.name for text in CALLS} == set(COMMANDS)


@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_command(text)) == text
    assert str(parse_command("  ".join(["", *words(text)]))) == text


# ---- the surfaces ----------------------------------------------------------------------------


def test_ctl_has_the_commands_of_the_table_and_no_other() -> None:
    assert set(ctl.commands) - NOT_COMMANDS - {"proxy"} == set(STEPS)
    for name, command in STEPS.items():
        made = ctl.commands[name]
        assert [each.name for each in made.params if isinstance(each, click.Argument)] == [
            each.name for each in command.arguments
        ]
        assert (made.help or "").startswith(command.help)


def test_ctl_carries_out_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"topics": ["foo=1,2,3"], "profile": "kafka-2.4", "clock": "manual"}
    with ThreadedCluster(4, **options) as mock:
        control = ControlServer(mock.cluster)

        async def start() -> None:
            prepare(mock.cluster)
            await control.start()

        mock.submit(start()).result()
        try:
            for text in CALLS:
                code = run_here(["ctl", control.url, *words(text)])
                assert (code, capsys.readouterr().err) == (0, ""), text
        finally:
            mock.submit(control.stop()).result()


def test_the_control_port_has_the_commands_of_the_table_and_no_other() -> None:
    actions = {
        route.path[1:]: route
        for route in ROUTES
        if route.schema == {"$ref": "#/components/schemas/Actions"}
    }
    assert set(actions) == set(COMMANDS)
    assert {route.method for route in actions.values()} == {"POST"}
    paths = document(ROUTES)["paths"]
    for name, command in COMMANDS.items():
        for path in (f"/{name}", f"/clusters/{{cluster}}/{name}"):
            described = paths[path]["post"]
            body = described["requestBody"]["content"]["application/json"]["schema"]
            assert list(body["properties"]) == [each.name for each in command.arguments]
            assert described["summary"] == command.help


def json_value(command: Command, name: str, text: str) -> object:
    (argument,) = (each for each in command.arguments if each.name == name)
    return int(text) if argument.type.schema.get("type") == "integer" else text


async def test_the_control_port_carries_out_every_command() -> None:
    async with controlled(profile="kafka-2.4", clock="manual") as (mock, client):
        prepare(mock)
        for text in CALLS:
            command = parse_command(text).command
            names = [each.name for each in command.arguments]
            given = zip(names, words(text)[1:], strict=False)
            body = {name: json_value(command, name, word) for name, word in given}
            await client.step(command.name, **body)


async def test_fault_rules_carry_out_every_command() -> None:
    from kproto.messages import ListPartitionReassignmentsRequest
    from tests.mockbroker.wire import connect

    rule = Fault(api=46, steps_before=tuple(CALLS))
    assert rule.steps_before == tuple(CALLS)
    async with cluster() as mock:
        hit = mock.fault(rule)
        async with connect(mock, 1) as wire:
            await wire.ask(ListPartitionReassignmentsRequest(topics=None), 0)
        assert (hit.hits, mock.journal.select(event="fault-step-failed")) == (1, [])
        assert mock.cluster.timers.now_ms == 2000
    with pytest.raises(FaultError, match=f"not a command.*{', '.join(COMMANDS)}"):
        Fault(steps_after=("fly 3",))


async def test_scenarios_carry_out_every_command() -> None:
    story = Story(lambda line: None)
    async with cluster() as mock:
        for text in CALLS:
            await story.run(mock, text)
        with pytest.raises(ClusterError, match="not a command"):
            await story.run(mock, "fly 3")


async def test_kspec_carries_out_every_command() -> None:
    async with cluster() as mock:
        for text in CALLS:
            check_step(text)
            await take_step(mock, text)
    with pytest.raises(KspecError, match="not a command"):
        check_step("fly 3")


# ---- text that is not a command --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not a command; the commands are join-isr, "),
        ("join-isr", "lacks an argument; use `join-isr TOPIC-PARTITION BROKER`"),
        ("join-isr foo-0", "lacks an argument"),
        ("join-isr foo-0 4 5", "has too many arguments; use `join-isr TOPIC-PARTITION BROKER`"),
        ("join-isr foo 4", "'foo' is not a partition"),
        ("failover x", "'x' is not a broker id"),
        ("failover self", "'self' has a meaning in fault rules only"),
        ("stop-broker other", "'other' has a meaning in fault rules only"),
        ("advance soon", "'soon' is not a duration"),
        ("kill-controller-after -1", "'-1' is not a count"),
        ("replicate foo-0 2 5 6", "use `replicate TOPIC-PARTITION BROKER [OFFSET]`"),
        ("append foo-0 {x}", "records that begin with '{' must be JSON"),
        ('append foo-0 {"valeu": "x"}', "a record has no member 'valeu'; it accepts"),
        ("move-coordinator party g 2", '"kind" must be one of group, transaction, share'),
        ("hold-elections now", "too many arguments"),
        ("append-znode", "lacks an argument; use `append-znode PATH TEXT`"),
    ],
)
def test_text_that_is_not_a_command_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ClusterError, match=re.escape(problem)):
        parse_command(text)


def test_a_rule_may_name_a_broker_by_its_part_in_the_request() -> None:
    call = parse_command("stop-broker self", relative_brokers=True)
    assert str(call) == "stop-broker self"
    assert str(call.with_broker(lambda choice: {"self": 3}[str(choice)])) == "stop-broker 3"
