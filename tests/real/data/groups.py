"""Sessions over classic groups: JoinGroup (11), Heartbeat (12), LeaveGroup (13), SyncGroup (14)."""

from __future__ import annotations

import asyncio
from typing import Any

from kproto.messages import DescribeGroupsRequest
from tests.real.data.registry import session
from tests.real.data.requests import heartbeat, join, leave, sync
from tests.real.data.side import CLOSED, Failed, Side

MEMBER_ID_REQUIRED = 79
UNKNOWN_MEMBER_ID = 25
ATTEMPTS = 3
"""A coordinator forgets a handed-out id if it moves, as it does where a busy machine delays the
heartbeats of a real broker. A client then begins again, without an id."""


async def one_member(
    k: Side, *, instance: str | None = None, metadata: bytes = b"m", kind: str = "consumer"
) -> tuple[str, int]:
    """A stable group of one member: (its id, the generation). Nothing of it is noted."""
    arguments: dict[str, Any] = {
        "instance": instance, "kind": kind, "protocols": (("range", metadata),)
    }  # fmt: skip
    version = k.version_of(11)
    for _ in range(ATTEMPTS):
        answer = await k.ask(join(k, **arguments), version=version, quiet=True)
        if answer is not CLOSED and answer.error_code == MEMBER_ID_REQUIRED:
            named = join(k, answer.member_id, **arguments)
            answer = await k.ask(named, version=version, quiet=True)
        if answer is CLOSED or answer.error_code != UNKNOWN_MEMBER_ID:
            break
    if answer is CLOSED or answer.error_code:
        raise Failed(f"no member joined: {answer}")
    member, generation = answer.member_id, answer.generation_id
    k.names.text(member, "first")
    shared = sync(k, member, generation, [(member, b"assigned")], instance=instance, kind=kind)
    if k.version_of(14) < 5:
        shared.protocol_type = shared.protocol_name = None
    done = await k.ask(shared, quiet=True)
    if done is CLOSED or done.error_code:
        raise Failed(f"the group is not stable: {done}")
    return member, generation


async def _join(
    k: Side, name: str, member: str = "", connection: str = "", **arguments: Any
) -> Any:
    """Join until the group answers with an id; every answer is noted, and the id named."""
    while True:
        body = join(k, member, **arguments)
        version = k.version_of(11)
        answer = await k.exchange(body, version, k.coordinator, connection or "main")
        if answer is not CLOSED:
            k.names.text(answer.member_id, name)
        k.note(body, version, answer)
        if answer is CLOSED or answer.error_code != MEMBER_ID_REQUIRED or member:
            return answer
        member = answer.member_id


async def _pending(k: Side, name: str, **arguments: Any) -> str:
    """An id to join with: none below version 4, where a join needs none."""
    if k.version_of(11) < 4 or arguments.get("instance"):
        return ""
    answer = await k.exchange(join(k, **arguments), k.version_of(11), k.coordinator, "main")
    k.names.text(answer.member_id, name)
    return str(answer.member_id)


async def rebalancing(k: Side, member: str, generation: int) -> None:
    """Wait until the group rebalances, as its stable member learns."""
    for _ in range(500):
        body = heartbeat(k, member, generation)
        answer = await k.exchange(body, k.version_of(12), k.coordinator, "main")
        if answer is CLOSED or answer.error_code:
            return
        await asyncio.sleep(0.01)
    raise Failed(f"{k.group} does not rebalance")


async def joined(k: Side, count: int) -> None:
    """Wait until the group counts this many members. A join that waits has been received only
    then: a busy broker may take longer than a moment to read it."""
    body = DescribeGroupsRequest(groups=[k.group])
    for _ in range(500):
        answer = await k.ask(body, version=k.version_of(15), quiet=True)
        if answer is not CLOSED and len(answer.groups[0].members) == count:
            return
        await asyncio.sleep(0.01)
    raise Failed(f"{k.group} has not {count} members")


async def _empty(k: Side) -> None:
    """Wait until the group has ended the rebalance without members, which a thread of Kafka's does
    some time after the last one left: a member that joins before takes part in it."""
    body = DescribeGroupsRequest(groups=[k.group])
    for _ in range(500):
        answer = await k.ask(body, version=k.version_of(15), quiet=True)
        if answer is not CLOSED and answer.groups[0].group_state == "Empty":
            return
        await asyncio.sleep(0.01)
    raise Failed(f"{k.group} is not empty")


async def _end(k: Side, name: str, task: asyncio.Task[Any]) -> Any:
    """The answer of a join that waited."""
    body, version, answer = await task
    if answer is not CLOSED:
        k.names.text(answer.member_id, name)
    k.note(body, version, answer)
    return answer


