"""Members of classic groups, many in one process: each joins, synchronises and sends heartbeats.

A member is a connection to its group's coordinator and a task. Frames are those of the versions
that need no member id before joining, which brokers of all releases up to 4.x and kfake serve.
"""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Sequence
from typing import Any, Final

import kproto
from kproto.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from kproto.messages.join_group_request import JoinGroupRequestProtocol
from kproto.messages.sync_group_request import SyncGroupRequestAssignment

__all__ = ["Group", "form"]

_SIZE: Final = struct.Struct(">i")
_PATIENCE_MS: Final = 60_000
_AGAIN: Final = 0.005
"""Seconds between heartbeats of a member that waits for the others."""


class Member:
    """One connection to a broker."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.member_id = ""
        self.generation = -1
        self._address = address
        self._numbers = itertools.count()

    async def connect(self) -> None:
        self._reader, self._writer = await asyncio.open_connection(*self._address)

    async def ask(self, body: Any, version: int) -> Any:
        frame = kproto.encode_request(
            body, api_version=version, correlation_id=next(self._numbers), client_id="member"
        )
        self._writer.write(frame)
        size = await self._reader.readexactly(4)
        answer = size + await self._reader.readexactly(_SIZE.unpack(size)[0])
        return kproto.decode_response(answer, api_key=body.API_KEY, api_version=version)[1]

    async def heartbeat(self, group_id: str) -> int:
        request = HeartbeatRequest(
            group_id=group_id, generation_id=self.generation, member_id=self.member_id
        )
        code: int = (await self.ask(request, 3)).error_code
        return code

    def close(self) -> None:
        self._writer.close()


class Group:
    """A group of ``size`` members, not joined yet."""

    def __init__(self, group_id: str, size: int) -> None:
        self.group_id = group_id
        self.size = size
        self.members: list[Member] = []
        self._joined = 0
        """How many members the newest generation has."""

    async def connect(self, bootstrap: tuple[str, int]) -> None:
        """Find the coordinator and connect every member to it."""
        first = Member(bootstrap)
        await first.connect()
        try:
            for _ in range(200):
                found = await first.ask(FindCoordinatorRequest(key=self.group_id), 2)
                if not found.error_code:
                    break
                await asyncio.sleep(0.05)
            assert not found.error_code, found
        finally:
            first.close()
        self.members = [Member((found.host, found.port)) for _ in range(self.size)]
        for member in self.members:
            await member.connect()

    async def join(self) -> None:
        """Return when all members are in one generation and have their assignments."""
        await asyncio.gather(*(self._join(member) for member in self.members))

    async def _join(self, member: Member) -> None:
        protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(10))
        while True:
            joined = await member.ask(
                JoinGroupRequest(
                    group_id=self.group_id, session_timeout_ms=30_000,
                    rebalance_timeout_ms=_PATIENCE_MS, member_id=member.member_id,
                    protocol_type="consumer", protocols=[protocol],
                ),
                3,
            )  # fmt: skip
            assert not joined.error_code, joined
            member.member_id, member.generation = joined.member_id, joined.generation_id
            assignments = [
                SyncGroupRequestAssignment(member_id=each.member_id, assignment=bytes(10))
                for each in joined.members
            ]
            if joined.leader == joined.member_id:
                self._joined = len(joined.members)
            synced = await member.ask(
                SyncGroupRequest(
                    group_id=self.group_id, generation_id=member.generation,
                    member_id=member.member_id, assignments=assignments,
                ),
                2,
            )  # fmt: skip
            if not synced.error_code and await self._is_whole(member):
                return

    async def _is_whole(self, member: Member) -> bool:
        """Wait until all have joined this generation; False if there is another one."""
        while True:
            if await member.heartbeat(self.group_id):
                return False
            if self._joined == self.size:
                return True
            await asyncio.sleep(_AGAIN)

    async def heartbeats(self, seconds: float, interval: float) -> None:
        """Let each member send heartbeats, spread evenly over the interval."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds

        async def beat(member: Member, delay: float) -> None:
            await asyncio.sleep(delay)
            while loop.time() < end:
                code = await member.heartbeat(self.group_id)
                assert not code, f"{self.group_id}: error {code}"
                await asyncio.sleep(interval)

        await asyncio.gather(
            *(beat(each, interval * n / self.size) for n, each in enumerate(self.members))
        )

    def close(self) -> None:
        for member in self.members:
            member.close()


async def form(groups: Sequence[Group], bootstrap: tuple[str, int]) -> float:
    """Form all groups at once; return the seconds that took, connections not counted."""
    for group in groups:
        await group.connect(bootstrap)
    began = asyncio.get_running_loop().time()
    await asyncio.gather(*(group.join() for group in groups))
    return asyncio.get_running_loop().time() - began
