"""Sessions over ShareFetch (78) and ShareAcknowledge (79), KIP-932.

A fetch that has to wait for records waits long, one that finds none only for a moment: a broker of
Kafka loads a share partition after the first fetch has come. No fetch releases records where there
are others to acquire: Kafka nearly always acquires only those, but it is a race.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kproto.messages import share_acknowledge_request as acks
from kproto.messages import share_fetch_request as fetches
from kproto.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kproto.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kproto.messages.share_fetch_request import ShareFetchRequest
from kproto.schema.model import ZERO_UUID
from tests.real.data.batches import HOUR_MS, NOW, batch, record
from tests.real.data.registry import session
from tests.real.data.requests import delete_records, produce
from tests.real.data.share_groups import OTHERS, configure, join, leave, shared
from tests.real.data.side import Side
from tests.real.data.transactions import NEEDS as TRANSACTIONS
from tests.real.data.transactions import NEWEST_PRODUCE_OF_VERSION_1, Producer

Types = tuple[int, int, Sequence[int]]
"""First and last offset, and acknowledge types: 0 gap, 1 accept, 2 release, 3 reject, 4 renew."""

SHORT_MS: Final = 300
LONG_MS: Final = 20_000
LOCK_MS: Final = 1000
"""The shortest lock that a group may have."""


def rows(kind: Any, *batches: Types) -> list[Any]:
    return [
        kind(first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in batches
    ]


def share_fetch(
    k: Side, epoch: int, *batches: Types, member: str | None = "a", partitions: Sequence[int] = (),
    forget: Sequence[int] = (), topic: str | None = None, **fields: Any,
) -> ShareFetchRequest:  # fmt: skip
    """A fetch of partition 0, whose acknowledgements are ``batches``, and of other partitions;
    later ones of a session have no partitions but these."""
    topic_id = k.topic_ids.get(topic or k.topic, ZERO_UUID)
    first = [0] if batches or (epoch == 0 and not partitions) else []
    sent = [
        fetches.FetchPartition(
            partition_index=each,
            acknowledgement_batches=rows(fetches.AcknowledgementBatch, *batches) * (each == 0),
        )
        for each in dict.fromkeys([*first, *partitions])
    ]
    given = {"max_wait_ms": SHORT_MS, "min_bytes": 1, "max_records": 100, "batch_size": 100}
    return ShareFetchRequest(
        group_id=fields.pop("group_id", k.group),
        member_id=member,
        share_session_epoch=epoch,
        topics=[fetches.FetchTopic(topic_id=topic_id, partitions=sent)] if sent else [],
        forgotten_topics_data=[
            fetches.ForgottenTopic(topic_id=topic_id, partitions=list(forget))
        ] if forget else [],
        **{**given, **fields},
    )  # fmt: skip


def awaited(k: Side, epoch: int, *batches: Types, **fields: Any) -> ShareFetchRequest:
    """A fetch for which there are records, now or before long."""
    return share_fetch(k, epoch, *batches, **{"max_wait_ms": LONG_MS, **fields})


def acknowledge(
    k: Side, epoch: int, *batches: Types, member: str | None = "a", partition: int = 0,
    topic: str | None = None, **fields: Any,
) -> ShareAcknowledgeRequest:  # fmt: skip
    sent = acks.AcknowledgePartition(
        partition_index=partition,
        acknowledgement_batches=rows(acks.AcknowledgementBatch, *batches),
    )
    topic_id = k.topic_ids.get(topic or k.topic, ZERO_UUID)
    return ShareAcknowledgeRequest(
        group_id=fields.pop("group_id", k.group),
        member_id=member,
        share_session_epoch=epoch,
        topics=[acks.AcknowledgeTopic(topic_id=topic_id, partitions=[sent])] if batches else [],
        **fields,
    )


async def write(k: Side, *counts: int, partition: int = 0, broker: int = 1) -> None:
    """Produce batches of so many records."""
    for count in counts:
        body = produce(k, batch(*(b"%d" % each for each in range(count))), partition)
        await k.ask(body, quiet=True, broker=broker)


# ---- deliveries ------------------------------------------------------------------------------


@session(78, since=1, needs=OTHERS)
async def share_acknowledge_in_fetches(k: Side) -> None:
    """Each type of acknowledgement, with fetches."""
    await shared(k)
    await write(k, 6)
    await k.ask(awaited(k, 0))
    await k.ask(awaited(k, 1, (0, 1, [1]), (2, 2, [2])))
    await k.ask(share_fetch(k, 2, (3, 5, [1, 3, 0])))
    await write(k, 2)
    await k.ask(awaited(k, 3, (2, 2, [3])))
    await k.ask(share_fetch(k, 4, (6, 7, [1])))
    await k.ask(share_fetch(k, 5))


@session(79, since=1, needs=OTHERS)
async def share_acknowledge_alone(k: Side) -> None:
    """Each type of acknowledgement, without fetches."""
    await shared(k)
    await write(k, 6)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (0, 1, [1]), (2, 2, [2])))
    await k.ask(acknowledge(k, 2, (3, 5, [1, 3, 0])))
    await k.ask(awaited(k, 3))
    await k.ask(acknowledge(k, 4))
    await k.ask(acknowledge(k, -1, (2, 2, [1])))
    await k.ask(acknowledge(k, -1, (2, 2, [1])))
    await k.ask(share_fetch(k, 0))


@session(79, since=1, needs=OTHERS)
async def share_acknowledge_wrongly(k: Side) -> None:
    """Batches that make no sense, and records that the member does not have."""
    await shared(k)
    await write(k, 6, 4)
    await k.ask(awaited(k, 0))
    wrong: tuple[list[Types], ...] = (
        [(3, 2, [1])],
        [(0, 0, [])],
        [(0, 0, [9])],
        [(0, 0, [-1])],
        [(0, 0, [4])],
        [(0, 2, [1, 1])],
        [(0, 2, [1, 1, 1, 1])],
        [(0, 2, [1]), (2, 3, [1])],
        [(0, 3, [1]), (1, 2, [1])],
        [(4, 5, [1]), (0, 1, [1])],
        [(0, 1, [1]), (0, 1, [1])],
        [(0, 9, [1]), (9, 9, [1])],
        [(10, 11, [1])],
        [(8, 11, [1])],
        [(-2, -1, [1])],
        [(-1, 0, [1])],
        [(0, 1, [1])],
        [(0, 1, [1])],
        [(0, 2, [1])],
        [(2, 3, [2])],
        [(3, 4, [1])],
        [(2, 4, [1])],
        [(4, 4, [1]), (3, 3, [1])],
        [(4, 7, [3])],
        [(4, 9, [3])],
        [(8, 9, [1])],
        [(9, 9, [1])],
    )
    for epoch, batches in enumerate(wrong, start=1):
        await k.ask(acknowledge(k, epoch, *batches))
    await k.ask(share_fetch(k, len(wrong) + 1))


@session(78, since=1, needs=OTHERS)
async def share_acknowledge_wrongly_in_fetches(k: Side) -> None:
    await shared(k)
    await write(k, 4)
    await k.ask(share_fetch(k, 0, (0, 0, [1])))
    await k.ask(awaited(k, 0))
    wrong: tuple[list[Types], ...] = (
        [(1, 0, [1])], [(0, 0, [])], [(0, 0, [7])], [(0, 0, [4])], [(0, 1, [1, 1, 1])],
        [(0, 1, [1]), (1, 2, [1])], [(4, 4, [1])], [(2, 9, [1])], [(1, 1, [1])], [(1, 2, [1])],
    )  # fmt: skip
    for epoch, batches in enumerate(wrong, start=1):
        await k.ask(share_fetch(k, epoch, *batches))
    await k.ask(share_fetch(k, 11))


@session(78, since=1, needs=OTHERS)
async def share_implicitly(k: Side) -> None:
    """As a client that accepts what it has read with its next poll: whole batches of offsets."""
    await shared(k)
    await write(k, 3, 3)
    await k.ask(awaited(k, 0, max_records=3, batch_size=3))
    await k.ask(awaited(k, 1, (0, 2, [1]), max_records=3, batch_size=3))
    await write(k, 1)
    await k.ask(awaited(k, 2, (3, 5, [1]), max_records=3, batch_size=3))
    await k.ask(share_fetch(k, -1, (6, 6, [1])))
    await k.ask(share_fetch(k, 0))


@session(79, since=2, needs=OTHERS)
async def share_renew(k: Side) -> None:
    """Renewal of locks by requests of both kinds."""
    await shared(k)
    await write(k, 4)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (0, 1, [4]), is_renew_ack=True))
    await k.ask(acknowledge(k, 2, (0, 1, [4])))
    await k.ask(acknowledge(k, 3, (0, 3, [4, 1, 2, 4]), is_renew_ack=True))
    await k.ask(acknowledge(k, 4, (1, 1, [4]), is_renew_ack=True))
    nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    await k.ask(share_fetch(k, 5, (0, 0, [4]), is_renew_ack=True, **nothing))
    for name in nothing:
        await k.ask(share_fetch(k, 6, (0, 0, [4]), is_renew_ack=True, **{**nothing, name: 1}))
    await k.ask(share_fetch(k, 6, (0, 0, [4]), is_renew_ack=True))
    await k.ask(share_fetch(k, 6, (0, 0, [4])))
    await k.ask(share_fetch(k, 7, (0, 0, [1]), is_renew_ack=True, **nothing))
    await k.ask(share_fetch(k, 8))


@session(79, since=2, needs=OTHERS)
async def share_renew_where_forbidden(k: Side) -> None:
    await shared(k, share_renew_acknowledge_enable="false")
    await write(k, 2)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (0, 1, [4]), is_renew_ack=True))
    await k.ask(acknowledge(k, 2, (0, 1, [1, 4]), is_renew_ack=True))
    await k.ask(acknowledge(k, 3, (0, 1, [1]), is_renew_ack=True))


# ---- locks and deliveries again --------------------------------------------------------------


@session(78, since=1, needs=OTHERS)
async def share_locks_end(k: Side) -> None:
    """Records whose lock ends are delivered again, those that were acknowledged are not."""
    await shared(k, share_record_lock_duration_ms=str(LOCK_MS))
    await write(k, 4)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (1, 1, [1])), quiet=True)
    await asyncio.sleep(2 * LOCK_MS / 1000)
    await k.ask(awaited(k, 2))
    await k.ask(acknowledge(k, 3, (0, 3, [1])))
    await k.ask(acknowledge(k, 4, (0, 0, [1]), (2, 3, [1])))
    await k.ask(share_fetch(k, 5, max_wait_ms=2 * LOCK_MS))


@session(78, since=1, needs=OTHERS)
async def share_too_often(k: Side) -> None:
    """The limit of deliveries by releases, and by locks that end."""
    await shared(k, share_delivery_count_limit="2", share_record_lock_duration_ms=str(LOCK_MS))
    await write(k, 2)
    await k.ask(awaited(k, 0))
    await k.ask(awaited(k, 1, (0, 1, [2])))
    await k.ask(share_fetch(k, 2, (0, 1, [2])))
    await write(k, 2)
    await k.ask(awaited(k, 3))
    await asyncio.sleep(2 * LOCK_MS / 1000)
    await k.ask(awaited(k, 4))
    await k.ask(share_fetch(k, 5, max_wait_ms=2 * LOCK_MS))
    await k.ask(acknowledge(k, 6, (2, 3, [1])))


@session(78, since=1, needs=OTHERS)
async def share_again_and_again(k: Side) -> None:
    """Records that were delivered often come in smaller parts."""
    await shared(k)
    await write(k, 8)
    answer = await k.ask(awaited(k, 0))
    for epoch in range(1, 31, 2):
        ranges = [
            (each.first_offset, each.last_offset, [2])
            for topic in answer.responses
            for partition in topic.partitions
            for each in partition.acquired_records
        ]
        await k.ask(acknowledge(k, epoch, *ranges))
        answer = await k.ask(share_fetch(k, epoch + 1))


@session(78, since=1, needs=OTHERS)
async def share_parts_again(k: Side) -> None:
    """Released parts of several batches, which a limit of records cuts once more."""
    await shared(k)
    await write(k, 4, 4, 4)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (1, 2, [2]), (4, 7, [2]), (9, 9, [2])))
    for epoch in range(2, 6):
        await k.ask(share_fetch(k, epoch, max_records=3))


# ---- sessions and members --------------------------------------------------------------------


@session(78, since=1, needs=OTHERS)
async def share_session_epochs(k: Side) -> None:
    await shared(k)
    for epoch in (1, -1, -2, 5):
        await k.ask(share_fetch(k, epoch))
        await k.ask(acknowledge(k, epoch, (0, 0, [1])))
    await k.ask(acknowledge(k, 0, (0, 0, [1])))
    await write(k, 4)
    await k.ask(awaited(k, 0))
    await k.ask(share_fetch(k, 2))
    await k.ask(share_fetch(k, 0))
    await k.ask(share_fetch(k, 1))
    await k.ask(share_fetch(k, 1))
    await k.ask(acknowledge(k, 0, (0, 0, [1])))
    await k.ask(acknowledge(k, 3, (0, 0, [1])))
    await k.ask(acknowledge(k, -2, (0, 0, [1])))
    await k.ask(acknowledge(k, 2, (0, 0, [1])))
    await k.ask(acknowledge(k, 3))
    await k.ask(share_fetch(k, 4, (1, 1, [1])))
    await k.ask(share_fetch(k, -1, (2, 2, [1])))
    await k.ask(share_fetch(k, 5))
    await k.ask(share_fetch(k, -1))
    await k.ask(awaited(k, 0))


@session(78, since=1, needs=OTHERS)
async def share_wrong_members(k: Side) -> None:
    await shared(k)
    await write(k, 2)
    for member in (None, "", " ", "x" * 36, "x" * 37, "b"):
        await k.ask(share_fetch(k, 0, member=member))
        await k.ask(share_fetch(k, -1, member=member))
        await k.ask(acknowledge(k, 1, (0, 0, [1]), member=member))
    for group in (None, f"{k.group}.none"):
        await k.ask(share_fetch(k, 0, group_id=group))
        await k.ask(acknowledge(k, 1, (0, 0, [1]), group_id=group))


@session(78, since=1, needs=OTHERS)
async def share_among_two(k: Side) -> None:
    """Two members of one group, of whom one may not acknowledge for the other."""
    await shared(k)
    await join(k, "b")
    await write(k, 3, 3)
    await k.ask(awaited(k, 0, max_records=3))
    await k.ask(awaited(k, 0, member="b"))
    await k.ask(acknowledge(k, 1, (3, 5, [1])))
    await k.ask(acknowledge(k, 1, (0, 1, [1]), (3, 3, [1]), member="b"))
    await k.ask(acknowledge(k, 2, (0, 1, [1, 2])))
    await k.ask(acknowledge(k, 2, (3, 3, [1]), (2, 2, [1]), member="b"))
    await k.ask(awaited(k, 3, member="b"))
    await k.ask(acknowledge(k, 3, (0, 5, [1])))
    await k.ask(share_fetch(k, -1, member="b"))
    await k.ask(awaited(k, 4))


@session(78, since=1, needs=OTHERS)
async def share_after_leaving(k: Side) -> None:
    """The group's membership says nothing about sessions at the leaders."""
    await shared(k)
    await write(k, 2)
    await k.ask(awaited(k, 0))
    await leave(k)
    await k.ask(share_fetch(k, 1))
    await k.ask(acknowledge(k, 2, (0, 0, [1])))
    await k.ask(share_fetch(k, -1))
    await k.ask(awaited(k, 0, member="b"))


