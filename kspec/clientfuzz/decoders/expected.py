"""Documented differences between decoders: the rows of ``expected.yaml`` in this folder.

A row matches one dissent by the participant's name and by the outcomes and texts of both sides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from kspec.clientfuzz.decoders.causes import Dissent
from kspec.clientfuzz.expected import ExpectedDifference, load_expected

__all__ = ["DecoderDifference", "expected_differences", "explain"]


class DecoderDifference(ExpectedDifference, frozen=True, kw_only=True):
    """A row about decoders.

    ``who`` holds shell patterns of names; ``ours`` and ``theirs`` are outcomes. ``we_say`` and
    ``they_say`` are regular expressions for the two texts. If ``above`` is set, the number in the
    first group of ``we_say`` must exceed it. ``kind`` is a regular expression for the kind of
    mutation, ``they_give`` one for the other side's value.
    """

    who: list[str]
    ours: str
    theirs: str
    we_say: str = ""
    they_say: str = ""
    above: int | None = None
    kind: str = ""
    they_give: str = ""

    def fits(self, dissent: Dissent, kind: str) -> bool:
        match = re.search(self.we_say, dissent.ours.text)
        return (
            match is not None
            and re.search(self.kind, kind) is not None
            and (self.above is None or int(match[1]) > self.above)
            and dissent.ours.outcome == self.ours
            and dissent.verdict.outcome == self.theirs
            and any(fnmatchcase(dissent.who, pattern) for pattern in self.who)
            and re.search(self.they_say, dissent.verdict.text) is not None
            and re.search(self.they_give, dissent.verdict.value) is not None
        )


@cache
def expected_differences() -> tuple[DecoderDifference, ...]:
    return load_expected(Path(__file__).parent, DecoderDifference)


def explain(found: Sequence[Dissent], kind: str) -> tuple[list[DecoderDifference], list[Dissent]]:
    """Return the rows that explain some of the dissents, and the dissents that none explains."""
    rows: list[DecoderDifference] = []
    left = []
    for dissent in found:
        row = next((row for row in expected_differences() if row.fits(dissent, kind)), None)
        if row is None:
            left.append(dissent)
        elif row not in rows:
            rows.append(row)
    return rows, left
