"""ElectLeaders (43; KIP-183, KIP-460): which leaders are elected, and how each design answers.

Elections are decided at once, from the current state; ``queue`` decides when they are held and
answered. Without eligible leader replicas an unclean election takes the first live replica in
replica order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from kproto.error_codes import ErrorCode, message
from mockbroker.errors import Refusal
from mockbroker.simulation.elections.answers import ElectionAnswers
from mockbroker.simulation.elections.partition_change import (
    CompletionRows,
    Election,
    next_partition,
    with_difference,
)
from mockbroker.simulation.state.cluster_parts import (
    NO_LEADER,
    PartitionsByTopic,
    Topic,
    TopicPartition,
)
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import ElectLeadersResult, PartitionResult, TopicResult

__all__ = ["PREFERRED", "UNCLEAN", "ElectionOutcome", "LeaderElections"]

PREFERRED = 0
UNCLEAN = 1


class ElectionOutcome(msgspec.Struct):
    """``leaders`` are the new leaders, which the receiving broker has to learn before it
    answers."""

    result: ElectLeadersResult
    leaders: dict[TopicPartition, int] = msgspec.field(default_factory=dict)


class LeaderElections:
    """Elects leaders in one cluster, as controllers of one design and release do.

    ``completion`` has the rows by which a change of a partition may complete its reassignment.
    After all partitions of a request, their reassignments continue, which an unclean election may
    complete.
    """

    def __init__(
        self, controller: Controller, answers: ElectionAnswers, completion: CompletionRows
    ) -> None:
        self._controller = controller
        self.answers = answers
        self._completion = completion

    def every_partition(self, broker_id: int) -> PartitionsByTopic:
        """Return every partition that a request without partitions means.

        A broker whose controller queues elections names those it knows itself; others forward the
        request to the controller.
        """
        if self.answers.queued:
            known = self._controller.state.view(broker_id, self._controller.now_ms).topics
        else:
            known = self._controller.state.topics
        return [(name, range(len(topic.partitions))) for name, topic in sorted(known.items())]

    def elect(
        self,
        election_type: int,
        topics: PartitionsByTopic,
        *,
        everything: bool = False,
        cause: str = "elect_leaders",
    ) -> ElectionOutcome:
        """Hold an election for each partition, decided from the state before the request.

        ``everything``: the request named no partitions, so the result omits partitions that need no
        election; KRaft keeps their topics, with an empty list.
        """
        outcome = ElectionOutcome(ElectLeadersResult(0, ()))
        known = dict(self._controller.state.topics)
        rows = []
        for name, indexes in self._requested(topics):
            found = [
                self._elect_one(known, election_type, (name, index), cause, outcome.leaders)
                for index in indexes
            ]
            if everything:
                found = [row for row in found if row.error_code != ErrorCode.ELECTION_NOT_NEEDED]
            if found or not self.answers.each_once:
                rows.append(TopicResult(name, tuple(found)))
        outcome.result = ElectLeadersResult(0, tuple(rows))
        for tp in outcome.leaders:
            self._controller.reactions.after_election(cause, tp)
        return outcome

    def unknown_type(
        self, election_type: int, topics: PartitionsByTopic | None
    ) -> ElectLeadersResult | None:
        """Return the refusal of an unknown election type, or None for a known one.

        The error is at the top level and at each partition of the request. KRaft finds none in a
        request that names nothing.
        """
        if election_type in (PREFERRED, UNCLEAN):
            return None
        code, text = self.answers.unknown_type, self.answers.unknown_type_text
        if text is not None:
            text = text.format(election_type=election_type)
        if topics == [] and not self.answers.queued:
            return ElectLeadersResult(0, ())
        # Brokers fail before they fold repeated partitions, and echo them.
        rows = (
            TopicResult(name, tuple(PartitionResult(index, code, text) for index in indexes))
            for name, indexes in topics or ()
        )
        return ElectLeadersResult(code, tuple(rows))

    def refused(self, topics: PartitionsByTopic, code: int) -> ElectLeadersResult:
        """Return the same error code, without a text, for every partition."""
        rows = (
            TopicResult(name, tuple(PartitionResult(index, code) for index in indexes))
            for name, indexes in self._requested(topics)
            if indexes or not self.answers.each_once
        )
        return ElectLeadersResult(0, tuple(rows))

    def _requested(self, topics: PartitionsByTopic) -> PartitionsByTopic:
        return _distinct(topics) if self.answers.each_once else topics

    def _elect_one(
        self,
        known: Mapping[str, Topic],
        election_type: int,
        tp: TopicPartition,
        cause: str,
        leaders: dict[TopicPartition, int],
    ) -> PartitionResult:
        try:
            leader = self._hold_election(known, election_type, tp, cause)
        except Refusal as refusal:
            return PartitionResult(tp[1], refusal.code, refusal.message)
        if leader is not None:
            leaders[tp] = leader
        return PartitionResult(tp[1])

    def _hold_election(
        self, known: Mapping[str, Topic], election_type: int, tp: TopicPartition, cause: str
    ) -> int | None:
        """Return the new leader, or None if no election was needed and that is not an error."""
        name, index = tp
        topic = known.get(name)
        if topic is None:
            deleted = self._controller.state.deleting.get(name)
            if self.answers.being_deleted is not None and deleted and deleted.partition(index):
                raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, self.answers.being_deleted)
            text = self.answers.unknown_topic.format(name=name)
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        partition = topic.partition(index)
        if partition is None:
            text = self.answers.unknown_partition.format(name=name, index=index)
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        if election_type == PREFERRED:
            satisfied = partition.leader == partition.preferred_leader
            election, failure = Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        else:
            satisfied = partition.leader != NO_LEADER
            election, failure = Election.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        if satisfied:
            if self.answers.needless[0] is ErrorCode.NONE:
                return None
            raise Refusal(*self.answers.needless)
        after = next_partition(
            partition,
            partial(self._controller.is_online, tp),
            election=election,
            completion=self._completion,
        )
        other = election_type == PREFERRED and after.leader != partition.preferred_leader
        if after == partition or (other and self.answers.preferred_only):
            strategy = self.answers.strategies[election_type]
            text = self.answers.not_elected or message(failure)
            raise Refusal(failure, text.format(name=name, index=index, strategy=strategy))
        current = self._controller.partition(tp)
        self._controller.change_partition(cause, name, with_difference(current, partition, after))
        return after.leader


def _distinct(topics: Iterable[tuple[str, Iterable[int]]]) -> list[tuple[str, list[int]]]:
    """Fold repeated topics and partitions, in the order of their first occurrence."""
    folded: dict[str, dict[int, None]] = {}
    for name, indexes in topics:
        folded.setdefault(name, {}).update(dict.fromkeys(indexes))
    return [(name, list(indexes)) for name, indexes in folded.items()]
