"""OffsetForLeaderEpoch: who may ask where an epoch ends, and the answer (KIP-101, KIP-320)."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.log.logs import Logs
from mockbroker.simulation.log.replicas.leader_epochs import UNKNOWN_END, EpochEnd
from mockbroker.simulation.log.replicas.leadership import access_error
from mockbroker.simulation.releases.release import Release, by_release
from mockbroker.simulation.releases.rows import (
    Refusable,
    Row,
    always,
    apply_first,
    refuse,
    rows_of_release,
)
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition

__all__ = ["ROWS", "EpochQuery", "end_of_epoch"]

_CONSUMERS_MAY_ASK: Final = (2, 1)


class EpochQuery(msgspec.Struct, frozen=True):
    """What a client asks of one partition: where ``epoch`` ends. ``acts_for_cluster`` and
    ``may_describe`` are the caller's permissions on the cluster and on the topic."""

    tp: TopicPartition
    broker_id: int
    epoch: int
    leader_epoch: int
    acts_for_cluster: bool = True
    may_describe: bool = True


class _Lookup(Refusable, msgspec.Struct):
    logs: Logs
    partition: Partition | None
    query: EpochQuery
    code: ErrorCode = ErrorCode.NONE
    end: EpochEnd = UNKNOWN_END

    @property
    def access_error(self) -> ErrorCode:
        query = self.query
        is_failed = self.logs.is_failed(query.tp, query.broker_id)
        return access_error(
            self.partition, query.broker_id, query.leader_epoch, is_failed=is_failed
        )


def refuse_access(lookup: _Lookup) -> None:
    """Answer with the error of a broker that may not answer for the partition."""
    lookup.code = lookup.access_error


def answer_end(lookup: _Lookup) -> None:
    """Answer with the end of the epoch, as the leader's log has it."""
    log = lookup.logs.log(lookup.query.tp)
    lookup.end = log.epochs.end_of(lookup.query.epoch, log.end_offset)


def _is_no_broker(lookup: _Lookup) -> bool:
    return not lookup.query.acts_for_cluster


def _may_not_describe(lookup: _Lookup) -> bool:
    return _is_no_broker(lookup) and not lookup.query.may_describe


def _is_before_all(lookup: _Lookup) -> bool:
    return lookup.query.epoch < lookup.logs.log(lookup.query.tp).epochs.oldest


_LookupRow: TypeAlias = Row[_Lookup, _Lookup]

ROWS: Final[tuple[_LookupRow, ...]] = (
    Row(
        "DP-EPOCH-02",
        _is_no_broker,
        (refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),),
        until=_CONSUMERS_MAY_ASK,
    ),
    Row("DP-EPOCH-02", _may_not_describe, (refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED),)),
    Row("DP-EPOCH-02", lambda lookup: bool(lookup.access_error), (refuse_access,)),
    # By bytecode so in 1.1.1; 2.0.1 answers with the first offset.
    Row("DP-EPOCH-04", _is_before_all, (), until=(2, 0)),
    Row("DP-EPOCH-01", always, (answer_end,)),
)


@by_release
def _rows(release: Release) -> tuple[_LookupRow, ...]:
    return rows_of_release(ROWS, release)


def end_of_epoch(
    logs: Logs, partition: Partition | None, query: EpochQuery
) -> tuple[ErrorCode, EpochEnd]:
    """Return an error and the end of the epoch, (-1, -1) with an error. ``partition`` is as the
    receiving broker knows it, None if it does not know it."""
    lookup = _Lookup(logs, partition, query)
    apply_first(_rows(logs.release), lookup, lookup)
    return lookup.code, lookup.end
