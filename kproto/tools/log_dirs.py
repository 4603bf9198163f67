"""Log directories of replicas: querying and moving them (KIP-113).

A replica can be moved between the directories of one broker. Until the replica is on that broker,
the broker responds with REPLICA_NOT_AVAILABLE and the request is repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kproto.tools.access import Access, ReplicaLogDir
from kproto.tools.errors import ToolError
from kproto.tools.plan import Replica
from kproto.tools.texts import plural

__all__ = ["MoveStates", "move", "states"]

_PAUSE: Final = 0.1
"""Seconds between two attempts, as in Kafka's tool."""


class MoveStates(msgspec.Struct, frozen=True):
    """``lines`` are printed by ``--verify``. ``moving_from`` maps each replica that is moving now
    to its current directory. ``moving`` is whether anything is unfinished."""

    lines: tuple[str, ...]
    moving_from: Mapping[Replica, str]
    moving: bool


async def states(access: Access, targets: Mapping[Replica, str]) -> MoveStates:
    """Return the state of replicas that should move to these directories."""
    found = await access.replica_log_dirs(targets)
    ordered = sorted(targets, key=_by_broker)
    return MoveStates(
        tuple(_line(replica, targets[replica], found[replica]) for replica in ordered),
        {
            replica: directory.current
            for replica, directory in found.items()
            if directory.current is not None and directory.future is not None
        },
        any(each.current is None or each.future is not None for each in found.values()),
    )


def _line(replica: Replica, target: str, found: ReplicaLogDir) -> str:
    topic, index, broker_id = replica
    partition = f"Partition {topic}-{index}"
    if found.current is None:
        return (
            f"{partition} is not found in any live log dir on broker {broker_id}. There is likely "
            "an offline log directory on the broker."
        )
    if found.future == target:
        return f"Reassignment of replica {_show(replica)} is still in progress."
    if found.future is not None:
        return (
            f"{partition} on broker {broker_id} is being moved to log dir {found.future} instead "
            f"of {target}."
        )
    if found.current == target:
        return f"Reassignment of replica {_show(replica)} completed successfully."
    return (
        f"{partition} on broker {broker_id} is not being moved from log dir {found.current} to "
        f"{target}."
    )


async def move(
    access: Access, write: Callable[[str], None], targets: Mapping[Replica, str], timeout_ms: int
) -> None:
    """Request each move until its broker accepts it. Raises ToolError after ``timeout_ms``."""
    pending = dict(targets)
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_ms / 1000
    while pending:
        for replica in sorted(await access.alter_replica_log_dirs(pending), key=_by_broker):
            topic, index, broker_id = replica
            write(
                f"Successfully started moving log directory to {pending.pop(replica)} for replica "
                f"{topic}-{index} with broker {broker_id} \n"
            )
        if pending and loop.time() >= end:
            message = (
                f"Timed out before log directory move{plural(len(pending))} could be started for: "
                + ",".join(map(_show, sorted(pending, key=_by_broker)))
            )
            raise ToolError(message, printed=message)
        if pending:
            await asyncio.sleep(_PAUSE)


def _by_broker(replica: Replica) -> tuple[int, str, int]:
    topic, index, broker_id = replica
    return broker_id, topic, index


def _show(replica: Replica) -> str:
    return "-".join(map(str, replica))
