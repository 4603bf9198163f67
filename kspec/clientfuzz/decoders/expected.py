"""Differences that are known, each with its reason: ``expected.yaml`` beside this file.

A row is matched against one dissent: who it is, what our codec says and in which words, what the
other says. Whatever no row matches is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from kspec.clientfuzz.decoders.causes import Dissent

__all__ = ["Expected", "expected_differences", "explain"]

FILE = Path(__file__).with_name("expected.yaml")


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``who`` are shell patterns of names; ``ours`` and ``theirs`` are outcomes; ``we_say`` and
    ``they_say`` regular expressions searched for in the two texts; ``above``: the number that
    ``we_say`` has in brackets is higher; ``kind``: searched for in the mutation's; ``they_give``:
    in what the other makes of the frame."""

    id: str
    who: list[str]
    ours: str
    theirs: str
    reason: str
    we_say: str = ""
    they_say: str = ""
    above: int | None = None
    kind: str = ""
    they_give: str = ""

    def fits(self, dissent: Dissent, kind: str) -> bool:
        said = re.search(self.we_say, dissent.ours.text)
        return (
            said is not None
            and re.search(self.kind, kind) is not None
            and (self.above is None or int(said[1]) > self.above)
            and dissent.ours.outcome == self.ours
            and dissent.verdict.outcome == self.theirs
            and any(fnmatchcase(dissent.who, pattern) for pattern in self.who)
            and re.search(self.they_say, dissent.verdict.text) is not None
            and re.search(self.they_give, dissent.verdict.value) is not None
        )


@cache
def expected_differences() -> tuple[Expected, ...]:
    """The rows of the file, in its order."""
    import yaml  # the extra `kspec` has it

    rows = yaml.safe_load(FILE.read_text("utf-8"))
    return tuple(msgspec.convert(rows, list[Expected]))


def explain(found: Sequence[Dissent], kind: str) -> tuple[list[Expected], list[Dissent]]:
    """(the rows that explain some of it, what none explains)"""
    rows: list[Expected] = []
    left = []
    for dissent in found:
        row = next((row for row in expected_differences() if row.fits(dissent, kind)), None)
        if row is None:
            left.append(dissent)
        elif row not in rows:
            rows.append(row)
    return rows, left