@session(78, since=1, needs=OTHERS)
async def share_connection_closed(k: Side) -> None:
    """A session goes with its connection, and what it had acquired comes back."""
    await shared(k)
    await write(k, 3)
    await k.ask(awaited(k, 0), connection="first")
    await k.ask(acknowledge(k, 1, (0, 0, [1])), connection="first")
    await k.ask(share_fetch(k, 2), connection="second")
    await k.hang_up("first")
    await k.ask(awaited(k, 0, member="b"), connection="second")
    await k.ask(share_fetch(k, 3), connection="second")


@session(78, since=1, needs=OTHERS)
async def share_after_a_session(k: Side) -> None:
    """A session that begins anew: the member keeps what it has acquired."""
    await shared(k)
    await write(k, 3)
    await k.ask(awaited(k, 0))
    await k.ask(share_fetch(k, 0))
    await k.ask(acknowledge(k, 1, (0, 2, [1])))


# ---- partitions ------------------------------------------------------------------------------


@session(78, since=1, needs=OTHERS)
async def share_wrong_partitions(k: Side) -> None:
    await shared(k)
    await k.ask(share_fetch(k, 0, partitions=[0, 9]))
    await k.ask(share_fetch(k, 1))
    await k.ask(share_fetch(k, 2, forget=[9]))
    await k.ask(share_fetch(k, 3))
    await k.ask(share_fetch(k, 4, partitions=[7]))
    await k.ask(acknowledge(k, 5, (0, 0, [1]), partition=9))
    await k.ask(acknowledge(k, 6, (0, 0, [1]), topic="none"))
    await k.ask(acknowledge(k, 7, (0, 0, [1])))
    await k.ask(share_fetch(k, 0, topic="none"))
    await k.ask(share_fetch(k, 1, topic="none"))
    await k.ask(share_fetch(k, 2, forget=[0], topic="none"))
    await k.ask(share_fetch(k, 3, forget=[0], topic="none"))
    await k.ask(share_fetch(k, 4))


