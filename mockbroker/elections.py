"""ElectLeaders (43; KIP-183, KIP-460) as KRaft answers it, with its texts.

Without eligible leader replicas, an unclean election takes the first live replica in replica order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kproto.error_codes import ErrorCode, message
from mockbroker.controller import Controller
from mockbroker.errors import Refusal
from mockbroker.model import NO_LEADER, Topic
from mockbroker.partition_change import Election, next_partition, redone
from mockbroker.results import ElectLeadersResult, PartitionResult, TopicResult

__all__ = ["PREFERRED", "UNCLEAN", "elect"]

PREFERRED = 0
UNCLEAN = 1


def elect(
    controller: Controller,
    election_type: int,
    topics: Sequence[tuple[str, Sequence[int]]] | None,
) -> ElectLeadersResult:
    """One row for each partition asked for, decided on from the state before the request.

    None asks for every partition: those that need no election are then left out, while their topic
    stays, with an empty list, as KRaft has it.
    """
    if election_type not in (PREFERRED, UNCLEAN):
        return _refused(election_type, topics)
    if topics is None:
        everything = [
            (name, range(len(topic.partitions)))
            for name, topic in sorted(controller.state.topics.items())
        ]
        rows = _rows(controller, election_type, everything)
        return ElectLeadersResult(0, tuple(_without_unneeded(row) for row in rows))
    return ElectLeadersResult(0, _rows(controller, election_type, topics))


def _refused(
    election_type: int, topics: Sequence[tuple[str, Sequence[int]]] | None
) -> ElectLeadersResult:
    """The error at the top and, so that clients see it, at each partition they named."""
    text = f"Unknown election type {election_type}"
    return ElectLeadersResult(
        ErrorCode.INVALID_REQUEST,
        tuple(
            TopicResult(
                name, tuple(PartitionResult(i, ErrorCode.INVALID_REQUEST, text) for i in indexes)
            )
            for name, indexes in _distinct(topics or ())
        ),
    )


def _distinct(topics: Iterable[tuple[str, Iterable[int]]]) -> list[tuple[str, list[int]]]:
    """Fold repeated topics and partitions, keeping the order of first mention."""
    folded: dict[str, dict[int, None]] = {}
    for name, indexes in topics:
        folded.setdefault(name, {}).update(dict.fromkeys(indexes))
    return [(name, list(indexes)) for name, indexes in folded.items()]


def _rows(
    controller: Controller, election_type: int, topics: Iterable[tuple[str, Iterable[int]]]
) -> tuple[TopicResult, ...]:
    known = dict(controller.state.topics)
    return tuple(
        TopicResult(
            name, tuple(_elect_one(controller, known, election_type, name, i) for i in indexes)
        )
        for name, indexes in topics
    )


def _without_unneeded(row: TopicResult) -> TopicResult:
    return TopicResult(
        row.name,
        tuple(p for p in row.partitions if p.error_code != ErrorCode.ELECTION_NOT_NEEDED),
    )


def _elect_one(
    controller: Controller,
    known: Mapping[str, Topic],
    election_type: int,
    name: str,
    index: int,
) -> PartitionResult:
    try:
        _hold_election(controller, known, election_type, name, index)
    except Refusal as refusal:
        return PartitionResult(index, refusal.code, refusal.message)
    return PartitionResult(index)


def _hold_election(
    controller: Controller, known: Mapping[str, Topic], election_type: int, name: str, index: int
) -> None:
    topic = known.get(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partition(index)
    if partition is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    if election_type == PREFERRED:
        satisfied = partition.leader == partition.preferred_leader
        election, failure = Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        satisfied = partition.leader != NO_LEADER
        election, failure = Election.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    if satisfied:
        # Unlike the texts of exceptions, these generic ones are on the wire.
        raise Refusal(ErrorCode.ELECTION_NOT_NEEDED, message(ErrorCode.ELECTION_NOT_NEEDED))
    after = next_partition(
        partition, controller.is_live, election=election, completion=controller.completion
    )
    if after == partition:
        raise Refusal(failure, message(failure))
    current = controller.state.topics[name].partitions[index]
    controller.change_partition("elect_leaders", name, redone(current, partition, after))
