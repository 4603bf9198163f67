"""Rebalances of groups, from the request that begins one to the last member's assignment.

A group belongs to the broker that coordinates it, so that exchanges of one broker are enough. A
rebalance of a classic group begins with the first of

- a JoinGroup that is answered with its generation, or with MEMBER_ID_REQUIRED or an error before;
- a LeaveGroup that leaves other members behind;
- a Heartbeat that is answered with an error, such as REBALANCE_IN_PROGRESS;

and ends when the last member that joined has its SyncGroup response. A rebalance of the newer
protocols (KIP-848, KIP-932, KIP-1071) is an epoch of the group: it begins with the heartbeat that
joins or leaves, or else with the first that is answered with the epoch, and ends when the last
member has the epoch and has confirmed its assignment. Members of share groups confirm nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from wiredump.knowledge.excerpts import (
    CONSUMER_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SHARE_HEARTBEAT,
    STREAMS_HEARTBEAT,
    SYNC_GROUP,
    Excerpt,
    JsonBody,
)
from wiredump.knowledge.rebalances import Protocol, Rebalance
from wiredump.knowledge.recent import Recent
from wiredump.rows.exchanges import Row

__all__ = ["MOST_WEIGHT", "Groups"]

MOST_WEIGHT: Final = 1_000_000
"""The most strings kept about all groups (ids of members, above all); beyond that, the group silent
for longest gets its rows early, and what follows is taken for a group that is new."""

_KEPT: Final = 3
"""Generations of a group that later exchanges may still be about."""

_MEMBER_ID_REQUIRED: Final = 79
_ELSEWHERE: Final = frozenset({14, 15, 16})
"""Errors of a broker that does not coordinate the group, or not yet."""

_PROTOCOLS: Final[dict[int, Protocol]] = {
    CONSUMER_HEARTBEAT: "consumer",
    SHARE_HEARTBEAT: "share",
    STREAMS_HEARTBEAT: "streams",
}


class _Key(NamedTuple):
    coordinator: str
    group_id: str
    protocol: Protocol


class _Group(msgspec.Struct):
    """``pending`` began after the newest generation, of whose members ``remaining`` have not left
    since; None before the first leaves. ``epochs`` has the last epoch of each member. ``done`` are
    rebalances that nothing can be about any more."""

    generations: dict[int, Rebalance] = {}
    pending: Rebalance | None = None
    remaining: set[str] | None = None
    epochs: dict[str, int] = {}
    done: list[Rebalance] = []

    @property
    def weight(self) -> int:
        pending = 0 if self.pending is None else self.pending.weight
        return pending + len(self.epochs) + sum(e.weight for e in self.generations.values())

    @property
    def newest(self) -> Rebalance | None:
        return next(reversed(self.generations.values()), None)

    def underway(self, excerpt: Excerpt) -> Rebalance:
        """Return the rebalance that an exchange without a generation is about."""
        newest = self.newest
        if newest is not None and excerpt.requested_ns < (newest.formed_ns or 0):
            return newest
        if self.pending is None:
            self.pending = Rebalance(excerpt)
        self.pending.add(excerpt)
        return self.pending

    def generation(self, number: int, excerpt: Excerpt) -> Rebalance:
        """Return the rebalance that led to a generation. The first exchange that has it makes it
        of what is pending."""
        found = self.generations.get(number)
        if found is None:
            found = self.pending or Rebalance(excerpt)
            found.generation, found.formed_ns = number, excerpt.completed_ns
            self.generations[number] = found
            self.pending = self.remaining = None
            if len(self.generations) > _KEPT:
                self.done.append(self.generations.pop(next(iter(self.generations))))
        found.add(excerpt)
        found.until(excerpt.completed_ns)
        return found

    def begin_again(self, number: int) -> None:
        """The group was deleted, and counts anew."""
        self.done.append(self.generations.pop(number))
        self.remaining = None

    def leave(self, excerpt: Excerpt, names: list[str], reasons: Iterable[str | None] = ()) -> None:
        """Members leave, which begins a rebalance unless the group is empty then."""
        newest = self.newest
        rebalance = self.underway(excerpt)
        for each in self.generations.values():
            each.waiting.difference_update(names)
        rebalance.gone.update(names)
        for reason in reasons:
            rebalance.because(reason)
        if rebalance is self.pending and newest is not None:
            if self.remaining is None:
                self.remaining = newest.members - rebalance.gone
            self.remaining.difference_update(names)
            if not self.remaining:
                self.pending = self.remaining = None

    def add_member(self, rebalance: Rebalance, member: str) -> None:
        """Note a member of a generation."""
        rebalance.members.add(member)
        if (
            self.remaining is not None and self.pending is not None
            and rebalance is self.newest and member not in self.pending.gone
        ):  # fmt: skip
            self.remaining.add(member)


class Groups:
    """Takes exchanges in the order of requests, then ``end``; both return rows of ``groups``."""

    def __init__(self, most_weight: int = MOST_WEIGHT) -> None:
        self._groups: Recent[_Key, _Group] = Recent(most_weight, _Group)

    def feed(self, excerpt: Excerpt) -> Iterator[Row]:
        """Return the rows of rebalances that nothing can be about any more."""
        request = excerpt.request
        if request is None or "groupId" not in request:
            return
        key = _Key(excerpt.broker, request["groupId"], _PROTOCOLS.get(excerpt.api_key, "classic"))
        group = self._groups.take(key)
        _TAKES[excerpt.api_key](group, excerpt, request, excerpt.response or {})
        for each in group.done:
            yield each.row(*key, superseded=True)
        group.done = []
        for gone, state in self._groups.keep(key, group, group.weight):
            yield from _rows(gone, state)

    def end(self) -> Iterator[Row]:
        """Return the rows of all others."""
        for key, group in self._groups.end():
            yield from _rows(key, group)


def _rows(key: _Key, group: _Group) -> Iterator[Row]:
    newest = group.newest
    for each in group.generations.values():
        yield each.row(*key, superseded=each is not newest)
    if group.pending is not None and group.pending.started:
        yield group.pending.row(*key, superseded=False)


# ---- classic groups --------------------------------------------------------------------------


def _join(group: _Group, excerpt: Excerpt, request: JsonBody, response: JsonBody) -> None:
    code = response.get("errorCode")
    if code in _ELSEWHERE:
        return
    if code == 0 and "memberId" in response and "generationId" in response:
        _joined(group, excerpt, request, response)
        return
    rebalance = group.underway(excerpt)
    rebalance.started = True
    rebalance.because(request.get("reason"))
    if not code:
        rebalance.unanswered = True
        return
    rebalance.failed(code)
    if code == _MEMBER_ID_REQUIRED and "memberId" in response:
        rebalance.issued.add(response["memberId"])


def _joined(group: _Group, excerpt: Excerpt, request: JsonBody, response: JsonBody) -> None:
    number, member = response["generationId"], response["memberId"]
    known = group.generations.get(number)
    if known is not None and known.is_over(excerpt.requested_ns):
        if member in known.members:
            return  # it is given the generation that there is
        group.begin_again(number)
    rebalance = group.generation(number, excerpt)
    rebalance.because(request.get("reason"))
    rebalance.assignor = response.get("protocolName") or rebalance.assignor
    rebalance.leader = response.get("leader") or rebalance.leader
    rebalance.size = max(rebalance.size, len(response.get("members") or ()))
    group.add_member(rebalance, member)
    rebalance.waiting.add(member)
    if request.get("memberId") == "" or member in rebalance.issued:
        rebalance.joined.add(member)


def _sync(group: _Group, excerpt: Excerpt, request: JsonBody, response: JsonBody) -> None:
    rebalance = group.generations.get(request.get("generationId", -1))
    member, code = request.get("memberId"), response.get("errorCode")
    if rebalance is None or member not in rebalance.waiting or code is None:
        return
    if code:
        rebalance.failed(code)
    else:
        rebalance.waiting.discard(member)
        rebalance.until(excerpt.completed_ns)


def _beat(group: _Group, excerpt: Excerpt, request: JsonBody, response: JsonBody) -> None:
    code, newest = response.get("errorCode"), group.newest
    known = -1 if newest is None or newest.generation is None else newest.generation
    if not code or code in _ELSEWHERE or request.get("generationId", -1) < known:
        return
    rebalance = group.underway(excerpt)
    rebalance.started = True
    rebalance.failed(code)


def _leave(group: _Group, excerpt: Excerpt, request: JsonBody, response: JsonBody) -> None:
    if response.get("errorCode") != 0:
        return
    if "members" not in request:
        group.leave(excerpt, [request.get("memberId", "")])
        return
    members = request["members"] or ()
    names = [each.get("memberId") or each.get("groupInstanceId") or "" for each in members]
    group.leave(excerpt, names, [each.get("reason") for each in members])


# ---- groups whose members only send heartbeats -----------------------------------------------

_ASSIGNED: Final[dict[int, tuple[str, ...]]] = {
    CONSUMER_HEARTBEAT: ("assignment",),
    SHARE_HEARTBEAT: (),
    STREAMS_HEARTBEAT: ("activeTasks", "standbyTasks", "warmupTasks"),
}
"""The fields of a response, null for no news, that the member has to confirm."""

_OWNED: Final = {CONSUMER_HEARTBEAT: "topicPartitions", STREAMS_HEARTBEAT: "activeTasks"}
"""The field of a request that confirms them."""

_FENCED: Final = frozenset({25, 82, 110, 111})
"""UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID: the member
has to join again."""


def _epoch(group: _Group, excerpt: Excerpt, request: JsonBody, response: JsonBody) -> None:
    member = request.get("memberId") or response.get("memberId") or ""
    sent, code = request.get("memberEpoch", 0), response.get("errorCode")
    if sent < 0:
        if not code:  # a client that closes may not wait for the response
            group.epochs.pop(member, None)
            group.leave(excerpt, [member])
            if group.pending is not None:
                group.pending.started = bool(group.epochs)
    elif code is None:
        if sent == 0:
            rebalance = group.underway(excerpt)
            rebalance.started = rebalance.unanswered = True
    elif code in _FENCED or (code and sent == 0 and code not in _ELSEWHERE):
        rebalance = group.underway(excerpt)
        rebalance.started = True
        rebalance.failed(code)
        group.epochs.pop(member, None)
    elif not code and "memberEpoch" in response:
        _answered(group, excerpt, member, sent, request, response)


def _answered(
    group: _Group, excerpt: Excerpt, member: str, sent: int, request: JsonBody, response: JsonBody
) -> None:
    epoch, before = response["memberEpoch"], group.epochs.get(member)
    confirmed = group.generations.get(sent)
    confirms = request.get(_OWNED.get(excerpt.api_key, "")) is not None
    if confirmed is not None and confirms and member in confirmed.waiting:
        confirmed.waiting.discard(member)
        confirmed.until(excerpt.requested_ns)
    group.epochs[member] = epoch
    known = group.generations.get(epoch)
    if sent == 0 and known is not None and known.is_over(excerpt.requested_ns):
        if request.get("instanceId") is not None or member in known.members:
            return  # it takes the place that it had
        group.begin_again(epoch)
        known = None
    if before is None and sent == epoch:
        if known is not None:
            group.add_member(known, member)
        return  # it had the epoch before the capture began
    if before != epoch or sent == 0:
        known = group.generation(epoch, excerpt)
        group.add_member(known, member)
        if sent == 0:
            known.joined.add(member)
    if known is not None:
        known.assignor = request.get("serverAssignor") or known.assignor
        if any(_partitions(response.get(name)) for name in _ASSIGNED[excerpt.api_key]):
            known.waiting.add(member)
            known.until(excerpt.completed_ns)


def _partitions(assigned: Any) -> Any:
    """Return what is assigned. librdkafka does not confirm that it is nothing."""
    return assigned.get("topicPartitions") if isinstance(assigned, dict) else assigned


_TAKES: Final[dict[int, Callable[[_Group, Excerpt, JsonBody, JsonBody], None]]] = {
    JOIN_GROUP: _join,
    SYNC_GROUP: _sync,
    HEARTBEAT: _beat,
    LEAVE_GROUP: _leave,
    CONSUMER_HEARTBEAT: _epoch,
    SHARE_HEARTBEAT: _epoch,
    STREAMS_HEARTBEAT: _epoch,
}
