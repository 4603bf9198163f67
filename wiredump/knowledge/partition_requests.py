"""What requests 45 and 46 and their responses say about partitions, in the released protocol and in
the drafts (KIP-455).

Responses of the drafts have partitions in the order of the request, and nulls that stand for every
reassignment of a topic or of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from wiredump.knowledge.excerpts import Excerpt

__all__ = ["Listed", "Partition", "PartitionRequest", "listed", "partition_requests"]

Partition: TypeAlias = tuple[str | None, int | None]
"""Topic name and partition index."""

UnderWay: TypeAlias = Callable[[str | None], Iterable[Partition]]
"""Returns the partitions of a topic, or of all topics for None, that are being reassigned."""


class PartitionRequest(NamedTuple):
    """What a request wants for one partition. ``target`` is None to cancel. ``code`` is None if the
    response is unknown."""

    partition: Partition
    target: list[int] | None
    code: int | None
    text: str | None


class Listed(NamedTuple):
    """A partition in a listing. ``target`` is None if the listing does not have it."""

    partition: Partition
    replicas: list[int]
    adding: list[int]
    removing: list[int]
    target: list[int] | None


def partition_requests(excerpt: Excerpt, under_way: UnderWay) -> list[PartitionRequest]:
    """Return what an AlterPartitionReassignments wants for each partition, with the result."""
    if excerpt.request is None:
        return []
    wanted = list(_wanted(excerpt.request, under_way))
    answer = excerpt.response
    if answer is None:
        return [PartitionRequest(partition, target, None, None) for partition, target in wanted]
    rows = answer.get("responses") or []
    if any("errorString" in row for row in rows) or "errorCode" not in answer:
        return list(_by_place(wanted, rows))
    results = {
        (topic.get("name"), each.get("partitionIndex")): each
        for topic in rows
        for each in topic.get("partitions") or ()
    }
    code, text = answer.get("errorCode", 0), answer.get("errorMessage")
    found = []
    for partition, target in wanted:
        row = results.get(partition)
        if row is None:
            found.append(PartitionRequest(partition, target, code or None, text))
        else:
            own = row.get("errorCode", 0)
            found.append(PartitionRequest(partition, target, own, row.get("errorMessage") or text))
    return found


def _wanted(
    request: dict[str, Any], under_way: UnderWay
) -> Iterator[tuple[Partition, list[int] | None]]:
    if "topics" not in request:  # cut before these fields
        return
    if request["topics"] is None:
        for partition in under_way(None):
            yield partition, None
        return
    for topic in request["topics"]:
        name = topic.get("name")
        if "partitions" in topic and topic["partitions"] is None:
            for partition in under_way(name):
                yield partition, None
            continue
        for each in topic.get("partitions") or ():
            if "replicas" in each:
                yield (name, each.get("partitionIndex")), each["replicas"]


def _by_place(
    wanted: list[tuple[Partition, list[int] | None]], rows: list[dict[str, Any]]
) -> Iterator[PartitionRequest]:
    """Match results by position. If the counts differ (a null stood for more than the capture
    shows), only an error that all results share is certain."""
    codes = {row.get("errorCode", 0) for row in rows}
    if len(wanted) == len(rows):
        for (partition, target), row in zip(wanted, rows, strict=True):
            yield PartitionRequest(
                partition, target, row.get("errorCode", 0), row.get("errorString")
            )
    else:
        code = codes.pop() if len(codes) == 1 else None
        for partition, target in wanted:
            yield PartitionRequest(partition, target, code, None)


def listed(excerpt: Excerpt) -> list[Listed] | None:
    """Return the partitions of a ListPartitionReassignments response; None if it failed or cannot
    be read."""
    answer = excerpt.response
    if answer is None or answer.get("errorCode", 0) or "topics" not in answer:
        return None
    return [
        _listed(topic.get("name"), each)
        for topic in answer["topics"] or ()
        for each in topic.get("partitions") or ()
    ]


def _listed(topic: str | None, each: dict[str, Any]) -> Listed:
    if "currentReplicas" not in each:
        replicas, removing = each.get("replicas") or [], each.get("removingReplicas") or []
        target = [broker for broker in replicas if broker not in removing]
        partition = (topic, each.get("partitionIndex"))
        return Listed(partition, replicas, each.get("addingReplicas") or [], removing, target)
    # One draft has the replicas that are still to be added, the other the whole target, in equal
    # bytes.
    current, wanted = each["currentReplicas"] or [], each.get("targetReplicas") or []
    adding = [broker for broker in wanted if broker not in current]
    return Listed((topic, each.get("partitionId")), current, adding, [], None)
