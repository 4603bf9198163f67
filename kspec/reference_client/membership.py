"""The membership of the reference consumer in a classic group, each rule in a method.

JoinGroup, SyncGroup, Heartbeat and LeaveGroup, and what their errors mean to a member. Joining and
heartbeats run beside the application, which takes part by polling.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, ClassVar, Final

from kspec.reference_client.assignors import ASSIGNORS, COOPERATIVE, Subscriber
from kspec.reference_client.coordinators import GROUP, Coordinators, GroupMetadata
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.rules import ClientRules
from kspec.reference_client.topics import Offsets, TopicPartition, Topics, message

__all__ = ["GroupCoordinators", "Membership"]

_LOADING: Final = 14
_MOVED: Final = (15, 16)
_ILLEGAL_GENERATION: Final = 22
_UNKNOWN_MEMBER_ID: Final = 25
_TOPIC_AUTHORIZATION_FAILED: Final = 29
_REBALANCE_IN_PROGRESS: Final = 27
_MEMBER_ID_REQUIRED: Final = 79
_FENCED_INSTANCE_ID: Final = 82
_UNSTABLE_OFFSET_COMMIT: Final = 88
_UNKNOWN_TOPIC_ID: Final = 100
_NO_GENERATION: Final = -1
_OWNED_SINCE: Final = 1
_SUBSCRIPTION_VERSION: Final = 1
_version_of: Final = Struct(">h")
_LEAVES_BY_LIST: Final = 3
_OFFSETS_BY_GROUP: Final = 8
_STABLE_SINCE: Final = 7
_JOIN_SLACK: Final = 5.0


class GroupCoordinators(Coordinators):
    """The coordinator of a group, with a connection of its own, as a JoinGroup that waits would
    hold up the requests behind it."""

    def __init__(self, client: ClientRules) -> None:
        super().__init__(client)
        self.links: dict[tuple[str, int], Link] = {}
        self.opening = asyncio.Lock()

    async def link(self, kind: int, key: str) -> Link:
        async with self.opening:
            address = self.known.get((kind, key))
            if address is None:
                address = self.known[kind, key] = await self.find(kind, key)
            link = self.links.get(address)
            if link is None or link.closed is not None:
                client = self.client
                link = client.link(
                    client_id=client.client_id, timeout=client.timeout, sasl=client.sasl
                )
                await link.open(*address, self.client.tls)
                self.links[address] = link
            return link

    async def close(self) -> None:
        links, self.links = self.links, {}
        await asyncio.gather(*(each.close() for each in links.values()))

    def passes(self, code: int) -> bool:
        """Offsets of open transactions become stable (KIP-447), and ids of topics known."""
        return super().passes(code) or code in (_UNSTABLE_OFFSET_COMMIT, _UNKNOWN_TOPIC_ID)


class Membership:
    """A member of a group. ``options`` are those of docs/reference/adapters.md."""

    coordinators_type: ClassVar[type[GroupCoordinators]] = GroupCoordinators

    def __init__(self, client: ClientRules, options: Mapping[str, Any]) -> None:
        self.client = client
        self.topics = Topics(client)
        self.coordinators = self.coordinators_type(client)
        self.group: str = options["group"]
        self.instance_id: str | None = options.get("instance_id")
        self.session_ms: int = options.get("session_timeout_ms", 45_000)
        self.heartbeat_ms: int = options.get("heartbeat_ms", 3_000)
        self.max_poll_ms: int = options.get("max_poll_ms", 300_000)
        self.metadata_ms: int = options.get("metadata_age_ms", 300_000)
        self.assignors: list[str] = options.get("assignors", ["range"])
        self.names: list[str] = []
        self.pattern: str | None = None
        self.member_id = ""
        self.generation = _NO_GENERATION
        self.protocol = ""
        self.owned: frozenset[TopicPartition] = frozenset()
        self.has_lost_all = False
        """Whether everything was taken away since the consumer last looked, which may have been
        given back meanwhile."""
        self.known: dict[str, int] = {}
        self.watched: list[str] = []
        self.fatal: Exception | None = None
        self.needs_to_join = False
        self.reason = ""
        self.joining: asyncio.Task[None] | None = None
        self.beating: asyncio.Task[None] | None = None
        self.polled = 0.0
        self.looked = 0.0

    @property
    def is_subscribed(self) -> bool:
        return bool(self.names or self.pattern)

    def metadata(self) -> GroupMetadata:
        return GroupMetadata(self.group, self.generation, self.member_id, self.instance_id)

    # ---- the application's part ------------------------------------------------------------------

    def subscribe(self, names: Sequence[str], pattern: str | None) -> None:
        self.names, self.pattern = list(names), pattern
        self.join_again("the subscription changed")

    async def unsubscribe(self) -> None:
        self.names, self.pattern, self.needs_to_join = [], None, False
        await self.close()

    async def take_part(self, seconds: float) -> None:
        """Join if necessary, for no longer than so many seconds; the next poll goes on with it.

        Raises BrokerError for an error that only the application can do something about.
        """
        self.polled = _now()
        if self.fatal is not None:
            raise self.fatal
        await self.look_for_partitions()
        if self.joining is None and self.needs_to_join:
            self.give_up_before_joining()
            self.joining = asyncio.create_task(self.join_until_done())
        if self.joining is None:
            return
        await asyncio.wait({self.joining}, timeout=0.05 if self.owned else seconds)
        if self.joining.done():
            task, self.joining = self.joining, None
            task.result()

    async def close(self) -> None:
        """Leave, but for a static member, which may come back before its session ends (KIP-345)."""
        await self.stop()
        if self.leaves_at_close() and self.member_id:
            with suppress(LinkClosedError, TimedOutError, BrokerError):
                await self.leave("the consumer is being closed")
        self.forget_membership()
        await self.coordinators.close()

    def leaves_at_close(self) -> bool:
        return self.instance_id is None

    async def stop(self) -> None:
        """End what runs beside the application."""
        tasks = [each for each in (self.joining, self.beating) if each is not None]
        self.joining = self.beating = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- topics ----------------------------------------------------------------------------------

    async def look_for_partitions(self) -> None:
        """Join again when a topic has other partitions than at the last join, or other topics match
        the pattern."""
        if _now() - self.looked < self.metadata_ms / 1000:
            return
        before = dict(self.known)
        await self.look()
        if self.generation != _NO_GENERATION and before != self.known:
            self.join_again("the topics have other partitions")

    async def look(self) -> None:
        self.looked = _now()
        if self.pattern is not None:
            await self.topics.refresh_all()
            self.names = self.expand(self.pattern, self.topics.counts)
        wanted = sorted({*self.names, *self.watched})
        if self.pattern is None:
            await self.topics.refresh(wanted)
            self.check_topics()
        self.known = {name: self.topics.counts.get(name, 0) for name in wanted}

    def check_topics(self) -> None:
        """A topic that the application subscribes to and may not see is an error for it. Raises
        BrokerError."""
        for name in self.names:
            code = self.topics.errors.get(name, 0)
            if code == _TOPIC_AUTHORIZATION_FAILED:
                raise BrokerError(code)

    def expand(self, pattern: str, counts: Mapping[str, int]) -> list[str]:
        """Return the topics that match."""
        return [name for name in sorted(counts) if re.search(pattern, name)]

    # ---- joining ---------------------------------------------------------------------------------

    def join_again(self, reason: str) -> None:
        self.needs_to_join, self.reason = True, reason

    @property
    def is_cooperative(self) -> bool:
        """Partitions are kept while the group rebalances (KIP-429)."""
        return all(each == COOPERATIVE for each in self.assignors)

    def give_up_before_joining(self) -> None:
        if not self.is_cooperative:
            self.owned = frozenset()

    async def join_until_done(self) -> None:
        attempt = 0
        while self.needs_to_join:
            attempt += 1
            code = await self.join_once()
            if code != _MEMBER_ID_REQUIRED and self.needs_to_join:
                await asyncio.sleep(self.pause(attempt))

    def pause(self, attempt: int) -> float:
        return self.client.pause(attempt)

    async def join_once(self) -> int:
        """Join and sync; return the error that came of it. Raises BrokerError if it does not
        pass."""
        try:
            await self.look()
            joined = await self.ask(self.join_body, self.max_poll_ms / 1000 + _JOIN_SLACK)
            if joined.error_code:
                self.on_join_error(joined.error_code, joined)
                return int(joined.error_code)
            self.member_id, self.generation = joined.member_id, joined.generation_id
            self.protocol = joined.protocol_name or ""
            shares = await self.shares(joined)
            synced = await self.ask(self.sync_body(shares), self.max_poll_ms / 1000)
        except (LinkClosedError, TimedOutError):
            self.on_lost_response()
            return -1
        except BrokerError as error:  # of FindCoordinator
            if not self.coordinators.passes(error.code):
                raise
            return error.code
        if synced.error_code:
            self.on_sync_error(synced.error_code)
            return int(synced.error_code)
        self.take(self.partitions_in(synced.assignment))
        return 0

    def on_lost_response(self) -> None:
        """The coordinator may have applied the request: join again, as the same member."""
        self.coordinators.forget(GROUP, self.group)

    def on_join_error(self, code: int, joined: Any) -> None:
        if code == _MEMBER_ID_REQUIRED:
            self.keep_given_id(joined.member_id)
        else:
            self.on_error(code)

    def keep_given_id(self, member_id: str) -> None:
        """Join with the id that the coordinator gave (KIP-394)."""
        self.member_id = member_id

    def on_sync_error(self, code: int) -> None:
        self.on_error(code)

    def join_body(self, link: Link) -> Any:
        request = message("JoinGroupRequest")
        protocol = message("JoinGroupRequest.JoinGroupRequestProtocol")
        return request(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms(),
            member_id=self.member_id,
            group_instance_id=self.instance_of("JoinGroup"),
            protocol_type="consumer",
            protocols=[
                protocol(name=name, metadata=self.subscription()) for name in self.assignors
            ],
            reason=self.reason_for(self.reason),
        )

    def rebalance_ms(self) -> int:
        """The application has until its next poll to rejoin (KIP-62)."""
        return self.max_poll_ms

    def reason_for(self, reason: str) -> str | None:
        return reason or None

    def instance_of(self, api: str) -> str | None:
        """The instance id is in every request of a static member (KIP-345)."""
        return self.instance_id

    def subscription(self) -> bytes:
        owned = message("ConsumerProtocolSubscription.TopicPartition")
        body = message("ConsumerProtocolSubscription")(
            topics=list(self.names),
            owned_partitions=[
                owned(topic=name, partitions=indexes)
                for name, indexes in _by_topic(self.owned).items()
            ],
        )
        return _embedded(body, _SUBSCRIPTION_VERSION)

    # ---- the leader's part -----------------------------------------------------------------------

    async def shares(self, joined: Any) -> dict[str, list[TopicPartition]]:
        if joined.leader != joined.member_id:
            self.watched = []
            return {}
        members = [
            self.subscriber(each)
            for each in sorted(
                joined.members, key=lambda one: (one.group_instance_id or "", one.member_id)
            )
        ]
        self.watched = sorted({name for each in members for name in each.topics})
        await self.look()
        if getattr(joined, "skip_assignment", False):
            return {}  # a static leader is back, and the group keeps its assignment (KIP-814)
        return self.share(joined.protocol_name, members, self.topics.counts)

    def subscriber(self, row: Any) -> Subscriber:
        subscription = message("ConsumerProtocolSubscription")
        version = min(_version_of.unpack_from(row.metadata)[0], _SUBSCRIPTION_VERSION)
        body, _ = subscription.decode_from(row.metadata, version, _version_of.size)
        owned = getattr(body, "owned_partitions", ()) if version >= _OWNED_SINCE else ()
        pairs = frozenset((each.topic, index) for each in owned for index in each.partitions)
        return Subscriber(row.member_id, tuple(body.topics), pairs)

    def share(
        self, protocol: str, members: Sequence[Subscriber], counts: Mapping[str, int]
    ) -> dict[str, list[TopicPartition]]:
        """Share by the protocol that the coordinator chose."""
        found = ASSIGNORS[protocol](members, counts)
        return self.without_moved(members, found) if protocol == COOPERATIVE else found

    def without_moved(
        self, members: Sequence[Subscriber], found: Mapping[str, list[TopicPartition]]
    ) -> dict[str, list[TopicPartition]]:
        """Leave out partitions that another member still owns; they are assigned after it has given
        them up (KIP-429)."""
        owner = {tp: each.member_id for each in members for tp in each.owned}
        return {
            member_id: [tp for tp in partitions if owner.get(tp, member_id) == member_id]
            for member_id, partitions in found.items()
        }

    def sync_body(self, shares: Mapping[str, list[TopicPartition]]) -> Any:
        row = message("SyncGroupRequest.SyncGroupRequestAssignment")
        body = message("ConsumerProtocolAssignment")
        part = message("ConsumerProtocolAssignment.TopicPartition")
        assignments = [
            row(
                member_id=member_id,
                assignment=_embedded(
                    body(
                        assigned_partitions=[
                            part(topic=name, partitions=indexes)
                            for name, indexes in _by_topic(partitions).items()
                        ]
                    ),
                    0,
                ),
            )
            for member_id, partitions in shares.items()
        ]
        return message("SyncGroupRequest")(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_of("SyncGroup"),
            protocol_type="consumer",
            protocol_name=self.protocol,
            assignments=assignments,
        )

    @staticmethod
    def partitions_in(data: bytes) -> frozenset[TopicPartition]:
        """An empty assignment has no bytes, or a version and no partitions."""
        if len(data) < _version_of.size:
            return frozenset()
        body, _ = message("ConsumerProtocolAssignment").decode_from(data, 0, _version_of.size)
        return frozenset(
            (each.topic, index) for each in body.assigned_partitions for index in each.partitions
        )

    def take(self, partitions: frozenset[TopicPartition]) -> None:
        """Have the assignment. A member that gave up partitions joins again, so that they find an
        owner (KIP-429)."""
        self.needs_to_join, self.reason = False, ""
        revoked = self.owned - partitions
        self.owned = partitions
        if self.beating is None or self.beating.done():
            self.beating = asyncio.create_task(self.beat())
        if revoked:
            self.join_again("partitions were given up")

    @property
    def is_joining(self) -> bool:
        return self.joining is not None and not self.joining.done()

    # ---- heartbeats ------------------------------------------------------------------------------

    async def beat(self) -> None:
        """Keep the session, whatever the application does, as long as it polls often enough
        (KIP-62)."""
        while True:
            await asyncio.sleep(self.heartbeat_ms / 1000)
            if self.is_too_slow():
                await self.leave_slow_application()
                return
            if self.is_joining or self.generation == _NO_GENERATION:
                continue
            generation = self.generation
            try:
                answer = await self.ask(self.heartbeat_body, self.client.timeout)
                if self.generation == generation and not self.is_joining:
                    self.on_heartbeat_error(answer.error_code)
            except (LinkClosedError, TimedOutError):
                self.coordinators.forget(GROUP, self.group)
            except BrokerError as error:
                if not self.coordinators.passes(error.code):
                    self.fatal = error
                    return

    def is_too_slow(self) -> bool:
        return not self.is_joining and (_now() - self.polled) * 1000 > self.max_poll_ms

    async def leave_slow_application(self) -> None:
        with suppress(LinkClosedError, TimedOutError, BrokerError):
            await self.leave("the application has not polled for too long")
        self.forget_membership()
        self.join_again("the application polls again")

    def heartbeat_body(self, link: Link) -> Any:
        return message("HeartbeatRequest")(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_of("Heartbeat"),
        )

    def on_heartbeat_error(self, code: int) -> None:
        self.on_error(code)

    # ---- errors ----------------------------------------------------------------------------------

    def on_error(self, code: int) -> None:
        """Do what an error of the coordinator asks for. Raises BrokerError for any other."""
        if code in _MOVED:
            self.move_coordinator()
        elif code == _REBALANCE_IN_PROGRESS:
            self.join_again("the group rebalances")
        elif code == _UNKNOWN_MEMBER_ID:
            self.drop_member_id()
        elif code == _ILLEGAL_GENERATION:
            self.drop_generation()
        elif code and code != _LOADING:
            error = BrokerError(code)
            if code == _FENCED_INSTANCE_ID:
                self.end_fenced(error)
            raise error

    def move_coordinator(self) -> None:
        self.coordinators.forget(GROUP, self.group)

    def drop_member_id(self) -> None:
        """The session is over, and with it everything that was assigned."""
        self.forget_membership()
        self.join_again("the member id is unknown")

    def drop_generation(self) -> None:
        self.generation, self.owned = _NO_GENERATION, frozenset()
        self.has_lost_all = True
        self.join_again("the generation is over")

    def end_fenced(self, error: BrokerError) -> None:
        """Another member has the instance id: this one must not come back (KIP-345)."""
        self.fatal = error
        self.owned = frozenset()

    def forget_membership(self) -> None:
        self.member_id, self.generation, self.owned = "", _NO_GENERATION, frozenset()
        self.has_lost_all = True

    # ---- leaving ---------------------------------------------------------------------------------

    async def leave(self, reason: str) -> None:
        await self.ask(lambda link: self.leave_body(link, reason), self.client.timeout)

    def leave_body(self, link: Link, reason: str) -> Any:
        request = message("LeaveGroupRequest")
        if link.choose_version(request.API_KEY) < _LEAVES_BY_LIST:
            return request(group_id=self.group, member_id=self.member_id)
        member = message("LeaveGroupRequest.MemberIdentity")
        one = member(
            member_id=self.member_id,
            group_instance_id=self.instance_of("LeaveGroup"),
            reason=self.reason_for(reason),
        )
        return request(group_id=self.group, members=[one])

    # ---- offsets ---------------------------------------------------------------------------------

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        """Commit offsets with leader epochs; return the error of each partition, or 0.

        Raises BrokerError if the member may not commit, which no second attempt mends.
        """
        missing = {tp[0] for tp in offsets} - set(self.topics.ids)
        if missing:
            await self.topics.refresh(missing)
        answer = await self.ask_again(self.commit_body(offsets), self.passing_commit_error)
        codes = {
            (self.topics.name(topic), row.partition_index): row.error_code
            for topic in answer.topics
            for row in topic.partitions
        }
        for code in codes.values():
            self.on_commit_error(code)
        return codes

    def on_commit_error(self, code: int) -> None:
        """An error of the membership is the commit's: what was read may be another member's now."""
        if code in (
            _ILLEGAL_GENERATION, _UNKNOWN_MEMBER_ID, _REBALANCE_IN_PROGRESS, _FENCED_INSTANCE_ID,
        ):  # fmt: skip
            self.on_error(code)
            raise BrokerError(code)

    def passing_commit_error(self, answer: Any) -> int:
        codes = (row.error_code for topic in answer.topics for row in topic.partitions)
        return next((code for code in codes if self.coordinators.passes(code)), 0)

    def commit_body(self, offsets: Offsets) -> Any:
        row = message("OffsetCommitRequest.OffsetCommitRequestPartition")
        topic = message("OffsetCommitRequest.OffsetCommitRequestTopic")
        rows: dict[str, list[Any]] = {}
        for (name, index), (offset, epoch) in offsets.items():
            rows.setdefault(name, []).append(
                row(partition_index=index, committed_offset=offset, committed_leader_epoch=epoch)
            )
        return message("OffsetCommitRequest")(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_of("OffsetCommit"),
            topics=[
                topic(name=name, topic_id=self.topics.ids[name], partitions=each)
                for name, each in rows.items()
            ],
        )

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return the committed offsets and their leader epochs; -1 where there is none.

        Raises BrokerError for an error of the group or of a partition.
        """
        wanted = _by_topic(partitions)
        missing = set(wanted) - set(self.topics.ids)
        if missing:
            await self.topics.refresh(missing)
        answer = await self.ask_again(
            lambda link: self.offsets_body(link, wanted), self.passing_offset_error
        )
        self.check_offsets(answer)
        return {
            (self.topics.name(topic), row.partition_index): (
                row.committed_offset,
                getattr(row, "committed_leader_epoch", -1),
            )
            for topic in self.offset_topics(answer)
            for row in topic.partitions
        }

    def offsets_body(self, link: Link, wanted: Mapping[str, list[int]]) -> Any:
        request = message("OffsetFetchRequest")
        version = link.choose_version(request.API_KEY)
        if version < _OFFSETS_BY_GROUP:
            topic = message("OffsetFetchRequest.OffsetFetchRequestTopic")
            return request(
                group_id=self.group,
                topics=[topic(name=name, partition_indexes=each) for name, each in wanted.items()],
                require_stable=version >= _STABLE_SINCE,
            )
        group = message("OffsetFetchRequest.OffsetFetchRequestGroup")
        topics = message("OffsetFetchRequest.OffsetFetchRequestTopics")
        rows = [
            topics(name=name, topic_id=self.topics.ids[name], partition_indexes=each)
            for name, each in wanted.items()
        ]
        return request(groups=[group(group_id=self.group, topics=rows)], require_stable=True)

    def offset_topics(self, answer: Any) -> Sequence[Any]:
        """From version 8 on an answer has groups (KIP-709)."""
        whole = answer.groups[0] if getattr(answer, "groups", None) else answer
        return list(whole.topics)

    def offset_errors(self, answer: Any) -> list[int]:
        """The error of the group, if any, and those of its partitions."""
        whole = answer.groups[0] if getattr(answer, "groups", None) else answer
        rows = [row.error_code for topic in whole.topics for row in topic.partitions]
        return [getattr(whole, "error_code", 0), *rows]

    def passing_offset_error(self, answer: Any) -> int:
        codes = self.offset_errors(answer)
        return next((code for code in codes if self.coordinators.passes(code)), 0)

    def check_offsets(self, answer: Any) -> None:
        for code in self.offset_errors(answer):
            if code:
                raise BrokerError(code)

    # ---- requests --------------------------------------------------------------------------------

    async def ask(self, body: Any, seconds: float) -> Any:
        """Send a request to the coordinator, once."""
        link = await self.coordinators.link(GROUP, self.group)
        link.timeout = seconds
        try:
            return await link.ask(body(link) if callable(body) else body)
        finally:
            link.timeout = self.client.timeout

    async def ask_again(self, body: Any, code_of: Any) -> Any:
        return await self.coordinators.ask(GROUP, self.group, body, code_of)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _embedded(body: Any, version: int) -> bytes:
    """Return a message as it is embedded in others: its version, then its body."""
    return _version_of.pack(version) + bytes(body.encode(version))


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name, index in sorted(partitions):
        found.setdefault(name, []).append(index)
    return found