@session(78, since=1, needs=OTHERS)
async def share_at_another_leader(k: Side) -> None:
    await shared(k, [1], [2])
    await k.ask(share_fetch(k, 0, partitions=[0, 1], max_wait_ms=1000))
    await write(k, 2)
    await write(k, 2, partition=1, broker=2)
    await k.ask(awaited(k, 0, partitions=[0, 1]))
    await k.ask(share_fetch(k, 1))
    await k.ask(acknowledge(k, 2, (0, 0, [1]), partition=1))
    await k.ask(awaited(k, 0, partitions=[1]), broker=2)
    await k.ask(acknowledge(k, 1, (0, 0, [1]), partition=1), broker=2)
    await k.ask(acknowledge(k, 2, (0, 0, [1])), broker=2)


@session(78, since=1, needs=OTHERS)
async def share_two_partitions(k: Side) -> None:
    """Answers of later fetches have partitions with news."""
    await shared(k, [1], [1])
    await k.ask(share_fetch(k, 0, partitions=[0, 1], max_wait_ms=1000))
    await write(k, 2)
    await k.ask(awaited(k, 0, partitions=[0, 1]))
    await write(k, 3, partition=1)
    await k.ask(awaited(k, 1))
    await k.ask(share_fetch(k, 2, (0, 1, [1])))
    await k.ask(share_fetch(k, 3, forget=[1]))
    await write(k, 1, partition=1)
    await k.ask(share_fetch(k, 4))
    await k.ask(awaited(k, 5, partitions=[1]))


