"""The routes of fault rules: rules in, hits out. ``faults`` defines what a rule means."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from mockbroker.control.errors import RefusedError
from mockbroker.control.routes import (
    WAIT_TIMEOUT,
    WHOLE,
    ControlRequest,
    Member,
    Route,
    positive_integer,
    wait_timeout_ms,
)
from mockbroker.control.schemas import array_of, object_of, ref
from mockbroker.errors import FaultError
from mockbroker.faults import faults_of
from mockbroker.faults.matching import ActiveFault

__all__ = ["FAULT_ROUTES"]


def _rules(rules: Iterable[ActiveFault]) -> dict[str, Any]:
    return {"faults": [rule.to_dict() for rule in rules]}


async def _list(request: ControlRequest) -> dict[str, Any]:
    return _rules(request.mock.faults)


async def _add(request: ControlRequest) -> dict[str, Any]:
    return _rules(request.mock.load_faults(faults_of(request.body)))


async def _clear(request: ControlRequest) -> dict[str, Any]:
    request.mock.clear_faults()
    return _rules(request.mock.faults)


async def _remove(request: ControlRequest) -> dict[str, Any]:
    request.mock.remove_fault(request.path["name"])
    return _rules(request.mock.faults)


async def _wait(request: ControlRequest) -> dict[str, Any]:
    name, mock = request.path["name"], request.mock
    rule = next((each for each in mock.faults if each.name == name), None)
    if rule is None:
        raise FaultError(f"no rule {name!r}")
    hits = request.query.get("hits", 1)
    timeout = wait_timeout_ms(request)
    try:
        async with asyncio.timeout(timeout / 1000):
            await mock.wait_for_hit(rule, hits)
    except TimeoutError:
        text = f"rule {name!r} has {rule.hits} hits after {timeout} ms; {hits} were expected"
        raise RefusedError(408, text) from None
    return _rules([rule])


_RULES: Final = ref("Rules")
_MORE: Final = object_of(faults=array_of(ref("Fault")))

FAULT_ROUTES: Final = (
    Route(
        "GET",
        "/faults",
        "listFaults",
        "Every rule, in the order in which rules are tried.",
        _list,
        _RULES,
    ),
    Route(
        "POST",
        "/faults",
        "addFaults",
        "Add rules in front of the existing ones.",
        _add,
        _RULES,
        body=_MORE,
        body_name="NewFaults",
        details="A rule alone and a list of rules are accepted, too.",
    ),
    Route("DELETE", "/faults", "clearFaults", "Remove every rule.", _clear, _RULES),
    Route("DELETE", "/faults/{name}", "removeFault", "Remove a rule.", _remove, _RULES),
    Route(
        "GET",
        "/faults/{name}/wait",
        "waitForFault",
        "Wait until a rule has this many hits in total.",
        _wait,
        _RULES,
        query=(
            Member("hits", {**WHOLE, "minimum": 1, "default": 1}, positive_integer),
            WAIT_TIMEOUT,
        ),
        refusals={408: "The time-out has passed."},
    ),
)
