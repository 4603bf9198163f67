"""Which rule takes a request, and how often each rule was hit.

Rules are tried in turn, those added later first; the first rule that matches takes the request.
A rule that observes counts the request and leaves it to the rules behind it.
Matching is deterministic: a rule's random numbers depend on its seed, its name and the earlier
requests.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple, TypeAlias

from kproto import annotate
from kproto.codec.message import Message
from kproto.journal import ClientSoftware, squash
from kproto.near_names import with_suggestion
from kproto.safe_text import printable
from kproto.schema.versions import MAX_VERSION, Versions
from mockbroker.apis.common.request_entities import (
    Named,
    Selection,
    Topics,
    identities_of,
    named_by,
)
from mockbroker.apis.registry import Call
from mockbroker.errors import FaultError
from mockbroker.faults.rule import Fault
from mockbroker.simulation.operations import PROXY_OPERATIONS
from mockbroker.simulation.state.timers import Timers, wait_for_call

__all__ = ["ActiveFault", "FaultRules", "Predicate", "RequestFacts"]

_log = logging.getLogger("mockbroker.faults")

_MOST_FAILED: Final = 20

Predicate: TypeAlias = Callable[[Call], object]
"""Called with the ``Call`` that a handler would be given."""


class RequestFacts(NamedTuple):
    """The parts of a request that rules look at.

    ``call`` makes the ``Call`` that a handler would be given. It and ``body`` are None for a
    request that the broker does not serve.
    """

    broker_id: int
    connection_id: int
    api_key: int
    version: int
    client_id: str | None
    software: ClientSoftware | None
    topics: Topics
    body: Message | None = None
    call: Callable[[], Any] | None = None
    listener: str = ""


class ActiveFault:
    """A rule in use.

    ``matched`` counts the requests that matched everything except ``nth`` and ``probability``;
    ``hits`` counts those the rule took. ``failed`` has a line for each thing that a request made it
    do and that was impossible, without repeats, and ``failed_steps`` those of them that are steps;
    ``complete`` counts the hits that had no such problem.
    """

    def __init__(
        self, name: str, fault: Fault, api_keys: frozenset[int] | None, when: Predicate | None,
        timers: Timers,
    ) -> None:  # fmt: skip
        self.name = name
        self.fault = fault
        self.hits = 0
        self.matched = 0
        self.failed: list[str] = []
        self.failed_steps: list[str] = []
        self.complete = 0
        self.random = random.Random(f"{fault.seed}/{name}")
        self.selection = Selection(fault.topic, fault.partition)
        self._selects_identities = any(
            each is not None
            for each in (fault.group, fault.member, fault.transactional_id, fault.producer_id)
        )
        self._api_keys = api_keys
        self._when = when
        self._versions = _range(fault.version)
        self._connection = _range(fault.connection)
        self._nth = _range(fault.nth)
        self._timers = timers
        self._timer = timers.timer(self.end, f"expiry of fault rule {name}")
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

    def is_for(self, api_key: int) -> bool:
        """Whether the rule may take requests of this API key."""
        return self._api_keys is None or api_key in self._api_keys

    def on_change(self, call: Callable[[], None]) -> None:
        """Call the function once: at the next hit, or when the rule ends."""
        self._waiting.append(call)

    async def wait_for_hits(self, hits: int, follow_clock: Callable[[], None]) -> None:
        """Wait until the rule has this many hits in total. Raises FaultError once that is
        impossible. Callers set their own limit, for example with ``asyncio.timeout``."""
        while self.hits < hits:
            follow_clock()
            if not self.live:
                problem = f"the rule ended after {self.hits} hits, before hit {hits}"
                raise FaultError(problem, rule=self.name)
            await wait_for_call(self.on_change)

    def begin(self) -> None:
        """The rule is in use: it expires from now on."""
        if self.fault.expires is not None:
            self._timer.set(self._timers.now_ms + int(self.fault.expires))

    def end(self) -> None:
        """The rule takes no more requests: it was removed, or it has expired."""
        self._removed = True
        self._timer.set(None)
        self._notify()

    @property
    def is_broken(self) -> bool:
        """Whether a step failed, or it was hit and never did all that it is for."""
        return bool(self.failed_steps or (self.failed and not self.complete))

    def finish(self, failed_steps: Sequence[str], problems: Sequence[str]) -> None:
        """A hit is over: these steps failed, and these changes of the response were impossible.
        The log has each problem once."""
        self.complete += not (failed_steps or problems)
        for problem in (*failed_steps, *problems):
            if problem in self.failed or len(self.failed) == _MOST_FAILED:
                continue
            self.failed.append(problem)
            if problem in failed_steps:
                self.failed_steps.append(problem)
            _log.warning("fault rule %s: %s", self.name, printable(problem))

    def _notify(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def takes(self, facts: RequestFacts) -> bool:
        """Return whether the rule takes this request, and count it if so."""
        if not (self.live and self._matches(facts)):
            return False
        if self._connection is not None and not _within(
            self._number(facts.connection_id), self._connection
        ):
            return False
        self.matched += 1
        if self._nth is not None and not _within(self.matched, self._nth):
            return False
        probability = self.fault.probability
        if probability is not None and self.random.random() >= probability:
            return False
        self.hits += 1
        self._notify()
        return True

    def _number(self, connection_id: int) -> int:
        """Number the connections that sent matching requests, from 1. Connections beyond the last
        number that matters are not remembered, because their number has no bound."""
        assert self._connection is not None
        number = self._connections.get(connection_id, len(self._connections) + 1)
        if number <= self._connection.highest:
            self._connections[connection_id] = number
        return number

    def _matches(self, facts: RequestFacts) -> bool:
        fault, software = self.fault, facts.software
        return (
            (fault.broker is None or fault.broker == facts.broker_id)
            and (self._api_keys is None or facts.api_key in self._api_keys)
            and (self._versions is None or facts.version in self._versions)
            and _like(facts.listener, fault.listener)
            and _like(facts.client_id, fault.client_id)
            and _like(None if software is None else software.name, fault.software)
            and _like(None if software is None else software.version, fault.software_version)
            and (not self.selection or self._names_selected(facts))
            and (not self._selects_identities or self._names_identities(facts))
            and (self._when is None or (facts.call is not None and bool(self._when(facts.call()))))
        )

    def _names_identities(self, facts: RequestFacts) -> bool:
        if facts.body is None:
            return False
        fault, named = self.fault, identities_of(facts.body, facts.version)
        return (
            _any_like(named.groups, fault.group)
            and _any_like(named.members, fault.member)
            and _any_like(named.transactional_ids, fault.transactional_id)
            and (fault.producer_id is None or fault.producer_id in named.producer_ids)
        )

    def _names_selected(self, facts: RequestFacts) -> bool:
        if facts.body is None:
            return False
        return any(
            self._is_selected(each, facts.topics)
            for each in named_by(facts.body, facts.version, facts.topics)
        )

    def _is_selected(self, named: Named, topics: Topics) -> bool:
        """A request for all topics or partitions names those that exist."""
        selection = self.selection
        if named.topic is None:
            return any(self._is_selected(Named(name, None), topics) for name in topics)
        known = topics.get(named.topic)
        if known is not None and named.partition is None and selection.partition is not None:
            return (
                selection.is_topic(known.name) and known.partition(selection.partition) is not None
            )
        return selection.takes(named)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "hits": self.hits,
            "matched": self.matched,
            "live": self.live,
            "failed": list(self.failed),
            "rule": self.fault.to_dict(),
        }


def _range(text: int | str | None) -> Versions | None:
    return None if text is None else Versions.parse(str(text))


def _within(number: int, selection: Versions) -> bool:
    """Counters may exceed the highest version, where open ranges end."""
    return number in selection or number > selection.highest == MAX_VERSION


def _like(text: str | None, pattern: str | None) -> bool:
    return pattern is None or fnmatchcase(text or "", pattern)


def _any_like(texts: Iterable[str], pattern: str | None) -> bool:
    return pattern is None or any(fnmatchcase(each, pattern) for each in texts)


class FaultRules:
    """The rules of a cluster or proxy. ``names`` gives the API keys by name. Rules expire
    by ``timers``. ``on_live`` is called when ``live`` has changed; more can be
    appended to the attribute. ``operations`` are those that
    steps may name; None: any."""

    def __init__(
        self,
        names: Callable[[], dict[str, int]],
        timers: Timers,
        on_live: Callable[[], None] | None = None,
        operations: Container[str] | None = None,
    ) -> None:
        self.live = False
        """Whether any rule may still take a request."""
        self._names = names
        self.on_live = [] if on_live is None else [on_live]
        self._timers = timers
        self._operations = operations
        self._rules: list[ActiveFault] = []
        self._added = 0

    def __iter__(self) -> Iterator[ActiveFault]:
        """In matching order."""
        return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, faults: Sequence[Fault], when: Predicate | None = None) -> list[ActiveFault]:
        """Add rules before the present ones, in this order. On FaultError none is added."""
        taken = {rule.name for rule in self._rules}
        added: list[ActiveFault] = []
        for fault in faults:
            name = fault.name or f"fault-{self._added + len(added) + 1}"
            if name in taken:
                raise FaultError("a rule with this name already exists", rule=name)
            taken.add(name)
            self._check_steps(fault, name)
            if fault.set or fault.set_length or fault.set_bytes:
                annotate.preload()
            added.append(ActiveFault(name, fault, self._api_keys(fault, name), when, self._timers))
        self._added += len(added)
        self._rules[:0] = added
        for rule in added:
            rule.begin()
        self._count()
        return added

    def _check_steps(self, fault: Fault, name: str) -> None:
        for step in (*fault.steps_before, *fault.steps_after):
            operation = step.split(maxsplit=1)[0]
            if self._operations is not None and operation not in self._operations:
                kind = "a proxy" if operation in PROXY_OPERATIONS else "a mock cluster"
                raise FaultError(
                    f"{operation} is an operation on {kind}, which this is not", rule=name
                )

    def concern(self, api_key: int) -> bool:
        """Whether any rule may still take a request of this API key."""
        return self.live and any(rule.live and rule.is_for(api_key) for rule in self._rules)

    def _api_keys(self, fault: Fault, name: str) -> frozenset[int] | None:
        if fault.api is None or isinstance(fault.api, int):
            return None if fault.api is None else frozenset({fault.api})
        text = fault.api.strip()
        if text.isascii() and text.isdigit():
            return frozenset({int(text)})
        names = self._names()
        found = {key for each, key in names.items() if squash(each) == squash(text)}
        if not found:
            raise FaultError(with_suggestion(f"unknown API {text!r:.80}", text, names), rule=name)
        return frozenset(found)

    def find(self, name: str) -> ActiveFault:
        """Raises FaultError."""
        for rule in self._rules:
            if rule.name == name:
                return rule
        raise FaultError(f"unknown rule {name!r}")

    def remove(self, rule: ActiveFault | str) -> None:
        """Raises FaultError for a rule that is not in use."""
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
        self, facts: RequestFacts, failed: Callable[[ActiveFault, Exception], None]
    ) -> ActiveFault | None:
        """Return the rule that takes the request, None if none does.

        ``failed`` is called for a predicate that raised; its rule does not match.
        """
        found = None
        for rule in self._rules:
            try:
                if found is None and rule.takes(facts) and not rule.fault.observe:
                    found = rule
            except Exception as error:  # a predicate may raise anything
                failed(rule, error)
        self._count()
        return found

    def unused(self) -> list[ActiveFault]:
        """Return the rules that were never hit, in matching order."""
        return [rule for rule in self._rules if not rule.hits]

    def failed(self) -> list[ActiveFault]:
        """Return the rules that could not do what they are for, in matching order."""
        return [rule for rule in self._rules if rule.is_broken]

    def _count(self) -> None:
        live = any(rule.live for rule in self._rules)
        if live != self.live:
            self.live = live
            for call in self.on_live:
                call()
