"""Defects of members of consumer groups (KIP-848)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kspec.defects import heartbeat_defects
from kspec.defects.declaration import defect
from kspec.reference_client.consumer_group_member import ConsumerGroupMember
from kspec.reference_client.link import BrokerError, Link
from kspec.reference_client.topics import Offsets, TopicPartition

__all__: list[str] = []

_NEVER: Final = 3600.0
_STALE_MEMBER_EPOCH: Final = 113


@defect("joins-with-half-a-heartbeat")
class JoinsWithHalfAHeartbeat(ConsumerGroupMember):
    """Leaves the partitions that it owns out of the heartbeat with which it joins."""

    def everything(self, with_regex: bool) -> dict[str, Any]:
        wanted = super().everything(with_regex)
        return {**wanted, "topic_partitions": wanted["topic_partitions"] or None}


@defect("leaves-its-id-to-the-coordinator")
class LeavesItsIdToTheCoordinator(ConsumerGroupMember):
    """Joins without a member id, although it has to make one."""

    def new_id(self) -> str:
        return ""


@defect("has-an-id-for-each-attempt")
class HasAnIdForEachAttempt(ConsumerGroupMember):
    """Joins with another member id after each failure."""

    def next_try(self) -> float:
        self.member_id, self.generation = str(id(object())) + str(self.failures), 0
        return super().next_try()


@defect("has-an-interval-of-its-own")
class HasAnIntervalOfItsOwn(ConsumerGroupMember):
    """Ignores the interval that the coordinator gives."""

    def interval_in(self, answer: Any) -> float:
        return _NEVER


@defect("beats-while-it-polls")
class BeatsWhileItPolls(ConsumerGroupMember):
    """Sends heartbeats only while the application polls."""

    async def beat_once(self) -> float:
        while asyncio.get_running_loop().time() - self.polled > 0.2:
            await asyncio.sleep(0.02)
        return await super().beat_once()


@defect("repeats-everything")
class RepeatsEverything(ConsumerGroupMember):
    """Has its subscription in every heartbeat, changed or not."""

    def reports_everything(self) -> bool:
        return True


@defect("keeps-its-first-subscription")
class KeepsItsFirstSubscription(ConsumerGroupMember):
    """Does not tell the coordinator of another subscription."""

    def everything(self, with_regex: bool) -> dict[str, Any]:
        wanted = super().everything(with_regex)
        first = self.reported.get("subscribed_topic_names")
        return wanted if first is None else {**wanted, "subscribed_topic_names": first}


@defect("never-owns-up")
class NeverOwnsUp(ConsumerGroupMember):
    """Does not tell the coordinator which partitions it has."""

    def owned_rows(self) -> list[Any]:
        return []


@defect("keeps-what-is-taken-away")
class KeepsWhatIsTakenAway(heartbeat_defects.KeepsRevokedPartitions, ConsumerGroupMember):
    """Goes on with partitions that it has to give up."""


@defect("leaves-without-a-word")
class LeavesWithoutAWord(heartbeat_defects.StaysSilentAtClose, ConsumerGroupMember):
    """Does not tell the coordinator that it leaves."""


@defect("leaves-for-good")
class LeavesForGood(ConsumerGroupMember):
    """Leaves as a static member with the epoch of one that does not come back."""

    def leaving_body(self, epoch: int) -> Any:
        return super().leaving_body(-1)


@defect("hides-what-ends-it")
class HidesWhatEndsIt(heartbeat_defects.HidesFatalErrors, ConsumerGroupMember):
    """Stops after an error that only the application can mend, and does not report it."""

    async def beat_once(self) -> float:
        seconds = await super().beat_once()
        if isinstance(self.fatal, Exception) and not isinstance(self.fatal, BrokerError):
            self.fatal = None
            return _NEVER
        return seconds


@defect("stays-fenced")
class StaysFenced(heartbeat_defects.RepeatsAFencedHeartbeat, ConsumerGroupMember):
    """Repeats its heartbeat when its epoch is refused."""


@defect("ends-when-it-is-unknown")
class EndsWhenItIsUnknown(heartbeat_defects.EndsIfUnknown, ConsumerGroupMember):
    """Is of no more use when the coordinator does not know it."""


@defect("brings-its-partitions-along")
class BringsItsPartitionsAlong(ConsumerGroupMember):
    """Joins again with the partitions that it had before it was fenced."""

    def forget_membership(self) -> None:
        owned, self.kept = self.owned, self.owned
        super().forget_membership()
        self.owned = owned


@defect("keeps-the-coordinator-of-the-group")
class KeepsTheCoordinatorOfTheGroup(heartbeat_defects.KeepsItsCoordinator, ConsumerGroupMember):
    """Never looks for another coordinator of its group."""


@defect("gives-up-on-the-group")
class GivesUpOnTheGroup(heartbeat_defects.EndsWithAnyError, ConsumerGroupMember):
    """Ends with the first error of a coordinator, whatever it is."""


@defect("commits-without-its-epoch")
class CommitsWithoutItsEpoch(ConsumerGroupMember):
    """Commits offsets as if it were no member."""

    def commit_body(self, offsets: Offsets) -> Any:
        body = super().commit_body(offsets)
        body.generation_id_or_member_epoch, body.member_id = -1, ""
        return body


@defect("hides-a-stale-commit")
class HidesAStaleCommit(ConsumerGroupMember):
    """Reports offsets as committed that were refused for the member's epoch."""

    async def commit(self, offsets: Offsets) -> dict[TopicPartition, int]:
        found = await super(ConsumerGroupMember, self).commit(offsets)
        return {tp: 0 if code == _STALE_MEMBER_EPOCH else code for tp, code in found.items()}


@defect("takes-a-pattern-for-a-name")
class TakesAPatternForAName(ConsumerGroupMember):
    """Subscribes to a topic whose name is the pattern."""

    def everything(self, with_regex: bool) -> dict[str, Any]:
        wanted = super().everything(with_regex)
        return {
            **wanted,
            "subscribed_topic_names": [self.pattern] if self.pattern else sorted(self.names),
            "subscribed_topic_regex": None,
        }


@defect("drops-unknown-topics")
class DropsUnknownTopics(ConsumerGroupMember):
    """Leaves out for good what is assigned of a topic whose id it does not know yet."""

    async def reconcile(self) -> bool:
        changed = await super().reconcile()
        self.target = None
        return changed

    async def find_topics(self) -> None:
        """Nothing is looked up."""


@defect("says-nothing-of-itself")
class SaysNothingOfItself(ConsumerGroupMember):
    """Leaves its rack and the assignor that was chosen out."""

    def everything(self, with_regex: bool) -> dict[str, Any]:
        return {**super().everything(with_regex), "rack_id": None, "server_assignor": None}


@defect("has-a-rebalance-time-out-of-its-own")
class HasARebalanceTimeOutOfItsOwn(ConsumerGroupMember):
    """Has a rebalance time-out that is not the application's."""

    def everything(self, with_regex: bool) -> dict[str, Any]:
        return {**super().everything(with_regex), "rebalance_timeout_ms": 45_000}


@defect("forgets-its-instance-id")
class ForgetsItsInstanceId(ConsumerGroupMember):
    """Joins without its instance id."""

    def heartbeat_body(self, link: Link) -> Any:
        body = super().heartbeat_body(link)
        body.instance_id = None
        return body


@defect("forgets-what-was-lost")
class ForgetsWhatWasLost(ConsumerGroupMember):
    """Takes a change for known whose heartbeat was lost."""

    def reports_everything(self) -> bool:
        return self.joins
