"""The methods of ``MockCluster`` that seed, show and disturb logs and groups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from mockbroker.cluster import Cluster
from mockbroker.data_steps import DataSteps
from mockbroker.errors import ClusterError
from mockbroker.log.partitioner import partition_of_key
from mockbroker.log.record_documents import (
    CODECS,
    BatchDocument,
    LoggedRecord,
    RecordDocument,
    UnreadableBatch,
)
from mockbroker.log.seeding import read_records

__all__ = ["DataMethods", "HeaderValues"]

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound=DataSteps)

HeaderValues = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]]
"""The headers of a record."""

_SHOWN: Final = 20
"""The most records that a failed assertion lists."""


def _step(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[DataMethods, P], T]:
    """Return a method that brings the clock up to date and takes this step of the cluster."""

    @functools.wraps(method)
    def take(self: DataMethods, /, *arguments: P.args, **options: P.kwargs) -> T:
        self.follow_clock()
        step: Callable[P, T] = getattr(self.cluster, method.__name__)
        return step(*arguments, **options)

    return take


class DataMethods:
    """What a ``MockCluster`` does with data. Its cluster has the steps (``data_steps``)."""

    cluster: Cluster

    def follow_clock(self) -> None:
        """Bring the simulated time up to real time, unless the clock is manual."""
        raise NotImplementedError

    # ---- steps on logs -----------------------------------------------------------------------

    hold_replication = _step(DataSteps.hold_replication)
    replicate = _step(DataSteps.replicate)
    release_replication = _step(DataSteps.release_replication)
    lag_high_watermark = _step(DataSteps.lag_high_watermark)
    append = _step(DataSteps.append)
    truncate = _step(DataSteps.truncate)
    unclean_election = _step(DataSteps.unclean_election)
    jump_log_start = _step(DataSteps.jump_log_start)
    roll_segment = _step(DataSteps.roll_segment)
    apply_retention = _step(DataSteps.apply_retention)
    compact = _step(DataSteps.compact)
    corrupt_batch = _step(DataSteps.corrupt_batch)

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
        offset = self.cluster.append_batch(tp, BatchDocument((given,), codec))
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

        These are the leader's, to the end of its log, or with ``committed`` to the high watermark;
        control records are left out. Raises ClusterError for a topic that does not exist, and for a
        batch that cannot be decoded.
        """
        self.follow_clock()
        known = self.cluster.topics.get(topic)
        if known is None:
            raise ClusterError(f"there is no topic {topic!r}")
        indexes = range(len(known.partitions)) if partition is None else [partition]
        found: list[LoggedRecord] = []
        for index in indexes:
            log = self.cluster.logs.log((topic, index))
            for each in read_records((topic, index), log):
                if isinstance(each, UnreadableBatch):
                    raise ClusterError(
                        f"{topic}-{index}: the batch of offsets {each.base_offset} to "
                        f"{each.last_offset} cannot be decoded: {each.problem}"
                    )
                if not committed or each.offset < log.high_watermark:
                    found.append(each)
        return found

    # ---- assertions --------------------------------------------------------------------------

    def assert_produced(
        self,
        topic: str,
        *,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        partition: int | None = None,
        times: int | None = None,
    ) -> list[LoggedRecord]:
        """Assert that the topic has records with this value, key and partition, as far as they are
        given: ``times`` of them, at least one without it. Returns these records."""
        __tracebackhide__ = True
        records = self.records(topic)
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
            wanted = "at least one" if times is None else str(times)
            raise AssertionError(
                f"{topic} has {len(found)} records{' with ' + what if what else ''}, not {wanted}. "
                f"Its records:\n{_listed(records)}"
            )
        return found


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