# ---- 11 JoinGroup ----------------------------------------------------------------------------


@session(11)
async def join_alone(k: Side) -> None:
    answer = await _join(k, "first")
    member, generation = answer.member_id, answer.generation_id
    await k.ask(sync(k, member, generation, [(member, b"all")]))
    await k.ask(heartbeat(k, member, generation))
    await _join(k, "first", member)
    await k.ask(heartbeat(k, member, generation))
    await k.ask(heartbeat(k, member, generation + 1))
    await k.ask(leave(k, (member, None)))
    await k.ask(heartbeat(k, member, generation + 1))


@session(11)
async def join_wrongly(k: Side) -> None:
    await k.ask(join(k, group=""))
    await k.ask(join(k, "nobody"))
    await k.ask(join(k, session_ms=50))
    await k.ask(join(k, session_ms=10_000_000))
    await k.ask(join(k, protocols=()))
    await k.ask(join(k, kind=""))
    await k.ask(join(k), broker=k.other_broker)


@session(11)
async def join_another_protocol(k: Side) -> None:
    await one_member(k)
    await k.ask(join(k, kind="connect"))
    await k.ask(join(k, protocols=(("sticky", b""),)))
    await k.ask(join(k, protocols=()))
    await k.ask(join(k, "nobody"))


@session(11)
async def join_a_second(k: Side) -> None:
    """The first learns by its heartbeat, joins again and leads; both sync."""
    first, generation = await one_member(k)
    second = await _pending(k, "second")
    waiting = k.start(join(k, second), "second")
    await rebalancing(k, first, generation)
    await k.still_waits(waiting)
    await k.ask(heartbeat(k, first, generation))
    await k.ask(sync(k, first, generation))
    await _join(k, "first", first)
    answer = await _end(k, "second", waiting)
    second, generation = answer.member_id, answer.generation_id
    syncing = k.start(sync(k, second, generation), "second")
    await k.still_waits(syncing)
    await k.ask(heartbeat(k, second, generation), connection="third")
    await k.ask(sync(k, first, generation, [(first, b"one"), (second, b"two")]))
    await k.end(syncing)
    await k.ask(sync(k, second, generation))
    await k.ask(heartbeat(k, second, generation))
    await k.ask(leave(k, (second, None)))
    await k.ask(heartbeat(k, first, generation))
    await _join(k, "first", first)


@session(11)
async def join_again_with_other_protocols(k: Side) -> None:
    first, generation = await one_member(k)
    second = await _pending(k, "second")
    waiting = k.start(join(k, second, protocols=(("sticky", b"s"), ("range", b"r"))), "second")
    await rebalancing(k, first, generation)
    await k.still_waits(waiting)
    await _join(k, "first", first, protocols=(("sticky", b"2"), ("range", b"1")))
    answer = await _end(k, "second", waiting)
    second, generation = answer.member_id, answer.generation_id
    again = k.start(join(k, second, protocols=(("sticky", b"new"), ("range", b"r"))), "second")
    await rebalancing(k, first, generation)
    await k.still_waits(again)
    await k.ask(heartbeat(k, first, generation))
    await _join(k, "first", first, protocols=(("sticky", b"1"), ("range", b"2")))
    await _end(k, "second", again)


@session(11)
async def join_twice_while_the_group_syncs(k: Side) -> None:
    first, _ = await one_member(k)
    second = await _pending(k, "second")
    waiting = k.start(join(k, second), "second")
    await joined(k, 2)
    await k.still_waits(waiting)
    await _join(k, "first", first)
    answer = await _end(k, "second", waiting)
    await _join(k, "second", answer.member_id)
    await _join(k, "first", first)


@session(11)
async def join_with_nobody_leading(k: Side) -> None:
    """The leader does not join in time: the member that did leads."""
    first, _ = await one_member(k)
    second = await _pending(k, "second")
    await k.ask(leave(k, (first, None)))
    await k.ask(heartbeat(k, first, 1))
    await _empty(k)
    await _join(k, "second", second)


@session(11)
async def join_too_many(k: Side) -> None:
    """The group's limit is four members."""
    waiting = []
    first, _ = await one_member(k)
    for i in range(3):
        name = f"member {i}"
        member = await _pending(k, name)
        waiting.append((name, k.start(join(k, member), name)))
        await joined(k, i + 2)
        await k.still_waits(waiting[-1][1])
    await _join(k, "first", first)
    for name, task in waiting:
        await _end(k, name, task)
    member = await _pending(k, "fifth")
    await k.ask(join(k, member), connection="fifth")
    await k.ask(join(k), connection="fifth")


