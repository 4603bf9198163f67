"""The methods of ``MockCluster`` that seed and show logs, groups and transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from mockbroker.errors import ClusterError
from mockbroker.simulation.clients.telemetry.pushes import Push, TelemetryView
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.groups.group_views import GroupView
from mockbroker.simulation.log.batches.record_documents import (
    CODECS,
    BatchDocument,
    LoggedRecord,
    RecordDocument,
    UnreadableBatch,
)
from mockbroker.simulation.log.producing.partitioner import partition_of_key
from mockbroker.simulation.log.seeding import read_records
from mockbroker.simulation.operations.subjects.logs import append_batch
from mockbroker.simulation.state.cluster_parts import TopicPartition
from mockbroker.simulation.state.timers import wait_for_call
from mockbroker.simulation.topics.spec import parse_topic_partition
from mockbroker.simulation.transactions.transaction_views import TransactionView

__all__ = ["DataMethods", "HeaderValues"]

T = TypeVar("T")

HeaderValues = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]
"""The headers of a record."""

_SHOWN: Final = 20
"""The most records that a failed assertion lists."""


class DataMethods:
    """What a ``MockCluster`` does with data besides operations."""

    cluster: Cluster

    def follow_clock(self) -> None:
        """Bring the simulated time up to real time, unless the clock is manual."""
        raise NotImplementedError

    # ---- records -----------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        *,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        headers: HeaderValues = (),
        timestamp: int | None = None,
        partition: int | None = None,
        codec: str = "none",
    ) -> LoggedRecord:
        """Append one record without a client, and return it with its place::

            mock.produce("foo", key="k", value="hello")

        Text is encoded as UTF-8; ``timestamp`` is in milliseconds, None is the cluster's time.
        Without ``partition`` a key decides as in Kafka's producers; a record without a key goes to
        partition 0. ``codec`` is none, gzip, snappy, lz4 or zstd. The checks of Produce do not
        apply. Raises ClusterError for a topic or a partition that does not exist.
        """
        self.follow_clock()
        known = self.cluster.topics.get(topic)
        if known is None:
            raise ClusterError(f"there is no topic {topic!r}")
        if codec not in CODECS:
            raise ClusterError(f"codec {codec!r} is none of {', '.join(CODECS)}")
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        given = RecordDocument(
            _encoded(key),
            _encoded(value),
            tuple((name, _encoded(each)) for name, each in pairs),
            timestamp,
        )
        if partition is None:
            partition = (
                0 if given.key is None else partition_of_key(given.key, len(known.partitions))
            )
        tp = (topic, partition)
        with self.cluster.turns.step():
            offset = append_batch(self.cluster, tp, BatchDocument((given,), codec))
        (record,) = (
            each
            for each in read_records(tp, self.cluster.logs.log(tp), offset)
            if isinstance(each, LoggedRecord) and each.offset == offset
        )
        return record

    def records(
        self, topic: str, partition: int | None = None, *, committed: bool = False
    ) -> list[LoggedRecord]:
        """Return the records in the logs of a topic, by partition and offset.

        These are the leader's, to the end of its log, without control records. With ``committed``
        they are those that a consumer with read_committed gets: to the last stable offset, without
        records of aborted transactions. Raises ClusterError for a topic that does not exist, and
        for a batch that cannot be decoded.
        """
        self.follow_clock()
        known = self.cluster.topics.get(topic)
        if known is None:
            raise ClusterError(f"there is no topic {topic!r}")
        indexes = range(len(known.partitions)) if partition is None else [partition]
        found: list[LoggedRecord] = []
        for index in indexes:
            log = self.cluster.logs.log((topic, index))
            for each in read_records((topic, index), log, committed=committed):
                if isinstance(each, UnreadableBatch):
                    raise ClusterError(
                        f"{topic}-{index}: the batch of offsets {each.base_offset} to "
                        f"{each.last_offset} cannot be decoded: {each.problem}"
                    )
                found.append(each)
        return found

    # ---- groups ------------------------------------------------------------------------------

    def groups(self) -> dict[str, GroupView]:
        """Return the groups by id, with their states and members."""
        self.follow_clock()
        groups = self.cluster.groups
        return {name: view for name in groups.groups if (view := groups.view(name)) is not None}

    def group(self, group: str) -> GroupView:
        """Return a group: its state and its members. Raises ClusterError if there is none."""
        self.follow_clock()
        found = self.cluster.groups.view(group)
        if found is None:
            raise ClusterError(f"there is no group {group!r}")
        return found

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a group: ``{("foo", 0): 3}``; empty if it has none."""
        self.follow_clock()
        return {tp: each.offset for tp, each in sorted(self.cluster.offsets[group].items())}

    async def wait_for_group(
        self,
        group: str,
        *,
        state: str | None = None,
        members: int | None = None,
        generation: int | None = None,
        timeout: float = 10.0,
    ) -> GroupView:
        """Wait until a group exists and has this state, number of members and generation, as far as
        they are given::

            await mock.wait_for_group("g", state="Stable", members=2)

        The condition is checked whenever the group changes. Raises TimeoutError after ``timeout``
        seconds, with what the group is then.
        """
        expected = {"state": state, "members": members, "generation": generation}

        def holds() -> GroupView | None:
            found = self.cluster.groups.view(group)
            if found is None:
                return None
            facts = (found.state, len(found.members), found.generation)
            pairs = zip(facts, expected.values(), strict=True)
            return found if all(b in (None, a) for a, b in pairs) else None

        view = await _wait_until(holds, self.cluster.groups.on_changed, timeout)
        if view is not None:
            return view
        known = self.cluster.groups.view(group)
        is_now = "does not exist" if known is None else f"is {known}"
        requested = ", ".join(
            f"{name} {each}" for name, each in expected.items() if each is not None
        )
        problem = f"group {group!r} {is_now} after {timeout:g} s, wanted: {requested or 'a group'}"
        raise TimeoutError(problem)

    async def wait_for_committed(
        self,
        group: str,
        offsets: Mapping[str, int] | Mapping[TopicPartition, int],
        *,
        timeout: float = 10.0,
    ) -> dict[TopicPartition, int]:
        """Wait until a group has committed these offsets, or later ones, and return all of its
        committed offsets::

            await mock.wait_for_committed("g", {"foo-0": 3})

        The condition is checked whenever an offset of the group changes. Raises TimeoutError after
        ``timeout`` seconds, with what is committed then.
        """
        expected = _by_partition(offsets)

        def holds() -> dict[TopicPartition, int] | None:
            found = self.committed(group)
            is_there = all(found.get(tp, -1) >= offset for tp, offset in expected.items())
            return found if is_there else None

        found = await _wait_until(holds, self.cluster.offsets.on_changed, timeout)
        if found is not None:
            return found
        raise TimeoutError(
            f"group {group!r} has committed {_offsets_text(self.committed(group))} after "
            f"{timeout:g} s, wanted: {_offsets_text(expected)}"
        )

    # ---- transactions ------------------------------------------------------------------------

    def transactions(self) -> dict[str, TransactionView]:
        """Return the transactional ids that coordinators know, with their states."""
        self.follow_clock()
        found = self.cluster.transactions
        return {name: found.view(each) for name, each in found.transactions.items()}

    def _transaction(self, transactional_id: str) -> TransactionView | None:
        self.follow_clock()
        found = self.cluster.transactions.transactions.get(transactional_id)
        return None if found is None else self.cluster.transactions.view(found)

    async def wait_for_transaction(
        self, transactional_id: str, *, state: str | None = None, timeout: float = 10.0
    ) -> TransactionView:
        """Wait until a transactional id exists and has this state, if one is given::

            await mock.wait_for_transaction("t", state="CompleteCommit")

        The condition is checked whenever the transaction changes. Raises TimeoutError after
        ``timeout`` seconds, with what the transaction is then.
        """

        def holds() -> TransactionView | None:
            found = self._transaction(transactional_id)
            return found if found is not None and state in (None, found.state) else None

        view = await _wait_until(holds, self.cluster.transactions.machine.on_changed, timeout)
        if view is not None:
            return view
        known = self._transaction(transactional_id)
        is_now = "does not exist" if known is None else f"is {known}"
        wanted = "any state" if state is None else f"state {state}"
        raise TimeoutError(
            f"transactional id {transactional_id!r} {is_now} after {timeout:g} s, wanted: {wanted}"
        )

    # ---- telemetry ---------------------------------------------------------------------------

    def telemetry(self) -> TelemetryView:
        """Return the subscriptions to clients' metrics, the client instances, and the metrics that
        they pushed::

            names = {m.name for push in mock.telemetry().pushes for m in push.metrics}
        """
        self.follow_clock()
        return self.cluster.telemetry.view()

    async def wait_for_push(self, metric: str = "", *, timeout: float = 10.0) -> Push:
        """Wait until a client has pushed metrics, with one whose name starts with ``metric``, and
        return the first such push. Raises TimeoutError after ``timeout`` seconds.
        """

        def holds() -> Push | None:
            return next(
                (
                    push
                    for push in self.cluster.telemetry.view().pushes
                    if push.problem is None
                    and any(each.name.startswith(metric) for each in push.metrics)
                ),
                None,
            )

        found = await _wait_until(holds, self.cluster.telemetry.on_push, timeout)
        if found is not None:
            return found
        pushes = len(self.cluster.telemetry.view().pushes)
        raise TimeoutError(
            f"no push has a metric {metric!r} after {timeout:g} s; {pushes} pushes came"
        )

    # ---- assertions --------------------------------------------------------------------------

    def assert_produced(
        self,
        topic: str,
        *,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int | None = None,
        times: int | None = None,
        committed: bool = False,
    ) -> list[LoggedRecord]:
        """Assert that the topic has records with this value, key and partition, as far as they are
        given: ``times`` of them, at least one without it. ``committed`` counts only what
        ``records(committed=True)`` has. Returns these records."""
        __tracebackhide__ = True
        records = self.records(topic, committed=committed)
        wanted_value, wanted_key = _encoded(value), _encoded(key)
        found = [
            each
            for each in records
            if (value is None or each.value == wanted_value)
            and (key is None or each.key == wanted_key)
            and partition in (None, each.partition)
        ]
        if not found if times is None else len(found) != times:
            given = {"value": value, "key": key, "partition": partition}
            what = ", ".join(f"{name} {each!r}" for name, each in given.items() if each is not None)
            expected = "at least one" if times is None else str(times)
            raise AssertionError(
                f"{topic} has {len(found)} {'committed ' * committed}records"
                f"{' with ' + what if what else ''}, "
                f"not {expected}. Its records:\n{_listed(records)}"
            )
        return found

    def assert_committed(
        self, group: str, offsets: Mapping[str, int] | Mapping[TopicPartition, int]
    ) -> None:
        """Assert that a group has committed these offsets, at least: ``{"foo-0": 3}``."""
        __tracebackhide__ = True
        found, expected = self.committed(group), _by_partition(offsets)
        if any(found.get(tp) != offset for tp, offset in expected.items()):
            raise AssertionError(
                f"group {group!r} has committed {_offsets_text(found)}, "
                f"not {_offsets_text(expected)}"
            )


