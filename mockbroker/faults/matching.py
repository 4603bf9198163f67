"""Which rule takes a request, and how often rules were hit. No bytes, no actions.

Rules are asked one after the other, what was added later first; the first that takes the request
decides. Deterministic: what a rule draws depends on its seed, its name and the requests before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeAlias

from kproto.codec.message import Message
from kproto.journal import ClientSoftware, squash
from kproto.schema.versions import MAX_VERSION, Versions
from mockbroker.errors import FaultError
from mockbroker.faults.request_entities import Named, Topics, Wanted, named_by
from mockbroker.faults.rule import Fault

__all__ = ["ActiveFault", "FaultRules", "Predicate", "RequestFacts"]

Predicate: TypeAlias = Callable[[Any], object]
"""Given the call a handler is given."""


class RequestFacts(NamedTuple):
    """A request, as far as rules look at it. ``body``, and ``call``, which makes what handlers
    are given, are None for one that the broker does not serve."""

    broker_id: int
    connection_id: int
    api_key: int
    version: int
    client_id: str | None
    software: ClientSoftware | None
    topics: Topics
    now_ms: int
    body: Message | None = None
    call: Callable[[], Any] | None = None


class ActiveFault:
    """A rule in use. ``matched`` counts the requests that agreed with all but ``nth`` and
    ``probability``, ``hits`` those it took."""

    def __init__(
        self, name: str, fault: Fault, api_keys: frozenset[int] | None, when: Predicate | None,
        now_ms: int,
    ) -> None:  # fmt: skip
        self.name = name
        self.fault = fault
        self.hits = 0
        self.matched = 0
        self.random = random.Random(f"{fault.seed}/{name}")
        self.wanted = Wanted(fault.topic, fault.partition)
        self._api_keys = api_keys
        self._when = when
        self._versions = _range(fault.version)
        self._connection = _range(fault.connection)
        self._nth = _range(fault.nth)
        self._ends_ms = None if fault.expires is None else now_ms + int(fault.expires)
        self._connections: dict[int, int] = {}
        self._removed = False
        self._waiting: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<rule {self.name}: {self.hits} hits of {self.fault.describe()}>"

    @property
    def live(self) -> bool:
        """Whether it may be hit again."""
        times = self.fault.times
        return not self._removed and (times is None or self.hits < times)

    def on_change(self, call: Callable[[], None]) -> None:
        """Call once, at the next hit or when no more will come."""
        self._waiting.append(call)

    def end(self) -> None:
        self._removed = True
        self._tell()

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def expire(self, now_ms: int) -> None:
        if self._ends_ms is not None and now_ms >= self._ends_ms and not self._removed:
            self.end()

    def takes(self, asked: RequestFacts) -> bool:
        """Whether this request is one of its own; counted if so."""
        if not (self.live and self._agrees(asked)):
            return False
        if self._connection is not None and not _within(
            self._number(asked.connection_id), self._connection
        ):
            return False
        self.matched += 1
        if self._nth is not None and not _within(self.matched, self._nth):
            return False
        probability = self.fault.probability
        if probability is not None and self.random.random() >= probability:
            return False
        self.hits += 1
        self._tell()
        return True

    def _number(self, connection_id: int) -> int:
        """Of those that asked, from 1. Beyond the last that matters nobody is remembered: clients
        may come and go without end."""
        assert self._connection is not None
        number = self._connections.get(connection_id, len(self._connections) + 1)
        if number <= self._connection.highest:
            self._connections[connection_id] = number
        return number

    def _agrees(self, asked: RequestFacts) -> bool:
        fault, software = self.fault, asked.software
        return (
            (fault.broker is None or fault.broker == asked.broker_id)
            and (self._api_keys is None or asked.api_key in self._api_keys)
            and (self._versions is None or asked.version in self._versions)
            and _like(asked.client_id, fault.client_id)
            and _like(None if software is None else software.name, fault.software)
            and _like(None if software is None else software.version, fault.software_version)
            and (not self.wanted or self._names_wanted(asked))
            and (self._when is None or (asked.call is not None and bool(self._when(asked.call()))))
        )

    def _names_wanted(self, asked: RequestFacts) -> bool:
        if asked.body is None:
            return False
        return any(
            self._is_wanted(each, asked.topics)
            for each in named_by(asked.body, asked.version, asked.topics)
        )

    def _is_wanted(self, named: Named, topics: Topics) -> bool:
        """Who names all names what there is."""
        wanted = self.wanted
        if named.topic is None:
            return any(self._is_wanted(Named(name, None), topics) for name in topics)
        known = topics.get(named.topic)
        if known is not None and named.partition is None and wanted.partition is not None:
            return wanted.is_topic(known.name) and known.partition(wanted.partition) is not None
        return wanted.takes(named)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "hits": self.hits,
            "matched": self.matched,
            "live": self.live,
            "rule": self.fault.to_dict(),
        }


def _range(text: int | str | None) -> Versions | None:
    return None if text is None else Versions.parse(str(text))


def _within(number: int, wanted: Versions) -> bool:
    """Counts go on where versions end."""
    return number in wanted or number > wanted.highest == MAX_VERSION


def _like(text: str | None, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(text or "", pattern)


class FaultRules:
    """The rules of a cluster. ``names`` gives the api keys by squashed name. ``on_live`` is called
    when ``live`` has changed."""

    def __init__(
        self, names: Callable[[], dict[str, int]], on_live: Callable[[], None] = lambda: None
    ) -> None:
        self.live = False
        """Whether any rule may still take a request."""
        self._names = names
        self._on_live = on_live
        self._rules: list[ActiveFault] = []
        self._added = 0

    def __iter__(self) -> Iterator[ActiveFault]:
        """In the order in which they are asked."""
        return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)

    def add(
        self, faults: Sequence[Fault], now_ms: int, when: Predicate | None = None
    ) -> list[ActiveFault]:
        """In front of those there are, in this order. Raises FaultError, and adds none then."""
        taken = {rule.name for rule in self._rules}
        added: list[ActiveFault] = []
        for fault in faults:
            name = fault.name or f"fault-{self._added + len(added) + 1}"
            if name in taken:
                raise FaultError("there is a rule of this name already", rule=name)
            taken.add(name)
            added.append(ActiveFault(name, fault, self._api_keys(fault, name), when, now_ms))
        self._added += len(added)
        self._rules[:0] = added
        self._count()
        return added

    def _api_keys(self, fault: Fault, name: str) -> frozenset[int] | None:
        if fault.api is None or isinstance(fault.api, int):
            return None if fault.api is None else frozenset({fault.api})
        text = fault.api.strip()
        if text.isascii() and text.isdigit():
            return frozenset({int(text)})
        found = self._names().get(squash(text))
        if found is None:
            raise FaultError(f"no api is called {text!r}", rule=name)
        return frozenset({found})

    def find(self, name: str) -> ActiveFault:
        """Raises FaultError."""
        for rule in self._rules:
            if rule.name == name:
                return rule
        raise FaultError(f"there is no rule {name!r}")

    def remove(self, rule: ActiveFault | str) -> None:
        """Raises FaultError where it is none, or no more."""
        found = self.find(rule if isinstance(rule, str) else rule.name)
        self._rules.remove(found)
        found.end()
        self._count()

    def clear(self) -> None:
        rules, self._rules = self._rules, []
        for rule in rules:
            rule.end()
        self._count()

    def take(
        self, asked: RequestFacts, failed: Callable[[ActiveFault, Exception], None]
    ) -> ActiveFault | None:
        """The rule that takes the request, hit by it; None where none does. ``failed`` is told of a
        predicate that raised: its rule does not agree."""
        found = None
        for rule in self._rules:
            rule.expire(asked.now_ms)
            try:
                if found is None and rule.takes(asked):
                    found = rule
            except Exception as error:  # what a predicate raises is the test's own affair
                failed(rule, error)
        self._count()
        return found

    def unused(self) -> list[ActiveFault]:
        """Those never hit, in the order in which they were to be asked."""
        return [rule for rule in self._rules if not rule.hits]

    def _count(self) -> None:
        live = any(rule.live for rule in self._rules)
        if live != self.live:
            self.live = live
            self._on_live()
