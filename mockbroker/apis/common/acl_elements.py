"""Checks of ACL bindings and filters that Kafka makes while it decodes a request.

The number 0 is UNKNOWN in each of the four enumerations. Kafka's classes for DescribeAcls,
CreateAcls and DeleteAcls refuse it (seen with 3.9.2 and 4.4.0), and the broker closes the
connection. Numbers without a meaning decode, and are answered with INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mockbroker.apis.calls import Call
from mockbroker.apis.common.requirements import Requirement
from mockbroker.errors import UnreadableError

__all__ = ["FILTER_FIELDS", "known_elements"]

FILTER_FIELDS = ("resource_type_filter", "pattern_type_filter")

_UNKNOWN = 0


def known_elements(holders: Callable[[Any], Iterable[Any]], *fields: str) -> Requirement:
    """No element of the bindings or filters is UNKNOWN: these ``fields``, the operation and the
    permission type. The check raises UnreadableError."""
    names = (*fields, "operation", "permission_type")

    def check(call: Call) -> int:
        for holder in holders(call.body):
            unknown = [name for name in names if getattr(holder, name) == _UNKNOWN]
            if unknown:
                raise UnreadableError(f"{', '.join(unknown)} UNKNOWN(0), which Kafka does not read")
        return 0

    return Requirement(check)