async def _wait_until(
    check: Callable[[], T | None], listeners: list[Callable[[str], None]], timeout: float
) -> T | None:
    """Call ``check`` now and whenever the listeners are called, until it returns a value, and again
    once that change is complete. Returns None after ``timeout`` seconds."""
    looks: list[Callable[[str], None]] = []

    def register(call: Callable[[], None]) -> None:
        def look(_name: str) -> None:
            if check() is not None:
                call()

        looks.append(look)
        listeners.append(look)
        look("")

    try:
        while await wait_for_call(register, int(timeout * 1000)):
            if (found := check()) is not None:
                return found
    finally:
        for look in looks:
            listeners.remove(look)
    return None


def _by_partition(
    offsets: Mapping[str, int] | Mapping[TopicPartition, int],
) -> dict[TopicPartition, int]:
    return {
        parse_topic_partition(each) if isinstance(each, str) else each: offset
        for each, offset in offsets.items()
    }


def _offsets_text(found: Mapping[TopicPartition, int]) -> str:
    texts = (f"{topic}-{index} {offset}" for (topic, index), offset in found.items())
    return ", ".join(texts) or "none"


def _encoded(given: bytes | str | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


def _listed(records: Sequence[LoggedRecord]) -> str:
    lines = [f"  {each.topic}-{each.partition} {_described(each)}" for each in records[-_SHOWN:]]
    if len(records) > _SHOWN:
        lines.insert(0, f"  ... {len(records) - _SHOWN} earlier records")
    return "\n".join(lines) or "  none"


def _described(record: LoggedRecord) -> str:
    parts: list[Any] = [f"offset {record.offset}"]
    if record.key is not None:
        parts.append(f"key {record.key!r:.80}")
    parts.append(f"value {record.value!r:.80}")
    if record.headers:
        parts.append(f"headers {dict(record.headers)!r:.80}")
    return ", ".join(parts)
