"""The configs of topics and brokers that released Kafka defines, from its own classes.

``python -m tests.real.config_facts`` rewrites ``mockbroker/simulation/configs/broker_facts.py``:
the broker configs of each line of releases whose jars Maven gets, by name, type, and whether they
are internal and dynamic. ``ConfigFacts.java`` reads the ``ConfigDef`` of LogConfig and KafkaConfig.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from tests.real.jars import class_path

__all__ = ["RELEASES", "ConfigFact", "config_facts"]

RELEASES: Final = (
    "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1",
    "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.1", "4.1.2", "4.2.2", "4.3.1", "4.4.0",
)  # fmt: skip
"""The newest of each line."""

SOURCE: Final = Path(__file__).with_name("ConfigFacts.java")
TARGET: Final = Path(__file__).parents[2] / "mockbroker" / "configs" / "broker_facts.py"
_LIMIT: Final = 120.0

Line: TypeAlias = tuple[int, int]

HEAD: Final = '''"""The broker configs of released Kafka; ``definitions`` has more about some.

Made by ``python -m tests.real.config_facts`` from Kafka's own classes; do not edit.
A row is the name, the type, flags (i: internal, d: a running broker accepts changes), and the first
and the last line of releases that have it so. The first row's line stands for earlier ones, too,
and (99, 0) for later ones.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BROKER_FACTS"]

BROKER_FACTS: Final = (
'''


class ConfigFact(NamedTuple):
    """One config of one release."""

    kind: str
    name: str
    type: str
    internal: bool
    dynamic: bool


def config_facts(release: str) -> list[ConfigFact]:
    """Return the configs of a release. RuntimeError with Maven's or Java's own words on failure."""
    jars = class_path(release)
    with tempfile.TemporaryDirectory() as classes:
        _run("javac", "-nowarn", "-cp", jars, "-d", classes, str(SOURCE))
        lines = _run("java", "-cp", f"{classes}:{jars}", "ConfigFacts").splitlines()
    rows = [line.split("\t") for line in lines]
    return [
        ConfigFact(kind, name, type_, access == "internal", change == "dynamic")
        for kind, name, type_, access, change in rows
    ]


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout


def line_of(release: str) -> Line:
    major, minor, _ = release.split(".")
    return int(major), int(minor)


def merged(found: Mapping[Line, Iterable[ConfigFact]]) -> list[str]:
    """Return the rows of the module: one for each config and stretch of lines that agree."""
    lines = sorted(found)
    facts = {
        line: {each.name: each for each in rows if each.kind == "broker"}
        for line, rows in found.items()
    }
    rows = []
    for name in sorted({name for each in facts.values() for name in each}):
        start: int | None = None
        for place, line in enumerate(lines):
            fact = facts[line].get(name)
            if fact is None:
                continue
            before = facts[lines[place - 1]].get(name) if place else None
            after = facts[lines[place + 1]].get(name) if place + 1 < len(lines) else None
            if start is None or before != fact:
                start = place
            if after == fact:
                continue
            since = (0, 0) if start == 0 else lines[start]
            until = (99, 0) if place + 1 == len(lines) else line
            flags = "i" * fact.internal + "d" * fact.dynamic
            rows.append(f'    ("{name}", "{fact.type}", "{flags}", {since}, {until}),\n')
            start = None
    return rows


def main() -> None:
    found = {}
    for release in RELEASES:
        found[line_of(release)] = config_facts(release)
        print(release, len(found[line_of(release)]), "configs", file=sys.stderr)
    TARGET.write_text(HEAD + "".join(merged(found)) + ")\n", "utf-8")


if __name__ == "__main__":
    main()
