"""Update the ``Model`` from answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuzz.stateful import response_checks
from fuzz.stateful.world import Facts, World
from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.releases.facts import PARTITIONS_ONLY_VALIDATED
from mockbroker.simulation.state.cluster_parts import Partition, TopicPartition

__all__ = ["observe_created", "observe_deleted", "observe_partitions_added", "observe_reassigned"]

Reassignments = Sequence[tuple[TopicPartition, Sequence[int] | None]]


def observe_reassigned(
    world: World, before: Facts, request: Reassignments, answer: Any, *, guarded: bool
) -> None:
    """Record for each partition whether its new target or its cancellation was accepted."""
    codes = _codes(answer, request)
    if codes is None:
        return
    for tp, target in request:
        if codes[tp]:
            continue
        topic = before.topics.get(tp[0])
        was = None if topic is None else topic.partition(tp[1])
        assert was is not None, f"{tp} does not exist but was reassigned"
        if target is None:
            world.model.aimed(tp, None, guarded=False)
            response_checks.cancelled_is_as_before(world, before, tp)
            continue
        if guarded:
            response_checks.guard_compares_factors(before, tp, target)
        certain = _heads_there_for_sure(world, was, target)
        world.model.aimed(tp, tuple(target) if certain else None, guarded=guarded)


def _codes(answer: Any, request: Reassignments) -> dict[TopicPartition, int] | None:
    """Return the rows; None if the whole request was refused. The drafts of KIP-455 name no
    partitions: there the order is that of the request, topic by topic."""
    if getattr(answer, "error_code", 0):
        return None
    rows = answer.responses
    if rows and not hasattr(rows[0], "partitions"):
        names = list(dict.fromkeys(tp[0] for tp, _ in request))
        in_order = [tp for name in names for tp, _ in request if tp[0] == name]
        if len(rows) != len(in_order):
            return None
        return {tp: row.error_code for tp, row in zip(in_order, rows, strict=True)}
    found = {
        (topic.name, row.partition_index): row.error_code
        for topic in rows
        for row in topic.partitions
    }
    assert found.keys() == {tp for tp, _ in request}, (request, found)
    return found


def _heads_there_for_sure(world: World, was: Partition, target: Sequence[int]) -> bool:
    """Return whether the target is known. It is not if KRaft keeps an earlier ``removing`` because
    the new target would leave nothing; as in Kafka, the partition then gets fewer replicas than
    requested."""
    drops = set(was.replicas) - set(target)
    return world.reassignment != "kraft" or bool(drops) or not was.removing


def observe_created(world: World, name: str, count: int, answer: Any, *, dry: bool) -> None:
    (row,) = answer.topics
    if row.error_code == ErrorCode.REQUEST_TIMED_OUT:
        world.model.learn(world.cluster)
    elif not row.error_code and not dry:
        world.model.created(name, 1 if count == -1 else count)


def observe_deleted(world: World, name: str, answer: Any) -> None:
    (row,) = answer.responses
    if row.error_code == ErrorCode.REQUEST_TIMED_OUT:
        world.model.learn(world.cluster)
    elif not row.error_code:
        world.model.deleted(name)


def observe_partitions_added(
    world: World, name: str, count: int, answer: Any, *, dry: bool
) -> None:
    (row,) = answer.results
    if row.error_code == ErrorCode.REQUEST_TIMED_OUT:
        world.model.learn(world.cluster)
    elif not row.error_code and not (dry and _only_validates(world.cluster)):
        world.model.topics[name] = count


def _only_validates(cluster: Cluster) -> bool:
    """Early controllers of KRaft add partitions where they shall only validate."""
    return cluster.controller.keeps_znodes or cluster.logs.release.has(PARTITIONS_ONLY_VALIDATED)
