"""The configs of topics and brokers that released Kafka defines, from its own classes.

``python -m tests.real.config_facts`` rewrites ``mockbroker/simulation/configs/broker_facts.py``:
the broker configs of each line of releases whose jars Maven gets, by name, type, default, range,
and whether they are internal and dynamic. ``ConfigFacts.java`` reads the ``ConfigDef`` of LogConfig
and KafkaConfig.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from tests.real.jars import class_path

__all__ = ["RELEASES", "ConfigFact", "config_facts"]

RELEASES: Final = (
    "0.10.2.2", "0.11.0.3", "1.0.2", "1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1",
    "2.4.1", "2.5.1", "2.6.3", "2.7.2", "2.8.2", "3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1",
    "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.2", "4.0.1", "4.1.2", "4.2.2", "4.3.1", "4.4.0",
)  # fmt: skip
"""The newest of each line."""

SOURCE: Final = Path(__file__).with_name("ConfigFacts.java")
TARGET: Final = Path(__file__).parents[2] / "mockbroker/simulation/configs/broker_facts.py"
_RANGE: Final = re.compile(r"\[(?:(-?[0-9.E]+),)?\.\.\.(?:,(-?[0-9.E]+))?\]")
_LIMIT: Final = 120.0
_WIDTH: Final = 101

Line: TypeAlias = tuple[int, int]

HEAD: Final = '''"""The broker configs of released Kafka; ``definitions`` has more about some.

Made by ``python -m tests.real.config_facts`` from Kafka's own classes; do not edit.
A row is the name, the type, flags (i: internal, d: a running broker accepts changes), the default
as DescribeConfigs writes it, the least and the greatest number, and the first and the last line of
releases that have it so. Since (0, 0) means that the earliest line there has it, until (99, 0) that
the latest has.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BROKER_FACTS"]

# fmt: off
BROKER_FACTS: Final = (
'''


class ConfigFact(NamedTuple):
    """One config of one release."""

    kind: str
    name: str
    type: str
    internal: bool
    dynamic: bool
    default: str | None
    minimum: float | None
    maximum: float | None


def config_facts(release: str) -> list[ConfigFact]:
    """Return the configs of a release. RuntimeError with Maven's or Java's own words on failure."""
    jars = class_path(release)
    with tempfile.TemporaryDirectory() as classes:
        _run("javac", "-nowarn", "-cp", jars, "-d", classes, str(SOURCE))
        lines = _run("java", "-cp", f"{classes}:{jars}", "ConfigFacts").splitlines()
    rows = [line.split("\t") for line in lines]
    return [
        ConfigFact(
            kind,
            name,
            type_,
            access == "internal",
            change == "dynamic",
            default[1:] if default else None,
            *_range(validator),
        )
        for kind, name, type_, access, change, default, validator in rows
    ]


def _range(validator: str) -> tuple[float | None, float | None]:
    """What ``ConfigDef.Range`` accepts: [1,...,9], [1,...] or [...,9]."""
    found = _RANGE.fullmatch(validator)
    if found is None:
        return None, None
    least, most = (None if text is None else float(text) for text in found.groups())
    return _whole(least), _whole(most)


def _whole(number: float | None) -> float | None:
    return int(number) if number is not None and number == int(number) else number


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2000:]}")
    return done.stdout


def line_of(release: str) -> Line:
    major, minor = release.split(".")[:2]
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
            rows.append(
                _row(
                    (name, fact.type, flags, fact.default, fact.minimum, fact.maximum, since, until)
                )
            )
            start = None
    return rows


def _row(fact: Sequence[object]) -> str:
    items = [json.dumps(each) if isinstance(each, str) else str(each) for each in fact]
    line = f"    ({', '.join(items)}),\n"
    if len(line) <= _WIDTH:
        return line
    return f"    ({', '.join(items[:-2])},\n     {', '.join(items[-2:])}),\n"


def main() -> None:
    found = {}
    for release in RELEASES:
        found[line_of(release)] = config_facts(release)
        print(release, len(found[line_of(release)]), "configs", file=sys.stderr)
    TARGET.write_text(HEAD + "".join(merged(found)) + ")\n# fmt: on\n", "utf-8")


if __name__ == "__main__":
    main()
