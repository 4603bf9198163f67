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


_CONFIGS = "topic configs of this release that the mock's one table, of 4.1's, does not have"

_KRAFT: Final = (
    Known("*", "*.configs.length", _CONFIGS),
    Known("*", "*.configs[[]errors.deadletterqueue.group.enable]*", _CONFIGS),
    Known("*", "*.configs[[]max.decompressed.message.bytes]*", _CONFIGS),
    Known("*", "*.configs[[]remote.copy.lag.*", _CONFIGS),
    Known(
        "config-synonyms-*",
        "*.configs[[]*.replication.throttled.replicas].synonyms*",
        "a topic config without a broker's behind it: the mock names its default as its synonym",
    ),
    Known(
        "config-synonyms-*",
        "*.configs[[]remote.*].synonyms*",
        "a topic config without a broker's behind it: the mock names its default as its synonym",
    ),
    Known(
        "config-refusals-* #14",
        "responses[[]].errorMessage",
        "names of refused configs are printed as Scala's set up to 3.9, as Java's list in 4.4",
    ),
)

KNOWN: Final[dict[str, tuple[Known, ...]]] = {"4.4.0": _KRAFT}


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
