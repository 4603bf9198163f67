"""The fault rules of a running cluster: adding and removing them, waiting for hits, and finding the
ones that no request has hit. ``faults`` decides which rule applies and what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mockbroker.errors import FaultError
from mockbroker.faults.documents import fault_of
from mockbroker.faults.matching import ActiveFault, FaultRules, Predicate
from mockbroker.faults.rule import Fault
from mockbroker.timers import called_back

__all__ = ["FaultControls"]


class FaultControls:
    """``follow_clock`` brings the simulated clock up to date, so that rules expire."""

    def __init__(self, rules: FaultRules, follow_clock: Callable[[], None]) -> None:
        self._rules = rules
        self._follow_clock = follow_clock

    def add(
        self, fault: Fault | None, when: Predicate | None, members: dict[str, Any]
    ) -> ActiveFault:
        if fault is not None and members:
            raise FaultError("give a Fault or its members, not both")
        (added,) = self.load([fault_of(members) if fault is None else fault], when)
        return added

    def load(self, faults: Sequence[Fault], when: Predicate | None = None) -> list[ActiveFault]:
        self._follow_clock()
        return self._rules.add(faults, when)

    def all(self) -> list[ActiveFault]:
        self._follow_clock()
        return [*self._rules]

    def remove(self, rule: ActiveFault | str) -> None:
        self._rules.remove(rule)

    def clear(self) -> None:
        self._rules.clear()

    async def wait_for_hit(self, rule: ActiveFault | str, hits: int) -> None:
        found = self._rules.find(rule) if isinstance(rule, str) else rule
        while found.hits < hits:
            self._follow_clock()
            if not found.live:
                raise FaultError(
                    f"the rule ended after {found.hits} hits, before hit {hits}", rule=found.name
                )
            await called_back(found.on_change)

    def unused(self) -> list[ActiveFault]:
        return self._rules.unused()

    def assert_used(self) -> None:
        unused = self.unused()
        if unused:
            each = "; ".join(f"{rule.name} ({rule.fault.describe()})" for rule in unused)
            raise AssertionError(f"fault rules that no request has hit: {each}")
