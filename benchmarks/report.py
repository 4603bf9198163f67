"""Keep each benchmark's last figures in ``docs/explanation/benchmarks.json``, and render Markdown.

Each benchmark replaces its own section and leaves the others alone. Knows how to format, not what
is measured.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["Mark", "Section", "conclude", "machine"]

DOCS = Path(__file__).resolve().parent.parent / "docs" / "explanation"
ORDER = [
    "codec", "columns", "records", "start", "broker", "data", "requests", "scale", "clients",
    "proxy", "fairness", "dump",
]  # fmt: skip

VERDICTS = {True: "met", False: "**missed**", None: "not measured"}

HEADER = """\
---
hide: [toc]
---

# Benchmarks

This page compares kproto's codecs, mock broker and capture decoder with others. `make bench`,
`make bench-scale` and `make bench-dump` generate it. On a shared machine times are noisy and ratios
less so; compare the ratios. Each section names its machine and the command that reproduces it. A
target that was missed is marked.
"""


@dataclass(frozen=True)
class Mark:
    """What was aimed for, what was seen, and whether that is enough; None: could not be seen."""

    aim: str
    seen: str
    met: bool | None


@dataclass(frozen=True)
class Section:
    """One benchmark's part of the document. Tables are header row first."""

    title: str
    reproduce: str
    text: list[str]
    tables: list[list[list[str]]]
    marks: list[Mark]
    figures: dict[str, Any]


def machine(packages: Sequence[str]) -> str:
    """Where and with what the figures were seen, in one line."""
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores, "
        f"{platform.python_implementation()} {platform.python_version()}"
        + (f", {versions}" if versions else "")
    )


def conclude(name: str, section: Section, *, dry_run: bool = False) -> None:
    """Print the section; unless ``dry_run``, put it in ``docs/`` in place of its last edition."""
    print(_markdown(asdict(section)), flush=True)
    if not dry_run:
        _publish(name, section, DOCS)


def _publish(name: str, section: Section, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    stored = folder / "benchmarks.json"
    sections = json.loads(stored.read_text()) if stored.exists() else {}
    sections[name] = asdict(section)
    stored.write_text(json.dumps(sections, indent=1, sort_keys=True) + "\n")
    known = [key for key in ORDER if key in sections]
    parts = [HEADER, *(_markdown(sections[key]) for key in known)]
    (folder / "benchmarks.md").write_text("\n".join(parts))


def _markdown(section: dict[str, Any]) -> str:
    lines = [f"## {section['title']}", "", *_paragraphs(section["text"])]
    lines += [f"Reproduce: `{section['reproduce']}`", ""]
    for table in section["tables"]:
        lines += [*_table(table), ""]
    if section["marks"]:
        rows = [["Target", "Measured", ""]]
        rows += [[mark["aim"], mark["seen"], VERDICTS[mark["met"]]] for mark in section["marks"]]
        lines += [*_table(rows), ""]
    return "\n".join(lines)


def _paragraphs(texts: list[str]) -> list[str]:
    return [line for text in texts for line in (text, "")]


def _table(rows: list[list[str]]) -> list[str]:
    head, *body = rows
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
