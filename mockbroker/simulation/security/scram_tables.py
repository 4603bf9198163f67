"""What AlterUserScramCredentials refuses, as rows in the order in which Kafka checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kproto.error_codes import ErrorCode
from mockbroker.simulation.releases.rows import Row

__all__ = ["FEWEST_ITERATIONS", "MOST_ITERATIONS", "SCRAM_ROWS", "ScramChange"]

FEWEST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384


class ScramChange(msgspec.Struct):
    """A requested change of one credential. ``iterations`` is None for a deletion, ``mechanism``
    for an unknown one. ``repeated``: the request names the user before. ``stored``: the credential
    exists."""

    user: str
    mechanism: str | None
    iterations: int | None
    repeated: bool
    stored: bool
    code: ErrorCode = ErrorCode.NONE
    text: str | None = None


class RefuseCredential(msgspec.Struct, frozen=True):
    """Refuse the change with a text."""

    code: ErrorCode
    text: str

    def __call__(self, subject: ScramChange, /) -> None:
        subject.code, subject.text = self.code, self.text


_UNACCEPTABLE: Final = ErrorCode.UNACCEPTABLE_CREDENTIAL

SCRAM_ROWS: Final[Sequence[Row[ScramChange, ScramChange]]] = (
    Row(
        "SCRAM-01",
        lambda change: change.repeated,
        (
            RefuseCredential(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            ),
        ),
    ),
    Row(
        "SCRAM-02",
        lambda change: not change.user,
        (RefuseCredential(_UNACCEPTABLE, "Username must not be empty"),),
    ),
    Row(
        "SCRAM-03",
        lambda change: change.mechanism is None,
        (RefuseCredential(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),),
    ),
    Row(
        "SCRAM-04",
        lambda change: change.iterations is None and not change.stored,
        (
            RefuseCredential(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            ),
        ),
    ),
    Row(
        "SCRAM-05",
        lambda change: change.iterations is not None and change.iterations < FEWEST_ITERATIONS,
        (RefuseCredential(_UNACCEPTABLE, "Too few iterations"),),
    ),
    Row(
        "SCRAM-05",
        lambda change: change.iterations is not None and change.iterations > MOST_ITERATIONS,
        (RefuseCredential(_UNACCEPTABLE, "Too many iterations"),),
    ),
)
