"""Sessions over Fetch (1): limits, errors, waiting, epochs, isolation, fetch sessions."""

from __future__ import annotations

import uuid

from kproto.messages import DeleteTopicsRequest
from tests.real.data.batches import batch
from tests.real.data.registry import session
from tests.real.data.requests import delete_records, fetch, fetch_row, produce, produce_rows
from tests.real.data.side import Failed, Side

SESSIONS = 7


async def _filled(k: Side, *assignment: list[int], batches: int = 3) -> None:
    """A topic whose every partition has some batches of two records, 77 bytes each."""
    rows = assignment or ([1],)
    await k.create(*rows)
    for index in range(len(rows)):
        for i in range(batches):
            body = produce(k, batch(b"%d" % i, b"%d." % i), partition=index)
            await k.ask(body, broker=rows[index][0], quiet=True)


async def _caught_up(k: Side, partition: int, broker: int) -> None:
    """Wait until a follower knows that all six records are committed."""
    for _ in range(2000):
        body = fetch(k, fetch_row(partition))
        answer = await k.exchange(body, k.version, broker, "main")
        if k.version < 11 or answer.responses[0].partitions[0].high_watermark == 6:
            return
    raise Failed(f"broker {broker} does not catch up")


@session(1)
async def fetch_from_everywhere(k: Side) -> None:
    await _filled(k)
    for offset in (0, 1, 2, 5, 6, 7, -1, 100):
        await k.ask(fetch(k, fetch_row(0, offset)))


@session(1)
async def fetch_from_an_empty_partition(k: Side) -> None:
    await k.create()
    for offset in (0, 1, -1):
        await k.ask(fetch(k, fetch_row(0, offset)))


@session(1)
async def fetch_unknown(k: Side) -> None:
    await _filled(k)
    unknown = f"{k.topic}.unknown"
    k.topic_ids[unknown] = uuid.UUID(int=77)
    k.names.text("AAAAAAAAAAAAAAAAAAAATQ", "an unknown id")
    await k.ask(fetch(k, fetch_row(0), fetch_row(1), topics=[(unknown, [fetch_row(0)])]))
    await k.ask(fetch(k, fetch_row(-1)))
    await k.ask(fetch(k))


@session(1)
async def fetch_elsewhere(k: Side) -> None:
    """From brokers that follow."""
    await _filled(k, [1, 2], [2, 1])
    await _caught_up(k, 0, 2)
    await _caught_up(k, 1, 1)
    await k.ask(fetch(k, fetch_row(0), fetch_row(1, 0)), broker=2)
    await k.ask(fetch(k, fetch_row(0), fetch_row(1, 100)), broker=1)
    await k.create(topic=f"{k.topic}.one")
    await k.ask(fetch(k, topics=[(f"{k.topic}.one", [fetch_row(0)])]), broker=2)


@session(1)
async def fetch_few_bytes(k: Side) -> None:
    """Limits of a partition: the first batch comes whole; the last one may be cut."""
    await _filled(k)
    size = len(batch(b"0", b"0."))
    for limit in (0, 1, size, size + 5, size + 40, 2 * size, 3 * size, 1000):
        await k.ask(fetch(k, fetch_row(0, partition_max_bytes=limit)))


@session(1)
async def fetch_few_bytes_of_many(k: Side) -> None:
    """Limits of the request: the first partition that has records, and what room is left."""
    await _filled(k, [1], [1], [1])
    size = len(batch(b"0", b"0."))
    rows = [fetch_row(0, 6), fetch_row(1), fetch_row(2)]
    for limit in (0, 1, 2 * size, 3 * size, 3 * size + 40, 4 * size, 6 * size):
        await k.ask(fetch(k, *rows, max_bytes=limit))
    small = [fetch_row(index, partition_max_bytes=size) for index in range(3)]
    await k.ask(fetch(k, *small, max_bytes=2 * size))


@session(1)
async def fetch_that_waits(k: Side) -> None:
    await k.create()
    waiting = k.start(fetch(k, fetch_row(0), max_wait_ms=20_000), "waiting")
    await k.still_waits(waiting)
    await k.ask(produce(k, batch(b"a")))
    await k.end(waiting)


@session(1)
async def fetch_that_waits_for_bytes(k: Side) -> None:
    await k.create()
    size = len(batch(b"a"))
    waiting = k.start(fetch(k, fetch_row(0), max_wait_ms=20_000, min_bytes=2 * size), "waiting")
    await k.ask(produce(k, batch(b"a")))
    await k.still_waits(waiting)
    await k.ask(produce(k, batch(b"b")))
    await k.end(waiting)


@session(1)
async def fetch_that_waits_in_vain(k: Side) -> None:
    await _filled(k)
    await k.ask(fetch(k, fetch_row(0, 6), max_wait_ms=100))
    await k.ask(fetch(k, fetch_row(0), max_wait_ms=100, min_bytes=100_000))


