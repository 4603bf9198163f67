"""The rules of KIP-236's older revision, as tables of rows.

AR is the assigned replicas, OAR the original ones, RAR the requested ones. A request makes AR the
union of OAR and RAR, as in Kafka 2.3. Once all of RAR is in sync, AR becomes RAR by the same seven
steps that roll back to OAR. A request that changes a reassignment first drops what ``drop_set``
finds, so that brokers of an intermediate target do not linger.

The page has the controller begin a reassignment, then create its znode. Here the znode comes first,
so that a controller that dies in between leaves ``top`` and OAR to the next one.
"""

from __future__ import annotations

from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.simulation.reassignment.kip_236_old.requested_partitions import (
    RequestedPartition,
    delete_request,
    drop_set,
    set_request,
    store_request,
    top_of,
)
from mockbroker.simulation.reassignment.rollback_effects import (
    DELETION_STARTED,
    DELETION_SUCCESSFUL,
    NON_EXISTENT,
    finish_with,
    move_replicas,
    take_offline,
)
from mockbroker.simulation.reassignment.transitions import (
    Brokers,
    Effects,
    RuleContext,
    Table,
    commit,
    raise_leader_epoch,
    refuse_request,
    replicas,
    requested,
    send_leader_and_isr,
    send_stop_replica,
    send_update_metadata,
    set_replicas,
    target,
    write_state_znode,
    write_topic_znode,
)
from mockbroker.simulation.releases.rows import Row, always

__all__ = ["ON_CANCEL", "ON_REQUEST", "ON_RESUME", "ON_STEP", "REFUSALS"]


# ---- conditions and choices ----------------------------------------------------------------------


def _disabled(context: RuleContext) -> bool:
    return bool(context.facts["disabled"])


def _submitted_otherwise(context: RuleContext) -> bool:
    start = context.start
    return isinstance(start, RequestedPartition) and start.legacy != context.facts["legacy"]


def _too_few(context: RuleContext) -> bool:
    start = context.start
    return not start.reassigning and len(start.replicas) < context.facts["min_isr"]


def _target_unchanged(context: RuleContext) -> bool:
    return context.start.reassigning and context.requested_replicas == context.target


def _replicas_unchanged(context: RuleContext) -> bool:
    return not context.start.reassigning and context.requested_replicas == context.start.replicas


def _caught_up(context: RuleContext) -> bool:
    """All of RAR is in sync, and one of it can lead."""
    target = context.target
    in_sync = bool(target) and set(target) <= set(context.start.isr)
    return in_sync and _can_lead(context, target)


def _can_lead(context: RuleContext, brokers: Brokers) -> bool:
    return any(broker in context.start.isr and context.is_online(broker) for broker in brokers)


def _and_requested(context: RuleContext) -> Brokers:
    return tuple(dict.fromkeys(context.now.replicas + context.requested_replicas))


def _dropped(context: RuleContext) -> Brokers:
    start, literal = context.start, context.facts["literal"]
    return drop_set(
        start.replicas,
        start.isr,
        start.leader,
        top_of(start),
        context.requested_replicas,
        literal=literal,
    )


def _without_dropped(context: RuleContext) -> Brokers:
    gone = _dropped(context)
    return tuple(replica for replica in context.now.replicas if replica not in gone)


# ---- what several rows share ---------------------------------------------------------------------

_DROP: Final[Effects] = (
    *take_offline(_dropped),
    move_replicas(_dropped, DELETION_STARTED),
    send_stop_replica(_dropped),
    move_replicas(_dropped, DELETION_SUCCESSFUL),
    move_replicas(_dropped, NON_EXISTENT),
    set_replicas(_without_dropped),
    commit,
    write_topic_znode,
)

_INITIATE: Final[Effects] = (
    set_replicas(_and_requested),
    write_topic_znode,
    set_request,
    raise_leader_epoch,
    write_state_znode,
    commit,
    send_leader_and_isr(replicas),
    send_update_metadata(),
)

# ---- the tables ----------------------------------------------------------------------------------

REFUSALS: Final[Table] = (
    Row(
        "K236-05, K236-51",
        _disabled,
        (
            refuse_request(
                ErrorCode.POLICY_VIOLATION,
                "Reassignments are disabled while /admin/reassign_cancel exists.",
            ),
        ),
    ),
    Row(
        "K236-59",
        _submitted_otherwise,
        (
            refuse_request(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                "{tp} is being reassigned already, by the other of the two ways: "
                "/admin/reassign_partitions and /admin/reassignment_requests.",
            ),
        ),
    ),
    Row(
        "K236-63",
        _too_few,
        (
            refuse_request(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "{tp} has fewer replicas than its min.insync.replicas, so none could be spared.",
            ),
        ),
    ),
)
"""Reasons to ignore a request for one partition. A client's request is checked by them before it is
submitted."""

ON_REQUEST: Final[Table] = (
    *REFUSALS,
    Row("K236-57", _target_unchanged, ()),
    Row("K236-56", _replicas_unchanged, ()),
    Row("K236-54, K236-62, K236-64, K236-66", always, (store_request, *_DROP, *_INITIATE)),
)
"""The requested replicas are RAR; the fact ``original`` is OAR, if a plan on record has it. One row
both begins and changes a reassignment: at its start ``top`` is the number of replicas, so none is
dropped."""

ON_STEP: Final[Table] = (
    Row("K236-51", _disabled, ()),
    Row("K236-56", _caught_up, finish_with(target, delete_request)),
)
"""The ISR or the leader of a partition under reassignment may have changed."""

ON_RESUME: Final[Table] = (
    Row("K236-51", _disabled, ()),
    Row("K236-60", always, (*_DROP, *_INITIATE)),
)
"""A new controller has found the reassignment, or reassignments are enabled again. The requested
replicas are RAR. Nothing is dropped unless the last controller died before it could."""

ON_CANCEL: Final[Table] = (
    Row(
        "K236-55",
        lambda context: not context.requested_replicas,
        (
            refuse_request(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The original replicas of {tp} are not known to this controller; "
                "reassign it to the replicas it shall have.",
            ),
        ),
    ),
    Row(
        "A-14",
        lambda context: not _can_lead(context, context.requested_replicas),
        (
            refuse_request(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "None of the original replicas of {tp} is in sync, so none could lead it.",
            ),
        ),
    ),
    Row("K236-01, K236-04", always, finish_with(requested, delete_request)),
)
"""The requested replicas are OAR, empty if unknown."""