@session(78, since=1, needs=OTHERS)
async def share_without_state(k: Side) -> None:
    """A group that no member has subscribed to the topic."""
    await k.create()
    await write(k, 2)
    await k.ask(share_fetch(k, 0))
    await k.ask(share_fetch(k, 1))
    await k.ask(acknowledge(k, 2, (0, 0, [1])))


@session(78, since=1, needs=OTHERS)
async def share_a_deleted_topic(k: Side) -> None:
    await shared(k)
    await write(k, 2)
    await k.ask(awaited(k, 0))
    body = DeleteTopicsRequest(topics=[DeleteTopicState(name=k.topic)], timeout_ms=10_000)
    await k.ask(body, quiet=True)
    await k.gone(k.topic)
    await k.ask(share_fetch(k, 1))
    await k.ask(acknowledge(k, 2, (0, 0, [1])))


@session(78, since=1, needs=OTHERS)
async def share_deleted_records(k: Side) -> None:
    """The log begins behind what is in flight, and behind the start offset."""
    await shared(k)
    await write(k, 2, 2, 2)
    await k.ask(awaited(k, 0, max_records=2))
    await k.ask(delete_records(k, (0, 3)), quiet=True)
    await k.ask(awaited(k, 1))
    await k.ask(acknowledge(k, 2, (0, 1, [1])))
    await k.ask(acknowledge(k, 3, (3, 5, [2])))
    await k.ask(delete_records(k, (0, 5)), quiet=True)
    await k.ask(awaited(k, 4))
    await k.ask(share_fetch(k, 5))


