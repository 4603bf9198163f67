"""Every operation is reachable by every surface, and no surface has another."""

import re

import click
import pytest
from click.testing import CliRunner

from kspec.errors import KspecError
from kspec.steps import check_step, take_step
from mockbroker.cli.ctl import ctl
from mockbroker.control import ROUTES, ControlServer
from mockbroker.control.openapi import document
from mockbroker.errors import ClusterError, FaultError
from mockbroker.faults import Fault
from mockbroker.running.threaded import ThreadedCluster
from mockbroker.scenarios import Story
from mockbroker.simulation.operations import ALL_OPERATIONS, OPERATIONS, parse_operation
from tests.mockbroker.control.test_command_line import run_here
from tests.mockbroker.control.test_control import controlled
from tests.mockbroker.operation_calls import CALLS, body_of, cluster, prepare, words

NOT_COMMANDS = {
    "cluster", "consume", "data-actions", "fault", "frame", "group", "groups", "journal", "log",
    "offsets", "produce", "scenario", "state", "telemetry", "tokens", "transaction",
    "transactions", "waiting", "znode",
}  # fmt: skip
"""What else ``mockbroker ctl`` has: it reads, or administers the control port."""


def test_the_calls_cover_the_table() -> None:
    assert {parse_operation(text).operation.name for text in CALLS} == set(OPERATIONS)


@pytest.mark.parametrize("text", CALLS)
def test_a_call_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_operation(text)) == text
    assert str(parse_operation("  ".join(["", *words(text)]))) == text


# ---- the surfaces ----------------------------------------------------------------------------


def test_ctl_has_the_operations_and_no_other() -> None:
    assert set(ctl.commands) - NOT_COMMANDS - {"proxy"} == set(ALL_OPERATIONS)
    for name, operation in ALL_OPERATIONS.items():
        made = ctl.commands[name]
        assert [each.name for each in made.params if isinstance(each, click.Argument)] == [
            each.name for each in operation.arguments
        ]
        assert (made.help or "").startswith(operation.help)


@pytest.mark.slow
def test_ctl_carries_out_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_the_control_port_has_the_operations_and_no_other() -> None:
    actions = {
        route.path[1:]: route
        for route in ROUTES
        if route.schema == {"$ref": "#/components/schemas/Actions"}
    }
    assert set(actions) == set(OPERATIONS)
    assert {route.method for route in actions.values()} == {"POST"}
    paths = document(ROUTES)["paths"]
    for name, operation in OPERATIONS.items():
        described = paths[f"/clusters/{{cluster}}/{name}"]["post"]
        body = described["requestBody"]["content"]["application/json"]["schema"]
        assert list(body["properties"]) == [each.name for each in operation.arguments]
        assert described["summary"] == operation.help


async def test_the_control_port_carries_out_every_operation() -> None:
    async with controlled(profile="kafka-2.4", clock="manual") as (mock, client):
        prepare(mock)
        for text in CALLS:
            await client.step(words(text)[0], **body_of(text))


async def test_fault_rules_carry_out_every_operation() -> None:
    from tests.mockbroker.wire import connect

    calls = tuple(each for each in CALLS if each not in ("snapshot", "reset"))
    rule = Fault(api=46, steps_before=calls)
    assert rule.steps_before == calls
    async with cluster() as mock:
        hit = mock.fault(rule)
        async with connect(mock, 1) as wire:
            await wire.ask("ListPartitionReassignments", 0, topics=None)
        assert (hit.hits, mock.journal.select(event="fault-step-failed")) == (1, [])
        assert mock.cluster.timers.now_ms == 2000
    async with cluster() as mock:
        await mock.snapshot()
        mock.fault(api=46, steps_before=("stop-broker 2",), steps_after=("reset",))
        async with connect(mock, 1) as wire:
            await wire.ask("ListPartitionReassignments", 0, topics=None)
            assert await wire.closed() == b""
        assert mock.cluster.brokers[2].live
        assert mock.faults == []
    with pytest.raises(FaultError, match=f"not an operation.*{', '.join(OPERATIONS)}"):
        Fault(steps_after=("fly 3",))


async def test_scenarios_carry_out_every_operation() -> None:
    story = Story(lambda line: None)
    async with cluster() as mock:
        for text in CALLS:
            await story.run(mock, text)
        with pytest.raises(ClusterError, match="not an operation"):
            await story.run(mock, "fly 3")


async def test_kspec_carries_out_every_operation() -> None:
    async with cluster() as mock:
        for text in CALLS:
            check_step(text)
            await take_step(mock, text)
    with pytest.raises(KspecError, match="not an operation"):
        check_step("fly 3")


# ---- text that is not an operation --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not an operation; the operations are stop-broker, "),
        ("stop-borker 1", "'stop-borker 1' is not an operation; did you mean stop-broker"),
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
def test_text_that_is_not_an_operation_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ClusterError, match=re.escape(problem)):
        parse_operation(text)


def test_a_rule_may_name_a_broker_by_its_part_in_the_request() -> None:
    call = parse_operation("stop-broker self", relative_brokers=True)
    assert str(call) == "stop-broker self"
    assert str(call.with_broker(lambda choice: {"self": 3}[str(choice)])) == "stop-broker 3"


def test_the_help_of_ctl_has_each_command_once_and_operations_by_subject() -> None:
    listed = CliRunner().invoke(ctl, ["--help"]).output
    sections: dict[str, list[str]] = {}
    for block in listed.split("\n\n")[3:]:
        title, *rows = block.splitlines()
        sections[title.strip().removesuffix(":")] = [row.split()[0] for row in rows]
    named = [name for names in sections.values() for name in names]
    assert sorted(named) == sorted(ctl.commands)
    for operation in ALL_OPERATIONS.values():
        (title,) = (title for title, names in sections.items() if operation.name in names)
        assert title.startswith("Operations on ")
        assert title.endswith(operation.subject)
