"""Sessions over OffsetCommit (8), OffsetFetch (9) and OffsetDelete (47)."""

from __future__ import annotations

import uuid

from kproto.messages import OffsetDeleteRequest
from kproto.messages.offset_delete_request import OffsetDeleteRequestPartition as DeletedPartition
from kproto.messages.offset_delete_request import OffsetDeleteRequestTopic as DeletedTopic
from tests.real.data.groups import one_member, rebalancing
from tests.real.data.registry import session
from tests.real.data.requests import commit, committed, heartbeat, join, leave
from tests.real.data.side import Side


@session(8, since=2)
async def commit_by_hand(k: Side) -> None:
    """Without members."""
    await k.create([1], [1])
    await k.ask(commit(k, (0, 5, "some text"), (1, 7, ""), (7, 1, "")))
    await k.ask(committed(k, 0, 1, 7))
    await k.ask(committed(k, everything=True))
    await k.ask(commit(k, (0, 3, None), leader_epoch=0 if k.version >= 6 else -1))
    await k.ask(commit(k, (1, -1, "x")))
    await k.ask(commit(k, (1, -5, "x")))
    await k.ask(committed(k, 0, 1))


@session(8, since=2)
async def commit_unknown(k: Side) -> None:
    await k.create()
    unknown = f"{k.topic}.unknown"
    k.topic_ids[unknown] = uuid.UUID(int=77)
    k.names.text("AAAAAAAAAAAAAAAAAAAATQ", "an unknown id")
    await k.ask(commit(k, (0, 5, ""), topic=unknown))
    await k.ask(commit(k, (0, 5, ""), (-1, 5, "")))
    await k.ask(commit(k))
    await k.ask(committed(k, everything=True))


@session(8, since=2)
async def commit_into_an_unknown_group(k: Side) -> None:
    await k.create()
    await k.ask(commit(k, (0, 5, ""), generation=3, member="nobody"))
    await k.ask(commit(k, (0, 5, ""), generation=0, member="nobody"))
    await k.ask(commit(k, (0, 5, ""), generation=-1, member="nobody"))
    await k.ask(commit(k, (0, 5, ""), generation=3))
    await k.ask(commit(k, (0, 5, ""), group=""))
    await k.ask(committed(k, everything=True))


@session(8, since=2)
async def commit_long_texts(k: Side) -> None:
    await k.create([1], [1])
    await k.ask(commit(k, (0, 5, "x" * 4096), (1, 5, "x" * 4097)))
    await k.ask(commit(k, (0, 6, "ä" * 4000), (1, 6, "ä" * 4096)))
    await k.ask(committed(k, 0, 1))


@session(8, since=2)
async def commit_by_members(k: Side) -> None:
    await k.create()
    member, generation = await one_member(k)
    mine = {"member": member, "generation": generation}
    await k.ask(commit(k, (0, 5, "a"), **mine))
    await k.ask(commit(k, (0, 6, "a"), member=member, generation=generation + 1))
    await k.ask(commit(k, (0, 6, "a"), member=member, generation=generation - 1))
    await k.ask(commit(k, (0, 6, "a"), member="nobody", generation=generation))
    await k.ask(commit(k, (0, 7, "a")))
    await k.ask(commit(k, (0, 8, "a"), member=member))
    await k.ask(committed(k, 0))
    await k.ask(leave(k, (member, None)))
    await k.ask(commit(k, (0, 9, "a"), **mine))
    await k.ask(commit(k, (0, 9, "a")))
    await k.ask(committed(k, 0))


@session(8, since=2, needs=(11, 14))
async def commit_during_a_rebalance(k: Side) -> None:
    await k.create()
    member, generation = await one_member(k)
    joining = k.start(join(k), "second", version=3)
    await rebalancing(k, member, generation)
    await k.still_waits(joining)
    await k.ask(commit(k, (0, 5, "a"), member=member, generation=generation))
    await k.ask(commit(k, (0, 5, "a")))
    await k.ask(committed(k, 0))
    await k.ask(leave(k, (member, None)))
    joined = await joining
    k.names.text(joined[2].member_id, "second")
    generation = joined[2].generation_id
    await k.ask(commit(k, (0, 6, "a"), member=joined[2].member_id, generation=generation))
    await k.ask(committed(k, 0))


@session(8, since=2)
async def commit_elsewhere(k: Side) -> None:
    await k.create()
    await k.ask(commit(k, (0, 5, "")), broker=k.other_broker)


@session(8, since=7)
async def commit_by_static_members(k: Side) -> None:
    await k.create()
    member, generation = await one_member(k, instance="static")
    mine = {"generation": generation, "instance": "static"}
    await k.ask(commit(k, (0, 1, ""), member=member, **mine))
    await k.ask(commit(k, (0, 2, ""), member="nobody", **mine))
    await k.ask(commit(k, (0, 3, ""), member=member, generation=generation, instance="other"))
    await k.ask(commit(k, (0, 4, ""), member="", **mine))
    await k.ask(committed(k, 0))


