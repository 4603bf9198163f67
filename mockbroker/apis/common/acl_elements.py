"""Checks of ACL bindings and filters that Kafka makes while it decodes a request.

The number 0 is UNKNOWN in each of the four enumerations. Kafka's classes for DescribeAcls,
CreateAcls and DeleteAcls refuse it (seen with 3.9.2 and 4.4.0), and the broker closes the
connection, since 2.5. Numbers without a meaning decode, and are answered with INVALID_REQUEST."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mockbroker.apis.calls import Call
from mockbroker.apis.common.requirements import Requirement
from mockbroker.errors import UnreadableError
from mockbroker.simulation.releases import facts

__all__ = ["known_elements", "known_filters"]

_UNKNOWN = 0


def known_elements(
    holders: Callable[[Any], Iterable[Any]], resource_type: str, pattern_type: str
) -> Requirement:
    """No element of the bindings or filters is UNKNOWN. The check raises UnreadableError.

    ``resource_type`` and ``pattern_type`` are the fields that have these elements.
    """
    fields = {
        "resource_type": resource_type,
        "pattern_type": pattern_type,
        "operation": "operation",
        "permission_type": "permission_type",
    }

    def check(call: Call) -> int:
        if call.release.has(facts.UNKNOWN_ACL_ELEMENTS_READ):
            return 0
        for holder in holders(call.body):
            unknown = [name for name, field in fields.items() if getattr(holder, field) == _UNKNOWN]
            if unknown:
                raise UnreadableError(f"{', '.join(unknown)} UNKNOWN(0), which Kafka does not read")
        return 0

    return Requirement(check)


def known_filters(filters: Callable[[Any], Iterable[Any]]) -> Requirement:
    """As ``known_elements``, for filters."""
    return known_elements(filters, "resource_type_filter", "pattern_type_filter")
