"""Defects about metadata: its age, its errors, what it says of brokers and topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kspec.defects.declaration import defect
from kspec.reference_client.client import Client
from kspec.reference_client.consumer import Assigned, Consumer
from kspec.reference_client.link import BrokerError, Link, LinkClosedError
from kspec.reference_client.producer import Producer, Request
from kspec.reference_client.topics import TopicPartition, Topics

__all__: list[str] = []

_METADATA: Final = 3
_UNKNOWN_TOPIC_OR_PARTITION: Final = 3
_LEADER_NOT_AVAILABLE: Final = 5
_REBOOTSTRAP_REQUIRED: Final = 129
_INVALID_TOPIC: Final = 17
_INSISTENT: Final = 420
_STORM: Final = 40
"""So many searches in a row show that there would be no pause."""


@defect("keeps-metadata-for-ever")
class KeepsMetadataForEver(Topics):
    """Never asks for metadata again unless a broker contradicts it."""

    @property
    def are_old(self) -> bool:
        return False


@defect("asks-for-metadata-once")
class AsksForMetadataOnce(Topics):
    """Keeps the first leader that it learned for a partition, whatever brokers answer."""

    first: dict[TopicPartition, tuple[int, int]]

    def learn(self, tp: TopicPartition, leader: int, epoch: int) -> None:
        kept = self.__dict__.setdefault("first", {})
        if leader >= 0:
            kept.setdefault(tp, (leader, epoch))
        self.leaders[tp], self.epochs[tp] = kept.get(tp, (leader, epoch))

    def learn_hint(self, tp: TopicPartition, row: Any, endpoints: Any) -> bool:
        return False


@defect("asks-for-metadata-without-pause")
class AsksForMetadataWithoutPause(Topics):
    """Asks for metadata again at once, hundreds of times, while a topic has an error."""

    async def refresh(self, topics: Iterable[str]) -> None:
        names = list(topics)
        for _ in range(_INSISTENT):
            await super().refresh(names)
            without_leader = any(each < 0 for each in self.leaders.values())
            if not any(self.errors.values()) and not without_leader:
                return


@defect("asks-for-every-topic")
class AsksForEveryTopic(Topics):
    """Asks for the metadata of all topics to learn about one."""

    def wanted(self, topics: Iterable[str]) -> list[Any] | None:
        return None


@defect("believes-an-old-epoch")
class BelievesAnOldEpoch(Topics):
    """Takes the leader of the latest answer, although it has seen a newer leader epoch."""

    def learn(self, tp: TopicPartition, leader: int, epoch: int) -> None:
        self.leaders[tp], self.epochs[tp] = leader, epoch


@defect("keeps-the-first-topic-id")
class KeepsTheFirstTopicId(Topics):
    """Uses the first id that it learned for a topic's name."""

    def take(self, answer: Any) -> None:
        for each in answer.topics:
            if not each.error_code:
                each.topic_id = self.ids.get(each.name, each.topic_id)
        super().take(answer)


@defect("keeps-the-epochs-of-a-deleted-topic")
class KeepsTheEpochsOfADeletedTopic(Topics):
    """Compares the leader epochs of a topic with those of a deleted one of the same name."""

    def forget(self, name: str) -> None:
        """Nothing."""


@defect("takes-no-hints")
class TakesNoHints(Topics):
    """Does not look at the leader that an answer names, for records to write or to read."""

    def learn_hint(self, tp: TopicPartition, row: Any, endpoints: Any) -> bool:
        return False


@defect("fails-on-an-error-that-passes")
class FailsOnAnErrorThatPasses(Client):
    """Gives up at once if a topic has no leader yet, or is not known yet."""

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        passing = (_LEADER_NOT_AVAILABLE, _UNKNOWN_TOPIC_OR_PARTITION)
        if isinstance(problem, BrokerError) and problem.code in passing:
            return False
        return super().may_ask_again(problem, attempt)


@defect("one-metadata-error-for-all")
class OneMetadataErrorForAll(Topics):
    """Fails everything if one topic of the metadata has an error."""

    def take(self, answer: Any) -> None:
        for each in answer.topics:
            if each.error_code:
                raise BrokerError(each.error_code)
        super().take(answer)


@defect("believes-an-empty-list")
class BelievesAnEmptyList(Client):
    """Forgets every broker, also its bootstrap list, if Metadata lists none."""

    def learn_brokers(self, brokers: dict[int, tuple[str, int]], controller_id: int) -> None:
        super().learn_brokers(brokers, controller_id)
        if not brokers:
            self.brokers, self.bootstrap = {}, []


@defect("knows-the-first-brokers")
class KnowsTheFirstBrokers(Client):
    """Keeps the list of brokers that it learned first."""

    def learn_brokers(self, brokers: dict[int, tuple[str, int]], controller_id: int) -> None:
        super().learn_brokers(self.brokers or brokers, controller_id)


@defect("takes-rebootstrap-for-fatal")
class TakesRebootstrapForFatal(Client):
    """Reports REBOOTSTRAP_REQUIRED to its caller, and does not start over."""

    async def check_metadata(self, answer: Any) -> None:
        code = getattr(answer, "error_code", 0)
        if code == _REBOOTSTRAP_REQUIRED:
            raise BrokerError(code)

    def may_ask_again(self, problem: Exception, attempt: int) -> bool:
        if isinstance(problem, BrokerError) and problem.code == _REBOOTSTRAP_REQUIRED:
            return False
        return super().may_ask_again(problem, attempt)