# ---- where a group begins --------------------------------------------------------------------


@session(78, since=1, needs=OTHERS)
async def share_from_the_end(k: Side) -> None:
    await shared(k, share_auto_offset_reset="latest")
    await write(k, 2)
    await k.ask(share_fetch(k, 0, max_wait_ms=1000))
    await write(k, 2)
    await k.ask(awaited(k, 1))


@session(78, since=1, needs=OTHERS)
async def share_from_a_time(k: Side) -> None:
    await shared(k, share_auto_offset_reset="by_duration:PT90M")
    for hours in (3, 2, 1):
        old = batch(record(b"%d" % hours, timestamp=NOW - hours * HOUR_MS))
        await k.ask(produce(k, old), quiet=True)
    await k.ask(awaited(k, 0))
    await k.ask(share_fetch(k, 1))


@session(78, since=1, needs=OTHERS)
async def share_from_a_time_without_records(k: Side) -> None:
    await shared(k, share_auto_offset_reset="by_duration:PT1M")
    await write(k, 2)
    await k.ask(share_fetch(k, 0, max_wait_ms=1000))
    await k.ask(acknowledge(k, 1, (0, 0, [1])))
    await write(k, 1)
    await k.ask(share_fetch(k, 2, max_wait_ms=1000))
    await k.ask(produce(k, batch(record(b"new", timestamp=NOW + HOUR_MS))), quiet=True)
    await k.ask(awaited(k, 3))


