"""Kinds of difference: signatures, and the smallest program that shows each."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from kproto.dialects import dialect
from tests.real.programs.model import Program, ProgramStep
from tests.real.search.play import Arena, Found
from tests.real.search.requests import body_of

__all__ = ["Kind", "Kinds", "Signature", "load", "minimise", "save", "shown",
           "signature_of", "without_rows"]  # fmt: skip

REPLAYS_AT_MOST: Final = 60
SECONDS: Final = 60.0
TOGETHER: Final = 6
"""Candidates that are played at once; the first of them that shows the difference is taken."""
SHORT_PATIENCE: Final = 2.5
"""The difference was seen with a longer one, and is confirmed with a longer one."""
CREATE_TOPICS: Final = 19
LONGEST: Final = 160


class Signature(NamedTuple):
    """The API, the field without the names of rows, and both values."""

    api: str
    path: str
    kafka: str
    mock: str

    def __str__(self) -> str:
        return f"{self.api} {self.path or 'the connection'}: Kafka {self.kafka}, mock {self.mock}"


@dataclass
class Kind:
    """``program`` shows the difference with its last request."""

    signature: Signature
    program: Program
    versions: set[int] = field(default_factory=set)
    count: int = 0
    confirmed: bool = False


Kinds = dict[Signature, Kind]


def signature_of(program: Program, found: Found) -> Signature:
    """That of the first error code that differs, or else of the first field."""
    rows = found.fields
    codes = [row for row in rows if row[0].endswith("rrorCode")]
    path, kafka, mock = (codes or rows)[0]
    name = dialect("kafka").api(program.steps[found.step]["api"]).name
    return Signature(name, without_rows(path), shown(kafka), shown(mock))


def without_rows(path: str) -> str:
    """The path of a field without the names of rows."""
    return re.sub(r"\[[^]]*\]", "[]", path)


def shown(value: Any) -> str:
    """A value as signatures have it."""
    text = value if isinstance(value, str) else json.dumps(value)
    text = re.sub(r"s\d{3}x\d{4}", "$", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


async def minimise(arena: Arena, program: Program, found: Found) -> tuple[Program, Found]:
    """The smallest program that shows the same signature: fewest steps first, then fewest values
    that are not those of a valid request."""
    wanted = signature_of(program, found)
    smallest = Program(program.name, program.steps[: found.step + 1])
    replays = 0
    deadline = time.monotonic() + SECONDS
    candidates = _smaller(smallest.steps)
    while replays < REPLAYS_AT_MOST and time.monotonic() < deadline:
        chosen = list(itertools.islice(candidates, TOGETHER))
        if not chosen:
            break
        replays += len(chosen)
        played = await asyncio.gather(
            *(arena.play(Program(program.name, steps), SHORT_PATIENCE) for steps in chosen)
        )
        for steps, each in zip(chosen, played, strict=True):
            again = each.found
            if again and signature_of(Program("", steps), again) == wanted:
                smallest, found = Program(program.name, steps[: again.step + 1]), again
                candidates = _smaller(smallest.steps)
                break
    return smallest, found


def _smaller(steps: Sequence[ProgramStep]) -> Iterator[list[ProgramStep]]:
    *before, last = steps
    own = [step for step in before if not step.get("setup")]
    if len(own) > 1:
        yield [*(step for step in before if step.get("setup")), last]
    if len(before) > len(own) and len(before) > 1:
        yield [*own, last]
    for place in reversed(range(len(before))):
        rest = [*before[:place], *before[place + 1 :]]
        # What follows on a topic's creation would meet brokers that do not know it yet.
        if not ("until" in before[place] and any(each["api"] == CREATE_TOPICS for each in rest)):
            yield [*rest, last]
    for place in reversed(range(len(steps))):
        for body in _simpler(steps[place]):
            yield [*steps[:place], {**steps[place], "body": body}, *steps[place + 1 :]]


def _simpler(step: ProgramStep) -> Iterator[dict[str, Any]]:
    """Bodies in which one value is that of a valid request."""
    if "setup" in step or "hang up" in step or "pause" in step:
        return
    valid = body_of(step["api"], step["version"])
    for path in _changed(step["body"], valid):
        body: Any = copy.deepcopy(step["body"])
        inner: Any = body
        given: Any = valid
        for each in path[:-1]:
            inner, given = inner[each], given[each]
        if isinstance(given, dict) and path[-1] not in given:
            del inner[path[-1]]
        else:
            inner[path[-1]] = given[path[-1]]
        yield body


def _changed(value: Any, valid: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if value == valid:
        return
    if isinstance(value, dict) and isinstance(valid, dict):
        for key in value:
            yield from _changed(value[key], valid.get(key, ...), (*path, key))
    elif isinstance(value, list) and isinstance(valid, list) and len(value) == len(valid):
        for place, (each, other) in enumerate(zip(value, valid, strict=True)):
            yield from _changed(each, other, (*path, place))
    else:
        yield path


# ---- stored kinds --------------------------------------------------------------------------------


def save(path: Path, kinds: Sequence[Kind]) -> None:
    """One JSON object a line, sorted, so that a change of one kind is a change of one line."""
    rows = [
        {
            **each.signature._asdict(),
            "versions": sorted(each.versions),
            "steps": [_stored(step) for step in each.program.steps],
        }
        for each in sorted(kinds, key=lambda each: each.signature)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")


def _stored(step: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in step.items() if key not in ("changed", "setup")}


def load(path: Path) -> list[Kind]:
    """The kinds of a file; none where there is no file."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        signature = Signature(row["api"], row["path"], row["kafka"], row["mock"])
        program = Program(str(signature), row["steps"])
        found.append(Kind(signature, program, set(row["versions"])))
    return found
