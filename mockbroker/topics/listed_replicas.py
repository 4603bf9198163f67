"""Replicas that somebody listed, partition by partition: whether a controller takes them.

``eras`` says which checks a controller makes, in which order and in what words; this
file knows how each is made. Whether a replica is live is not asked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.state.controller import Controller
from mockbroker.topics.eras import ListCheck, ListedReplicas

__all__ = ["check_listed"]

Lists: TypeAlias = Mapping[int, Sequence[int]]
"""Partition index -> broker ids."""


def check_listed(
    controller: Controller,
    rules: ListedReplicas,
    lists: Lists,
    *,
    expected: int | None = None,
    added: int | None = None,
) -> None:
    """Refuse (39) what these rules refuse. ``expected`` is how long lists have to be, None for as
    long as the first; ``added`` how many there have to be, None for any number."""
    each_for_itself = not rules.together and len(lists) > 0
    groups = [{index: lists[index]} for index in lists] if each_for_itself else [lists]
    length = expected if expected is not None else len(next(iter(lists.values()), ()))
    for group in groups:
        asked = _Asked(controller, rules, lists, group, length, added)
        for check in rules.checks:
            _CHECKS[check](asked)


@dataclass(slots=True)
class _Asked:
    """``lists`` is all there is, ``group`` what is to be looked at."""

    controller: Controller
    rules: ListedReplicas
    lists: Lists
    group: Lists
    expected: int
    added: int | None

    def refuse(self, check: ListCheck, **facts: object) -> None:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, self.rules.texts[check].format(**facts))


def _check_count(asked: _Asked) -> None:
    if asked.added is not None and len(asked.lists) != asked.added:
        asked.refuse("miscounted", added=asked.added, lists=len(asked.lists))


def _check_none_empty(asked: _Asked) -> None:
    for index, replicas in asked.group.items():
        if not replicas:
            asked.refuse("empty", index=index)


def _check_brokers(asked: _Asked) -> None:
    """One by one, ids ascending, so that what is wrong with the lowest is told."""
    for replicas in asked.group.values():
        previous: int | None = None
        for broker_id in sorted(replicas):
            if broker_id not in asked.controller.state.brokers:
                asked.refuse("unknown", broker_id=broker_id)
            if broker_id == previous:
                asked.refuse("repeated", broker_id=broker_id)
            previous = broker_id


def _check_known(asked: _Asked) -> None:
    """All at once; where brokers are known from ZooKeeper, only live ones are."""
    listed = dict.fromkeys(each for replicas in asked.group.values() for each in replicas)
    unknown = [each for each in listed if not asked.controller.is_live(each)]
    if unknown:
        asked.refuse("unknown", broker_ids=", ".join(map(str, unknown)))


def _check_none_repeated(asked: _Asked) -> None:
    for index, replicas in asked.group.items():
        if len(set(replicas)) < len(replicas):
            asked.refuse(
                "repeated",
                index=index,
                replicas=", ".join(map(str, replicas)),
                assignment=_as_scala(asked.lists),
            )


def _check_lengths(asked: _Asked) -> None:
    odd = {i: len(ids) for i, ids in asked.group.items() if len(ids) != asked.expected}
    if odd:
        asked.refuse(
            "length",
            count=next(iter(odd.values())),
            expected=asked.expected,
            indexes=", ".join(map(str, odd)),
            counts=", ".join(map(str, odd.values())),
        )


_CHECKS: Final[Mapping[ListCheck, Callable[[_Asked], None]]] = {
    "miscounted": _check_count,
    "empty": _check_none_empty,
    "brokers": _check_brokers,
    "unknown": _check_known,
    "repeated": _check_none_repeated,
    "length": _check_lengths,
}


def _as_scala(lists: Lists) -> str:
    """A map of Scala's, printed. Small numbers come in their order."""
    rows = (
        f"{index} -> ArrayBuffer({', '.join(map(str, lists[index]))})" for index in sorted(lists)
    )
    return f"HashMap({', '.join(rows)})"
