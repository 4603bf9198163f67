"""Checks of ACL bindings and filters that Kafka makes while it decodes a request.

The number 0 is UNKNOWN in each of the four enumerations. Kafka's classes for DescribeAcls,
CreateAcls and DeleteAcls refuse it (seen with 3.9.2 and 4.4.0), and the broker closes the
connection. Numbers without a meaning decode, and are answered with INVALID_REQUEST.
"""

from __future__ import annotations

from mockbroker.errors import UnreadableError

__all__ = ["check_known"]

_UNKNOWN = 0


def check_known(**elements: int) -> None:
    """Raises UnreadableError if one of the elements is UNKNOWN."""
    unknown = [name for name, number in elements.items() if number == _UNKNOWN]
    if unknown:
        raise UnreadableError(f"{', '.join(unknown)} UNKNOWN(0), which Kafka does not read")
