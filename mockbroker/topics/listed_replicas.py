"""Checks of replica lists that a client chose, one list for each partition.

``eras`` says which checks a release makes, in which order and with which texts; this module
implements them. It does not check whether replicas are live.
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
    """Check the lists by these rules. Raises Refusal (39).

    ``expected`` is the required length of each list; None requires the length of the first.
    ``added`` is the required number of lists; None allows any.
    """
    one_by_one = not rules.together and len(lists) > 0
    groups = [{index: lists[index]} for index in lists] if one_by_one else [lists]
    length = expected if expected is not None else len(next(iter(lists.values()), ()))
    for group in groups:
        lists_to_check = _CheckedLists(controller, rules, lists, group, length, added)
        for check in rules.checks:
            _CHECKS[check](lists_to_check)


@dataclass(slots=True)
class _CheckedLists:
    """``lists`` are all lists of the request, ``group`` those to check now."""

    controller: Controller
    rules: ListedReplicas
    lists: Lists
    group: Lists
    expected: int
    added: int | None

    def refuse(self, check: ListCheck, **facts: object) -> None:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, self.rules.texts[check].format(**facts))


def _check_count(checked: _CheckedLists) -> None:
    if checked.added is not None and len(checked.lists) != checked.added:
        checked.refuse("miscounted", added=checked.added, lists=len(checked.lists))


def _check_none_empty(checked: _CheckedLists) -> None:
    for index, replicas in checked.group.items():
        if not replicas:
            checked.refuse("empty", index=index)


def _check_brokers(checked: _CheckedLists) -> None:
    """Check broker by broker, ids ascending: the text names the lowest invalid id."""
    for replicas in checked.group.values():
        previous: int | None = None
        for broker_id in sorted(replicas):
            if broker_id not in checked.controller.state.brokers:
                checked.refuse("unknown", broker_id=broker_id)
            if broker_id == previous:
                checked.refuse("repeated", broker_id=broker_id)
            previous = broker_id


def _check_known(checked: _CheckedLists) -> None:
    """Check all lists together. In ZooKeeper mode only live brokers are known."""
    listed = dict.fromkeys(each for replicas in checked.group.values() for each in replicas)
    unknown = [each for each in listed if not checked.controller.is_live(each)]
    if unknown:
        checked.refuse("unknown", broker_ids=", ".join(map(str, unknown)))


def _check_none_repeated(checked: _CheckedLists) -> None:
    for index, replicas in checked.group.items():
        if len(set(replicas)) < len(replicas):
            checked.refuse(
                "repeated",
                index=index,
                replicas=", ".join(map(str, replicas)),
                assignment=_as_scala(checked.lists),
            )


def _check_lengths(checked: _CheckedLists) -> None:
    odd = {i: len(ids) for i, ids in checked.group.items() if len(ids) != checked.expected}
    if odd:
        checked.refuse(
            "length",
            count=next(iter(odd.values())),
            expected=checked.expected,
            indexes=", ".join(map(str, odd)),
            counts=", ".join(map(str, odd.values())),
        )


_CHECKS: Final[Mapping[ListCheck, Callable[[_CheckedLists], None]]] = {
    "miscounted": _check_count,
    "empty": _check_none_empty,
    "brokers": _check_brokers,
    "unknown": _check_known,
    "repeated": _check_none_repeated,
    "length": _check_lengths,
}


def _as_scala(lists: Lists) -> str:
    """Format the lists as Scala prints a map. Small keys keep their order."""
    rows = (
        f"{index} -> ArrayBuffer({', '.join(map(str, lists[index]))})" for index in sorted(lists)
    )
    return f"HashMap({', '.join(rows)})"
