"""The commands of ``kproto admin``: Kafka's command-line tools with their options and output.

This module contains the tools as Kafka ships them, and the table of all tools. The drafts' versions
are in ``draft_tools`` and ``zookeeper_tools``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from kproto.cli import draft_tools, zookeeper_tools
from kproto.cli.terminal import echo
from kproto.cli.tool_command import (
    SHIPPED,
    ProfileCommand,
    bootstrap_server,
    checked,
    command_config,
    flag,
    reassign_failure,
    run_with_access,
    value,
)
from kproto.cli.topic_command import topics_command
from kproto.client import ElectionType, TopicPartition
from kproto.tools import elections, reassign
from kproto.tools.access import Access
from kproto.tools.connecting import read_text
from kproto.tools.options import check_election, check_reassign
from kproto.tools.plan import (
    parse_broker_list,
    parse_election_partitions,
    parse_plan,
    parse_topics_to_move,
)

__all__ = ["COMMANDS", "SURFACES"]

_ELECTION_TIMEOUT_MS: Final = 30_000


# ---- reassign-partitions -------------------------------------------------------------------------


@click.command("reassign-partitions")
@flag("generate", "Propose an assignment; nothing is changed.")
@flag("execute", "Start the plan's reassignments.")
@flag("verify", "Show the state of the plan's reassignments; remove throttles once all are done.")
@flag("cancel", "Cancel those of the plan's reassignments that are in progress.")
@flag("list", "List the reassignments in progress.")
@bootstrap_server
@value(
    "bootstrap-controller",
    "With --list and --cancel: connect to KRaft controllers instead of brokers.",
    "HOST:PORT,...",
)
@command_config
@value("reassignment-json-file", "The plan: partitions and their replicas.", "FILE")
@value("topics-to-move-json-file", "The topics for which to propose an assignment.", "FILE")
@value("broker-list", "The brokers over which to spread them.", "ID,ID,...")
@flag("disable-rack-aware", "Ignore racks in the proposal.")
@value("throttle", "With --execute: bytes per second between brokers.", "N", type=int, default=-1)
@value(
    "replica-alter-log-dirs-throttle",
    "With --execute: bytes per second between log directories.",
    "N",
    type=int,
    default=-1,
)
@value(
    "timeout",
    "Time to wait until moves between log directories can begin.",
    "MS",
    type=int,
    default=10_000,
    show_default=True,
)
@flag(
    "additional", "Execute even if reassignments are in progress; also used to change a throttle."
)
@flag("preserve-throttles", "Do not remove throttles.")
@flag(
    "disallow-replication-factor-change",
    "Denies the ability to change a partition's replication factor as part of this reassignment "
    "through adding validation against it.",
)
@click.pass_context
def reassign_partitions(context: click.Context, /, **given: Any) -> None:
    """Move partitions between brokers, like kafka-reassign-partitions."""
    action = checked(context, check_reassign)

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

    run_with_access(
        context, work, given, client_id="reassign-partitions-tool", failure=reassign_failure
    )


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


# ---- leader-election -----------------------------------------------------------------------------


@click.command("leader-election")
@bootstrap_server
@command_config
@click.option(
    "--admin.config", "admin_config", metavar="FILE", help="The older name of --command-config."
)
@value(
    "election-type",
    "PREFERRED: the first replica, if another leads. UNCLEAN: any live one, if none leads.",
    "TYPE",
    type=click.Choice([kind.name for kind in ElectionType], case_sensitive=False),
)
@value("topic", "Elect the leader of one partition: its topic.", "NAME")
@value("partition", "With --topic: the index of the partition.", "N", type=int)
@flag("all-topic-partitions", "Elect the leader of every partition that needs an election.")
@value("path-to-json-file", "Elect the leaders of the partitions in a file.", "FILE")
@click.pass_context
def leader_election(context: click.Context, /, **given: Any) -> None:
    """Elect leaders, like kafka-leader-election."""
    checked(context, check_election)
    if given["admin_config"] is not None:
        echo("--admin.config is deprecated; use --command-config", err=True)
        given["command_config"] = given["admin_config"]

    async def work(access: Access, write: Callable[[str], None]) -> None:
        partitions: set[TopicPartition] | None = None
        if (path := given["path_to_json_file"]) is not None:
            partitions = parse_election_partitions(read_text(path), path)
        elif given["topic"] is not None:
            partitions = {TopicPartition(given["topic"], given["partition"])}
        kind = ElectionType[given["election_type"]]
        await elections.elect_leaders(access, write, kind, partitions)

    run_with_access(
        context, work, given, timeout_ms=_ELECTION_TIMEOUT_MS, failure=lambda _error: None
    )


SURFACES: Final[dict[str, dict[str, click.Command]]] = {
    "reassign-partitions": {
        SHIPPED: reassign_partitions,
        **draft_tools.REASSIGN_PARTITIONS,
        **zookeeper_tools.REASSIGN_PARTITIONS_SURFACES,
    },
    "leader-election": {SHIPPED: leader_election},
    "preferred-replica-election": {SHIPPED: zookeeper_tools.PREFERRED_REPLICA_ELECTION},
    "topics": {SHIPPED: topics_command, **draft_tools.TOPICS},
}
"""By tool and profile."""

COMMANDS: Final[dict[str, click.Command]] = {
    name: ProfileCommand(surfaces) for name, surfaces in SURFACES.items()
}
