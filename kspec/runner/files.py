"""Find, open and select case files. ``kspec.case_parser`` parses them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Final

from kproto.near_names import with_suggestion
from kspec.case_parser import parse_case
from kspec.errors import CaseError, KspecError
from kspec.model import CaseFile

__all__ = ["CASES", "choose", "load_cases"]

CASES: Final = Path(__file__).resolve().parents[1] / "cases"

_parse: Final = cache(parse_case)
"""Half a second for all cases of the suite, which several pages and tests of a process read."""


def load_cases(folder: Path = CASES) -> list[CaseFile]:
    """Return every case below ``folder`` by id. Raises CaseError at the first invalid one,
    and KspecError if there is none."""
    found: list[CaseFile] = []
    numbers: dict[str, Path] = {}
    for path in sorted(folder.glob("*/*.y*ml")):
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CaseError(f"{path}:1", "", f"cannot be read: {error}") from None
        case = _parse(text, path.as_posix())
        number = _number(case)
        if number in numbers:
            raise CaseError(f"{path}:1", "", f"{number} is already used by {numbers[number].name}")
        numbers[number] = path
        found.append(case)
    if not found:
        raise KspecError(f"{folder} has no cases; a case is a file GROUP/NNN-SLUG.yaml in it")
    return found


def choose(
    cases: Sequence[CaseFile], wanted: Iterable[str], excluded: Iterable[str] = ()
) -> list[CaseFile]:
    """Select cases by id (``framing/003`` or in full), group or glob; without any, all of them.
    Then leave out those that ``excluded`` names in the same way.

    Raises KspecError if one of them selects nothing, or if no case is left.
    """
    patterns = list(wanted)
    chosen = _named(cases, patterns) if patterns else {case.id for case in cases}
    chosen -= _named(cases, excluded)
    if not chosen:
        raise KspecError("every case is excluded")
    return [case for case in cases if case.id in chosen]


def _named(cases: Sequence[CaseFile], patterns: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for pattern in patterns:
        matches = {case.id for case in cases if _is(case, pattern)}
        if not matches:
            names = [name for case in cases for name in (case.group, _number(case), case.id)]
            problem = f"no case matches {pattern!r}"
            problem = with_suggestion(problem, pattern, dict.fromkeys(names), most=3)
            raise KspecError(f"{problem}; `kspec list` lists all")
        found |= matches
    return found


def _is(case: CaseFile, pattern: str) -> bool:
    return pattern in (case.id, _number(case), case.group) or fnmatchcase(case.id, pattern)


def _number(case: CaseFile) -> str:
    """Return the short id, such as ``framing/003``."""
    return case.id[: len(case.group) + len("/003")]