@session(1)
async def fetch_that_waits_no_longer(k: Side) -> None:
    """An error, an offset out of range, nothing to wait for: answered at once."""
    await _filled(k)
    for rows in ([fetch_row(0, 6), fetch_row(9)], [fetch_row(0, 99)], []):
        await k.ask(fetch(k, *rows, max_wait_ms=20_000))
    await k.ask(fetch(k, fetch_row(0, 6), max_wait_ms=20_000, min_bytes=0))


@session(1)
async def fetch_after_delete_records(k: Side) -> None:
    await _filled(k)
    await k.ask(delete_records(k, (0, 3)))
    for offset in (0, 2, 3, 4, 6):
        await k.ask(fetch(k, fetch_row(0, offset)))


@session(1)
async def fetch_that_waits_for_a_deleted_topic(k: Side) -> None:
    await _filled(k)
    waiting = k.start(fetch(k, fetch_row(0, 6), max_wait_ms=20_000), "waiting")
    await k.still_waits(waiting)
    body = DeleteTopicsRequest(topic_names=[k.topic], timeout_ms=20_000)
    await k.ask(body, version=5, quiet=True)
    await k.end(waiting)


@session(1, since=9)
async def fetch_with_a_leader_epoch(k: Side) -> None:
    await _filled(k)
    for epoch in (-1, 0, 1, 5, -2):
        await k.ask(fetch(k, fetch_row(0, leader_epoch=epoch)))


@session(1, since=12)
async def fetch_with_a_fetched_epoch(k: Side) -> None:
    await _filled(k)
    for epoch, offset in ((0, 2), (0, 6), (0, 7), (1, 2), (5, 0), (-1, 2)):
        await k.ask(fetch(k, fetch_row(0, offset, fetched_epoch=epoch)))
    await k.create(topic=f"{k.topic}.empty")
    await k.ask(fetch(k, topics=[(f"{k.topic}.empty", [fetch_row(0, 0, fetched_epoch=0)])]))


@session(1, since=4)
async def fetch_committed(k: Side) -> None:
    await _filled(k)
    await k.ask(fetch(k, fetch_row(0), isolation=1))
    await k.ask(fetch(k, fetch_row(0, 6), isolation=1))
    await k.ask(fetch(k, fetch_row(0, 60), isolation=1))
    await k.ask(fetch(k, fetch_row(0), isolation=5))


@session(1)
async def fetch_a_partition_twice(k: Side) -> None:
    await _filled(k)
    await k.ask(fetch(k, fetch_row(0, 0), fetch_row(0, 4)))


@session(1, since=11)
async def fetch_from_a_rack(k: Side) -> None:
    """No selector is configured: the rack says nothing."""
    await _filled(k, [1, 2])
    await k.ask(fetch(k, fetch_row(0), rack="there"))


@session(1, since=11)
async def fetch_from_a_follower(k: Side) -> None:
    await _filled(k, [1, 2])

    await _caught_up(k, 0, 2)
    await k.ask(fetch(k, fetch_row(0, 2)), broker=2)
    await k.ask(fetch(k, fetch_row(0, 6)), broker=2)
    await k.ask(fetch(k, fetch_row(0, 7)), broker=2)


# ---- sessions --------------------------------------------------------------------------------


@session(1, since=SESSIONS)
async def fetch_session_grows_and_shrinks(k: Side) -> None:
    await _filled(k, [1], [1])
    first = await k.ask(fetch(k, fetch_row(0), session=(0, 0)), quiet=True)
    k.names.session(first.session_id)
    await k.ask(fetch(k, fetch_row(0, 6), session=(first.session_id, 1)))
    await k.ask(fetch(k, session=(first.session_id, 2)))
    await k.ask(fetch(k, fetch_row(1), session=(first.session_id, 3)))
    await k.ask(fetch(k, session=(first.session_id, 4)))
    await k.ask(fetch(k, fetch_row(1, 6), session=(first.session_id, 5)))
    await k.ask(produce(k, batch(b"new")))
    await k.ask(fetch(k, session=(first.session_id, 6)))
    await k.ask(fetch(k, session=(first.session_id, 7), forget=[(k.topic, [0])]))
    await k.ask(fetch(k, session=(first.session_id, 8), forget=[(k.topic, [1])]))
    await k.ask(fetch(k, session=(first.session_id, 9)))


