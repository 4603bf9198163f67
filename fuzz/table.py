"""The recorded runs as a Markdown table for docs/explanation/fuzzing.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fuzz.guides import RunStatistics
from fuzz.inputs import CACHE

__all__ = ["rows", "write_into"]

_BEGIN: Final = "<!-- runs: `python -m fuzz table --write` writes what follows -->"
_END: Final = "<!-- end of runs -->"


def rows(runs: Iterable[RunStatistics]) -> str:
    """Return a row per run: libFuzzer's statistics, and the coverage of its inputs if measured."""
    lines = [
        "| target | guide | seconds | executions | edges | features | lines and branches | found |",
        "|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for ran in runs:
        covered = CACHE / "covered" / f"{ran.target}.json"
        coverage = f"{json.loads(covered.read_text()):.0f} %" if covered.exists() else ""
        lines.append(
            f"| `{ran.target}` | {ran.guide} | {ran.seconds} | {ran.executions:,} | {ran.edges:,} "
            f"| {ran.features:,} | {coverage} | {'an input' if ran.kept else 'nothing'} |"
        )
    return "\n".join(lines)


def write_into(page: Path, text: str) -> None:
    """Replace the text between the two marks of ``page``."""
    before, begin, rest = page.read_text("utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"{page} lacks the marks for the table")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")
