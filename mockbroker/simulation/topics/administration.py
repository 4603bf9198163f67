"""Creating topics (19), deleting topics (20) and adding partitions (37).

``answers`` says which checks a release makes, in which order and with which texts. Nothing is
deferred: a topic and its reassignments are gone when DeleteTopics answers.
"""

from __future__ import annotations

import base64
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from msgspec.structs import replace

from kproto.error_codes import ErrorCode, message
from kproto.schema.model import ZERO_UUID
from mockbroker.errors import ClusterError, Refusal
from mockbroker.simulation.configs.changes import ConfigChanges
from mockbroker.simulation.configs.effective import EffectiveConfigs
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.state.actions import PartitionsAdded, TopicCreated, TopicDeleted
from mockbroker.simulation.state.cluster_parts import NO_LEADER, Partition, Topic
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.java_maps import hash_order
from mockbroker.simulation.state.results import (
    ConfigEntry,
    CreatePartitionsResult,
    CreateTopicResult,
    DeleteTopicResult,
    NewTopic,
)
from mockbroker.simulation.state.turns import step
from mockbroker.simulation.state.znode_paths import path_problem
from mockbroker.simulation.topics.answers import AdministrationAnswers
from mockbroker.simulation.topics.assignments import (
    check_assignment,
    check_listed,
    continued,
    spread,
)
from mockbroker.simulation.topics.checks import (
    CHECKS,
    TopicDraft,
    check_absent,
    check_collisions,
    check_name,
    partitions_of,
    requested_partitions,
)
from mockbroker.simulation.topics.spec import parse_topic
from mockbroker.simulation.topics.timeline_order import first_iterated

__all__ = ["TakeQuota", "Topics", "fresh_cluster_id", "fresh_id", "no_quota"]

_RESERVED: Final = "__cluster_metadata"
"""The metadata log of a KRaft cluster, which clients cannot create."""

_TOPICS: Final = "/brokers/topics/"
_PATIENCE_MS: Final = 60_000

TakeQuota: TypeAlias = Callable[[int], None]
"""Counts the partitions that a topic gains or loses towards a quota. Raises Refusal."""


def fresh_id(new_id: Callable[[], uuid.UUID]) -> uuid.UUID:
    """Return an id whose text does not start with '-', which command lines misread."""
    while True:
        candidate = new_id()
        if not base64.urlsafe_b64encode(candidate.bytes).startswith(b"-"):
            return candidate


def fresh_cluster_id() -> str:
    """Return a random cluster id in the form that KRaft uses."""
    return base64.urlsafe_b64encode(fresh_id(uuid.uuid4).bytes).rstrip(b"=").decode()


def no_quota(_: int) -> None:
    """No quota applies."""


