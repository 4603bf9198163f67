"""Answers of real Kafka that the mock does not give yet, each with its reason.

A row that matches no difference any more is stale, and fails the test that reads it. Patterns are
shell-style, over "session #step" and over a field's path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from tests.real.compare import Difference

__all__ = ["KNOWN", "Known", "sift"]


class Known(NamedTuple):
    """Fields ``path`` of the answers ``where`` may differ."""

    where: str
    path: str
    why: str


_NO_AUTHORIZER: Final = (
    "without an authorizer Kafka keeps no rules; the mock does, so that tools for them can be tried"
)
_ALL: Final = (
    Known("acls-*-without-authorizer-*", "*errorCode", _NO_AUTHORIZER),
    Known("acls-*-without-authorizer-*", "*errorMessage", _NO_AUTHORIZER),
)

KNOWN: Final[dict[str, tuple[Known, ...]]] = {
    "kafka-4.4": _ALL,
    "kafka-3.9": _ALL,
    "kafka-3.9-zk": _ALL,
}
"""By profile. What sessions do not ask for, as the mock decides otherwise on purpose, is said where
they leave it out: ``topics.topics_nobody_can_lead``."""


def sift(
    differences: Sequence[Difference], known: Sequence[Known]
) -> tuple[list[Difference], list[Known]]:
    """(differences with a field that is not known, rows of ``known`` that nothing needed)"""
    used: set[Known] = set()
    unknown = []
    for difference in differences:
        left = []
        for field in difference.fields:
            path = field.partition(": ")[0]
            rows = [
                row
                for row in known
                if fnmatchcase(difference.where, row.where) and fnmatchcase(path, row.path)
            ]
            used.update(rows)
            if not rows:
                left.append(field)
        if left:
            unknown.append(replace(difference, fields=tuple(left)))
    return unknown, [row for row in known if row not in used]
