"""Replica assignments: lists of brokers that a client chose are checked, others are chosen here.

Used when topics are created, partitions are added and partitions are reassigned. ``answers`` says
which checks of lists a release makes, in which order and with which texts; this module implements
them. They do not check whether replicas are live.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Final, TypeAlias

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.state.cluster_parts import Partition
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.topics.answers import (
    KRAFT_LISTED,
    AdministrationAnswers,
    ListCheck,
    ListedReplicas,
)

__all__ = ["check_assignment", "check_listed", "continued", "new_partition", "spread"]

Lists: TypeAlias = Mapping[int, Sequence[int]]
"""Partition index -> broker ids."""


# ---- lists that a client chose -----------------------------------------------------------------


def check_assignment(
    controller: Controller, broker_ids: Sequence[int], replication_factor: int | None = None
) -> None:
    """Check a replica list as KRaft does.

    Raises Refusal (39) for an empty list, an unknown broker, a repeated broker, or a length other
    than ``replication_factor``. Brokers are checked in ascending order of id.
    """
    check_listed(controller, KRAFT_LISTED, {0: broker_ids}, expected=replication_factor)


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


class _CheckedLists(msgspec.Struct):
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
            if not checked.controller.state.is_registered(broker_id):
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


# ---- lists that the controller chooses -----------------------------------------------------------


def spread(
    controller: Controller,
    answers: AdministrationAnswers,
    first_partition: int,
    count: int,
    replication_factor: int,
) -> list[tuple[int, ...]]:
    """Choose the replicas of ``count`` partitions from index ``first_partition`` on.

    Kafka starts at a random broker. Here partition p starts at live broker p modulo their number,
    so that tests are deterministic. As in Kafka, replicas are in as many racks as possible, and
    brokers that are not live come last.
    """
    live = _interleaved(controller, controller.live_ids())
    registered = filter(controller.state.is_registered, sorted(controller.state.brokers))
    known = live if answers.knows_only_live else tuple(registered)
    if not live:
        raise _few(answers.creation.no_broker_is_live, replication_factor, known)
    if replication_factor > len(known):
        raise _few(answers.creation.few_brokers, replication_factor, known)
    fenced = tuple(broker_id for broker_id in known if broker_id not in live)
    return [
        (
            *_over_racks(controller, _rotated(live, partition), replication_factor),
            *_rotated(fenced, partition),
        )[:replication_factor]
        for partition in range(first_partition, first_partition + count)
    ]


def continued(
    controller: Controller,
    answers: AdministrationAnswers,
    first_replica: int,
    first_partition: int,
    count: int,
    factor: int,
) -> list[tuple[int, ...]]:
    """Choose the replicas of ``count`` more partitions of a topic.

    ``first_replica`` is the first replica of partition 0, as in
    ``AdminUtils.assignReplicasToBrokers``. Racks are ignored.
    """
    live = controller.live_ids()
    if factor > len(live):
        raise _few(answers.creation.few_brokers, factor, live)
    start = next((place for place, each in enumerate(live) if each >= first_replica), 0)
    shift = start
    lists = []
    for partition in range(first_partition, first_partition + count):
        if partition > 0 and partition % len(live) == 0:
            shift += 1
        first = (partition + start) % len(live)
        # The followers shift by one in each round over the brokers.
        others = (
            (first + 1 + (shift + i) % (len(live) - 1)) % len(live) for i in range(factor - 1)
        )
        lists.append((live[first], *(live[place] for place in others)))
    return lists


def new_partition(controller: Controller, index: int, broker_ids: Sequence[int]) -> Partition:
    """Return a new partition: its live replicas are in sync, and the first of them is the leader.

    Raises Refusal (39) if no replica is live. Kafka in ZooKeeper mode would create a partition
    without a leader, hide it from clients and let the request time out.
    """
    dirs = controller.state.replica_dirs
    isr = tuple(each for each in broker_ids if controller.is_live(each) and dirs.can_store(each))
    if not isr:
        raise _bad(
            f"All brokers specified in the manual partition assignment for partition {index} "
            "are fenced or in controlled shutdown."
        )
    return Partition(index, tuple(broker_ids), isr, leader=isr[0])


def _interleaved(controller: Controller, ids: tuple[int, ...]) -> tuple[int, ...]:
    """Take a broker of each rack in turn."""
    racks: dict[str, list[int]] = {}
    for broker_id in ids:
        racks.setdefault(controller.state.brokers[broker_id].rack or "", []).append(broker_id)
    rounds = zip_longest(*(racks[name] for name in sorted(racks)))
    return tuple(each for turn in rounds for each in turn if each is not None)


def _over_racks(controller: Controller, ids: tuple[int, ...], count: int) -> list[int]:
    """The first brokers, of the racks that have the fewest replicas."""
    left, used, chosen = list(ids), Counter[str | None](), list[int]()
    while left and len(chosen) < count:
        following = min(left, key=lambda each: used[controller.state.brokers[each].rack])
        left.remove(following)
        used[controller.state.brokers[following].rack] += 1
        chosen.append(following)
    return chosen


def _rotated(ids: tuple[int, ...], by: int) -> tuple[int, ...]:
    start = by % len(ids) if ids else 0
    return ids[start:] + ids[:start]


def _few(text: str, factor: int, known: Sequence[int]) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_REPLICATION_FACTOR, text.format(factor=factor, brokers=len(known))
    )


def _bad(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
