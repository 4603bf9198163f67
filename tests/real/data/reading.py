"""Sessions over ListOffsets (2), DeleteRecords (21) and OffsetForLeaderEpoch (23)."""

from __future__ import annotations

from kproto.records import Compression
from tests.real.data.batches import THEN, batch, record
from tests.real.data.registry import session
from tests.real.data.requests import (
    delete_records,
    epoch_end,
    fetch,
    fetch_row,
    list_offsets,
    produce,
    read_log,
)
from tests.real.data.side import Side


async def _filled(k: Side, *assignment: list[int]) -> None:
    """Three batches: timestamps rise, then fall, then two are equal."""
    await k.create(*assignment)
    rows = (
        (record(b"0", timestamp=THEN), record(b"1", timestamp=THEN + 1000)),
        (record(b"2", timestamp=THEN + 3000), record(b"3", timestamp=THEN + 500)),
        (record(b"4", timestamp=THEN + 2000), record(b"5", timestamp=THEN + 3000)),
    )
    for each in rows:
        await k.ask(produce(k, batch(*each)), quiet=True)


@session(2, since=2)
async def list_offsets_with_an_unknown_isolation_level(k: Side) -> None:
    await k.create([1], [1])
    for level in (2, -1):
        await k.ask(list_offsets(k, -1, -2, isolation=level))
        body = list_offsets(k, -1, isolation=level)
        body.topics += list_offsets(k, topic="unknown").topics
        body.topics += list_offsets(k, -1, partition=1).topics
        await k.ask(body)


@session(2)
async def list_special_offsets(k: Side) -> None:
    await _filled(k)
    for timestamp in (-1, -2, -3, -4, -5, -6, -7, -100):
        await k.ask(list_offsets(k, timestamp))


@session(2)
async def list_special_offsets_of_nothing(k: Side) -> None:
    await k.create()
    for timestamp in (-1, -2, -3, -4, -5, -6, 0, THEN):
        await k.ask(list_offsets(k, timestamp))


@session(2)
async def list_offsets_by_time(k: Side) -> None:
    await _filled(k)
    for delta in (-1, 0, 1, 500, 1000, 1001, 2000, 2999, 3000, 3001):
        await k.ask(list_offsets(k, THEN + delta))
    await k.ask(list_offsets(k, 0))


@session(2)
async def list_offsets_of_compressed_batches(k: Side) -> None:
    await k.create()
    for i, codec in enumerate(Compression):
        rows = [record(b"%d" % j, timestamp=THEN + 100 * i + j) for j in range(4)]
        await k.ask(produce(k, batch(*rows, compression=codec)), quiet=True)
    for delta in (0, 3, 4, 102, 203, 301, 403, 404):
        await k.ask(list_offsets(k, THEN + delta))
    await k.ask(list_offsets(k, -3 if k.version >= 7 else -1))


@session(2)
async def list_offsets_of_batches_with_append_time(k: Side) -> None:
    await k.create(message_timestamp_type="LogAppendTime")
    await k.ask(produce(k, batch(b"a", b"b")), quiet=True)
    await k.ask(list_offsets(k, THEN))
    await k.ask(list_offsets(k, -3 if k.version >= 7 else -1))


@session(2)
async def list_offsets_without_timestamps(k: Side) -> None:
    await k.create()
    await k.ask(produce(k, batch(record(b"a", timestamp=-1), record(b"b", timestamp=-1))))
    for timestamp in (0, THEN, -1, -2, -3 if k.version >= 7 else -1):
        await k.ask(list_offsets(k, timestamp))


@session(2)
async def list_offsets_after_delete_records(k: Side) -> None:
    await _filled(k)
    await k.ask(delete_records(k, (0, 3)))
    for timestamp in (-2, THEN, THEN + 3000, THEN + 2500, -3 if k.version >= 7 else -2):
        await k.ask(list_offsets(k, timestamp))
    await k.ask(delete_records(k, (0, -1)))
    for timestamp in (-2, -1, THEN, -3 if k.version >= 7 else -2):
        await k.ask(list_offsets(k, timestamp))


@session(2)
async def list_offsets_of_unknown(k: Side) -> None:
    await k.create()
    await k.ask(list_offsets(k, -1, partition=1))
    await k.ask(list_offsets(k, -1, partition=-1))
    await k.ask(list_offsets(k, -1, topic=f"{k.topic}.unknown"))
    await k.ask(list_offsets(k, -100, topic=f"{k.topic}.unknown"))


@session(2)
async def list_offsets_twice(k: Side) -> None:
    await _filled(k)
    await k.ask(list_offsets(k, -1, -2))
    await k.ask(list_offsets(k))


@session(2)
async def list_offsets_elsewhere(k: Side) -> None:
    await _filled(k, [1, 2])
    await k.create(topic=f"{k.topic}.one")
    for timestamp in (-1, -2, THEN):
        await k.ask(list_offsets(k, timestamp), broker=2)
    await k.ask(list_offsets(k, -1, topic=f"{k.topic}.one"), broker=2)