@defect("creates-what-it-describes")
class CreatesWhatItDescribes(Link):
    """Lets brokers create the topics whose metadata it asks for."""

    def send(self, body: Any, version: int) -> Any:
        if body.API_KEY == _METADATA:
            body.allow_auto_topic_creation = True
        return super().send(body, version)


@defect("reconnects-evenly")
class ReconnectsEvenly(Client):
    """Opens a connection that failed again and again, in the same intervals."""

    least_attempts = 12

    def pause(self, attempt: int) -> float:
        return 0.1


@defect("waits-for-one-address")
class WaitsForOneAddress(Client):
    """Fails if an address of its bootstrap list does not answer in time."""

    async def any_link(self) -> Link:
        for address in dict.fromkeys([*self.brokers.values(), *self.bootstrap]):
            return await self.link_to(address)
        raise LinkClosedError("no broker is known")


@defect("fails-what-a-closed-connection-had")
class FailsWhatAClosedConnectionHad(Producer):
    """Fails a record if the connection to its leader was closed since the last one."""

    lost: frozenset[TopicPartition] = frozenset()

    async def opened(self, broker: int) -> Link | None:
        address = self.client.brokers.get(broker)
        link = self.client.links.get(address) if address is not None else None
        if link is not None and link.closed is not None:
            self.lost = frozenset(tp for tp, each in self.topics.leaders.items() if each == broker)
        return await super().opened(broker)

    async def exchange(self, link: Link | None, request: Request) -> None:
        await super().exchange(link, request)
        lost, self.lost = self.lost, frozenset()
        for tp, batch in request.items():
            if tp in lost:
                batch.fail(13, "the connection was closed")


@defect("connects-to-names-only-once")
class ConnectsToNamesOnlyOnce(Client):
    """Takes the first address that a host's name has, and no other."""

    def learn_brokers(self, brokers: dict[int, tuple[str, int]], controller_id: int) -> None:
        # The first one that a resolver gives may be IPv6, where no broker of ours listens.
        one = {key: ("::1" if host == "localhost" else host, port)
               for key, (host, port) in brokers.items()}  # fmt: skip
        super().learn_brokers(one, controller_id)


@defect("remembers-the-first-controller")
class RemembersTheFirstController(Client):
    """Reports the controller that it learned first."""

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.__dict__.pop("first", None)

    def success(self, result: Any) -> dict[str, Any]:
        if isinstance(result, dict) and "controller" in result:
            result["controller"] = self.__dict__.setdefault("first", result["controller"])
        return super().success(result)


@defect("refuses-another-cluster-id")
class RefusesAnotherClusterId(Client):
    """Fails every call once Metadata has another cluster id than before."""

    def connect(self, arguments: Mapping[str, Any]) -> None:
        super().connect(arguments)
        self.__dict__.pop("cluster_id", None)

    async def check_metadata(self, answer: Any) -> None:
        await super().check_metadata(answer)
        known = self.__dict__.setdefault("cluster_id", answer.cluster_id)
        if known != answer.cluster_id:
            raise BrokerError(104, "this is another cluster")


@defect("gives-up-a-topic-that-was-deleted")
class GivesUpATopicThatWasDeleted(Topics):
    """Never finds a topic again that it has found gone, or with another id."""

    def take(self, answer: Any) -> None:
        before = dict(self.ids)
        super().take(answer)
        for name, topic_id in before.items():
            if self.ids[name] != topic_id:
                self.errors[name] = _INVALID_TOPIC
            self.ids[name] = topic_id


@defect("stays-behind-the-end-of-a-new-topic")
class StaysBehindTheEndOfANewTopic(Consumer):
    """Waits for a new topic to reach the position that it had in the old one."""

    def out_of_range(self, tp: TopicPartition, each: Assigned) -> None:
        """Nothing."""

    async def prepare(self) -> None:
        ids = dict(self.topics.ids)
        await super().prepare()
        self.topics.ids |= ids


@defect("polls-without-a-leader-at-once")
class PollsWithoutALeaderAtOnce(Consumer):
    """Looks for a leader again without a pause."""

    async def fetch_each(self, by_broker: Mapping[int, Sequence[TopicPartition]]) -> None:
        await super().fetch_each(by_broker)
        for _ in range(_STORM if not by_broker else 0):
            await self.prepare()


@defect("drops-partitions-that-are-not-listed")
class DropsPartitionsThatAreNotListed(Topics):
    """Takes a partition that a broker does not list for one that is gone for good."""

    def take(self, answer: Any) -> None:
        before = {each for each in self.leaders if each not in self.gone}
        super().take(answer)
        for topic in answer.topics:
            listed = {(topic.name, row.partition_index) for row in topic.partitions}
            self.gone |= {tp for tp in before if tp[0] == topic.name} - listed
        for tp in self.gone:
            self.leaders.pop(tp, None)

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.gone: set[TopicPartition] = set()