@session(9)
async def fetch_offsets_of_nothing(k: Side) -> None:
    await k.create()
    await k.ask(committed(k, 0, 5))
    if k.version >= 2:
        await k.ask(committed(k, everything=True))
    unknown = f"{k.topic}.unknown"
    k.topic_ids[unknown] = uuid.UUID(int=77)
    k.names.text("AAAAAAAAAAAAAAAAAAAATQ", "an unknown id")
    await k.ask(committed(k, 0, topic=unknown))
    await k.ask(committed(k))


@session(9)
async def fetch_some_offsets(k: Side) -> None:
    await k.create([1], [1], [1])
    await k.ask(commit(k, (0, 5, "text"), (2, 7, "")))
    await k.ask(committed(k, 0, 1, 2))
    await k.ask(committed(k, 2))
    if k.version >= 2:
        await k.ask(committed(k, everything=True))
    await k.ask(committed(k, 0), broker=k.other_broker)


@session(9, since=7)
async def fetch_stable_offsets(k: Side) -> None:
    await k.create()
    await k.ask(commit(k, (0, 5, "text")))
    await k.ask(committed(k, 0, 1, stable=True))


@session(9, since=8)
async def fetch_offsets_of_groups(k: Side) -> None:
    await k.create()
    groups = [f"{k.group}.{i}" for i in range(3)]
    for i, group in enumerate(groups[:2]):
        await k.ask(commit(k, (0, i, f"text {i}"), group=group))
    await k.ask(committed(k, 0, groups=groups))
    await k.ask(committed(k, groups=groups, everything=True))
    await k.ask(committed(k, 0, groups=groups), broker=k.other_broker)
    await k.ask(committed(k, 0, groups=[groups[0], groups[0]]))


@session(9, since=9)
async def fetch_offsets_as_a_member(k: Side) -> None:
    await k.create()
    await k.ask(commit(k, (0, 5, "text")))
    for member, epoch in (("nobody", 0), ("nobody", -1), ("", 5)):
        body = committed(k, 0)
        body.groups[0].member_id, body.groups[0].member_epoch = member, epoch
        await k.ask(body)


def _delete(k: Side, *partitions: int, topic: str = "", group: str = "") -> OffsetDeleteRequest:
    rows = [DeletedPartition(partition_index=index) for index in partitions]
    return OffsetDeleteRequest(
        group_id=group or k.group, topics=[DeletedTopic(name=topic or k.topic, partitions=rows)]
    )


@session(47)
async def delete_offsets(k: Side) -> None:
    await k.create([1], [1])
    await k.ask(_delete(k, 0))
    await k.ask(commit(k, (0, 5, ""), (1, 6, "")))
    await k.ask(_delete(k, 0, 7))
    await k.ask(committed(k, 0, 1))
    await k.ask(_delete(k, 0, topic=f"{k.topic}.unknown"))
    await k.ask(_delete(k, 1))
    await k.ask(committed(k, everything=True))
    await k.ask(_delete(k, 1))


@session(47)
async def delete_offsets_of_members(k: Side) -> None:
    """Their subscription cannot be read, or names no topic."""
    await k.create([1], [1])
    member, generation = await one_member(k)
    await k.ask(commit(k, (0, 5, ""), (1, 6, ""), member=member, generation=generation))
    await k.ask(_delete(k, 0))
    await k.ask(heartbeat(k, member, generation))
    await k.ask(leave(k, (member, None)))
    await k.ask(_delete(k, 0))
    await k.ask(committed(k, 0, 1))


@session(47)
async def delete_offsets_of_subscribed_topics(k: Side) -> None:
    await k.create()
    await k.create(topic=f"{k.topic}.other")
    text = k.topic.encode()
    subscription = b"\x00\x00\x00\x00\x00\x01" + len(text).to_bytes(2, "big") + text + b"\xff" * 4
    member, generation = await one_member(k, metadata=subscription)
    mine = {"member": member, "generation": generation}
    await k.ask(commit(k, (0, 5, ""), **mine))
    await k.ask(commit(k, (0, 5, ""), topic=f"{k.topic}.other", **mine))
    await k.ask(_delete(k, 0))
    await k.ask(_delete(k, 0, topic=f"{k.topic}.other"))
    await k.ask(committed(k, everything=True))


@session(47)
async def delete_offsets_of_another_protocol(k: Side) -> None:
    await k.create()
    await one_member(k, kind="connect")
    await k.ask(_delete(k, 0))
    await k.ask(_delete(k, 0), broker=k.other_broker)
