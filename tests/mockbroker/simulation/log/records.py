"""Append records to logs of a ``Cluster`` in tests."""

from collections.abc import Sequence

from kproto.records import Compression, Record, build_batch
from mockbroker.simulation.cluster import Cluster
from mockbroker.simulation.log.batches.batch_header import read_header

__all__ = ["append_batch", "append_times"]


def append_batch(cluster: Cluster, data: bytes, tp: tuple[str, int] = ("foo", 0)) -> int:
    """Append one batch as it is and return its base offset."""
    return cluster.logs.append(tp, data, read_header(data))


def append_times(
    cluster: Cluster,
    *timestamps: int,
    tp: tuple[str, int] = ("foo", 0),
    compression: Compression = Compression.NONE,
    keys: Sequence[bytes | None] = (),
) -> int:
    """Append a batch with a record for each timestamp and return its base offset."""
    records = [
        Record(timestamp=timestamp, key=keys[index] if keys else None, value=b"%d" % index)
        for index, timestamp in enumerate(timestamps)
    ]
    return append_batch(cluster, build_batch(records, compression=compression), tp)
