"""``kafka-reassign-partitions`` according to the drafts of KIP-455.

In both drafts, ``--list`` prints a plan that would request what is in progress, or ``{}``. In the
older one, a plan replaces everything in progress unless ``--incremental`` is given; in the newer
one a plan always adds to it, and there is ``--cancel-all``. Throttles, ``--generate`` and
``--verify`` are those of ``reassign``. Nothing here uses ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kproto.client import TopicPartition
from kproto.dialects import Dialect
from kproto.tools.access import Access
from kproto.tools.errors import ToolError
from kproto.tools.plan import Plan, format_plan, write_rollback
from kproto.tools.reassign import check_brokers, partitions_failed, replicas_of, start_throttle
from kproto.tools.texts import plural, show_partitions

__all__ = ["cancel_all", "execute_newer", "execute_older", "is_kip_455_draft", "list_as_plan"]

Write = Callable[[str], None]


def is_kip_455_draft(dialect: Dialect) -> bool:
    """Whether the brokers of that dialect report target replicas instead of those added and
    removed."""
    return dialect.name.startswith("kip-455-")


async def list_as_plan(access: Access, write: Write) -> None:
    """Return a plan that requests what is in progress: its replicas are the targets."""
    ongoing = await access.reassignments()
    targets = {partition: each.target_brokers for partition, each in ongoing.items()}
    write(f"{format_plan(targets) if targets else '{}'}\n")


async def execute_newer(access: Access, write: Write, plan: Plan, *, throttle: int = -1) -> None:
    """Add the plan's reassignments to those in progress, or change them."""
    await _alter(access, write, plan.executable(), throttle)


async def execute_older(
    access: Access, write: Write, plan: Plan, *, incremental: bool, throttle: int = -1
) -> None:
    """Execute the plan and cancel reassignments that it does not contain; a plan without partitions
    cancels all. With ``incremental``, other reassignments are left alone, and partitions of the
    plan with null or empty replicas are cancelled."""
    if incremental:
        cancelled = plan.without_replicas()
        if cancelled and len(cancelled) == len(plan.partitions):
            await _cancel(access, write, cancelled)
            return
        rest = plan.restricted_to(p for p, _ in plan.partitions if p not in cancelled)
        requested = rest.executable()
    else:
        requested = plan.executable() if plan.partitions else {}
        ongoing = await access.reassignments()
        cancelled = sorted(partition for partition in ongoing if partition not in requested)
    if cancelled:
        await _cancel(access, write, cancelled)
    if requested:
        await _alter(access, write, requested, throttle)
    elif not cancelled:
        write("No partition reassignments found.\n")


async def cancel_all(access: Access, write: Write) -> None:
    """Cancel all reassignments: by one request that names none, or one by one if the brokers are
    released Kafka."""
    outcomes = await access.cancel_all_reassignments()
    failed = [error for error in outcomes if error is not None]
    if failed:
        raise ToolError(
            f"{len(failed)} of {len(outcomes)} reassignments could not be cancelled: {failed[0]}",
            printed=f"Error cancelling partition reassignment{plural(len(failed))}: {failed[0]}",
        )
    if outcomes:
        count = len(outcomes)
        write(f"Successfully cancelled {count} partition reassignment{plural(count)}\n")
    else:
        write("No partition reassignments found.\n")


async def _alter(
    access: Access, write: Write, requested: Mapping[TopicPartition, Sequence[int]], throttle: int
) -> None:
    await check_brokers(access, {broker for replicas in requested.values() for broker in replicas})
    current = await replicas_of(access, requested)
    write_rollback(write, current)
    if throttle >= 0:
        await start_throttle(access, write, requested, current, throttle)
    errors = await access.alter_reassignments(requested)
    if errors:
        raise partitions_failed("Error reassigning partition(s):", errors)
    write(
        f"Successfully started partition reassignment{plural(len(requested))} for "
        f"{show_partitions(requested)}\n"
    )


async def _cancel(access: Access, write: Write, partitions: Iterable[TopicPartition]) -> None:
    listed = list(partitions)
    errors = await access.alter_reassignments(dict.fromkeys(listed, None))
    if errors:
        what = f"Error cancelling partition reassignment{plural(len(errors))} for:"
        raise partitions_failed(what, errors)
    write(
        f"Successfully cancelled partition reassignment{plural(len(listed))} for: "
        f"{show_partitions(listed)}\n"
    )
