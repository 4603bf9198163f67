"""Sessions over Describe-, Alter- and DeleteShareGroupOffsets (90, 91, 92), KIP-932."""

from __future__ import annotations

from collections.abc import Sequence

from kproto.messages import alter_share_group_offsets_request as alter
from kproto.messages import delete_share_group_offsets_request as delete
from kproto.messages import describe_share_group_offsets_request as describe
from kproto.messages.delete_groups_request import DeleteGroupsRequest
from tests.real.data.registry import session
from tests.real.data.requests import commit, committed
from tests.real.data.share_fetches import acknowledge, awaited, share_fetch, write
from tests.real.data.share_groups import (
    AT_ONCE,
    FROM_THE_START,
    OTHERS,
    configure,
    join,
    leave,
    shared,
)
from tests.real.data.share_groups import describe as describe_group
from tests.real.data.side import Side


def described(
    k: Side, *groups: str, topics: Sequence[tuple[str, Sequence[int]]] | None = ()
) -> describe.DescribeShareGroupOffsetsRequest:
    """Partition 0 of the session's topic in the session's group, unless others are given; None: of
    all topics."""
    rows = None if topics is None else [
        describe.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(indexes))
        for name, indexes in topics or [(k.topic, [0])]
    ]  # fmt: skip
    return describe.DescribeShareGroupOffsetsRequest(
        groups=[
            describe.DescribeShareGroupOffsetsRequestGroup(group_id=each, topics=rows)
            for each in groups or [k.group]
        ]
    )


def altered(
    k: Side, *rows: tuple[int, int], group: str | None = None, topic: str | None = None
) -> alter.AlterShareGroupOffsetsRequest:
    """(partition, start offset) rows."""
    return alter.AlterShareGroupOffsetsRequest(
        group_id=k.group if group is None else group,
        topics=[
            alter.AlterShareGroupOffsetsRequestTopic(
                topic_name=topic or k.topic,
                partitions=[
                    alter.AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offset
                    )
                    for index, offset in rows
                ],
            )
        ],
    )


def deleted(
    k: Side, *topics: str, group: str | None = None
) -> delete.DeleteShareGroupOffsetsRequest:
    return delete.DeleteShareGroupOffsetsRequest(
        group_id=k.group if group is None else group,
        topics=[
            delete.DeleteShareGroupOffsetsRequestTopic(topic_name=each)
            for each in topics or [k.topic]
        ],
    )


# ---- 90 DescribeShareGroupOffsets ------------------------------------------------------------


@session(90, needs=OTHERS)
async def share_offsets_described(k: Side) -> None:
    """How offsets move with acknowledgements."""
    await shared(k)
    await k.ask(described(k))
    await k.ask(share_fetch(k, 0))
    await k.ask(described(k))
    await write(k, 6)
    await k.ask(described(k))
    await k.ask(awaited(k, 1))
    await k.ask(described(k))
    for epoch, row in enumerate(((3, 3, [1]), (0, 1, [1]), (2, 2, [2]), (4, 5, [3])), start=2):
        await k.ask(acknowledge(k, epoch, row))
        await k.ask(described(k))
        await k.ask(described(k, topics=None))
    await k.ask(awaited(k, 6))
    await k.ask(acknowledge(k, 7, (2, 2, [1])))
    await k.ask(described(k))
    await k.ask(share_fetch(k, -1))
    await k.ask(described(k))


@session(90, needs=OTHERS)
async def share_offsets_described_wrongly(k: Side) -> None:
    await shared(k, [1], [1])
    none = f"{k.group}.none"
    await k.ask(described(k, topics=[(k.topic, [0, 1, 9]), ("none", [0])]))
    await k.ask(described(k, topics=[(k.topic, [])]))
    await k.ask(described(k, topics=[(k.topic, [0]), (k.topic, [1, 1])]))
    await k.ask(described(k, k.group, none))
    await k.ask(described(k, k.group, none, topics=None))
    await k.ask(described(k, ""))
    await k.ask(described(k, "", topics=None))
    await k.ask(described(k), broker=k.other_broker)
    await k.ask(described(k, topics=None), broker=k.other_broker)
    await k.ask(describe.DescribeShareGroupOffsetsRequest(groups=[]))
    await k.ask(commit(k, (0, 1, ""), group=f"{k.group}.classic"), quiet=True)
    await k.ask(described(k, f"{k.group}.classic"))
    await k.ask(described(k, f"{k.group}.classic", topics=None))
    await k.ask(committed(k, 0))
    await k.ask(commit(k, (0, 1, "")))


# ---- 91 AlterShareGroupOffsets ---------------------------------------------------------------


async def _read(k: Side, *, ends: bool = True) -> None:
    """Fetch with a connection of its own, as a client that comes and goes, and may end its session
    before."""
    await k.ask(share_fetch(k, 0, max_wait_ms=2000), connection="reader")
    if ends:
        await k.ask(share_fetch(k, -1), connection="reader")
    await k.hang_up("reader")


@session(91, needs=OTHERS)
async def share_offsets_altered(k: Side) -> None:
    """A group goes back, ahead, and behind the end, and reads from there."""
    await shared(k, [1], [1])
    await write(k, 4, 2)
    await k.ask(altered(k, (0, 2)))
    await leave(k)
    for offset in (2, 5, 9, 0):
        await k.ask(altered(k, (0, offset), (1, 0)))
        await k.ask(described(k, topics=[(k.topic, [0, 1])]))
        await join(k)
        await _read(k, ends=offset > 2)
        await leave(k)
        await k.ask(described(k, topics=[(k.topic, [0, 1])]))


