"""Defects of members of classic groups."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.assignors import Subscriber
from kspec.reference_client.coordinators import GROUP
from kspec.reference_client.link import BrokerError, Link, LinkClosedError, TimedOutError
from kspec.reference_client.membership import GroupCoordinators, Membership
from kspec.reference_client.topics import TopicPartition

__all__: list[str] = []

_FIND_COORDINATOR: Final = 10
_SYNC_GROUP: Final = 14
_COORDINATOR_NOT_AVAILABLE: Final = 15
_KEYS_SINCE: Final = 4
_NAMES_SINCE: Final = 5
_HIGHEST_SUBSCRIPTION: Final = 3
_FEW_SEARCHES: Final = 2
_SEARCHES: Final = 300
_JOINS: Final = 60


@defect("ignores-the-id-it-was-given")
class IgnoresTheIdItWasGiven(Membership):
    """Joins without an id again although the coordinator gave it one."""

    dropped = False

    def keep_given_id(self, member_id: str) -> None:
        if self.dropped:
            super().keep_given_id(member_id)
        self.dropped = True


@defect("ignores-the-rebalance")
class IgnoresTheRebalance(Membership):
    """Does not join again when heartbeats say that the group rebalances."""

    def on_heartbeat_error(self, code: int) -> None:
        if code != 27:
            super().on_heartbeat_error(code)


@defect("joins-anew-each-time")
class JoinsAnewEachTime(Membership):
    """Joins each new generation as a new member."""

    def give_up_before_joining(self) -> None:
        super().give_up_before_joining()
        self.member_id = ""


@defect("keeps-an-unknown-id")
class KeepsAnUnknownId(Membership):
    """Joins again under the id that the coordinator does not know."""

    def drop_member_id(self) -> None:
        member_id = self.member_id
        super().drop_member_id()
        self.member_id = member_id


@defect("stays-in-an-old-generation")
class StaysInAnOldGeneration(Membership):
    """Goes on as if nothing had happened when its generation is over."""

    def drop_generation(self) -> None:
        """Ignored."""


@defect("joins-when-fenced")
class JoinsWhenFenced(Membership):
    """Joins again without an error when another member has taken its instance id."""

    def on_error(self, code: int) -> None:
        if code == 82:
            self.drop_member_id()
        else:
            super().on_error(code)


@defect("fails-on-a-sync-error")
class FailsOnASyncError(Membership):
    """Takes an error of SyncGroup for final."""

    def on_sync_error(self, code: int) -> None:
        self.needs_to_join = False
        raise BrokerError(code)


@defect("stays-with-the-old-coordinator")
class StaysWithTheOldCoordinator(Membership):
    """Sends its heartbeats to a broker that said it is not the coordinator."""

    def move_coordinator(self) -> None:
        """Ignored."""


class _LooksTwice(GroupCoordinators):
    searches = 0

    async def find(self, kind: int, key: str) -> tuple[str, int]:
        self.searches += 1
        try:
            return await super().find(kind, key)
        except BrokerError as error:
            if self.searches < _FEW_SEARCHES:
                raise
            raise BrokerError(-1, "there is no coordinator") from error


@defect("looks-for-a-coordinator-twice")
class LooksForACoordinatorTwice(Membership):
    """Gives up when there is no coordinator at the second attempt."""

    coordinators_type = _LooksTwice


class _LooksWithoutPause(GroupCoordinators):
    async def find(self, kind: int, key: str) -> tuple[str, int]:
        for _ in range(_SEARCHES):
            try:
                return await super().find(kind, key)
            except BrokerError as error:
                if error.code != _COORDINATOR_NOT_AVAILABLE:
                    raise
                await asyncio.sleep(0)
        return await super().find(kind, key)


@defect("looks-for-a-coordinator-without-pause")
class LooksForACoordinatorWithoutPause(Membership):
    """Asks for the coordinator 300 times without a pause."""

    coordinators_type = _LooksWithoutPause


@defect("fails-while-the-coordinator-loads")
class FailsWhileTheCoordinatorLoads(Membership):
    """Takes the error of a coordinator that loads for final."""

    def on_error(self, code: int) -> None:
        if code == 14:
            self.needs_to_join = False
            raise BrokerError(code)
        super().on_error(code)


class _AsksForLists(GroupCoordinators):
    async def find(self, kind: int, key: str) -> tuple[str, int]:
        link = await self.client.any_link()
        self.client.require(link, _FIND_COORDINATOR, _KEYS_SINCE, "the broker takes no list")
        return await super().find(kind, key)


@defect("asks-for-a-list-of-coordinators-only")
class AsksForAListOfCoordinatorsOnly(Membership):
    """Looks for coordinators only at brokers that take a list of groups (KIP-699)."""

    coordinators_type = _AsksForLists


@defect("joins-anew-after-a-lost-answer")
class JoinsAnewAfterALostAnswer(Membership):
    """Joins as a new member when a connection ends."""

    def on_lost_response(self) -> None:
        super().on_lost_response()
        self.member_id = ""


@defect("takes-a-lost-answer-for-no-partitions")
class TakesALostAnswerForNoPartitions(Membership):
    """Takes a SyncGroup without an answer for an assignment without partitions."""

    def on_lost_response(self) -> None:
        super().on_lost_response()
        if self.generation >= 0:
            self.take(frozenset())


@defect("waits-for-a-mute-coordinator")
class WaitsForAMuteCoordinator(Membership):
    """Waits for the answer to a heartbeat for as long as it takes."""

    async def ask(self, body: Any, seconds: float) -> Any:
        return await super().ask(body, 600.0 if body == self.heartbeat_body else seconds)


@defect("sends-heartbeats-only-while-polling")
class SendsHeartbeatsOnlyWhilePolling(Membership):
    """Sends heartbeats only while the application polls."""

    async def ask(self, body: Any, seconds: float) -> Any:
        while body == self.heartbeat_body and asyncio.get_running_loop().time() - self.polled > 0.3:
            await asyncio.sleep(0.05)
        return await super().ask(body, seconds)


@defect("never-leaves-a-slow-application")
class NeverLeavesASlowApplication(Membership):
    """Keeps its partitions although the application does not poll any more."""

    def is_too_slow(self) -> bool:
        return False


@defect("stays-away-after-it-left")
class StaysAwayAfterItLeft(Membership):
    """Does not join again once the application has been too slow."""

    async def leave_slow_application(self) -> None:
        await super().leave_slow_application()
        self.needs_to_join = False


@defect("closes-without-leaving")
class ClosesWithoutLeaving(Membership):
    """Closes without telling the coordinator."""

    def leaves_at_close(self) -> bool:
        return False


@defect("leaves-with-an-instance-id")
class LeavesWithAnInstanceId(Membership):
    """Leaves the group when it closes, although it is a static member."""

    def leaves_at_close(self) -> bool:
        return True


@defect("drops-its-instance-id")
class DropsItsInstanceId(Membership):
    """Joins without the instance id that it was given."""

    def instance_of(self, api: str) -> str | None:
        return None


@defect("instance-id-to-join-only")
class InstanceIdToJoinOnly(Membership):
    """Has its instance id in JoinGroup and nowhere else."""

    def instance_of(self, api: str) -> str | None:
        return self.instance_id if api == "JoinGroup" else None


@defect("assigns-what-was-not-subscribed")
class AssignsWhatWasNotSubscribed(Membership):
    """Shares all topics among all members."""

    def share(
        self, protocol: str, members: Sequence[Subscriber], counts: Mapping[str, int]
    ) -> dict[str, list[TopicPartition]]:
        topics = sorted({name for each in members for name in each.topics})
        alike = [Subscriber(each.member_id, topics, each.owned) for each in members]
        return super().share(protocol, alike, counts)


@defect("joins-forever-when-refused")
class JoinsForeverWhenRefused(Membership):
    """Repeats JoinGroup without an error when the coordinator refuses it for good."""

    async def join_until_done(self) -> None:
        for _ in range(_JOINS):
            try:
                return await super().join_until_done()
            except BrokerError:
                await asyncio.sleep(0.02)
        await asyncio.sleep(60)


@defect("moves-partitions-at-once")
class MovesPartitionsAtOnce(Membership):
    """Assigns a partition to a new member while the old one still owns it."""

    def without_moved(
        self, members: Sequence[Subscriber], found: Mapping[str, list[TopicPartition]]
    ) -> dict[str, list[TopicPartition]]:
        return dict(found)


@defect("gives-up-everything")
class GivesUpEverything(Membership):
    """Gives up all partitions before it joins again, with a cooperative assignor too."""

    @property
    def is_cooperative(self) -> bool:
        return False


@defect("keeps-quiet-about-what-it-gave-up")
class KeepsQuietAboutWhatItGaveUp(Membership):
    """Gives up partitions and does not join again, so that they have no owner."""

    def take(self, partitions: frozenset[TopicPartition]) -> None:
        super().take(partitions)
        self.needs_to_join = False


@defect("never-looks-for-partitions")
class NeverLooksForPartitions(Membership):
    """Looks at its topics when it joins and never again."""

    async def look_for_partitions(self) -> None:
        """Never."""


@defect("stops-when-a-topic-is-gone")
class StopsWhenATopicIsGone(Membership):
    """Reads nothing any more once one of its topics is deleted."""

    async def look(self) -> None:
        await super().look()
        if not all(self.known.values()):
            self.names = []


@defect("expands-a-pattern-once")
class ExpandsAPatternOnce(Membership):
    """Looks for the topics of a pattern when it subscribes and never again."""

    def expand(self, pattern: str, counts: Mapping[str, int]) -> list[str]:
        return self.names or super().expand(pattern, counts)


@defect("gives-no-reasons")
class GivesNoReasons(Membership):
    """Joins and leaves without a reason."""

    def reason_for(self, reason: str) -> str | None:
        return None


@defect("takes-the-session-for-the-rebalance")
class TakesTheSessionForTheRebalance(Membership):
    """Has its session time-out for the rebalance time-out."""

    def rebalance_ms(self) -> int:
        return self.session_ms


@defect("leaves-without-partitions")
class LeavesWithoutPartitions(Membership):
    """Fails when it gets no partition."""

    def take(self, partitions: frozenset[TopicPartition]) -> None:
        super().take(partitions)
        if not partitions:
            self.fatal = BrokerError(-1, "no partition was assigned")


@defect("assigns-as-it-likes-best")
class AssignsAsItLikesBest(Membership):
    """Assigns by its first assignor, whatever the group agreed on."""

    def share(
        self, protocol: str, members: Sequence[Subscriber], counts: Mapping[str, int]
    ) -> dict[str, list[TopicPartition]]:
        return super().share(self.assignors[0], members, counts)


@defect("keeps-its-first-generation")
class KeepsItsFirstGeneration(Membership):
    """Sends its heartbeats with the generation of its first JoinGroup."""

    first = -1

    def heartbeat_body(self, link: Link) -> Any:
        self.first = self.generation if self.first < 0 else self.first
        body = super().heartbeat_body(link)
        body.generation_id = self.first
        return body


@defect("waits-to-leave-forever")
class WaitsToLeaveForever(Membership):
    """Waits for the answer to LeaveGroup for as long as it takes."""

    async def leave(self, reason: str) -> None:
        await self.ask(lambda link: self.leave_body(link, reason), 600.0)


@defect("waits-for-an-id")
class WaitsForAnId(Membership):
    """Takes only an answer with MEMBER_ID_REQUIRED for the beginning of a membership."""

    async def join_once(self) -> int:
        if self.member_id:
            return await super().join_once()
        try:
            await self.look()
            joined = await self.ask(self.join_body, self.client.timeout)
        except (LinkClosedError, TimedOutError):
            return -1
        except BrokerError as error:
            if not self.coordinators.passes(error.code):
                raise
            return -1
        if not joined.error_code:
            raise BrokerError(-1, "the coordinator gave no id")
        self.on_join_error(joined.error_code, joined)
        return int(joined.error_code)


@defect("syncs-with-newer-brokers-only")
class SyncsWithNewerBrokersOnly(Membership):
    """Syncs only with brokers that take the names of the protocol (KIP-559)."""

    async def shares(self, joined: Any) -> dict[str, list[TopicPartition]]:
        link = await self.coordinators.link(GROUP, self.group)
        self.client.require(link, _SYNC_GROUP, _NAMES_SINCE, "the broker takes no names")
        return await super().shares(joined)


@defect("fails-when-the-group-rebalances")
class FailsWhenTheGroupRebalances(Membership):
    """Reports a rebalance to the application as an error."""

    def on_heartbeat_error(self, code: int) -> None:
        if code == 27:
            raise BrokerError(code)
        super().on_heartbeat_error(code)


@defect("drops-the-remainder")
class DropsTheRemainder(Membership):
    """Assigns the same number of partitions to each member, and leaves the others unassigned."""

    def share(
        self, protocol: str, members: Sequence[Subscriber], counts: Mapping[str, int]
    ) -> dict[str, list[TopicPartition]]:
        found = super().share(protocol, members, counts)
        fewest = min(len(each) for each in found.values())
        return {name: each[:fewest] for name, each in found.items()} if fewest else found


@defect("assigns-what-stays")
class AssignsWhatStays(Membership):
    """Assigns partitions although the coordinator asks its leader not to (KIP-814)."""

    async def shares(self, joined: Any) -> dict[str, list[TopicPartition]]:
        joined.skip_assignment = False
        return await super().shares(joined)


@defect("ends-without-a-coordinator")
class EndsWithoutACoordinator(Membership):
    """Gives its membership up when a heartbeat finds no coordinator."""

    async def beat(self) -> None:
        find = self.coordinators.find

        async def found(kind: int, key: str) -> tuple[str, int]:
            try:
                return await find(kind, key)
            except BrokerError as error:
                self.fatal = error
                raise

        self.coordinators.find = found  # type: ignore[method-assign]
        await super().beat()


@defect("hurries-its-heartbeats")
class HurriesItsHeartbeats(Membership):
    """Sends ten heartbeats a second where no interval is set."""

    def __init__(self, client: Any, options: Mapping[str, Any]) -> None:
        super().__init__(client, {"heartbeat_ms": 100, **options})


@defect("reads-every-subscription-as-version-1")
class ReadsEverySubscriptionAsVersion1(Membership):
    """Reads each member's subscription as one with owned partitions."""

    def subscriber(self, row: Any) -> Subscriber:
        row.metadata = b"\0\1" + row.metadata[2:]
        return super().subscriber(row)


@defect("refuses-newer-subscriptions")
class RefusesNewerSubscriptions(Membership):
    """Gives a member nothing whose subscription it does not know."""

    def subscriber(self, row: Any) -> Subscriber:
        found = super().subscriber(row)
        is_known = int.from_bytes(row.metadata[:2], "big") <= _HIGHEST_SUBSCRIPTION
        return found if is_known else Subscriber(found.member_id, (), frozenset())


@defect("refuses-newer-assignments")
class RefusesNewerAssignments(Membership):
    """Takes an assignment of a version that it does not know for an empty one."""

    @staticmethod
    def partitions_in(data: bytes) -> frozenset[TopicPartition]:
        is_known = int.from_bytes(data[:2], "big") <= _HIGHEST_SUBSCRIPTION
        return Membership.partitions_in(data) if is_known else frozenset()


@defect("insists-on-leaving")
class InsistsOnLeaving(Membership):
    """Repeats LeaveGroup without a pause when it is refused."""

    async def leave(self, reason: str) -> None:
        for _ in range(_JOINS):
            await super().leave(reason)
