"""The rules of KIP-236's newer revision, as tables of rows: reassign, cancel, queue.

RAR is a partition's target, OAR its original replicas, AR its replicas. A reassignment works as in
the controllers of the time: AR becomes RAR and OAR at once, and RAR as soon as all of RAR is in
sync. A cancellation returns to OAR in seven steps (``rollback_effects``), if OAR is known and would
not put the partition offline. The queue first rolls back what is pending of its partitions, then
adds them to the plan.
"""

from __future__ import annotations

from typing import Final

from mockbroker.simulation.reassignment.kip_236_new.plans import (
    PendingPartition,
    add_to_plan,
    drop_from_plan,
    drop_from_queue,
    set_pending,
)
from mockbroker.simulation.reassignment.rollback_effects import finish_with
from mockbroker.simulation.reassignment.transitions import (
    Brokers,
    Effects,
    RuleContext,
    Table,
    Transition,
    commit,
    idle,
    raise_leader_epoch,
    replicas,
    send_leader_and_isr,
    send_update_metadata,
    set_replicas,
    set_target,
    target,
    warn,
    write_state_znode,
    write_topic_znode,
)
from mockbroker.simulation.releases.rows import Row, always
from mockbroker.simulation.state.cluster_parts import Partition

__all__ = [
    "ON_CANCEL",
    "ON_CONFLICT",
    "ON_DEQUEUE",
    "ON_MISSING",
    "ON_REREAD",
    "ON_STEP",
    "ON_SUBMIT",
    "ON_TRIGGER",
    "has_target",
    "original_of",
]

# ---- conditions ----------------------------------------------------------------------------------


def has_target(partition: Partition, replicas: Brokers) -> bool:
    """Whether the partition is being reassigned to these replicas."""
    return partition.reassigning and partition.target == replicas


def original_of(partition: Partition) -> Brokers | None:
    """OAR, or None if unknown."""
    return partition.original_replicas if isinstance(partition, PendingPartition) else None


def _target_unchanged(context: RuleContext) -> bool:
    return has_target(context.start, context.requested_replicas)


def _already_there(context: RuleContext) -> bool:
    """RAR was AR when it was submitted. That it is AR now does not tell: a reassignment that has
    begun and only adds replicas looks the same."""
    return context.target == context.start.replicas == original_of(context.start)


def _caught_up(context: RuleContext) -> bool:
    """All of RAR is in sync, and one of it can lead."""
    target, isr = context.target, context.start.isr
    return bool(target) and set(target) <= set(isr) and any(map(context.is_online, target))


def _not_begun(context: RuleContext) -> bool:
    return not set(context.target) <= set(context.start.replicas)


def _would_go_offline(context: RuleContext) -> bool:
    """No replica of OAR could lead, while one of RAR is live. If all of RAR is down the partition
    is offline anyway, and is rolled back."""
    can_lead = any(
        each in context.start.isr and context.is_online(each) for each in _original(context)
    )
    return not can_lead and any(map(context.is_online, context.target))


# ---- choices -------------------------------------------------------------------------------------


def _original(context: RuleContext) -> Brokers:
    return original_of(context.start) or ()


def _new_and_present(context: RuleContext) -> Brokers:
    return tuple(dict.fromkeys(context.target + context.start.replicas))


# ---- submission ----------------------------------------------------------------------------------

ON_SUBMIT: Final[Table] = (
    Row("K236-07 K236-08 K236-09", always, (set_pending, add_to_plan, commit)),
)
"""Record the partition with its originals, then remember it, before anything begins."""

_BEGIN: Final[Effects] = (
    set_replicas(_new_and_present),
    write_topic_znode,
    raise_leader_epoch,
    write_state_znode,
    commit,
    send_leader_and_isr(replicas),
    send_update_metadata(),
)

_FINISH: Final[Row[RuleContext, Transition]] = Row(
    "K236-02 K236-11", _caught_up, finish_with(target, drop_from_plan)
)

ON_TRIGGER: Final[Table] = (
    Row("K236-02", _already_there, (drop_from_plan, set_target(None), commit)),
    _FINISH,
    Row("K236-01", always, _BEGIN),
)
"""Begin what was submitted, or complete it at once. A new controller begins it again."""

ON_STEP: Final[Table] = (
    _FINISH,
    # A rollback was skipped, and the znode read for it has a target that had not begun.
    Row("K236-34", _not_begun, _BEGIN),
)
"""The ISR or the leader of a partition has changed."""

# ---- cancellation --------------------------------------------------------------------------------

ON_REREAD: Final[Table] = (Row("K236-10", always, (set_pending, commit)),)
"""Before a cancellation: adopt what the znode says of a partition."""

ON_MISSING: Final[Table] = (
    Row(
        "K236-10",
        always,
        (
            warn("{tp}: no longer in /admin/reassign_partitions; its replicas stay as they are"),
            set_target(None),
            commit,
        ),
    ),
)
"""Before a cancellation: drop what the znode no longer has."""

ON_CANCEL: Final[Table] = (
    Row(
        "K236-34 A-18",
        lambda context: original_of(context.start) is None,
        (warn("{tp}: not rolled back, as its original_replicas are missing"),),
    ),
    Row(
        "K236-35 A-14",
        _would_go_offline,
        (warn("{tp}: not rolled back, as none of its original_replicas could lead it"),),
    ),
    Row(
        "K236-20 K236-21 K236-22 K236-23 K236-24 K236-25 K236-26",
        always,
        finish_with(_original, drop_from_plan),
    ),
)
"""Roll back in seven steps, or say why not."""

# ---- queue ---------------------------------------------------------------------------------------

ON_CONFLICT: Final[Table] = (
    Row("K236-39", idle, ()),
    Row("K236-40", _target_unchanged, ()),
    *ON_CANCEL,
)
"""Another target is requested: roll back what is pending first."""

ON_DEQUEUE: Final[Table] = (
    Row("K236-40", _target_unchanged, (drop_from_queue,)),
    Row("K236-36 K236-40", always, (set_pending, add_to_plan, commit, drop_from_queue)),
)
"""Move a partition from the queue into the plan."""