@session(91, needs=OTHERS)
async def share_offsets_altered_in_a_session(k: Side) -> None:
    """The leader of the partition knows nothing of it until it stores something."""
    await shared(k)
    await write(k, 4, 2)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (0, 2, [1])))
    await leave(k)
    await k.ask(altered(k, (0, 1)))
    await k.ask(described(k))
    await k.ask(share_fetch(k, 2))
    await k.ask(acknowledge(k, 3, (0, 0, [1])))
    await k.ask(acknowledge(k, 4, (9, 9, [1])))
    await k.ask(acknowledge(k, 5, (3, 3, [1])))
    await k.ask(acknowledge(k, 6, (4, 4, [1])))
    await k.ask(described(k))
    await k.ask(awaited(k, 7))
    await k.ask(acknowledge(k, 8, (1, 1, [1])))
    await k.ask(described(k))
    await k.ask(altered(k, (0, 5)))
    await k.ask(share_fetch(k, 9, (2, 2, [1])))
    await k.ask(share_fetch(k, 10))
    await k.ask(altered(k, (0, 0)))
    await k.ask(share_fetch(k, -1))
    await k.ask(awaited(k, 0))
    await k.ask(described(k))


@session(91, needs=OTHERS)
async def share_offsets_altered_before_members(k: Side) -> None:
    """The request makes the group."""
    await k.create()
    await write(k, 4)
    await k.ask(altered(k, (0, 3)))
    await k.ask(described(k))
    await k.ask(described(k, topics=None))
    await k.ask(describe_group(k.group))
    await configure(k, {**AT_ONCE, **FROM_THE_START})
    await join(k)
    await k.ask(awaited(k, 0))
    await k.ask(describe_group(k.group))


@session(91, needs=OTHERS)
async def share_offsets_altered_wrongly(k: Side) -> None:
    await k.create()
    await write(k, 2)
    for offset in (-1, -2, 1):
        await k.ask(altered(k, (0, offset)))
        await k.ask(described(k))
        await _read(k)
        await k.ask(described(k))
    await k.ask(altered(k, (0, 0), (9, 0)))
    await k.ask(altered(k, (0, 1), (0, 2)))
    await k.ask(described(k))
    await k.ask(altered(k))
    await k.ask(alter.AlterShareGroupOffsetsRequest(group_id=k.group, topics=[]))
    await k.ask(altered(k, (0, 0), topic="none"))
    await k.ask(altered(k, (0, 0), group=""))
    await k.ask(altered(k, (0, 0)), broker=k.other_broker)
    await k.ask(commit(k, (0, 1, ""), group=f"{k.group}.classic"), quiet=True)
    await k.ask(altered(k, (0, 0), group=f"{k.group}.classic"))


# ---- 92 DeleteShareGroupOffsets --------------------------------------------------------------


@session(92, needs=OTHERS)
async def share_offsets_deleted(k: Side) -> None:
    await shared(k, [1], [1])
    await write(k, 4)
    await k.ask(awaited(k, 0), connection="first")
    await k.ask(acknowledge(k, 1, (0, 1, [1])), connection="first")
    await k.hang_up("first")
    await k.ask(deleted(k))
    await leave(k)
    await k.ask(deleted(k, k.topic, "none"))
    await k.ask(described(k, topics=[(k.topic, [0, 1])]))
    await k.ask(described(k, topics=None))
    await k.ask(deleted(k))
    await k.ask(share_fetch(k, 0, member="b"))
    await k.ask(share_fetch(k, -1, member="b"))
    await join(k)
    await k.ask(described(k))
    await k.ask(awaited(k, 0))


@session(92, needs=OTHERS)
async def share_offsets_deleted_in_a_session(k: Side) -> None:
    """The leader of the partition knows nothing of it until it stores something."""
    await shared(k)
    await write(k, 4)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (0, 1, [1])))
    await leave(k)
    await k.ask(deleted(k))
    await k.ask(share_fetch(k, 2))
    await k.ask(acknowledge(k, 3, (2, 2, [1])))
    await k.ask(acknowledge(k, 4, (3, 3, [1])))
    await k.ask(share_fetch(k, 5))
    await k.ask(share_fetch(k, 6))
    await join(k)
    await k.ask(share_fetch(k, 7))
    await k.ask(share_fetch(k, -1))


@session(92, needs=OTHERS)
async def share_offsets_deleted_wrongly(k: Side) -> None:
    await k.create()
    await k.ask(deleted(k))
    await k.ask(altered(k, (0, 0)), quiet=True)
    await k.ask(delete.DeleteShareGroupOffsetsRequest(group_id=k.group, topics=[]))
    await k.ask(deleted(k, k.topic, k.topic))
    await k.ask(deleted(k, "none"))
    await k.ask(deleted(k, group=""))
    await k.ask(deleted(k), broker=k.other_broker)
    await k.ask(commit(k, (0, 1, ""), group=f"{k.group}.classic"), quiet=True)
    await k.ask(deleted(k, group=f"{k.group}.classic"))


@session(92, needs=OTHERS)
async def share_group_deleted(k: Side) -> None:
    """DeleteGroups deletes the state of the group's partitions."""
    await shared(k)
    await write(k, 3)
    await k.ask(awaited(k, 0))
    await k.ask(acknowledge(k, 1, (0, 0, [1])))
    await k.ask(DeleteGroupsRequest(groups_names=[k.group]))
    await leave(k)
    await k.ask(DeleteGroupsRequest(groups_names=[k.group, k.group]))
    await k.ask(described(k))
    await k.ask(described(k, topics=None))
    await k.ask(share_fetch(k, 2))
    await k.ask(share_fetch(k, -1))
    await k.ask(share_fetch(k, 0))