@session(11)
async def join_and_expire(k: Side) -> None:
    """The only member's session ends."""
    answer = await _join(k, "first", session_ms=1500)
    await k.ask(sync(k, answer.member_id, answer.generation_id, [(answer.member_id, b"")]))
    await asyncio.sleep(2.5)
    await k.ask(heartbeat(k, answer.member_id, answer.generation_id))
    await _join(k, "second")


@session(11)
async def join_and_never_sync(k: Side) -> None:
    """The leader does not sync within its rebalance timeout."""
    answer = await _join(k, "first", rebalance_ms=300, session_ms=300)
    await asyncio.sleep(1.5)
    await k.ask(sync(k, answer.member_id, answer.generation_id))


@session(11, since=1)
async def join_without_a_late_member(k: Side) -> None:
    """One member does not join again within the rebalance timeout."""
    answer = await _join(k, "first", rebalance_ms=3000)
    first = answer.member_id
    await k.ask(sync(k, first, answer.generation_id, [(first, b"")]))
    second = await _pending(k, "second", rebalance_ms=3000)
    waiting = k.start(join(k, second, rebalance_ms=3000), "second")
    answer = await _end(k, "second", waiting)
    await k.ask(heartbeat(k, first, answer.generation_id))
    await k.ask(heartbeat(k, answer.member_id, answer.generation_id))


@session(11, since=5)
async def join_statically(k: Side) -> None:
    answer = await _join(k, "first", instance="one")
    first, generation = answer.member_id, answer.generation_id
    await k.ask(sync(k, first, generation, [(first, b"all")], instance="one"))
    answer = await _join(k, "second", instance="one")
    second, generation = answer.member_id, answer.generation_id
    await k.ask(heartbeat(k, first, generation, instance="one"))
    await k.ask(heartbeat(k, second, generation, instance="one"))
    await k.ask(sync(k, first, generation, instance="one"))
    await k.ask(sync(k, second, generation, instance="one"))
    await k.ask(join(k, first, instance="one"))
    await k.ask(join(k, first))
    await k.ask(join(k, second, instance="two"))
    await k.ask(heartbeat(k, second, generation, instance="two"))


@session(11, since=5)
async def join_statically_with_another_protocol(k: Side) -> None:
    answer = await _join(k, "first", instance="one", protocols=(("range", b"1"), ("sticky", b"2")))
    first, generation = answer.member_id, answer.generation_id
    await k.ask(sync(k, first, generation, [(first, b"all")], instance="one"))
    await _join(k, "second", instance="one", protocols=(("sticky", b"2"),))


@session(11, since=5)
async def join_statically_while_the_first_waits(k: Side) -> None:
    answer = await _join(k, "first", instance="one")
    first, generation = answer.member_id, answer.generation_id
    await k.ask(sync(k, first, generation, [(first, b"all")], instance="one"))
    waiting = k.start(join(k, instance="two"), "two")
    await joined(k, 2)
    await k.still_waits(waiting)
    again = k.start(join(k, instance="two"), "two again")
    await k.still_waits(again)
    await _end(k, "second", waiting)
    await _join(k, "first", first, instance="one")
    await _end(k, "third", again)


@session(11, since=4)
async def join_with_a_pending_id(k: Side) -> None:
    """An id that was given is none before it joins."""
    pending = await _pending(k, "pending")
    await k.ask(heartbeat(k, pending, 1))
    await k.ask(sync(k, pending, 1))
    await _join(k, "pending", pending)


# ---- 14 SyncGroup ----------------------------------------------------------------------------


@session(14)
async def sync_wrongly(k: Side) -> None:
    await k.ask(sync(k, "nobody", 1))
    await k.ask(sync(k, "nobody", 1, group=""))
    first, generation = await one_member(k)
    await k.ask(sync(k, "nobody", generation))
    await k.ask(sync(k, first, generation + 1))
    await k.ask(sync(k, first, generation - 1))
    await k.ask(sync(k, first, -1))
    await k.ask(sync(k, "", generation))
    await k.ask(sync(k, first, generation))
    await k.ask(sync(k, first, generation, [(first, b"another")]))
    await k.ask(sync(k, first, generation), broker=k.other_broker)
    await k.ask(leave(k, (first, None)))
    await k.ask(sync(k, first, generation))


@session(14)
async def sync_without_assignments(k: Side) -> None:
    """The leader gives some members none, and others that are not there."""
    answer = await _join(k, "first")
    first, generation = answer.member_id, answer.generation_id
    await k.ask(sync(k, first, generation, [("nobody", b"x")]))
    await k.ask(sync(k, first, generation))