# ---- limits ----------------------------------------------------------------------------------


@session(78, since=1, needs=OTHERS)
async def share_limits(k: Side) -> None:
    """Limits of records and bytes, in terms of batches of the log."""
    await shared(k)
    await write(k, 5, 5, 5, 5)
    await k.ask(awaited(k, 0, max_records=1))
    await k.ask(awaited(k, 1, max_records=7))
    await k.ask(share_fetch(k, 2, max_records=0))
    await k.ask(acknowledge(k, 3, (0, 14, [2])))
    await k.ask(awaited(k, 4, batch_size=2, max_records=12))
    await k.ask(share_fetch(k, 5, (0, 9, [2]), max_bytes=0))
    await k.ask(share_fetch(k, 6, max_bytes=1))
    await k.ask(share_fetch(k, 7, batch_size=5))
    await k.ask(share_fetch(k, 8))


@session(78, since=1, needs=OTHERS)
async def share_batch_sizes(k: Side) -> None:
    """How many records of the log a range of acquired records has."""
    await shared(k)
    await write(k, 2, 3, 4, 1, 1, 6)
    await k.ask(awaited(k, 0, batch_size=4, max_records=7))
    await k.ask(awaited(k, 1, batch_size=1))
    await k.ask(share_fetch(k, -1))
    await k.ask(awaited(k, 0, batch_size=0))


