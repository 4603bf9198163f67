"""``kproto admin`` with the tools that use ZooKeeper: KIP-236's drafts and KIP-183.

``--zookeeper`` is a cluster's address there, host:port/chroot. It needs the extra ``zookeeper``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import click

from kproto.cli.terminal import echo, write_columns
from kproto.cli.tool_command import (
    bootstrap_server,
    checked,
    command_config,
    flag,
    refuse_dialect,
    run_tool,
    run_with_access,
    value,
)
from kproto.cli.waiting import WaitIndicator
from kproto.client import TopicPartition
from kproto.errors import MissingExtraError
from kproto.tools import preferred_election, znode_reassign
from kproto.tools.access import Access
from kproto.tools.connecting import read_text
from kproto.tools.errors import ToolError
from kproto.tools.options import check_preferred_election, check_zookeeper_reassign
from kproto.tools.plan import (
    parse_broker_list,
    parse_election_partitions,
    parse_plan,
    parse_topics_to_move,
)
from kproto.tools.znode_access import ZnodeAccess
from kproto.znodes.plan_znodes import REASSIGN_PARTITIONS, REASSIGN_PARTITIONS_QUEUE
from kproto.znodes.request_znodes import REASSIGN_PARTITIONS_EXTRA

__all__ = ["PREFERRED_REPLICA_ELECTION", "REASSIGN_PARTITIONS_SURFACES"]

OLDER, NEWER = "kip-236-old", "kip-236-new"

_zookeeper = value("zookeeper", "The cluster's ZooKeeper path.", "HOST:PORT[/CHROOT]")


@contextlib.contextmanager
def _znodes(connect: str) -> Iterator[ZnodeAccess]:
    """Open a session that ends with the command."""
    from kproto.client.zookeeper import KazooStore  # kazoo is an extra

    try:
        store = KazooStore(connect)
    except MissingExtraError as error:
        raise ToolError(str(error), printed=f"Error: {error}") from None
    try:
        yield ZnodeAccess(store)
    finally:
        store.close()


# ---- reassign-partitions -------------------------------------------------------------------------


def _reassign_partitions(draft: str, context: click.Context, /, **given: Any) -> None:
    action = checked(context, partial(check_zookeeper_reassign, draft))
    refuse_dialect(context)

    waiting = WaitIndicator()

    def work() -> None:
        try:
            with _znodes(given["zookeeper"]) as access:
                access.doing = waiting.doing
                _do(draft, action, access, waiting.write, given)
        except ToolError as error:
            raise ToolError(str(error), printed=_failure(error)) from None

    with waiting:
        run_tool(context, work, failure=_failure)


def _failure(error: Exception) -> str:
    """Return what the tool of the ZooKeeper era prints for an error."""
    return f"{znode_reassign.FAILED}{error}"


def _do(
    draft: str,
    action: str,
    access: ZnodeAccess,
    write: Callable[[str], None],
    given: dict[str, Any],
) -> None:
    kind, _, place = action.partition("-")
    where = {"": REASSIGN_PARTITIONS, "queue": REASSIGN_PARTITIONS_QUEUE,
             "extra": REASSIGN_PARTITIONS_EXTRA}  # fmt: skip
    match kind:
        case "cancel":
            cancel = znode_reassign.cancel_newer if draft == NEWER else znode_reassign.cancel_older
            cancel(access, write)
        case "remove":
            znode_reassign.remove_cancel(access, write)
        case "generate":
            path = given["topics_to_move_json_file"]
            brokers = parse_broker_list(given["broker_list"])
            moved = parse_topics_to_move(read_text(path), path)
            rack_aware = not given["disable_rack_aware"]
            znode_reassign.generate(access, write, moved, brokers, rack_aware=rack_aware)
        case _:
            path = given["reassignment_json_file"]
            plan = parse_plan(read_text(path), path)
            if kind == "verify":
                path, newer = where[place], draft == NEWER
                znode_reassign.verify(access, write, plan, path=path, cancellable=newer)
            else:
                throttle = given["throttle"]
                znode_reassign.execute(access, write, plan, path=where[place], throttle=throttle)


_GENERATE: Final = "Propose an assignment; nothing is changed."
_OPTIONS: Final = (
    flag("generate", _GENERATE),
    flag("execute", "Submit the plan."),
    flag("verify", "Show the state of the plan; remove its throttle once it is done."),
    _zookeeper,
    value("reassignment-json-file", "The plan: partitions and their replicas.", "FILE"),
    value("topics-to-move-json-file", "The topics for which to propose an assignment.", "FILE"),
    value("broker-list", "The brokers over which to spread them.", "ID,ID,..."),
    flag("disable-rack-aware", "Ignore racks in the proposal."),
    value("throttle", "Bytes per second between brokers.", "N", type=int, default=-1),
)
_OWN: Final = {
    NEWER: (
        flag("cancel", "Roll back what is pending, and remove its throttle."),
        flag("generate-queue", _GENERATE),
        flag("execute-queue", "Submit the plan while others are in progress."),
        flag("verify-queue", "Like --verify, for a plan submitted with that option."),
    ),
    OLDER: (
        flag("cancel", "Roll back what is pending; nothing is reassigned until --remove-cancel."),
        flag("remove-cancel", "Allow reassignments again."),
        flag("generate-extra", _GENERATE),
        flag("execute-extra", "Submit the plan while others are in progress."),
        flag("verify-extra", "Like --verify, for a plan submitted with that option."),
    ),
}
_HELP: Final = {
    NEWER: "Move partitions between brokers through ZooKeeper, as the newer draft of KIP-236 has "
    "it: with cancellation, and a queue.",
    OLDER: "Move partitions between brokers through ZooKeeper, as the older draft of KIP-236 has "
    "it: a cancellation stays until it is removed.",
}


def _surface(draft: str) -> click.Command:
    command: Any = click.pass_context(partial(_reassign_partitions, draft))
    for option in reversed((*_OPTIONS, *_OWN[draft])):
        command = option(command)
    made: click.Command = click.command("reassign-partitions", help=_HELP[draft])(command)
    return made


REASSIGN_PARTITIONS_SURFACES: Final = {draft: _surface(draft) for draft in (OLDER, NEWER)}


# ---- preferred-replica-election ------------------------------------------------------------------


@click.command("preferred-replica-election", help=preferred_election.HELP)
@bootstrap_server
@_zookeeper
@command_config
@click.option("--admin.config", "admin_config", metavar="FILE", hidden=True)
@value("path-to-json-file", "The partitions whose leaders to elect; all by default.", "FILE")
@click.pass_context
def _preferred_replica_election(context: click.Context, /, **given: Any) -> None:
    checked(context, check_preferred_election)
    if given["admin_config"] is not None:
        given["command_config"] = given["admin_config"]

    def wanted() -> set[TopicPartition] | None:
        path = given["path_to_json_file"]
        return None if path is None else parse_election_partitions(read_text(path), path)

    if given["zookeeper"] is not None:
        refuse_dialect(context)
        echo(preferred_election.WARNING, err=True)

        def through_zookeeper() -> None:
            partitions = wanted()
            with _znodes(given["zookeeper"]) as access:
                preferred_election.elect_by_znode(access, write_columns, partitions)

        run_tool(context, through_zookeeper, failure=lambda _error: None)
        return

    async def by_brokers(access: Access, write: Callable[[str], None]) -> None:
        await preferred_election.elect_by_brokers(access, write, wanted())

    run_with_access(context, by_brokers, given, timeout_ms=30_000, failure=lambda _error: None)


PREFERRED_REPLICA_ELECTION: Final = _preferred_replica_election
