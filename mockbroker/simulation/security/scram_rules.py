"""What AlterUserScramCredentials refuses, as rows in the order in which Kafka checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Row, refuse_with_text

__all__ = [
    "FEWEST_ITERATIONS",
    "MOST_ITERATIONS",
    "SCRAM_ROWS",
    "STORING_ROWS",
    "ZOOKEEPER_ROWS",
    "ScramChange",
]

FEWEST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384


class ScramChange(msgspec.Struct):
    """A requested change of one credential. ``iterations`` is None for a deletion, ``mechanism``
    for an unknown one. ``repeated``: the request names the user before or, in ZooKeeper mode, this
    credential more than once. ``stored``: the credential exists. ``has_password``: the salted
    password has bytes."""

    user: str
    mechanism: str | None
    iterations: int | None
    repeated: bool
    stored: bool
    has_password: bool = True
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None


_UNACCEPTABLE: Final = ErrorCode.UNACCEPTABLE_CREDENTIAL


def _refuse_unexpectedly(change: ScramChange) -> None:
    """Java has no keys without bytes, so Kafka fails."""
    change.code = ErrorCode.UNKNOWN_SERVER_ERROR


_REPEATED: Final[Row[ScramChange, ScramChange]] = Row(
    "SCRAM-01",
    lambda change: change.repeated,
    (
        refuse_with_text(
            "A user credential cannot be altered twice in the same request",
            ErrorCode.DUPLICATE_RESOURCE,
        ),
    ),
)

_ILLEGAL: Final[tuple[Row[ScramChange, ScramChange], ...]] = (
    Row(
        "SCRAM-02",
        lambda change: not change.user,
        (refuse_with_text("Username must not be empty", _UNACCEPTABLE),),
    ),
    Row(
        "SCRAM-03",
        lambda change: change.mechanism is None,
        (refuse_with_text("Unknown SCRAM mechanism", ErrorCode.UNSUPPORTED_SASL_MECHANISM),),
    ),
    Row(
        "SCRAM-05",
        lambda change: change.iterations is not None and change.iterations < FEWEST_ITERATIONS,
        (refuse_with_text("Too few iterations", _UNACCEPTABLE),),
    ),
    Row(
        "SCRAM-05",
        lambda change: change.iterations is not None and change.iterations > MOST_ITERATIONS,
        (refuse_with_text("Too many iterations", _UNACCEPTABLE),),
    ),
)

_MISSING: Final[Row[ScramChange, ScramChange]] = Row(
    "SCRAM-04",
    lambda change: change.iterations is None and not change.stored,
    (
        refuse_with_text(
            "Attempt to delete a user credential that does not exist", ErrorCode.RESOURCE_NOT_FOUND
        ),
    ),
)

SCRAM_ROWS: Final[Sequence[Row[ScramChange, ScramChange]]] = (_REPEATED, *_ILLEGAL, _MISSING)

ZOOKEEPER_ROWS: Final[Sequence[Sequence[Row[ScramChange, ScramChange]]]] = (
    _ILLEGAL,
    (_REPEATED,),
    (_MISSING,),
)
"""ZooKeeper mode checks all changes for one reason after the other; of a user's changes that are
refused for the same reason the last one counts."""

STORING_ROWS: Final[Sequence[Row[ScramChange, ScramChange]]] = (
    Row(
        "SCRAM-09",
        lambda change: change.iterations is not None and not change.has_password,
        (_refuse_unexpectedly,),
    ),
)
"""What fails as the changes are carried out, none of which ``SCRAM_ROWS`` refuse."""
