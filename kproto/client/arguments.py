"""Validate the arguments of ``Admin``. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from kproto.client.errors import InvalidTopicError
from kproto.client.results import KeyedResult
from kproto.client.values import (
    NewPartitionReassignment,
    TopicPartition,
    unrepresentable,
    unrepresentable_topic,
)
from kproto.dialects import AutoDialect, Dialect, dialect

__all__ = [
    "EVERYTHING",
    "Everything",
    "Partitions",
    "distinct",
    "fixed_dialect",
    "milliseconds",
    "partitions_or_topics",
    "problem_of",
    "refuse",
    "replicas_of",
]

Partitions = Iterable[tuple[str, int]]


class Everything:
    """The type of an omitted argument, as distinct from None."""

    def __repr__(self) -> str:
        return "everything"


EVERYTHING: Final = Everything()


def fixed_dialect(requested: str | Dialect) -> Dialect:
    found = dialect(requested) if isinstance(requested, str) else requested
    if isinstance(found, AutoDialect):
        raise ValueError("a client needs a definite dialect: use one other than 'auto'")
    return found


def milliseconds(timeout_ms: int | None) -> int | None:
    """Return milliseconds as an int32 can carry them."""
    if timeout_ms is not None and not 0 <= timeout_ms < 2**31:
        raise ValueError(f"timeout_ms is {timeout_ms}; it must be from 0 to {2**31 - 1}")
    return timeout_ms


def replicas_of(requested: Sequence[int] | NewPartitionReassignment | None) -> list[int] | None:
    if requested is None:
        return None
    if not isinstance(requested, NewPartitionReassignment):
        requested = NewPartitionReassignment(requested)
    return requested.target_replicas


def distinct(partitions: Partitions) -> list[TopicPartition]:
    return list(dict.fromkeys(TopicPartition(*each) for each in partitions))


def partitions_or_topics(
    requested: Partitions | Iterable[str] | Everything | None,
) -> list[TopicPartition] | list[str] | None:
    if isinstance(requested, Everything):
        return None
    if requested is None or isinstance(requested, str):
        raise TypeError(
            f"partitions is {requested!r}; give a set of partitions or of topics, or leave it out "
            "for all"
        )
    given: list[Any] = list(requested)
    names = [each for each in given if isinstance(each, str)]
    if names and len(names) < len(given):
        raise TypeError("partitions and topics are mixed; pass only one kind")
    return list(dict.fromkeys(names)) if names else distinct(given)


def problem_of(requested: TopicPartition | str) -> InvalidTopicError | None:
    if isinstance(requested, TopicPartition):
        return unrepresentable(requested)
    return unrepresentable_topic(requested)


def refuse(
    result: KeyedResult[Any, Any],
    keys: Iterable[Any],
    problem: Callable[[Any], InvalidTopicError | None],
) -> list[Any]:
    """Fail the futures of what no request can carry. Returns the others."""
    fine = []
    for key in keys:
        error = problem(key)
        if error is None:
            fine.append(key)
        else:
            result.resolve(key, error)
    return fine
