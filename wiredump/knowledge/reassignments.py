"""Reassignments of partitions (KIP-455), from request to end, as a capture shows them.

A reassignment begins when a broker accepts one (45) or, if the capture began later, at the first
listing (46) that contains it. It ends as

- ``cancelled`` or ``replaced`` if 45 cancels it or accepts another target for the partition;
- ``completed``, with the evidence: ``not listed`` by a listing that should contain it, ``metadata``
  with the target's replicas, all in sync, or ``nothing to cancel``, by error 85. In the first and
  the last case it may instead have been cancelled outside the capture;
- ``unknown`` if its topic is deleted (``topic deleted``), or if the capture ends without a trace of
  it after its acceptance; ``in progress`` if there is a trace.

A ``refused`` reassignment ends when it begins. A request without a response makes it ``unknown``,
unless its beginning or end is seen.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import msgspec

from wiredump.knowledge.clusters import Clusters
from wiredump.knowledge.excerpts import ALTER, LIST, Excerpt
from wiredump.knowledge.partition_reassignment import PartitionReassignment
from wiredump.knowledge.partition_requests import (
    Listed,
    Partition,
    PartitionRequest,
    listed,
    partition_requests,
)
from wiredump.knowledge.partitions_under_way import PartitionsUnderWay
from wiredump.rows.exchanges import Row

__all__ = ["MOST_PARTITIONS", "Reassignments"]

MOST_PARTITIONS: Final = 500_000
"""The most partitions per cluster whose replicas are remembered; beyond that, those seen first are
forgotten."""

_METADATA, _DELETE_TOPICS, _DESCRIBE_TOPIC_PARTITIONS = 3, 20, 75
_NO_REASSIGNMENT_IN_PROGRESS: Final = 85


_Replicas: TypeAlias = OrderedDict[Partition, tuple[list[int], int]]


class _Cluster(msgspec.Struct):
    """``replicas`` as they were last seen, and when."""

    replicas: _Replicas = msgspec.field(default_factory=OrderedDict)
    current: PartitionsUnderWay = msgspec.field(default_factory=PartitionsUnderWay)


class Reassignments:
    """Takes exchanges in the order of requests, then ``end``; both return rows."""

    def __init__(self, clusters: Clusters | None = None, most: int = MOST_PARTITIONS) -> None:
        self._clusters = clusters if clusters is not None else Clusters()
        self._most = most
        self._known: dict[str, _Cluster] = {}

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        """Return the rows of the reassignments that this exchange ends or refuses."""
        for united in self._clusters.learn(excerpt):
            self._unite(united.kept, united.gone)
        name = self._clusters.of(excerpt.broker)
        take = _TAKES.get(excerpt.api_key)
        if take is not None:
            yield from take(self, name, self._cluster(name), excerpt)

    def end(self) -> Iterator[Row]:
        """Return the rows of the reassignments whose end was not captured."""
        for name, cluster in sorted(self._known.items()):
            for reassignment in cluster.current:
                yield reassignment.row(
                    self._clusters.name(name), "in progress" if reassignment.pending else "unknown"
                )
        self._known.clear()

    def _cluster(self, name: str) -> _Cluster:
        cluster = self._known.get(name)
        if cluster is None:
            cluster = self._known[name] = _Cluster()
        return cluster

    def _unite(self, kept: str, gone: str) -> None:
        cluster = self._known.pop(gone, None)
        if cluster is not None:
            into = self._cluster(kept)
            into.replicas = _together(into.replicas, cluster.replicas)
            into.current = into.current.absorb(cluster.current)

    # -- 45 ----------------------------------------------------------------------------------

    def _altered(self, name: str, cluster: _Cluster, excerpt: Excerpt) -> Iterator[Row]:
        def under_way(topic: str | None) -> list[Partition]:
            found = cluster.current.of_topics(None if topic is None else [topic])
            return [each.partition for each in found]

        found = partition_requests(excerpt, under_way)
        if not found and excerpt.request is not None and excerpt.request.get("topics", ()) is None:
            # A draft's cancellation of everything, none of which was captured.
            rows = (excerpt.response or {}).get("responses") or [{}]
            found = [
                PartitionRequest((None, None), None, row.get("errorCode"), row.get("errorString"))
                for row in rows
            ]
        for request in found:
            yield from self._requested(self._clusters.name(name), cluster, excerpt, request)

    def _requested(
        self, name: str, cluster: _Cluster, excerpt: Excerpt, request: PartitionRequest
    ) -> Iterator[Row]:
        before = cluster.current.get(request.partition)
        reassignment = PartitionReassignment.of(
            excerpt, request, _before(cluster, excerpt, request.partition, before)
        )
        if request.code == 0:
            cluster.current.pop(request.partition)
            if request.target is not None:
                cluster.current.add(reassignment)
                if before is not None:
                    yield before.row(name, "replaced", "another target", excerpt)
            elif before is not None:
                yield before.row(name, "cancelled", "cancelled", excerpt)
            else:
                reassignment.alteration = None
                yield reassignment.row(name, "cancelled", "cancelled", excerpt)
        elif request.code is None:
            if request.target is not None and before is None:
                cluster.current.add(reassignment)
            else:
                yield reassignment.row(name, "unknown")
        else:
            yield reassignment.row(name, "refused")
            if (
                request.code == _NO_REASSIGNMENT_IN_PROGRESS
                and before is not None
                and before.accepted
                and before.since_ns <= excerpt.requested_ns
            ):
                cluster.current.pop(request.partition)
                yield before.row(name, "completed", "nothing to cancel", excerpt)

    # -- 46 ----------------------------------------------------------------------------------

    def _listed(self, name: str, cluster: _Cluster, excerpt: Excerpt) -> Iterator[Row]:
        rows = listed(excerpt)
        if rows is None:
            return
        for row in rows:
            _list(cluster, excerpt, row)
        there = {row.partition for row in rows}
        gone = cluster.current.unlisted(excerpt.request, excerpt.requested_ns, there)
        yield from self._end(name, cluster, gone, "not listed", excerpt)

    def _end(
        self,
        name: str,
        cluster: _Cluster,
        current: Iterable[PartitionReassignment],
        evidence: str,
        excerpt: Excerpt,
    ) -> Iterator[Row]:
        for reassignment in current:
            cluster.current.pop(reassignment.partition)
            outcome = "unknown" if evidence == "topic deleted" else "completed"
            yield reassignment.row(self._clusters.name(name), outcome, evidence, excerpt)  # type: ignore[arg-type]

    # -- what metadata shows -----------------------------------------------------------------

    def _shown(self, name: str, cluster: _Cluster, excerpt: Excerpt) -> Iterator[Row]:
        done = []
        for partition, each in _partitions(excerpt.response):
            replicas, isr = each.get("replicaNodes") or [], each.get("isrNodes") or []
            cluster.replicas.pop(partition, None)
            cluster.replicas[partition] = (replicas, excerpt.completed_ns)
            if len(cluster.replicas) > self._most:
                cluster.replicas.popitem(last=False)
            reassignment = cluster.current.get(partition)
            if (
                reassignment is None
                or reassignment.target is None
                or reassignment.since_ns > excerpt.requested_ns
            ):
                continue
            target = set(reassignment.target)
            if set(replicas) == target and target <= set(isr):
                done.append(reassignment)
            elif reassignment.accepted:
                reassignment.pending = True
        yield from self._end(name, cluster, done, "metadata", excerpt)

    def _deleted(self, name: str, cluster: _Cluster, excerpt: Excerpt) -> Iterator[Row]:
        rows = (excerpt.response or {}).get("responses") or ()
        names = {row.get("name") for row in rows if not row.get("errorCode")}
        gone = cluster.current.of_topics(names)
        yield from self._end(name, cluster, gone, "topic deleted", excerpt)


_TAKES: Final[dict[int, Callable[[Reassignments, str, _Cluster, Excerpt], Iterator[Row]]]] = {
    ALTER: Reassignments._altered,
    LIST: Reassignments._listed,
    _METADATA: Reassignments._shown,
    _DESCRIBE_TOPIC_PARTITIONS: Reassignments._shown,
    _DELETE_TOPICS: Reassignments._deleted,
}


def _before(
    cluster: _Cluster,
    excerpt: Excerpt,
    partition: Partition,
    reassignment: PartitionReassignment | None,
) -> list[int] | None:
    """Return the replicas before a request, without those that another reassignment is adding."""
    if reassignment is not None:
        return reassignment.before
    seen = cluster.replicas.get(partition)
    return seen[0] if seen is not None and seen[1] <= excerpt.requested_ns else None


def _together(kept: _Replicas, gone: _Replicas) -> _Replicas:
    """Return both, those of ``gone`` first. Costs as much as the smaller of them."""
    if len(kept) < len(gone):
        gone.update(kept)
        return gone
    for partition in reversed(gone):
        if partition not in kept:
            kept[partition] = gone[partition]
            kept.move_to_end(partition, last=False)
    return kept


def _list(cluster: _Cluster, excerpt: Excerpt, row: Listed) -> None:
    """Note that the partition is being reassigned."""
    now = excerpt.completed_ns
    reassignment = cluster.current.get(row.partition)
    if reassignment is None:
        before = [broker for broker in row.replicas if broker not in row.adding]
        released = row.target is not None
        reassignment = PartitionReassignment(
            row.partition, now, target=row.target, before=before if released else None
        )
        cluster.current.add(reassignment)
    elif excerpt.completed_ns < reassignment.since_ns:
        return
    if not reassignment.accepted:
        reassignment.accepted = True
        cluster.current.accept(reassignment)
    reassignment.pending = True
    reassignment.first_listed_ns = (
        now if reassignment.first_listed_ns is None else reassignment.first_listed_ns
    )
    reassignment.last_listed_ns = now
    reassignment.adding, reassignment.removing = row.adding, row.removing
    if row.target is not None and reassignment.before is None:
        reassignment.before = [broker for broker in row.replicas if broker not in row.adding]


def _partitions(body: dict[str, Any] | None) -> Iterator[tuple[Partition, dict[str, Any]]]:
    for topic in (body or {}).get("topics") or ():
        if topic.get("name") is not None:
            for each in topic.get("partitions") or ():
                yield (topic["name"], each.get("partitionIndex")), each