class Topics(Mapping[str, Topic]):
    """All topics of one cluster by name, as the controller knows them; it creates, extends and
    deletes them as controllers of one kind and release do.

    ``new_topic_id`` makes topic ids.
    """

    def __init__(
        self,
        controller: Controller,
        answers: AdministrationAnswers,
        configs: EffectiveConfigs,
        config_changes: ConfigChanges,
        new_topic_id: Callable[[], uuid.UUID] = uuid.uuid4,
    ) -> None:
        self._controller = controller
        self.answers = answers
        self._configs = configs
        self._config_changes = config_changes
        self._new_topic_id = new_topic_id
        configs.release.follow(self._use_release)
        self.turns = controller.turns

    def _use_release(self, release: Release) -> None:
        self._lists_internal = not self._controller.keeps_znodes and release.has(
            facts.INTERNAL_CONFIGS_OF_NEW_TOPICS
        )
        self._explains = release.has(facts.FAILURES_EXPLAINED)
        self._hashes = self._controller.keeps_znodes and release.has(facts.GROWING_TOPICS_HASHED)

    def __getitem__(self, name: str) -> Topic:
        return self._controller.state.topics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._controller.state.topics)

    def __len__(self) -> int:
        return len(self._controller.state.topics)

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition. Raises UnknownPartitionError."""
        return self._controller.partition((topic, index))

    def _draft(self, topic: NewTopic) -> TopicDraft:
        return TopicDraft(
            self._controller, self.answers, self._configs, self._config_changes, topic
        )

    @step(by_controller=True)
    def create(
        self,
        topics: Sequence[NewTopic],
        *,
        validate_only: bool = False,
        wait_ms: int = _PATIENCE_MS,
        take_quota: TakeQuota = no_quota,
        client_id: str | None = None,
    ) -> tuple[CreateTopicResult, ...]:
        """Create topics, each on its own: one result for each distinct name, in request order.
        Replicas start at broker p mod N, not at a random one.

        In releases that repeat results there is one for each requested topic. ``wait_ms`` is the
        time-out of the request; ``validate_only`` creates nothing. ``client_id`` may
        appear in texts.
        """
        answers = self.answers.creation
        validate_only = validate_only and answers.only_validates
        times = Counter(topic.name for topic in topics)
        requested = sum(requested_partitions(self._configs, topic) for topic in topics)
        results: dict[str, CreateTopicResult] = {}
        for topic in topics:
            try:
                is_reserved = topic.name == _RESERVED and answers.reserved is not None
                if times[topic.name] > 1 and not (is_reserved and answers.reserved_first):
                    names = ",".join(name for name, count in times.items() if count > 1)
                    text = answers.repeated.format(client=client_id, names=names)
                    raise Refusal(ErrorCode.INVALID_REQUEST, text)
                if topic.name == _RESERVED and answers.reserved is not None:
                    raise Refusal(*answers.reserved)
                if answers.most_partitions is not None and requested > answers.most_partitions:
                    raise Refusal(
                        ErrorCode.POLICY_VIOLATION,
                        "Excessively large number of partitions per request.",
                    )
                created = self._create_one(topic, take_quota, validate_only=validate_only)
                results[topic.name] = created
                if self._gives_up(wait_ms) and not validate_only:
                    results[topic.name] = CreateTopicResult(
                        topic.name, ErrorCode.REQUEST_TIMED_OUT, topic_id=created.topic_id
                    )
            except Refusal as refusal:
                results[topic.name] = CreateTopicResult(topic.name, refusal.code, refusal.message)
        if answers.repeats_results:
            return tuple(results[topic.name] for topic in topics)
        return tuple(results.values())

    @step()
    def add(
        self, topic: str | tuple[str, Sequence[Sequence[int]]], topic_id: uuid.UUID | None = None
    ) -> Topic:
        """Create a topic from a text (``parse_topic``), or from its name and the replicas of each
        partition, which may differ in number. Without ``topic_id`` it gets a new one.

        Raises ClusterError for anything else that CreateTopics would refuse.
        """
        if isinstance(topic, str):
            topic = parse_topic(topic, tuple(self._controller.state.brokers))
        name, assignment = topic
        try:
            new = self._draft(NewTopic(name))
            for check in (check_absent, check_name, check_collisions):
                check(new)
            if not assignment:
                raise Refusal(ErrorCode.INVALID_PARTITIONS, "a topic needs at least one partition")
            for broker_ids in assignment:
                check_assignment(self._controller, broker_ids)
            if topic_id is None:
                topic_id = fresh_id(self._new_topic_id)
            added = Topic(name, topic_id, partitions_of(self._controller, 0, assignment))
        except Refusal as refusal:
            raise ClusterError(f"topic {name!r}: {refusal.message}") from None
        self._controller.record("add_topic", TopicCreated(added))
        return added

    def _gives_up(self, wait_ms: int) -> bool:
        """Return whether a request times out at once because it must wait but has no time."""
        return self.answers.waits and wait_ms <= 0

    def _create_one(
        self, topic: NewTopic, take_quota: TakeQuota, *, validate_only: bool
    ) -> CreateTopicResult:
        new = self._draft(topic)
        for check in new.answers.checks:
            CHECKS[check](new)
        take_quota(len(new.partitions))
        partitions, configs = new.partitions, new.configs
        drawn = new.answers.ids_drawn or not validate_only
        topic_id = fresh_id(self._new_topic_id) if drawn else ZERO_UUID
        result = CreateTopicResult(
            topic.name,
            topic_id=topic_id,
            num_partitions=len(partitions),
            replication_factor=len(partitions[0].replicas),
            configs=self._shown_configs(configs) if new.answers.lists_configs else (),
        )
        if not validate_only:
            created = Topic(topic.name, topic_id, partitions)
            self._controller.record("create_topics", TopicCreated(created))
            self._config_changes.store_new(topic.name, configs)
        return result

    def _shown_configs(self, given: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
        """The configs of a new topic. KRaft shows texts as they were given."""
        entries = self._configs.of_new_topic(given, internal_too=self._lists_internal)
        if self._controller.keeps_znodes:
            return entries
        return tuple(
            replace(each, value=given[each.name]) if each.name in given else each
            for each in entries
        )

    def auto_create(self, name: str) -> int:
        """Create an unknown topic that Metadata requests; return the error code to answer.

        The code is 3 after creating the topic, as from a KRaft broker that does not know it yet, 17
        for an invalid name, and 3 without creating it unless ``auto.create.topics.enable`` is set.
        """
        if self._configs.controller_value("auto.create.topics.enable") == "true":
            (result,) = self.create([NewTopic(name)])
            if result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION:
                return result.error_code
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def remove(self, name: str) -> None:
        """Delete a topic as DeleteTopics does. Raises ClusterError if that is refused."""
        (result,) = self.delete([(name, ZERO_UUID)])
        if result.error_code:
            raise ClusterError(f"{name!r} was not deleted: {result.error_message}")

    def extend(self, name: str, count: int) -> None:
        """Raise a topic's partitions to ``count``, as CreatePartitions does. Raises ClusterError if
        that is refused."""
        (result,) = self.add_partitions([(name, count, None)])
        if result.error_code:
            raise ClusterError(f"{name!r} has no {count} partitions: {result.error_message}")

    @step(by_controller=True)
    def add_partitions(
        self,
        topics: Sequence[tuple[str, int, Sequence[Sequence[int]] | None]],
        *,
        validate_only: bool = False,
        wait_ms: int = _PATIENCE_MS,
        take_quota: TakeQuota = no_quota,
    ) -> tuple[CreatePartitionsResult, ...]:
        """Add partitions. Each row is (name, new total count, None or the broker ids of each new
        partition). Raises Refusal, in ZooKeeper mode, for a topic whose name no znode has: those
        before it have grown by then.
        """
        answers = self.answers.growth
        validate_only = validate_only and answers.only_validates
        times = Counter(name for name, _, _ in topics)
        if self._hashes:
            rows = {row[0]: row for row in topics}
            topics = [rows[name] for name in hash_order(rows)]
        results: dict[str, CreatePartitionsResult] = {}
        excess = self._refusals_of_excess(topics)
        for (name, count, assignments), too_many in zip(topics, excess, strict=True):
            try:
                if times[name] > 1:
                    raise Refusal(ErrorCode.INVALID_REQUEST, answers.repeated)
                if too_many is not None:
                    raise too_many
                if self._controller.keeps_znodes and (problem := path_problem(f"{_TOPICS}{name}")):
                    text = problem if self._explains else None
                    raise _NoZnodeError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
                added = self._additional_partitions(name, count, assignments, take_quota)
            except _NoZnodeError:
                raise
            except Refusal as refusal:
                results[name] = CreatePartitionsResult(name, refusal.code, refusal.message)
                continue
            results[name] = CreatePartitionsResult(name)
            if not validate_only:
                self._controller.record("create_partitions", PartitionsAdded(name, added))
                leaders = [each.leader for each in self._controller.state.topics[name].partitions]
                leaderless = answers.awaits_leaders and NO_LEADER in leaders
                if leaderless or self._gives_up(wait_ms):
                    results[name] = CreatePartitionsResult(name, ErrorCode.REQUEST_TIMED_OUT)
        return tuple(results.values())

    def _refusals_of_excess(
        self, topics: Sequence[tuple[str, int, Sequence[Sequence[int]] | None]]
    ) -> list[Refusal | None]:
        """The refusal of each topic, if the request adds too many partitions in all."""
        answers = self.answers.growth
        most = answers.most_partitions
        if most is None:
            return [None] * len(topics)
        known = self._controller.state.topics
        added = [
            max(0, count - len(known[name].partitions)) if name in known else 0
            for name, count, _ in topics
        ]
        if answers.refuses_excess:
            text = "Excessively large number of additional partitions per request."
            refusal = Refusal(ErrorCode.POLICY_VIOLATION, text)
            return [refusal if sum(added) > most else None] * len(topics)
        # Records of new partitions are counted from the first topic on, also of those that fit.
        unexplained = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
        return [
            unexplained
            if new > 0 and total > most and (replicas is None or len(replicas) == new)
            else None
            for (_, _, replicas), new, total in zip(topics, added, accumulate(added), strict=True)
        ]

    def _additional_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        take_quota: TakeQuota,
    ) -> tuple[Partition, ...]:
        answers = self.answers.growth
        topics = self._controller.state.topics
        if answers.moving is not None and any(
            each.reassigning for topic in topics.values() for each in topic.partitions
        ):
            raise Refusal(ErrorCode.REASSIGNMENT_IN_PROGRESS, answers.moving)
        topic = topics.get(name)
        if topic is None:
            text = answers.unknown_topic
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                None if text is None else text.format(name=name),
            )
        if answers.in_flight is not None and any(each.reassigning for each in topic.partitions):
            raise Refusal(ErrorCode.REASSIGNMENT_IN_PROGRESS, answers.in_flight.format(name=name))
        present = len(topic.partitions)
        if count <= present:
            text = answers.as_many if count == present else answers.fewer
            raise Refusal(
                ErrorCode.INVALID_PARTITIONS, text.format(name=name, present=present, wanted=count)
            )
        additional = count - present
        if answers.quota_first and (assignments is None or len(assignments) == additional):
            take_quota(additional)
        first = topic.partitions[0].replicas
        model = first_iterated(present) if answers.model == "hashed" else 0
        factor = len(topic.partitions[model].replicas)
        if assignments is not None:
            lists = {present + place: broker_ids for place, broker_ids in enumerate(assignments)}
            check_listed(self._controller, answers.listed, lists, expected=factor, added=additional)
        elif answers.continued:
            assignments = continued(
                self._controller, self.answers, first[0], present, additional, factor
            )
        else:
            assignments = spread(self._controller, self.answers, present, additional, factor)
        if not answers.quota_first:
            take_quota(additional)
        return partitions_of(self._controller, present, assignments)

    @step(by_controller=True)
    def delete(
        self,
        topics: Sequence[tuple[str | None, uuid.UUID]],
        *,
        wait_ms: int = _PATIENCE_MS,
        take_quota: TakeQuota = no_quota,
    ) -> tuple[DeleteTopicResult, ...]:
        """Delete topics, each given by name with the zero uuid, or by id with None as its name.

        Results keep the order of the request.
        """
        answers = self.answers.deletion
        given = _Given(topics, self._controller.state.topics)
        results: dict[tuple[str | None, uuid.UUID], DeleteTopicResult] = {}
        repeated = []
        for name, topic_id in topics:
            key = (name, topic_id)
            if key in results:
                if given.is_malformed(name, topic_id):
                    repeated.append(results[key])
                continue
            if answers.repeated_refused and given.is_named_too(name, topic_id):
                continue
            try:
                if answers.repeated_refused:
                    given.check(name, topic_id)
                results[key] = self._delete_one(name, topic_id, take_quota)
                if self._gives_up(wait_ms):
                    results[key] = replace(results[key], error_code=ErrorCode.REQUEST_TIMED_OUT)
            except _NamedByIdError as error:
                results[key] = DeleteTopicResult(name, error.topic_id, error.code, error.message)
            except Refusal as refusal:
                text = refusal.message if answers.explains else None
                results[key] = DeleteTopicResult(name, topic_id, refusal.code, text)
        if answers.repeats_results:
            return tuple(results[topic] for topic in topics)
        return (*results.values(), *repeated)

    def _delete_one(
        self, name: str | None, topic_id: uuid.UUID, take_quota: TakeQuota
    ) -> DeleteTopicResult:
        answers = self.answers.deletion
        by_id = topic_id != ZERO_UUID
        if name is not None and by_id:
            raise _invalid("You may not specify both topic name and topic id.")
        if name is None and not by_id:
            raise Refusal(answers.neither, "Neither topic name nor id were specified.")
        if self._configs.controller_value("delete.topic.enable") != "true":
            raise Refusal(
                ErrorCode.TOPIC_DELETION_DISABLED, message(ErrorCode.TOPIC_DELETION_DISABLED)
            )
        if by_id and topic_id not in self._controller.state.topic_names:
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_ID, message(ErrorCode.UNKNOWN_TOPIC_ID))
        found = self._controller.state.topics.get(
            self._controller.state.topic_names[topic_id] if name is None else name
        )
        if found is None:
            raise Refusal(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
        take_quota(len(found.partitions))
        self._controller.record("delete_topics", TopicDeleted(found.name, found.topic_id))
        return DeleteTopicResult(found.name, found.topic_id if answers.ids_found else topic_id)


class _NoZnodeError(Refusal):
    """No znode can have the name of a topic, so that the whole request fails."""


class _NamedByIdError(Refusal):
    """A topic is requested by its name and by its id; both stand in the answer."""

    def __init__(self, topic_id: uuid.UUID) -> None:
        super().__init__(
            ErrorCode.INVALID_REQUEST,
            "The provided topic name maps to an ID that was already supplied.",
        )
        self.topic_id = topic_id


class _Given:
    """How KRaft's controllers read the topics of DeleteTopics: names and ids first, each of which
    may be given once, then names whose ids are given, too."""

    def __init__(
        self, topics: Sequence[tuple[str | None, uuid.UUID]], known: Mapping[str, Topic]
    ) -> None:
        self._names = Counter(
            name for name, topic_id in topics if name is not None and topic_id == ZERO_UUID
        )
        self._ids = Counter(
            topic_id for name, topic_id in topics if name is None and topic_id != ZERO_UUID
        )
        self._id_given_too = {
            name: known[name].topic_id
            for name, times in self._names.items()
            if times == 1 and name in known and known[name].topic_id in self._ids
        }
        self._named_too = frozenset(self._id_given_too.values())

    @staticmethod
    def is_malformed(name: str | None, topic_id: uuid.UUID) -> bool:
        """Whether there are both, a name and an id, or neither."""
        return (name is None) == (topic_id == ZERO_UUID)

    def is_named_too(self, name: str | None, topic_id: uuid.UUID) -> bool:
        """Whether an id that is given once has no result, since the topic's name has one."""
        return name is None and topic_id in self._named_too and self._ids[topic_id] == 1

    def check(self, name: str | None, topic_id: uuid.UUID) -> None:
        """Raise Refusal for what is given more than once."""
        if name is None and self._ids[topic_id] > 1:
            raise _invalid("Duplicate topic id.")
        if name is None or topic_id != ZERO_UUID:
            return
        if self._names[name] > 1:
            raise _invalid("Duplicate topic name.")
        if name in self._id_given_too:
            raise _NamedByIdError(self._id_given_too[name])


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
