"""Query the traffic of a play by a case's selectors. Reads a journal and judges nothing.

Times are the journal's: when the broker read a request or wrote an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, Literal

from kproto.journal import Entry
from kspec.answers import Answer
from kspec.api_keys import api_key
from kspec.group_bodies import with_group_data
from kspec.model import Selector, SubSelector
from kspec.partition_rows import named_topics, rows
from kspec.patterns import mismatch, parse_range
from kspec.telemetry_bodies import with_metrics

__all__ = [
    "CallRecord",
    "Direction",
    "Evidence",
    "body_of",
    "fits",
    "gaps_ms",
    "grouped",
    "partition_rows",
    "select",
    "unreached",
]

Direction = Literal["request", "response", "event"]

_WITH_TOPIC_IDS: Final = (3, 75)
"""Metadata and DescribeTopicPartitions, from whose answers clients learn the ids of topics."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call: its answer, and the journal entries between which it was made. ``stands_in`` if the
    client lacks the call of the case and made this one."""

    name: str
    call: str
    after: int
    until: int
    milliseconds: float
    answer: Answer
    arguments: Mapping[str, Any] = field(default_factory=dict)
    optional: bool = False
    stands_in: bool = False

    @property
    def lacking(self) -> bool:
        """Whether the client has no such call, and the case cannot do without."""
        return self.answer.unsupported is not None and not self.optional


@dataclass(slots=True)
class Evidence:
    """Everything there is to judge by.

    ``broken`` is set if the client's process died or hung, ``fault`` if its adapter failed, so that
    there is nothing to judge. ``blocked`` is set if a step on the cluster failed, which ends the
    case. ``wire_only`` is True if the client's results are unknown. ``inapplicable`` says of which
    faults the client sends no requests, so that the case does not apply to it. ``unhit`` names the
    faults that a request had to trigger and none did, ``failed_faults`` what faults could not do,
    and ``unmet`` the waits whose entries did not come. ``shows_attempts`` is False if an attempt to
    connect may have left no entry. ``memory_growth`` is the most bytes that a client's process took
    in addition to what it had before, 0 if that is unknown.
    """

    entries: list[Entry] = field(default_factory=list)
    calls: dict[str, CallRecord] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    logs: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    inapplicable: list[str] = field(default_factory=list)
    unhit: list[str] = field(default_factory=list)
    failed_faults: list[str] = field(default_factory=list)
    unmet: list[str] = field(default_factory=list)
    broken: str | None = None
    fault: str | None = None
    blocked: str | None = None
    wire_only: bool = False
    shows_attempts: bool = True
    memory_growth: int = 0
    _topic_names: dict[str, str] | None = field(default=None, init=False, repr=False)

    def connection_number(self, connection_id: int) -> int:
        """Return the connection's number, counted from 1 in the order in which brokers accepted
        them."""
        return self._connections().index(connection_id) + 1

    def topic_names(self) -> dict[str, str]:
        """Return the names of topics by id that occur in responses."""
        if self._topic_names is None:
            self._topic_names = {}
            for entry in self.entries:
                if entry.direction == "response" and entry.api_key in _WITH_TOPIC_IDS:
                    self._topic_names |= named_topics(body_of(entry))
        return self._topic_names

    def _connections(self) -> list[int]:
        return list(dict.fromkeys(entry.connection_id for entry in self.entries))


def select(selector: Selector | SubSelector, direction: Direction, played: Evidence) -> list[Entry]:
    """Return the matching entries in order, or only the one that ``nth`` selects."""
    found = [
        entry
        for entry in _in_time(selector, played)
        if entry.direction == direction and fits(selector, entry, played)
    ]
    if isinstance(selector, Selector) and selector.nth is not None:
        return found[selector.nth - 1 : selector.nth]
    return found


def _in_time(selector: Selector | SubSelector, played: Evidence) -> Iterator[Entry]:
    if isinstance(selector, SubSelector):
        yield from played.entries
        return
    after, until = 0, float("inf")
    for name in (selector.during, selector.since):
        if name is not None:
            after = max(after, played.calls[name].after if name in played.calls else 2**62)
    for name in (selector.during, selector.until):
        if name in played.calls:
            until = min(until, played.calls[name].until)
    if selector.after_first is not None:
        after = max(after, _sequence(selector.after_first, played, 2**62))
    if selector.before_first is not None:
        until = min(until, _sequence(selector.before_first, played, 0) - 1)
    yield from (entry for entry in played.entries if after < entry.sequence <= until)


def unreached(selector: Selector, played: Evidence) -> str | None:
    """Return what never happened of the part of the play that the selector looks at."""
    for name in (selector.during, selector.since, selector.until):
        if name is not None and name not in played.calls:
            return f"the call {name} was never made"
    for anchor in (selector.after_first, selector.before_first):
        if anchor is not None and len(select(anchor, anchor.direction, played)) < anchor.nth:
            return f"there is no {anchor.direction} from which it counts"
    return None


def _sequence(inner: SubSelector, played: Evidence, otherwise: int) -> int:
    found = select(inner, inner.direction, played)
    return found[inner.nth - 1].sequence if len(found) >= inner.nth else otherwise


def fits(selector: Selector | SubSelector, entry: Entry, played: Evidence) -> bool:
    """Return whether an entry matches the selector, apart from its position in time."""
    if selector.api is not None and entry.api_key not in _keys(selector.api):
        return False
    if selector.version is not None and entry.api_version not in parse_range(selector.version):
        return False
    if selector.broker is not None and entry.broker_id not in _listed(selector.broker):
        return False
    if selector.event is not None and entry.event not in _listed(selector.event):
        return False
    if selector.client_id is not None and mismatch(selector.client_id, entry.client_id):
        return False
    if isinstance(selector, Selector):
        if selector.other_than is not None and entry.api_key in _keys(selector.other_than):
            return False
        if selector.note is not None and selector.note not in entry.note:
            return False
        if selector.connection is not None:
            number = played.connection_number(entry.connection_id)
            if number != selector.connection:
                return False
    if selector.partition is not None:
        found = partition_rows(entry, selector.partition, played)
        if selector.row is None:
            return bool(found)
        if all(mismatch(selector.row, row) is not None for row in found):
            return False
    return selector.body is None or mismatch(selector.body, body_of(entry)) is None


def partition_rows(entry: Entry, partition: str, played: Evidence) -> list[dict[str, Any]]:
    """Return what a request or a response has about a partition, with its batches readable."""
    found = rows(body_of(entry), played.topic_names())
    return [row for name, row in found if name == partition]


def _keys(apis: str | int | Sequence[str | int]) -> set[int | None]:
    return {api_key(api) for api in ([apis] if isinstance(apis, str | int) else apis)}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


@lru_cache(maxsize=256)
def body_of(entry: Entry) -> Any:
    """Return the body as Kafka's JSON with the schema's names; None if it cannot be decoded."""
    decoded = entry.decode()
    if decoded.body is None or decoded.version is None:
        return None
    body = json.loads(str(decoded.body.to_json(decoded.version)))
    return with_metrics(entry.api_key, with_group_data(entry.api_key, body))


def grouped(entries: Sequence[Entry], per: str | None) -> dict[str, list[Entry]]:
    """Group entries by connection or broker; by default all are one group."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        if per is None:
            name = ""
        else:
            number = entry.connection_id if per == "connection" else entry.broker_id
            name = f"{per} {number}"
        groups.setdefault(name, []).append(entry)
    return groups


def gaps_ms(entries: Sequence[Entry]) -> list[float]:
    """Return the milliseconds from each entry to the next."""
    return [(after.timestamp_ns - before.timestamp_ns) / 1e6 for before, after in pairwise(entries)]
