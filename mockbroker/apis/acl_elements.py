"""What an access rule, or a filter of rules, may say in a request before a broker looks at it.

The number 0 is UNKNOWN in each of the four enumerations. Kafka's classes for DescribeAcls,
CreateAcls and DeleteAcls do not take it (seen with 3.9.2 and 4.4.0), so that the
connection is closed; numbers that mean nothing they take, and answer INVALID_REQUEST.
"""

from __future__ import annotations

from mockbroker.errors import UnreadableError

__all__ = ["check_known"]

_UNKNOWN = 0


def check_known(**elements: int) -> None:
    """Raises UnreadableError where one of the elements is UNKNOWN."""
    unknown = [name for name, number in elements.items() if number == _UNKNOWN]
    if unknown:
        raise UnreadableError(f"{', '.join(unknown)} UNKNOWN(0), which Kafka does not read")
