"""No case is passed that did not happen: the right client passes none that was broken.

What breaks a case: a rule or a wait that no request triggers, a check from or up to an entry that
does not come, a check of another topic, group, call, client, broker, event, version or field, and
lists that are empty. The parser refuses such a case, or its play ends as an error.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import msgspec
import pytest
import yaml

from kspec.case_parser import parse_case
from kspec.errors import CaseError
from kspec.model import CaseFile
from kspec.runner.clients import Local
from kspec.runner.files import CASES
from kspec.runner.schedule import run_pairs
from tests.support.full import FULL

NEVER_SENT: Final = "ListTransactions"
"""An API of which no case has a request."""
CHECKS: Final = ("applies", "must", "must_not", "should", "should_not")
MARKS: Final = ("optional", "observe")
SELECTORS: Final = ("requests", "responses", "events", "each", "after_first", "before_first")
MISNAMED: Final = {
    "version": "99", "broker": 9999, "client_id": "nobody", "event": "concerned",
    "during": "never-made", "since": "never-made", "until": "never-made",
}  # fmt: skip
CONDITIONS: Final = ("any_of", "not", "unordered", "contains", "length", "absent")
REFUSED: Final = ("error", "fail", "unsupported")
JOBS: Final = 32
SAMPLE: Final = 12
"""Of each kind, for a run that samples."""


def broken(document: Any) -> Iterator[tuple[str, Any]]:
    """Yield each way to break a case, with its kind."""
    for path, node in nodes(document):
        part, name = path[0], path[-1]
        if part == "faults" and isinstance(name, int) and len(path) == 2 and must_be_hit(node):
            yield "rule", changed(document, (*path, "api"), NEVER_SENT)
        if path[2:] and path[-2] == "faults" and part == "steps" and must_be_hit(node):
            yield "rule", changed(document, (*path, "api"), NEVER_SENT)
        if name == "wait" and not node.get("optional"):
            awaited = next(kind for kind in ("requests", "responses", "events") if kind in node)
            if awaited != "events":
                sooner = changed(document, (*path, "ms"), 300)
                yield "wait", changed(sooner, (*path, awaited, "api"), NEVER_SENT)
        if part in CHECKS and name == "partition" and path[-2] in ("requests", "responses", "each"):
            yield "topic", changed(document, path, "elsewhere-0")
        if part in CHECKS and name in ("logs", "delivered") and isinstance(node, dict):
            yield "topic", changed(document, path, {"elsewhere-0": next(iter(node.values()))})
        if part in CHECKS and name == "groups" and isinstance(path[-2], int):
            yield "topic", changed(document, path, {"elsewhere": next(iter(node.values()))})
        if path[1:] and path[-1] in SELECTORS and isinstance(node, dict) and part != "faults":
            for word, value in MISNAMED.items():
                if word in node:
                    yield "name", changed(document, (*path, word), value)
            for word in ("body", "row"):
                for place in fields(node.get(word)):
                    yield "name", misspelt(document, (*path, word, *place))
        if part in CHECKS and name == "result":
            yield "name", changed(document, path, "never-made")
        if part == "faults" and len(path) == 2 and must_be_hit(node) and "topic" in node:
            yield "rule", changed(document, (*path, "topic"), "elsewhere")
        if part in CHECKS and name in ("after_first", "before_first") and "api" in node:
            yield "anchor", changed(document, (*path, "api"), NEVER_SENT)
        if part in CHECKS and name in ("any_of", "same", "order"):
            yield "list", changed(document, path, [])
        if part == "steps" and name == "values":
            yield "list", changed(document, path, {each: [] for each in node})
        if name in ("steps_before", "steps_after"):
            yield "list", changed(document, path, [])


def fields(pattern: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of the fields that a pattern names, but for those within what is read."""
    if isinstance(pattern, list):
        for place, item in enumerate(pattern):
            yield from fields(item, (*path, place))
    if isinstance(pattern, dict):
        for name, item in pattern.items():
            if name not in CONDITIONS:
                yield (*path, name)
            if name not in ("records", "metadata", "assignment", "metrics", "length", "absent"):
                yield from fields(item, (*path, name))


def misspelt(document: Any, path: tuple[Any, ...]) -> Any:
    copy = parent = deepcopy(document)
    for name in path[:-1]:
        parent = parent[name]
    parent[f"{path[-1]}s"] = parent.pop(path[-1])
    return copy


def must_be_hit(rule: Any) -> bool:
    return isinstance(rule, dict) and not any(rule.get(mark) for mark in MARKS)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if path:
        yield path, value
    if isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from nodes(each, (*path, name))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = parent = deepcopy(document)
    for name in path[:-1]:
        parent = parent[name]
    parent[path[-1]] = value
    return copy


def every_broken_case() -> dict[str, list[tuple[str, str]]]:
    """The texts of broken cases with their paths, by kind."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(CASES.glob("*/*.yaml")):
        for kind, document in broken(yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)):
            found.setdefault(kind, []).append((json.dumps(document, default=str), path.as_posix()))
    return found


@pytest.mark.slow
async def test_no_broken_case_is_passed(rng: random.Random) -> None:
    every = every_broken_case()
    assert set(every) == {"rule", "wait", "anchor", "topic", "name", "list"}
    played: list[tuple[str, CaseFile]] = []
    refused: Counter[str] = Counter()
    for kind, found in every.items():
        for text, path in found if FULL else rng.sample(found, SAMPLE):
            try:
                parsed = parse_case(text, path)
                # Results are kept by the id of the case.
                other = msgspec.structs.replace(parsed, id=f"{parsed.id} {len(played)}")
                played.append((kind, other))
            except CaseError:
                refused[kind] += 1
    for kind in ("topic", "name"):
        assert refused[kind] == (len(every[kind]) if FULL else SAMPLE), kind
    reference = Local("reference")
    results = await run_pairs([(reference, each) for _, each in played], jobs=JOBS)
    passed = [
        (kind, each.case.id, each.judgement.verdict)
        for (kind, _), each in zip(played, results, strict=True)
        if each.judgement.verdict not in REFUSED
        # Where an entry does not come, or too early an end is waited for, a should may be broken.
        and not (kind in ("anchor", "wait") and each.judgement.verdict == "non-strict")
    ]
    assert passed == []
