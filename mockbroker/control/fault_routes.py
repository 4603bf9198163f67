"""Rules of faults over HTTP: rules in, their hits out. What they mean is for ``faults``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from mockbroker.commands import MILLISECONDS
from mockbroker.control.routes import WHOLE, Asked, Member, RefusedError, Route
from mockbroker.control.schemas import array_of, object_of, ref
from mockbroker.errors import ClusterError, FaultError
from mockbroker.faults import faults_of
from mockbroker.faults.matching import ActiveFault
from mockbroker.topics.spec import parse_milliseconds

__all__ = ["FAULTS"]

_LONGEST_WAIT_MS: Final = 60_000
_MOST_HITS: Final = 10**9


def _rules(rules: Iterable[ActiveFault]) -> dict[str, Any]:
    return {"faults": [rule.to_dict() for rule in rules]}


def _hits(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:10]) <= _MOST_HITS):
        raise ClusterError(f"{name}={text!r:.80} must be a whole number from 1 on")
    return int(text)


async def _list(asked: Asked) -> dict[str, Any]:
    return _rules(asked.mock.faults)


async def _add(asked: Asked) -> dict[str, Any]:
    return _rules(asked.mock.load_faults(faults_of(asked.body)))


async def _clear(asked: Asked) -> dict[str, Any]:
    asked.mock.clear_faults()
    return _rules(asked.mock.faults)


async def _remove(asked: Asked) -> dict[str, Any]:
    asked.mock.remove_fault(asked.path["name"])
    return _rules(asked.mock.faults)


async def _wait(asked: Asked) -> dict[str, Any]:
    name, mock = asked.path["name"], asked.mock
    rule = next((each for each in mock.faults if each.name == name), None)
    if rule is None:
        raise FaultError(f"there is no rule {name!r}")
    hits = asked.query.get("hits", 1)
    timeout = min(asked.query.get("timeout", 10_000), _LONGEST_WAIT_MS)
    try:
        async with asyncio.timeout(timeout / 1000):
            await mock.wait_for_hit(rule, hits)
    except TimeoutError:
        text = f"rule {name!r} has {rule.hits} hits, not {hits}, after {timeout} ms"
        raise RefusedError(408, text) from None
    return _rules([rule])


_RULES: Final = ref("Rules")
_ONE_OR_MORE: Final = {
    "description": "A rule, a list of rules, or an object whose `faults` is that list.",
    "anyOf": [
        ref("Fault"),
        array_of(ref("Fault")),
        object_of(faults=array_of(ref("Fault"))),
    ],
}

FAULTS: Final = (
    Route("GET", "/faults", "Every rule, in the order in which they are asked.", _list, _RULES),
    Route("POST", "/faults", "Use rules from now on, before those there are.", _add, _RULES,
          body=_ONE_OR_MORE),
    Route("DELETE", "/faults", "Remove every rule.", _clear, _RULES),
    Route("DELETE", "/faults/{name}", "Remove a rule.", _remove, _RULES),
    Route(
        "GET",
        "/faults/{name}/wait",
        "Answer when a rule has been hit so often, in all.",
        _wait,
        _RULES,
        query=(
            Member("hits", {**WHOLE, "minimum": 1, "default": 1}, _hits),
            Member(
                "timeout",
                {**MILLISECONDS.schema, "default": "10s"},
                lambda _, text: parse_milliseconds(text),
                "A minute at most.",
            ),
        ),
        refusals={408: "The time has passed."},
    ),
)  # fmt: skip
