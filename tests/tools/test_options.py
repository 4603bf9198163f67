"""Options that do not go together, refused in Kafka's words before anything is sent."""

import pytest

from tests.tools.commands import admin

S = "--bootstrap-server=127.0.0.1:1"
C = "--reassignment-json-file=x"
ACTIONS = "--generate, --execute, --verify, --cancel, --list"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], f"Command must include exactly one action: {ACTIONS}"),
        ([S, "--list", "--verify"], f"Command must include exactly one action: {ACTIONS}"),
        (["--list"], "Please specify either --bootstrap-server or --bootstrap-controller"),
        (
            [S, "--list", "--bootstrap-controller=127.0.0.1:1"],
            "Please don't specify both --bootstrap-server and --bootstrap-controller",
        ),
        (
            ["--verify", C, "--bootstrap-controller=127.0.0.1:1"],
            'Option "[bootstrap-controller]" can\'t be used with action "[verify]"',
        ),
        ([S, "--execute"], 'Missing required argument "[reassignment-json-file]"'),
        ([S, "--verify"], 'Missing required argument "[reassignment-json-file]"'),
        ([S, "--cancel"], 'Missing required argument "[reassignment-json-file]"'),
        ([S, "--generate"], 'Missing required argument "[topics-to-move-json-file]"'),
        (
            [S, "--generate", "--topics-to-move-json-file=x"],
            'Missing required argument "[broker-list]"',
        ),
        (
            ["--throttle=1", S, "--generate", "--topics-to-move-json-file=x", "--broker-list=1"],
            'Option "[throttle]" can\'t be used with action "[generate]"',
        ),
        (
            [S, "--list", "--timeout=1", "--additional"],
            'Option "[timeout]" can\'t be used with action "[list]"',
        ),
        (
            [S, "--list", "--additional", "--timeout=1"],
            'Option "[additional]" can\'t be used with action "[list]"',
        ),
        (
            [S, "--verify", C, "--disallow-replication-factor-change"],
            'Option "[disallow-replication-factor-change]" can\'t be used with action "[verify]"',
        ),
        (
            [S, "--execute", C, "--preserve-throttles"],
            'Option "[preserve-throttles]" can\'t be used with action "[execute]"',
        ),
        pytest.param(
            ["--zookeeper", "x", "--list"],
            "No such option '--zookeeper'.",
            marks=pytest.mark.requirement("K455-50"),
        ),
        (["--list", "--bootstrap-server=nowhere"], "bootstrap server 'nowhere' is not HOST:PORT"),
    ],
)
async def test_reassign_partitions(arguments, text):
    await _refused("reassign-partitions", arguments, text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "Missing required option(s): bootstrap-server, election-type"),
        ([S], "Missing required option(s): election-type"),
        (
            [S, "--election-type=preferred"],
            "One and only one of the following options is required: "
            "topic, all-topic-partitions, path-to-json-file",
        ),
        (
            [S, "--election-type=preferred", "--topic=a", "--all-topic-partitions"],
            "One and only one of the following options is required: "
            "topic, all-topic-partitions, path-to-json-file",
        ),
        ([S, "--election-type=preferred", "--topic=a"], "Missing required option(s): partition"),
        (
            [S, "--election-type=unclean", "--all-topic-partitions", "--partition=1"],
            "Option partition is only allowed if topic is used",
        ),
        (
            [S, "--election-type=unclean", "--admin.config=x", "--command-config=y"],
            'Option "[admin.config]" can\'t be used with option "[command-config]"',
        ),
    ],
)
async def test_leader_election(arguments, text):
    await _refused("leader-election", arguments, text)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            [S],
            "Command must include exactly one action: "
            "--list, --describe, --create, --alter or --delete",
        ),
        (["--list"], "--bootstrap-server must be specified"),
        ([S, "--create"], 'Missing required argument "[topic]"'),
        ([S, "--delete"], 'Missing required argument "[topic]"'),
        ([S, "--alter", "--topic=a"], 'Missing required argument "[partitions]"'),
        ([S, "--describe", "--if-exists"], "--topic or --topic-id is required to describe a topic"),
        (
            [S, "--alter", "--topic=a", "--config=a=b", "--partitions=2"],
            'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
            '"[alter]" (To alter topic configurations, the kafka-configs tool can be used.)',
        ),
        (
            [S, "--list", "--partitions=2"],
            'Option "[partitions]" can\'t be used with option "[list]"',
        ),
        (
            [S, "--create", "--topic=a", "--replica-assignment=1", "--partitions=2"],
            'Option "[replica-assignment]" can\'t be used with option "[partitions]"',
        ),
        (
            [S, "--describe", "--at-min-isr-partitions", "--topics-with-overrides"],
            'Option "[at-min-isr-partitions]" can\'t be used with option "[topics-with-overrides]"',
        ),
        (
            [S, "--delete", "--topic=a", "--if-not-exists"],
            'Option "[if-not-exists]" can\'t be used with option "[delete]"',
        ),
    ],
)
async def test_topics(arguments, text):
    await _refused("topics", arguments, text)


async def _refused(tool: str, arguments: list[str], text: str) -> None:
    code, out, err = await admin(tool, *arguments)
    assert err == f"kproto: {text} (see kproto admin {tool} --help)\n"
    assert (code, out) == (2, "")