@session(78, since=2, needs=OTHERS)
async def share_by_record_limit(k: Side) -> None:
    """The acquire mode that keeps the limit of records."""
    await shared(k)
    await write(k, 5, 5)
    await k.ask(awaited(k, 0, max_records=3, share_acquire_mode=1))
    await k.ask(awaited(k, 1, max_records=4, share_acquire_mode=1))
    await k.ask(acknowledge(k, 2, (0, 3, [2])))
    await k.ask(awaited(k, 3, max_records=2, share_acquire_mode=1))
    await k.ask(awaited(k, 4, max_records=30, batch_size=1, share_acquire_mode=1))
    await k.ask(share_fetch(k, 5, (0, 9, [2]), max_records=0, share_acquire_mode=1))
    await k.ask(awaited(k, 6, max_records=4, share_acquire_mode=1))
    await k.ask(share_fetch(k, 7, (0, 0, [1]), max_records=3, share_acquire_mode=9))
    await k.ask(share_fetch(k, 8))
    await k.ask(acknowledge(k, 8, (0, 1, [1])))
    await k.ask(acknowledge(k, 9, (1, 1, [1])))


@session(78, since=1, needs=OTHERS)
async def share_locks_of_a_partition(k: Side) -> None:
    """No more records are in flight than the group's limit."""
    await shared(k, share_partition_max_record_locks="100")
    await write(k, *[30] * 5)
    await k.ask(awaited(k, 0, max_records=500, batch_size=500))
    await k.ask(share_fetch(k, 1, max_records=500))
    await k.ask(awaited(k, 2, (30, 40, [2]), max_records=500))
    await k.ask(awaited(k, 3, (0, 50, [1]), max_records=500))


@session(78, since=1, needs=OTHERS)
async def share_waiting(k: Side) -> None:
    """A fetch waits for records, for bytes, and for records that another member releases."""
    await shared(k)
    await join(k, "b")
    waiting = k.start(awaited(k, 0), "waiting")
    await k.still_waits(waiting)
    await write(k, 2)
    await k.end(waiting)
    waiting = k.start(awaited(k, 0, member="b"), "other")
    await k.still_waits(waiting)
    await k.ask(acknowledge(k, 1, (0, 1, [2, 1])), connection="waiting")
    await k.end(waiting)
    waiting = k.start(awaited(k, 2, min_bytes=200), "waiting")
    await write(k, 1)
    await k.still_waits(waiting)
    await write(k, 20)
    await k.end(waiting)


# ---- transactions ----------------------------------------------------------------------------


async def _transactions(k: Side, level: str) -> None:
    await shared(k, share_isolation_level=level)
    one = await Producer(k, "one", f"{k.group}.one").init()
    two = await Producer(k, "two", f"{k.group}.two").init()
    await write(k, 1)
    for producer in (one, two):
        await producer.added()
        await producer.write(b"1", b"2", version=NEWEST_PRODUCE_OF_VERSION_1, quiet=True)
    await k.ask(awaited(k, 0))
    await one.ended(commit=False, version=3)
    await k.ask(share_fetch(k, 1))
    await two.ended(version=3)
    await write(k, 1)
    await k.ask(awaited(k, 2))
    await k.ask(share_fetch(k, 3))
    await k.ask(acknowledge(k, 4, (0, 0, [2]), (3, 4, [2])))
    await k.ask(awaited(k, 5))


@session(78, since=1, needs=(*OTHERS, *TRANSACTIONS))
async def share_read_committed(k: Side) -> None:
    await _transactions(k, "read_committed")


@session(78, since=1, needs=(*OTHERS, *TRANSACTIONS))
async def share_read_uncommitted(k: Side) -> None:
    await _transactions(k, "read_uncommitted")


@session(78, since=1, needs=(*OTHERS, *TRANSACTIONS))
async def share_another_isolation(k: Side) -> None:
    """The group changes its isolation level between fetches."""
    await shared(k)
    one = await Producer(k, "one", f"{k.group}.one").init()
    await write(k, 2)
    await one.added()
    await one.write(b"1", b"2", version=NEWEST_PRODUCE_OF_VERSION_1, quiet=True)
    await k.ask(awaited(k, 0))
    await one.ended(commit=False, version=3)
    await configure(k, {"share.isolation.level": "read_committed"})
    await asyncio.sleep(0.2)
    await k.ask(acknowledge(k, 1, (0, 3, [2])))
    await k.ask(awaited(k, 2))
    await k.ask(share_fetch(k, 3))
