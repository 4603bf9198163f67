"""The membership of the reference consumer in a group whose coordinator assigns, each rule in a
method: KIP-848 and KIP-1071.

There is one request. It joins with epoch 0, keeps the session, says what changed, owns up to what
the member has, and leaves with epoch -1, or -2 for a static member that may come back. A member
gives up first what it has to give up.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from kproto.errors import UnsupportedVersionError
from kspec.reference_client.coordinators import GROUP
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.membership import Membership
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import Offsets, TopicPartition

__all__ = ["HeartbeatingMember"]

_JOINING: Final = 0
_LEAVING: Final = -1
_LEAVING_FOR_A_WHILE: Final = -2
_UNKNOWN_MEMBER_ID: Final = 25
_GROUP_AUTHORIZATION_FAILED: Final = 30
_FENCED_MEMBER_EPOCH: Final = 110
_STALE_MEMBER_EPOCH: Final = 113
_FIRST_INTERVAL: Final = 5.0
_POLL_PAUSE: Final = 0.02
_SHORTEST_PAUSE: Final = 0.05


class HeartbeatingMember(Membership):
    """A member of such a group."""

    def __init__(self, client: ClientRules, options: Mapping[str, Any]) -> None:
        super().__init__(client, options)
        self.member_id = self.new_id()
        self.generation = _JOINING
        self.rack: str | None = options.get("rack")
        self.interval = _FIRST_INTERVAL
        self.reported: dict[str, Any] = {}
        """The fields that the member has sent since it joined, with their last values."""
        self.is_in_doubt = False
        """Whether the last request may be lost; the next one then has every field."""
        self.failures = 0
        self.woken = asyncio.Event()

    def new_id(self) -> str:
        """The member makes its id itself, and keeps it (KIP-1082)."""
        return str(uuid4())

    # ---- the application's part ------------------------------------------------------------------

    def join_again(self, reason: str) -> None:
        self.woken.set()

    async def take_part(self, seconds: float) -> None:
        self.polled = asyncio.get_running_loop().time()
        self.check_ended()
        if self.beating is None:
            self.beating = asyncio.create_task(self.beat())
        if not self.owned:
            await asyncio.sleep(min(_POLL_PAUSE, max(seconds, 0)))
        self.check_ended()

    def check_ended(self) -> None:
        """Raise what has ended the membership. The next poll begins another one if the right to use
        the group may have been granted since."""
        error = self.fatal
        if error is None:
            return
        if isinstance(error, BrokerError) and error.code == _GROUP_AUTHORIZATION_FAILED:
            if self.beating is not None:
                self.beating.cancel()
            self.fatal = self.beating = None
            self.forget_membership()
        raise error

    def leaves_at_close(self) -> bool:
        return self.generation > 0

    async def leave(self, reason: str) -> None:
        epoch = _LEAVING if self.instance_id is None else _LEAVING_FOR_A_WHILE
        await self.ask(self.leaving_body(epoch), self.client.timeout)

    @abstractmethod
    def leaving_body(self, epoch: int) -> Any:
        """Return the heartbeat that ends the membership."""

    def forget_membership(self) -> None:
        """The id stays the member's."""
        self.generation, self.owned = _JOINING, frozenset()
        self.has_lost_all = True
        self.reported = {}

    # ---- heartbeats ------------------------------------------------------------------------------

    async def beat(self) -> None:
        while self.fatal is None:
            seconds = await self.beat_once()
            # Until Python 3.12 wait_for drops a cancellation that comes with the event.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.woken.wait()
            self.woken.clear()

    async def beat_once(self) -> float:
        """Send a heartbeat; return the seconds until the next one."""
        try:
            answer = await self.ask(self.heartbeat_body, self.client.timeout)
        except (LinkClosedError, TimedOutError):
            self.coordinators.forget(GROUP, self.group)
            self.is_in_doubt = True
            return self.next_try()
        except UnsupportedVersionError as error:
            self.fatal = error
            return 0
        except BrokerError as error:  # of FindCoordinator
            return self.pass_or_end(error)
        if answer.error_code:
            return self.on_error_response(answer)
        self.failures = 0
        self.is_in_doubt = False
        self.generation = answer.member_epoch
        self.interval = self.interval_in(answer)
        if answer.member_id and not self.member_id:
            self.member_id = answer.member_id
        if await self.take_target(answer):
            return self.until_owning_up()
        return self.interval

    def interval_in(self, answer: Any) -> float:
        """The coordinator says how often."""
        return float(answer.heartbeat_interval_ms) / 1000

    def until_owning_up(self) -> float:
        """What a member has changed, it tells at once."""
        return 0

    def next_try(self) -> float:
        self.failures += 1
        return self.pause(self.failures)

    @abstractmethod
    def heartbeat_body(self, link: Link) -> Any:
        """Everything when joining or in doubt, and else what changed."""

    @property
    def joins(self) -> bool:
        return self.generation == _JOINING

    def reports_everything(self) -> bool:
        return self.joins or self.is_in_doubt

    def news(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields to send, of those that describe the member."""
        reported = {} if self.reports_everything() else self.reported
        self.reported = dict(wanted)
        changed = {name: value for name, value in wanted.items() if reported.get(name) != value}
        return {name: value for name, value in changed.items() if value is not None}

    @abstractmethod
    async def take_target(self, answer: Any) -> bool:
        """Own what the coordinator assigns; return whether that is a change."""

    def adopted(self, wanted: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        """Return what the member owns once it is assigned ``wanted``."""
        return wanted

    # ---- errors ----------------------------------------------------------------------------------

    def on_error_response(self, answer: Any) -> float:
        """Do what the error asks for; return the seconds until the next heartbeat."""
        code = answer.error_code
        if code == _FENCED_MEMBER_EPOCH:
            return self.on_fenced()
        if code == _UNKNOWN_MEMBER_ID:
            return self.on_unknown_member()
        self.is_in_doubt = True
        return self.pass_or_end(BrokerError(code, answer.error_message))

    def on_fenced(self) -> float:
        """Give everything up, and join again with epoch 0."""
        self.forget_membership()
        return self.next_try()

    def on_unknown_member(self) -> float:
        self.forget_membership()
        return self.next_try()

    def pass_or_end(self, error: BrokerError) -> float:
        if self.coordinators.passes(error.code):
            if error.code in (15, 16):
                self.coordinators.forget(GROUP, self.group)
            return self.next_try()
        self.end(error)
        return 0

    def end(self, error: Exception) -> None:
        """Only the application can do something about it."""
        self.fatal = error
        self.owned = frozenset()

    # ---- offsets ---------------------------------------------------------------------------------

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        """Commit with the member's epoch. If another one came meanwhile, commit with that."""
        epoch = self.generation
        found = await super().commit(offsets)
        if _STALE_MEMBER_EPOCH in found.values():
            if self.generation == epoch:
                await self.beat_at_once()
            if self.generation != epoch:
                found = await super().commit(offsets)
        return found

    async def beat_at_once(self) -> None:
        """Learn the epoch with a heartbeat that goes out now."""
        self.woken.set()
        await asyncio.sleep(_SHORTEST_PAUSE)