@session(14, since=5)
async def sync_with_another_protocol(k: Side) -> None:
    answer = await _join(k, "first")
    first, generation = answer.member_id, answer.generation_id
    await k.ask(sync(k, first, generation, [(first, b"x")], kind="connect"))
    await k.ask(sync(k, first, generation, [(first, b"x")], protocol="sticky"))
    body = sync(k, first, generation, [(first, b"x")])
    body.protocol_type = body.protocol_name = None
    await k.ask(body)


@session(14)
async def sync_while_another_joins(k: Side) -> None:
    first, generation = await one_member(k)
    second = await _pending(k, "second")
    waiting = k.start(join(k, second), "second")
    await rebalancing(k, first, generation)
    await k.still_waits(waiting)
    await k.ask(sync(k, first, generation))


@session(14)
async def sync_that_is_overtaken(k: Side) -> None:
    """A third joins while one waits for the leader's assignment."""
    first, _ = await one_member(k)
    second = await _pending(k, "second")
    joining = k.start(join(k, second), "second")
    await joined(k, 2)
    await k.still_waits(joining)
    await _join(k, "first", first)
    answer = await _end(k, "second", joining)
    syncing = k.start(sync(k, answer.member_id, answer.generation_id), "second")
    await k.still_waits(syncing)
    third = await _pending(k, "third")
    joining = k.start(join(k, third), "third")
    await k.end(syncing)
    await k.ask(heartbeat(k, first, answer.generation_id))
    await k.still_waits(joining)


# ---- 12 Heartbeat ----------------------------------------------------------------------------


@session(12)
async def heartbeat_wrongly(k: Side) -> None:
    await k.ask(heartbeat(k, "nobody", 1))
    await k.ask(heartbeat(k, "nobody", 1, group=""))
    first, generation = await one_member(k)
    for number in (generation, generation + 1, generation - 1, -1):
        await k.ask(heartbeat(k, first, number))
    for member, number in (("nobody", generation), ("", generation), ("", -1)):
        await k.ask(heartbeat(k, member, number))
    await k.ask(heartbeat(k, first, generation), broker=k.other_broker)
    await k.ask(leave(k, (first, None)))
    await k.ask(heartbeat(k, first, generation))


@session(12)
async def heartbeat_before_the_sync(k: Side) -> None:
    answer = await _join(k, "first")
    await k.ask(heartbeat(k, answer.member_id, answer.generation_id))


@session(12, since=3)
async def heartbeat_of_instances(k: Side) -> None:
    first, generation = await one_member(k, instance="one")
    await k.ask(heartbeat(k, first, generation, instance="one"))
    await k.ask(heartbeat(k, "nobody", generation, instance="one"))
    await k.ask(heartbeat(k, first, generation, instance="two"))
    await k.ask(heartbeat(k, "", generation, instance="one"))
    await k.ask(heartbeat(k, first, generation))


# ---- 13 LeaveGroup ---------------------------------------------------------------------------


@session(13)
async def leave_wrongly(k: Side) -> None:
    await k.ask(leave(k, ("nobody", None)))
    await k.ask(leave(k, ("nobody", None), group=""))
    first, _ = await one_member(k)
    await k.ask(leave(k, ("nobody", None)))
    await k.ask(leave(k, ("", None)))
    await k.ask(leave(k, (first, None)), broker=k.other_broker)
    await k.ask(leave(k, (first, None)))
    await k.ask(leave(k, (first, None)))


@session(13, since=3)
async def leave_together(k: Side) -> None:
    first, generation = await one_member(k, instance="one")
    waiting = k.start(join(k, instance="two"), "two")
    await joined(k, 2)
    await k.still_waits(waiting)
    await k.ask(leave(k))
    await k.ask(leave(k, (first, "other"), ("nobody", "one"), ("nobody", None), ("", "three")))
    await k.ask(leave(k, ("", "one"), ("", "two")))
    await _end(k, "second", waiting)
    await k.ask(heartbeat(k, first, generation))


@session(13)
async def leave_while_pending(k: Side) -> None:
    pending = await _pending(k, "pending")
    await k.ask(leave(k, (pending or "nobody", None)))
    if pending:
        await k.ask(join(k, pending))


@session(13)
async def leave_while_joining(k: Side) -> None:
    first, generation = await one_member(k)
    second = await _pending(k, "second")
    if not second:
        return
    waiting = k.start(join(k, second), "second")
    await rebalancing(k, first, generation)
    await k.still_waits(waiting)
    await k.ask(leave(k, (second, None)))
    await _end(k, "second", waiting)
    await k.ask(heartbeat(k, first, generation))
    await _join(k, "first", first)