@session(1, since=SESSIONS)
async def fetch_session_made(k: Side) -> None:
    await _filled(k)
    first = await k.exchange(fetch(k, fetch_row(0), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    k.note(fetch(k), k.version, first)
    empty = await k.exchange(fetch(k, session=(0, 0)), k.version, 1, "main")
    k.names.session(empty.session_id, "second")
    k.note(fetch(k), k.version, empty)


@session(1, since=SESSIONS)
async def fetch_session_unknown(k: Side) -> None:
    await _filled(k)
    await k.ask(fetch(k, fetch_row(0), session=(12345, 1)))
    await k.ask(fetch(k, fetch_row(0), session=(12345, -1)))
    await k.ask(fetch(k, fetch_row(0), session=(0, 1)))
    await k.ask(fetch(k, fetch_row(0), session=(0, -2)))
    await k.ask(fetch(k, fetch_row(0), session=(-5, -1)))


@session(1, since=SESSIONS)
async def fetch_session_epochs(k: Side) -> None:
    await _filled(k)
    first = await k.exchange(fetch(k, fetch_row(0), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    for epoch in (2, 0x7FFFFFFF, 1, 1, 3, 2):
        await k.ask(fetch(k, session=(first.session_id, epoch)))


@session(1, since=SESSIONS)
async def fetch_session_ended(k: Side) -> None:
    await _filled(k)
    first = await k.exchange(fetch(k, fetch_row(0), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    await k.ask(fetch(k, fetch_row(0), session=(first.session_id, -1)))
    await k.ask(fetch(k, session=(first.session_id, 1)))


@session(1, since=SESSIONS)
async def fetch_session_replaced(k: Side) -> None:
    await _filled(k)
    first = await k.exchange(fetch(k, fetch_row(0), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    body = fetch(k, fetch_row(0, 2), session=(first.session_id, 0))
    second = await k.exchange(body, k.version, 1, "main")
    k.names.session(second.session_id, "second")
    k.note(body, k.version, second)
    await k.ask(fetch(k, session=(first.session_id, 1)))
    await k.ask(fetch(k, session=(second.session_id, 1)))


@session(1, since=SESSIONS)
async def fetch_session_with_errors(k: Side) -> None:
    """An error is told again, and a partition that recovers is, too."""
    await _filled(k, [1], [1])
    body = fetch(k, fetch_row(0, 99), fetch_row(1, 6), fetch_row(7), session=(0, 0))
    first = await k.exchange(body, k.version, 1, "main")
    k.names.session(first.session_id)
    k.note(body, k.version, first)
    await k.ask(fetch(k, session=(first.session_id, 1)))
    await k.ask(fetch(k, fetch_row(0, 6), session=(first.session_id, 2)))
    await k.ask(fetch(k, session=(first.session_id, 3)))


@session(1, since=SESSIONS)
async def fetch_session_log_start_moves(k: Side) -> None:
    await _filled(k, [1], [1])
    rows = [fetch_row(0, 6), fetch_row(1, 6)]
    first = await k.exchange(fetch(k, *rows, session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    await k.ask(delete_records(k, (0, 2)))
    await k.ask(fetch(k, session=(first.session_id, 1)))
    await k.ask(fetch(k, session=(first.session_id, 2)))


@session(1, since=SESSIONS)
async def fetch_session_at_another_broker(k: Side) -> None:
    await _filled(k, [1, 2])
    first = await k.exchange(fetch(k, fetch_row(0), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    await k.ask(fetch(k, session=(first.session_id, 1)), broker=2)
    await k.ask(fetch(k, session=(first.session_id, 1)))


@session(1, since=SESSIONS)
async def fetch_session_that_waits(k: Side) -> None:
    await _filled(k)
    first = await k.exchange(fetch(k, fetch_row(0, 6), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    waiting = k.start(fetch(k, session=(first.session_id, 1), max_wait_ms=20_000), "waiting")
    await k.still_waits(waiting)
    await k.ask(produce_rows(k, (k.topic, 0, batch(b"new"))))
    await k.end(waiting)
    await k.ask(fetch(k, session=(first.session_id, 2), max_wait_ms=50))


@session(1, since=13)
async def fetch_session_mixed_with_names(k: Side) -> None:
    """Made with topic ids, continued by names."""
    await _filled(k)
    first = await k.exchange(fetch(k, fetch_row(0), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    await k.ask(fetch(k, fetch_row(0), session=(first.session_id, 1)), version=12)


@session(1, since=SESSIONS)
async def fetch_sessions_that_cannot_be(k: Side) -> None:
    """Brokers since 3.8 look for a session in the part of its id, which these do not have."""
    await _filled(k)
    for session_id in (2**31 - 1, 2147483640, 2147483639, -268435454, -268435455, -(2**31)):
        for epoch in (-1, 0, 1):
            k.names.session(session_id)
            await k.ask(fetch(k, fetch_row(0), session=(session_id, epoch)))


@session(1, since=4)
async def fetch_with_an_unknown_isolation_level(k: Side) -> None:
    """It matters to partitions that are read."""
    await _filled(k)
    k.topic_ids["unknown"] = uuid.UUID(int=77)
    unknown = ("unknown", [fetch_row(0)])
    for level in (2, -1):
        await k.ask(fetch(k, fetch_row(0), isolation=level))
        await k.ask(fetch(k, topics=[unknown], isolation=level))
        await k.ask(fetch(k, topics=[unknown, (k.topic, [fetch_row(0)])], isolation=level))
        await k.ask(fetch(k, isolation=level))
        if k.version >= SESSIONS:
            await k.ask(fetch(k, fetch_row(0), isolation=level, session=(99, 1)))


@session(1, since=SESSIONS, until=12)
async def fetch_session_mixed_with_ids(k: Side) -> None:
    """Made by names, continued with topic ids."""
    await _filled(k)
    first = await k.exchange(fetch(k, fetch_row(0), session=(0, 0)), k.version, 1, "main")
    k.names.session(first.session_id)
    await k.ask(fetch(k, fetch_row(0), session=(first.session_id, 1)), version=13)
