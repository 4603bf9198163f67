"""The commands of ``kproto admin``: Kafka's command-line tools, by their options and output.

Options become arguments of ``kproto.tools`` here, and its errors exit codes: what Kafka's tool
writes to standard output about a failure is written there, and the failure as one line to standard
error. Options that do not go together end with 2, where Kafka's tools end with 1.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import click
from click.core import ParameterSource

from kproto.cli.waiting import Waiting
from kproto.client import BrokerError, ElectionType, TopicPartition
from kproto.errors import KprotoError, UnsupportedVersionError
from kproto.tools import elections, reassign, topic_table, topics
from kproto.tools.access import Access
from kproto.tools.connecting import connect, read_settings, read_text
from kproto.tools.errors import ToolError, ToolUsageError
from kproto.tools.options import check_election, check_reassign, check_topics
from kproto.tools.plan import (
    parse_broker_list,
    parse_election_partitions,
    parse_plan,
    parse_topics_to_move,
)
from kproto.tools.texts import JAVA_ERRORS, java_error

__all__ = ["COMMANDS"]

Work = Callable[[Access, Callable[[str], None]], Awaitable[None]]

_ELECTION_TIMEOUT_MS: Final = 30_000


def _flag(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(f"--{name}", is_flag=True, help=text)


def _value(name: str, text: str, metavar: str, **kind: Any) -> Callable[[Any], Any]:
    return click.option(f"--{name}", metavar=metavar, help=text, **kind)


_bootstrap_server = _value("bootstrap-server", "Brokers to start from.", "HOST:PORT,...")
_command_config = _value("command-config", "A properties file for the client.", "FILE")


# ---- reassign-partitions -------------------------------------------------------------------------


@click.command("reassign-partitions")
@_flag("generate", "Propose an assignment; nothing is changed.")
@_flag("execute", "Start the plan's reassignments.")
@_flag("verify", "Say how the plan's reassignments stand; clear throttles once all are done.")
@_flag("cancel", "Cancel those of the plan's reassignments that are in progress.")
@_flag("list", "List the reassignments in progress.")
@_bootstrap_server
@_value(
    "bootstrap-controller",
    "With --list and --cancel: KRaft controllers to ask instead of brokers.",
    "HOST:PORT,...",
)
@_command_config
@_value("reassignment-json-file", "The plan: partitions and their replicas.", "FILE")
@_value("topics-to-move-json-file", "The topics to propose an assignment for.", "FILE")
@_value("broker-list", "The brokers to spread them over.", "ID,ID,...")
@_flag("disable-rack-aware", "Propose without regard to racks.")
@_value("throttle", "With --execute: bytes a second between brokers.", "N", type=int, default=-1)
@_value(
    "replica-alter-log-dirs-throttle",
    "With --execute: bytes a second between log directories.",
    "N",
    type=int,
    default=-1,
)
@_value(
    "timeout",
    "How long to wait until moves between log directories can begin.",
    "MS",
    type=int,
    default=10_000,
    show_default=True,
)
@_flag("additional", "Execute although others are in progress; also to change a throttle.")
@_flag("preserve-throttles", "Leave throttles as they are.")
@_flag(
    "disallow-replication-factor-change",
    "Denies the ability to change a partition's replication factor as part of this reassignment "
    "through adding validation against it.",
)
@click.pass_context
def reassign_partitions(context: click.Context, /, **given: Any) -> None:
    """Move partitions between brokers, as kafka-reassign-partitions does."""
    action = _checked(context, check_reassign)

    async def work(access: Access, write: Callable[[str], None]) -> None:
        if action == "list":
            await reassign.list_reassignments(access, write)
        elif action == "generate":
            path = given["topics_to_move_json_file"]
            brokers = parse_broker_list(given["broker_list"])
            moved = parse_topics_to_move(read_text(path), path)
            rack_aware = not given["disable_rack_aware"]
            await reassign.generate(access, write, moved, brokers, rack_aware=rack_aware)
        else:
            await _with_plan(action, access, write, given)

    _run(context, work, given, client_id="reassign-partitions-tool", failure=_reassign_failure)


async def _with_plan(
    action: str, access: Access, write: Callable[[str], None], given: dict[str, Any]
) -> None:
    path = given["reassignment_json_file"]
    plan = parse_plan(read_text(path), path)
    preserve, timeout_ms = given["preserve_throttles"], given["timeout"]
    if action == "verify":
        await reassign.verify(access, write, plan, preserve_throttles=preserve)
    elif action == "cancel":
        await reassign.cancel(
            access, write, plan, preserve_throttles=preserve, timeout_ms=timeout_ms
        )
    else:
        await reassign.execute(
            access,
            write,
            plan,
            additional=given["additional"],
            throttle=given["throttle"],
            log_dir_throttle=given["replica_alter_log_dirs_throttle"],
            timeout_ms=timeout_ms,
            allow_replication_factor_change=not given["disallow_replication_factor_change"],
        )


def _reassign_failure(error: Exception) -> str:
    if isinstance(error, BrokerError):
        return f"Error: {java_error(error.code, str(error))}"
    if isinstance(error, UnsupportedVersionError):
        return f"Error: {JAVA_ERRORS}UnsupportedVersionException: {error}"
    return f"Error: {error}"


# ---- leader-election -----------------------------------------------------------------------------


@click.command("leader-election")
@_bootstrap_server
@_command_config
@click.option(
    "--admin.config", "admin_config", metavar="FILE", help="The older name of --command-config."
)
@_value(
    "election-type",
    "PREFERRED: the first replica, if another leads. UNCLEAN: any live one, if none leads.",
    "TYPE",
    type=click.Choice([kind.name for kind in ElectionType], case_sensitive=False),
)
@_value("topic", "Elect for one partition: its topic.", "NAME")
@_value("partition", "With --topic: its index.", "N", type=int)
@_flag("all-topic-partitions", "Elect for every partition that needs it.")
@_value("path-to-json-file", "Elect for the partitions of a file.", "FILE")
@click.pass_context
def leader_election(context: click.Context, /, **given: Any) -> None:
    """Have leaders elected, as kafka-leader-election does."""
    _checked(context, check_election)
    if given["admin_config"] is not None:
        click.echo("--admin.config is deprecated; use --command-config", err=True)
        given["command_config"] = given["admin_config"]

    async def work(access: Access, write: Callable[[str], None]) -> None:
        partitions: set[TopicPartition] | None = None
        if (path := given["path_to_json_file"]) is not None:
            partitions = parse_election_partitions(read_text(path), path)
        elif given["topic"] is not None:
            partitions = {TopicPartition(given["topic"], given["partition"])}
        kind = ElectionType[given["election_type"]]
        await elections.elect_leaders(access, write, kind, partitions)

    _run(context, work, given, timeout_ms=_ELECTION_TIMEOUT_MS, failure=lambda _error: None)


# ---- topics --------------------------------------------------------------------------------------


@click.command("topics")
@_flag("list", "List topics.")
@_flag("describe", "Describe topics and their partitions.")
@_flag("create", "Create a topic.")
@_flag("alter", "Add partitions.")
@_flag("delete", "Delete topics.")
@_bootstrap_server
@_command_config
@_value("topic", "The topic; a regular expression but for --create.", "NAME")
@_value("topic-id", "The topic to describe, by its id.", "ID")
@click.option(
    "--config", metavar="NAME=VALUE", multiple=True, help="A config of the topic to create."
)
@_value("partitions", "How many partitions it shall have.", "N", type=int)
@_value("replication-factor", "How many replicas of each partition.", "N", type=int)
@_value("replica-assignment", "Replicas, partition by partition.", "ID:ID:...,ID:ID:...")
@_flag("under-replicated-partitions", "Describe only those that miss in-sync replicas.")
@_flag("unavailable-partitions", "Describe only those whose leader is not available.")
@_flag("under-min-isr-partitions", "Describe only those below min.insync.replicas.")
@_flag("at-min-isr-partitions", "Describe only those just at min.insync.replicas.")
@_flag("topics-with-overrides", "Describe only topics that have configs of their own.")
@_flag("if-exists", "Do nothing if no topic matches.")
@_flag("if-not-exists", "Do nothing if the topic exists already.")
@_flag("exclude-internal", "Leave Kafka's own topics out.")
@click.pass_context
def topics_command(context: click.Context, /, **given: Any) -> None:
    """Create, delete, list, describe and extend topics, as kafka-topics does."""
    action = _checked(context, check_topics)

    async def work(access: Access, write: Callable[[str], None]) -> None:
        await _TOPIC_ACTIONS[action](access, write, given)

    _run(
        context,
        work,
        given,
        failure=lambda error: f"Error while executing topic command : {error}",
    )


async def _list(access: Access, write: Callable[[str], None], given: dict[str, Any]) -> None:
    exclude = given["exclude_internal"]
    await topics.list_topics(access, write, given["topic"], exclude_internal=exclude)


async def _describe(access: Access, write: Callable[[str], None], given: dict[str, Any]) -> None:
    topic_id = given["topic_id"]
    await topic_table.describe(
        access,
        write,
        pattern=given["topic"],
        topic_id=None if topic_id is None else topic_table.parse_topic_id(topic_id),
        if_exists=given["if_exists"],
        exclude_internal=given["exclude_internal"],
        reports=topic_table.Reports(
            under_replicated=given["under_replicated_partitions"],
            unavailable=given["unavailable_partitions"],
            under_min_isr=given["under_min_isr_partitions"],
            at_min_isr=given["at_min_isr_partitions"],
            overridden_configs=given["topics_with_overrides"],
        ),
    )


async def _create(access: Access, write: Callable[[str], None], given: dict[str, Any]) -> None:
    await topics.create(
        access,
        write,
        given["topic"],
        partitions=given["partitions"],
        replication_factor=given["replication_factor"],
        assignment=_assignment(given),
        configs=topics.parse_configs(given["config"]),
        if_not_exists=given["if_not_exists"],
    )


async def _alter(access: Access, _write: Callable[[str], None], given: dict[str, Any]) -> None:
    await topics.add_partitions(
        access,
        given["topic"],
        given["partitions"],
        assignment=_assignment(given),
        if_exists=given["if_exists"],
    )


async def _delete(access: Access, _write: Callable[[str], None], given: dict[str, Any]) -> None:
    await topics.delete(access, given["topic"], if_exists=given["if_exists"])


_TOPIC_ACTIONS: Final = {
    "list": _list,
    "describe": _describe,
    "create": _create,
    "alter": _alter,
    "delete": _delete,
}


def _assignment(given: dict[str, Any]) -> dict[int, list[int]] | None:
    text = given["replica_assignment"]
    return topics.parse_replica_assignment(text) if text else None


# ---- what all need -------------------------------------------------------------------------------


def _checked(context: click.Context, check: Callable[[list[str]], Any]) -> Any:
    """``check`` over the options that were given, in their order on the command line."""
    long_names = {
        each.name: each.opts[0].removeprefix("--") for each in context.command.params if each.name
    }
    given = [
        long_names[name]
        for name in context.params
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    try:
        return check(given)
    except ToolUsageError as error:
        raise click.UsageError(str(error), context) from None


def _run(
    context: click.Context,
    work: Work,
    given: dict[str, Any],
    *,
    failure: Callable[[Exception], str | None],
    client_id: str = "kproto",
    timeout_ms: int = 60_000,
) -> None:
    """Connect and ``work``; ``failure`` is what Kafka's tool prints of an unexpected error."""
    waiting = Waiting()

    async def session() -> None:
        found = read_settings(given["command_config"])
        controllers = given.get("bootstrap_controller")
        access = connect(
            controllers or given["bootstrap_server"],
            found,
            client_id=client_id,
            timeout_ms=timeout_ms,
            controllers=controllers is not None,
        )
        access.doing = waiting.doing
        async with access:
            await work(access, waiting.write)

    try:
        with waiting:
            asyncio.run(session())
    except ToolUsageError as error:
        raise click.UsageError(str(error), context) from None
    except ToolError as error:
        _fail(context, error, error.printed)
    except (BrokerError, KprotoError, OSError) as error:
        _fail(context, error, failure(error))


def _fail(context: click.Context, error: Exception, printed: str | None) -> None:
    if printed is not None:
        click.echo(printed)
        if sys.stdout.isatty() and sys.stderr.isatty():
            context.exit(1)  # Whoever looks at both has read it.
    raise click.ClickException(str(error)) from None


COMMANDS: Final[dict[str, click.Command]] = {
    each.name: each
    for each in (reassign_partitions, leader_election, topics_command)
    if each.name is not None
}
