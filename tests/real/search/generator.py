"""Programs of single requests: valid ones about a known state, one part of each changed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kproto.schema.versions import Versions
from tests.real.programs.model import Program
from tests.real.search.changes import apply, draw_change
from tests.real.search.requests import EXCLUDED, NEEDS, STATE_WAIT_MS, body_of, setup

__all__ = ["requests"]

PER_PROGRAM: Final = 6
UNCHANGED: Final = 0.1
TWICE: Final = 0.15
TOPIC: Final = ("topic",)


def requests(
    seed: str, first: int, count: int, served: Mapping[int, Versions], apis: Sequence[int] = ()
) -> list[Program]:
    """Programs ``first`` to ``first + count``; each is drawn from the seed and its number alone."""
    keys = [key for key in served if key not in EXCLUDED and (not apis or key in apis)]
    return [_program(f"{seed}:{number}", served, keys) for number in range(first, first + count)]


def _program(name: str, served: Mapping[int, Versions], keys: Sequence[int]) -> Program:
    draw = random.Random(name)
    api_key = draw.choice(sorted(keys))
    steps = setup(NEEDS.get(api_key, TOPIC), served)
    for _ in range(PER_PROGRAM):
        version = draw.choice(list(served[api_key]))
        steps.append(request(draw, api_key, version))
    return Program(name, steps)


def request(draw: random.Random, api_key: int, version: int) -> dict[str, Any]:
    body = body_of(api_key, version)
    shown = []
    if draw.random() >= UNCHANGED:
        for _ in range(2 if draw.random() < TWICE else 1):
            change = draw_change(draw, api_key, version, body)
            body = apply(body, change)
            shown.append(str(change))
    guard(api_key, version, body)
    return {"api": api_key, "version": version, "body": body, "changed": shown}


_CLUSTER_WIDE: Final = (4, 8, 16)
_MANY: Final = 99
_SHARE_MEMBERS: Final = ("~1", "~2", "~3", "~4")
"""Of members with other ids the order in a hash map of Kafka's own decides who gets more."""
_COUNTS: Final = {19: "numPartitions", 37: "count"}
"""How many partitions a topic gets. Without a limit of the release, brokers run out of memory, in
CreatePartitions by an overflow even for the least number."""


def guard(api_key: int, version: int, body: dict[str, Any]) -> None:
    """Only validate what would change the whole cluster: other programs are played at once. Leave
    out what only chance decides."""
    if api_key in (33, 44):
        rows = body.get("resources") or []
        if any(row.get("resourceType") in _CLUSTER_WIDE for row in rows):
            body["validateOnly"] = True
    elif api_key == 76:
        if body["memberId"] and body["memberId"] not in _SHARE_MEMBERS:
            body["memberId"] = _SHARE_MEMBERS[-1]
    elif api_key == 78:
        body["maxWaitMs"] = max(body["maxWaitMs"], STATE_WAIT_MS)
    elif api_key in _COUNTS:
        for row in body.get("topics") or []:
            row[_COUNTS[api_key]] = max(-_MANY, min(row[_COUNTS[api_key]], _MANY))
    elif api_key == 57:
        if version >= 1:
            body["validateOnly"] = True
        else:
            body["featureUpdates"] = [
                row for row in body.get("featureUpdates") or [] if row.get("maxVersionLevel") == 99
            ]
    elif api_key == 49:
        for entry in body.get("entries") or []:
            if any(row.get("entityName") is None for row in entry.get("entity") or [{}]):
                body["validateOnly"] = True
    elif api_key in (80, 81, 64, 94):
        name = {80: "voterId", 81: "voterId", 64: "brokerId", 94: "controllerId"}[api_key]
        if 0 <= body[name] <= 5:
            body[name] = 99
