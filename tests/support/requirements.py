"""Requirements and the tests that show them: facts, verdict, page. Does not use pytest.

``docs/reference/requirements.json`` has an entry for every id. ``says`` states the requirement in a
sentence. ``untestable`` (nothing of it can be observed) or ``absent`` (it is not implemented yet)
gives the reason why an id has no test. ``partly`` notes which part of it is missing.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Requirement", "Requirements", "Shown", "load", "problems", "render"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """``excuse`` is the reason why no test shows it, ``note`` a remark; either may be empty."""

    says: str
    excuse: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Requirements:
    """``sections`` are pairs (prefix of the ids, title) in the document's order."""

    sections: tuple[tuple[str, str], ...]
    by_id: Mapping[str, Requirement]


@dataclass(slots=True)
class Shown:
    """The outcomes of one test function: its variants, counted."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    left_out: int = 0


Tests = Mapping[str, Mapping[str, Shown]]
"""Id -> ``path::name`` -> outcomes."""


def load(path: Path) -> Requirements:
    """Read the file. Raises ValueError with the id of an entry that contradicts itself, or that the
    file has twice."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
            raise ValueError(f"{path.name}: {twice} is there twice")
        return found

    data = json.loads(path.read_text(), object_pairs_hook=distinct)
    sections = tuple((each["prefix"], each["title"]) for each in data["sections"])
    by_id = {}
    for each, facts in data["requirements"].items():
        if not isinstance(facts, dict):
            raise ValueError(f'{path.name}: {each}: use {{"says": "SENTENCE"}}')
        reasons = [name for name in ("untestable", "absent") if name in facts]
        if len(reasons) > 1 or not facts.keys() <= {"says", "partly", *reasons}:
            raise ValueError(f"{path.name}: {each}: {', '.join(facts)} exclude each other")
        if not any(each.startswith(f"{prefix}-") for prefix, _ in sections):
            raise ValueError(f"{path.name}: {each} has a prefix of no section")
        excuse = f"{reasons[0].capitalize()}: {facts[reasons[0]]}" if reasons else ""
        by_id[each] = Requirement(facts["says"], excuse, facts.get("partly", ""))
    return Requirements(sections, by_id)


def problems(known: Requirements, tests: Tests) -> list[str]:
    """One line for each reason why a complete run fails."""
    found = []
    for each, requirement in known.by_id.items():
        passing = [name for name, shown in tests.get(each, {}).items() if shown.passed]
        if requirement.excuse and passing:
            found.append(f"{each} is excused ({requirement.excuse}) but {passing[0]} shows it")
        elif not passing and not requirement.excuse:
            marked = sorted(tests.get(each, {}))
            why = f"none passed of {', '.join(marked)}" if marked else "no test names it"
            found.append(f"{each} is not shown, {why}: {requirement.says}")
    return found


def render(known: Requirements, tests: Mapping[str, Mapping[str, int]]) -> str:
    """The tables of the documentation's page. ``tests`` has the variants of each test of an id."""
    lines: list[str] = []
    for prefix, title in known.sections:
        lines += [f"## {title}", "", "| id | requirement | tests |", "|---|---|---|"]
        for each in sorted(name for name in known.by_id if name.startswith(f"{prefix}-")):
            lines.append(_row(each, known.by_id[each], tests.get(each, {})))
        lines.append("")
    return "\n".join(lines)


def _row(each: str, requirement: Requirement, tests: Mapping[str, int]) -> str:
    text = " ".join(part for part in (requirement.says, requirement.note) if part)
    names = [_name(name, variants) for name, variants in sorted(tests.items())]
    return f"| {each} | {_cell(text)} | {'<br>'.join(names) or _cell(requirement.excuse)} |"


def _name(name: str, variants: int) -> str:
    return f"`{name}`" + (f" ({variants})" if variants > 1 else "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