@session(2)
async def list_offsets_as_a_replica(k: Side) -> None:
    await _filled(k, [1, 2])
    for replica in (-2, 2, 5):
        await k.ask(list_offsets(k, -1, replica=replica))
    await k.ask(list_offsets(k, -2, replica=-2), broker=2)


@session(2, since=2)
async def list_committed_offsets(k: Side) -> None:
    await _filled(k)
    for timestamp in (-1, -2, THEN + 3000, THEN + 9000):
        await k.ask(list_offsets(k, timestamp, isolation=1))
    await k.ask(list_offsets(k, -1, isolation=7))


@session(2, since=4)
async def list_offsets_with_a_leader_epoch(k: Side) -> None:
    await _filled(k)
    for epoch in (-1, 0, 1, -2):
        await k.ask(list_offsets(k, -1, leader_epoch=epoch))


# ---- 21 DeleteRecords ------------------------------------------------------------------------


@session(21)
async def delete_some_records(k: Side) -> None:
    await _filled(k)
    for offset in (1, 3, 3, 2, 0, 6):
        await k.ask(delete_records(k, (0, offset)))
    await read_log(k)
    await k.ask(fetch(k, fetch_row(0, 0)))


@session(21)
async def delete_all_records(k: Side) -> None:
    await _filled(k)
    await k.ask(delete_records(k, (0, -1)))
    await read_log(k)
    await k.ask(produce(k, batch(b"new")))
    await read_log(k)


@session(21)
async def delete_records_out_of_range(k: Side) -> None:
    await _filled(k)
    for offset in (7, -2, 1 << 40):
        await k.ask(delete_records(k, (0, offset)))
    await k.ask(delete_records(k, (0, 2), (1, 0), (-1, 0)))
    await k.ask(delete_records(k, (0, 0), topic=f"{k.topic}.unknown"))
    await k.ask(delete_records(k))
    await read_log(k)


@session(21)
async def delete_records_of_an_empty_partition(k: Side) -> None:
    await k.create()
    for offset in (-1, 0, 1):
        await k.ask(delete_records(k, (0, offset)))


@session(21)
async def delete_records_of_a_compacted_topic(k: Side) -> None:
    await k.create(cleanup_policy="compact")
    await k.create(topic=f"{k.topic}.both", cleanup_policy="compact,delete")
    await k.ask(produce(k, batch(b"a")))
    await k.ask(delete_records(k, (0, 1)))
    await k.ask(delete_records(k, (0, 99)))
    await k.ask(delete_records(k, (0, 0), topic=f"{k.topic}.both"))


@session(21)
async def delete_records_elsewhere(k: Side) -> None:
    await _filled(k, [1, 2])
    await k.ask(delete_records(k, (0, 2)), broker=2)
    await k.ask(delete_records(k, (0, 2)))
    await k.ask(delete_records(k, (0, 0), topic="__consumer_offsets"), broker=k.coordinator)


@session(21)
async def delete_records_twice_in_a_request(k: Side) -> None:
    await _filled(k)
    await k.ask(delete_records(k, (0, 1), (0, 3)))
    await read_log(k)


# ---- 23 OffsetForLeaderEpoch -----------------------------------------------------------------


@session(23)
async def epochs_of_one_leader(k: Side) -> None:
    await _filled(k)
    for epoch in (0, 1, 5, -1, -2):
        await k.ask(epoch_end(k, epoch))


@session(23)
async def epochs_of_nothing(k: Side) -> None:
    await k.create()
    for epoch in (0, 1, -1):
        await k.ask(epoch_end(k, epoch))
    await k.ask(epoch_end(k, 0, partition=3))
    await k.ask(epoch_end(k, 0, topic=f"{k.topic}.unknown"))


@session(23)
async def epochs_after_delete_records(k: Side) -> None:
    await _filled(k)
    await k.ask(delete_records(k, (0, 3)))
    await k.ask(epoch_end(k, 0))
    await k.ask(delete_records(k, (0, -1)))
    await k.ask(epoch_end(k, 0))


@session(23, since=2)
async def epochs_with_a_current_one(k: Side) -> None:
    await _filled(k)
    for current in (0, 1, -1):
        await k.ask(epoch_end(k, 0, current=current))


@session(23)
async def epochs_elsewhere(k: Side) -> None:
    await _filled(k, [1, 2])
    await k.ask(epoch_end(k, 0), broker=2)
    await k.create(topic=f"{k.topic}.one")
    await k.ask(epoch_end(k, 0, topic=f"{k.topic}.one"), broker=2)


@session(23)
async def epochs_twice(k: Side) -> None:
    await _filled(k)
    await k.ask(epoch_end(k, 0, 5))
