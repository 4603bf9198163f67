"""``kproto admin`` with the options of KIP-455's drafts: ``--profile kip-455-old|kip-455-new``.

The brokers must speak that draft, as a mock cluster with the profile of that name does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import click

from kproto.cli.tool_command import (
    bootstrap_server,
    checked,
    command_config,
    flag,
    reassign_failure,
    run_with_access,
    value,
)
from kproto.cli.topic_command import topics_of
from kproto.tools import drafts, reassign
from kproto.tools.access import Access
from kproto.tools.connecting import read_text
from kproto.tools.options import check_draft_reassign
from kproto.tools.plan import parse_broker_list, parse_plan, parse_topics_to_move

__all__ = ["REASSIGN_PARTITIONS", "TOPICS"]

OLDER, NEWER = "kip-455-old", "kip-455-new"


def _reassign_partitions(draft: str, context: click.Context, /, **given: Any) -> None:
    action = checked(context, partial(check_draft_reassign, draft))

    async def work(access: Access, write: Callable[[str], None]) -> None:
        match action:
            case "list":
                await drafts.list_as_plan(access, write)
            case "cancel-all":
                await drafts.cancel_all(access, write)
            case "generate":
                path = given["topics_to_move_json_file"]
                brokers = parse_broker_list(given["broker_list"])
                moved = parse_topics_to_move(read_text(path), path)
                rack_aware = not given["disable_rack_aware"]
                await reassign.generate(access, write, moved, brokers, rack_aware=rack_aware)
            case _:
                await _with_plan(draft, action, access, write, given)

    run_with_access(
        context,
        work,
        given,
        client_id="reassign-partitions-tool",
        failure=reassign_failure,
        dialect=draft,
    )


async def _with_plan(
    draft: str, action: str, access: Access, write: Callable[[str], None], given: dict[str, Any]
) -> None:
    path = given["reassignment_json_file"]
    incremental = given.get("incremental", False)
    plan = parse_plan(read_text(path), path, null_replicas=incremental)
    if action == "verify":
        await reassign.verify(access, write, plan)
    elif draft == OLDER:
        await drafts.execute_older(
            access, write, plan, incremental=incremental, throttle=given["throttle"]
        )
    else:
        await drafts.execute_newer(access, write, plan, throttle=given["throttle"])


_COMMON: Final = (
    flag("generate", "Propose an assignment; nothing is changed."),
    flag("execute", "Start the plan's reassignments."),
    flag(
        "verify", "Show the state of the plan's reassignments; remove throttles once all are done."
    ),
    flag("list", "Print what is in progress as a plan, or {}."),
    bootstrap_server,
    command_config,
    value("reassignment-json-file", "The plan: partitions and their replicas.", "FILE"),
    value("topics-to-move-json-file", "The topics for which to propose an assignment.", "FILE"),
    value("broker-list", "The brokers over which to spread them.", "ID,ID,..."),
    flag("disable-rack-aware", "Ignore racks in the proposal."),
    value(
        "throttle", "With --execute: bytes per second between brokers.", "N", type=int, default=-1
    ),
)
_OWN: Final = {
    OLDER: flag(
        "incremental",
        "With --execute: keep reassignments outside the plan; null or empty replicas cancel.",
    ),
    NEWER: flag("cancel-all", "Cancel every reassignment in progress."),
}
_HELP: Final = {
    OLDER: "Move partitions between brokers, as the older draft of KIP-455 has it: without "
    "--incremental, what is in progress and not in the plan is cancelled.",
    NEWER: "Move partitions between brokers, as the newer draft of KIP-455 has it: a plan adds to "
    "what is in progress.",
}


def _surface(draft: str) -> click.Command:
    command: Any = click.pass_context(partial(_reassign_partitions, draft))
    for option in reversed((*_COMMON, _OWN[draft])):
        command = option(command)
    made: click.Command = click.command("reassign-partitions", help=_HELP[draft])(command)
    return made


REASSIGN_PARTITIONS: Final = {draft: _surface(draft) for draft in (OLDER, NEWER)}
TOPICS: Final = {draft: topics_of(draft) for draft in (OLDER, NEWER)}
