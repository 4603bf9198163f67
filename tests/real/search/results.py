"""Results of searches, one of each release, in a file that the documentation's page reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.real.search.clusters import RELEASES

__all__ = ["RESULTS", "Counts", "Result", "load", "store"]

RESULTS: Final = Path(__file__).resolve().with_name("results.json")


class Counts(NamedTuple):
    """``fields`` are those that were compared, ``kinds`` those that came back."""

    programs: int
    requests: int
    fields: int
    kinds: int


class Result(NamedTuple):
    """One search of a release."""

    release: str
    seed: str
    families: Mapping[str, Counts]

    @property
    def total(self) -> Counts:
        return Counts(*map(sum, zip(*self.families.values(), strict=True)))


def store(path: Path, result: Result) -> None:
    """Put the result in place of an earlier one of its release; leave other releases alone."""
    rows = {each.release: each for each in [*load(path), result]}
    releases = [
        f"  {json.dumps(name)}: {{\n{_lines(rows[name])}\n  }}" for name in RELEASES if name in rows
    ]
    path.write_text("{\n" + ",\n".join(releases) + "\n}\n", "utf-8")


def _lines(result: Result) -> str:
    """A line for each family, so that searches of two releases change different lines."""
    lines = [f'    "seed": {json.dumps(result.seed)}']
    for family, counts in sorted(result.families.items()):
        lines.append(f"    {json.dumps(family)}: {json.dumps(counts._asdict())}")
    return ",\n".join(lines)


def load(path: Path) -> Sequence[Result]:
    """Results in the order of the releases; none where there is no file."""
    if not path.exists():
        return []
    found = []
    for release, row in json.loads(path.read_text("utf-8")).items():
        seed = row.pop("seed")
        found.append(Result(release, seed, {name: Counts(**each) for name, each in row.items()}))
    return found
