"""Defects of consumers of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.consumer import Session
from kspec.reference_client.link import BrokerError, Link, LinkClosedError
from kspec.reference_client.membership import Membership
from kspec.reference_client.share_consumer import Decisions, ShareConsumer
from kspec.reference_client.share_group_member import ShareGroupMember
from kspec.reference_client.topics import TopicPartition

__all__: list[str] = []

_ACCEPT: Final = 1
_RELEASE: Final = 2
_REJECT: Final = 3


@defect("leaves-shared-records-locked")
class LeavesSharedRecordsLocked(ShareConsumer):
    """Does not accept with the next poll what the last one returned."""

    def accept_delivered(self) -> None:
        self.undecided.clear()


@defect("lets-no-broker-wait-for-shared-records")
class LetsNoBrokerWaitForSharedRecords(ShareConsumer):
    """Asks for shared records without pause and without letting the broker wait for them."""

    def fetch_body(self, *of: Any) -> Any:
        body = super().fetch_body(*of)
        body.max_wait_ms = 0
        return body


@defect("accepts-whatever-was-decided")
class AcceptsWhateverWasDecided(ShareConsumer):
    """Accepts records that the application has released or rejected."""

    def acknowledge(self, wanted: Decisions) -> None:
        super().acknowledge({tp: dict.fromkeys(each, _ACCEPT) for tp, each in wanted.items()})


@defect("releases-what-is-rejected")
class ReleasesWhatIsRejected(ShareConsumer):
    """Lets records that the application has rejected be delivered again."""

    def keep_decision(self, broker: int, tp: TopicPartition, offset: int, kind: int) -> None:
        super().keep_decision(broker, tp, offset, _RELEASE if kind == _REJECT else kind)


@defect("delivers-records-of-others")
class DeliversRecordsOfOthers(ShareConsumer):
    """Delivers whole batches, although only some of their records were given to this member."""

    def is_acquired(self, offset: int, acquired: Mapping[int, int]) -> bool:
        return True


@defect("counts-no-deliveries")
class CountsNoDeliveries(ShareConsumer):
    """Gives its application a delivery count of 1 for every record."""

    def deliver(self, tp: TopicPartition, each: Any, record: Any, times: int) -> None:
        super().deliver(tp, each, record, 1)


@defect("begins-each-share-session-anew")
class BeginsEachShareSessionAnew(ShareConsumer):
    """Begins a share session with every request, which ends the one before and releases its
    records."""

    def epoch_after(self, epoch: int) -> int:
        return 0


@defect("reports-lost-share-sessions")
class ReportsLostShareSessions(ShareConsumer):
    """Fails with an error if the broker does not know the share session, and begins no other."""

    def keeps(self, session: Session, answer: Any, broker: int) -> bool:
        if answer.error_code:
            raise BrokerError(answer.error_code)
        return super().keeps(session, answer, broker)


@defect("keeps-share-sessions-over-connections")
class KeepsShareSessionsOverConnections(ShareConsumer):
    """Goes on with a share session on another connection than the one on which it began."""

    def session(self, broker: int, link: Link) -> Session:
        known = self.sessions.get(broker)
        if known is None:
            return super().session(broker, link)
        known.link = link
        return known

    def keeps(self, session: Session, answer: Any, broker: int) -> bool:
        if answer.error_code:
            raise LinkClosedError("the share session is to be as it was")
        return super().keeps(session, answer, broker)


@defect("keeps-its-locks-at-close")
class KeepsItsLocksAtClose(ShareConsumer):
    """Does not end its share sessions when it is closed, so that its records stay locked."""

    async def close(self) -> None:
        self.sessions.clear()
        await super().close()


@defect("drops-decisions-at-close")
class DropsDecisionsAtClose(ShareConsumer):
    """Forgets, when it is closed, what the application has acknowledged and not committed."""

    def last_decisions(self) -> dict[int, Decisions]:
        return {}


@defect("leaves-gaps-locked")
class LeavesGapsLocked(ShareConsumer):
    """Acknowledges only offsets that have a record for the application."""

    def decide_unread(self, broker: int, tp: TopicPartition, offsets: Any, kind: int) -> None:
        """Ignored."""


@defect("takes-acknowledgements-for-done")
class TakesAcknowledgementsForDone(ShareConsumer):
    """Reports acknowledgements as successful that the broker has refused."""

    async def commit(
        self, offsets: Mapping[TopicPartition, int] | None
    ) -> dict[TopicPartition, int]:
        return dict.fromkeys(await super().commit(offsets), 0)


@defect("never-forgets-shared-partitions")
class NeverForgetsSharedPartitions(ShareConsumer):
    """Keeps partitions in a share session that it has no longer."""

    def fetch_body(
        self, session: Session, partitions: Sequence[TopicPartition], decisions: Decisions
    ) -> Any:
        body = super().fetch_body(session, partitions, decisions)
        body.forgotten_topics_data = []
        return body


@defect("acknowledges-in-the-order-of-calls")
class AcknowledgesInTheOrderOfCalls(ShareConsumer):
    """Sends a range for each record in the order in which the application acknowledged them."""

    def acknowledgement_batches(self, request: str, types: Mapping[int, int]) -> list[Any]:
        batches = super().acknowledgement_batches
        return [
            batch for offset, kind in types.items() for batch in batches(request, {offset: kind})
        ]


@defect("acknowledges-at-one-broker")
class AcknowledgesAtOneBroker(ShareConsumer):
    """Sends every acknowledgement to the broker that it fetched from first."""

    def keep_decision(self, broker: int, tp: TopicPartition, offset: int, kind: int) -> None:
        super().keep_decision(min(self.sessions, default=broker), tp, offset, kind)


@defect("acknowledges-again")
class AcknowledgesAgain(ShareConsumer):
    """Sends each acknowledgement with every request that follows."""

    def fetch_body(
        self, session: Session, partitions: Sequence[TopicPartition], decisions: Decisions
    ) -> Any:
        kept = self.__dict__.setdefault("kept", {})
        for tp, each in decisions.items():
            kept.setdefault(tp, {}).update(each)
        return super().fetch_body(session, partitions, kept if session.epoch else decisions)


@defect("has-a-share-member-for-each-join")
class HasAShareMemberForEachJoin(ShareGroupMember):
    """Joins its share group again under another member id."""

    def forget_membership(self) -> None:
        super().forget_membership()
        self.member_id = self.new_id()


@defect("leaves-its-share-group-silently")
class LeavesItsShareGroupSilently(ShareGroupMember):
    """Does not leave its share group when it is closed."""

    def leaves_at_close(self) -> bool:
        return False


@defect("keeps-its-first-share")
class KeepsItsFirstShare(ShareGroupMember):
    """Keeps the partitions that it was assigned first."""

    async def take_target(self, answer: Any) -> bool:
        return False if self.owned else await super().take_target(answer)


@defect("keeps-its-share-when-fenced")
class KeepsItsShareWhenFenced(ShareGroupMember):
    """Ends its membership, in silence, when the coordinator does not know it."""

    def on_error_response(self, answer: Any) -> float:
        self.failures += 1
        return 3600.0


@defect("retries-what-share-groups-refuse")
class RetriesWhatShareGroupsRefuse(ShareGroupMember):
    """Goes on with heartbeats that the coordinator refuses, and tells its application nothing."""

    def pass_or_end(self, error: BrokerError) -> float:
        return self.next_try()


@defect("has-a-share-interval-of-its-own")
class HasAShareIntervalOfItsOwn(ShareGroupMember):
    """Ignores the interval that the coordinator of its share group gives."""

    def interval_in(self, answer: Any) -> float:
        return 3600.0


@defect("stays-with-the-old-share-leader")
class StaysWithTheOldShareLeader(ShareConsumer):
    """Goes on fetching from a broker that no longer leads the partition."""

    def look_again(self, tp: TopicPartition, row: Any, answer: Any) -> None:
        """Ignored."""


@defect("waits-for-share-groups-to-come")
class WaitsForShareGroupsToCome(ShareGroupMember):
    """Tells its application nothing of brokers that have no share groups."""

    def check_ended(self) -> None:
        """Ignored."""


@defect("follows-no-share")
class FollowsNoShare(ShareConsumer):
    """Goes on with partitions that it was assigned in the beginning, and no others."""

    def follow(self, membership: Membership) -> None:
        if not self.assigned:
            super().follow(membership)
