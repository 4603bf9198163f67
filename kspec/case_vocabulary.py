"""What a selector of a case may speak of: fields of the schemas, versions, brokers, clients and
events that there can be.

Under ``must_not``, or with a count of 0, a selector that matches nothing never breaks. So a name
that no entry can have is an error of the file. Nothing here reads files or judges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.schema.model import Field, Struct
from kspec.api_keys import api_key
from kspec.model import LEVELS, Case, Expectation, Selector, SubSelector
from kspec.patterns import WORDS, mismatch, parse_range

__all__ = ["EVENTS", "check_vocabulary"]

Refuse: TypeAlias = Callable[[str, str], None]
Side: TypeAlias = Literal["request", "response", "event"]

EVENTS: Final = (
    "connected", "disconnected", "unsupported", "unimplemented", "malformed", "authenticated",
    "authentication-failed", "session-expired", "sasl-token", "over-limit", "throttled",
    "client-hello",
)  # fmt: skip
"""The events of a mock cluster in a case, and the marks of requests and responses. Those of faults
begin with ``fault: ``."""

_SIDES: Final[Mapping[str, Side]] = {
    "requests": "request", "responses": "response", "events": "event",
}  # fmt: skip
_READ: Final = ("metadata", "assignment", "metrics", "records")
"""Bytes that are shown as values of our own: docs/reference/case-format.md, "Rows and batches"."""
_OURS: Final[Mapping[int, tuple[str, ...]]] = {72: ("metricsSize",)}
"""Fields that bodies have besides those of the schema, by API key."""


def check_vocabulary(case: Case, refuse: Refuse) -> None:
    """Refuse what no entry can have, in the selectors of expectations and of waits."""
    for number, step in enumerate(case.steps):
        if step.wait is not None:
            _check_selectors(step.wait, f"steps[{number}].wait", case, refuse)
    for level in ("applies", *LEVELS):
        for number, each in enumerate(getattr(case, level)):
            _check_expectation(each, f"{level}[{number}]", case, refuse)


def _check_expectation(each: Expectation, place: str, case: Case, refuse: Refuse) -> None:
    keys = _check_selectors(each, place, case, refuse)
    if each.each is not None:
        side = next(side for kind, side in _SIDES.items() if getattr(each, kind) is not None)
        _check_selector(each.each, side, keys, f"{place}.each", case, refuse)
    for word in ("order", "any_of"):
        for number, inner in enumerate(getattr(each, word) or []):
            _check_expectation(inner, f"{place}.{word}[{number}]", case, refuse)


def _check_selectors(holder: Any, place: str, case: Case, refuse: Refuse) -> Sequence[int]:
    """Check the selector of an expectation or a wait, and return the keys of its APIs."""
    keys: Sequence[int] = ()
    for kind, side in _SIDES.items():
        selector = getattr(holder, kind)
        if selector is not None:
            keys = _check_selector(selector, side, (), f"{place}.{kind}", case, refuse)
    return keys


def _check_selector(
    selector: Selector | SubSelector, side: Side, keys: Sequence[int], place: str, case: Case,
    refuse: Refuse,
) -> Sequence[int]:  # fmt: skip
    """``keys`` are those of the selector that this one refines."""
    own = [key for api in _listed(selector.api) if (key := api_key(api)) is not None]
    keys = own or keys
    about = keys or list(dialect("kafka").apis)
    structs = [each for key in about for each in _roots(key, side)]
    ours = {name for key in about for name in _OURS.get(key, ())}
    for name in _unknown(selector.body, structs, ours):
        refuse(f"{place}.body", f"{name!r} is not a field there")
    parts = [each for root in structs for each in _every_struct(root)]
    for name in _unknown(selector.row, parts, ours):
        refuse(f"{place}.row", f"{name!r} is not a field there")
    if selector.version is not None:
        wanted = parse_range(selector.version)
        if not any(version in wanted for key in about for version in _versions(key)):
            refuse(f"{place}.version", "is none of the versions of the API")
    for event in _listed(selector.event):
        if event not in EVENTS and not str(event).startswith("fault: "):
            refuse(f"{place}.event", f"{event!r} is not one of {', '.join(EVENTS)}, fault: NAME")
    for broker in _listed(selector.broker):
        if broker not in _brokers(case):
            refuse(f"{place}.broker", f"the case has no broker {broker}")
    names = [case.client.client_id, *(case.client_of(each).client_id for each in case.others)]
    if selector.client_id is not None and all(mismatch(selector.client_id, each) for each in names):
        refuse(f"{place}.client_id", f"no client of the case has such an id: {', '.join(names)}")
    if isinstance(selector, Selector):
        for word in ("after_first", "before_first"):
            inner = getattr(selector, word)
            if inner is not None:
                _check_selector(inner, inner.direction, (), f"{place}.{word}", case, refuse)
    return keys


def _brokers(case: Case) -> set[int]:
    """The brokers that the cluster has at first, and every number that a step or a rule has."""
    steps = [each for each in case.steps if each.wait is None]
    played = msgspec.json.encode([case.cluster, case.faults, steps]).decode()
    return {*range(1, case.cluster.brokers + 1), *map(int, re.findall(r"\b\d{1,9}\b", played))}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _unknown(pattern: Any, structs: Sequence[Struct], ours: set[str]) -> Iterator[str]:
    """Yield the keys of a pattern that none of the structs has at their place."""
    if isinstance(pattern, list):
        for item in pattern:
            yield from _unknown(item, structs, ours)
    if not isinstance(pattern, dict):
        return
    if len(pattern) == 1 and next(iter(pattern)) in WORDS:
        yield from _unknown(next(iter(pattern.values())), structs, ours)
        return
    for name, value in pattern.items():
        fields = [each for struct in structs if (each := _fields(struct).get(name)) is not None]
        if not fields and name not in ours:
            yield name
        elif name not in _READ and name not in ours:
            below = [part for field in fields if (part := field.type.inner_struct) is not None]
            yield from _unknown(value, below, ours)


def _fields(struct: Struct) -> Mapping[str, Field]:
    """The fields by their names in Kafka's JSON."""
    return {each.name[0].lower() + each.name[1:]: each for each in struct.fields}


def _every_struct(struct: Struct) -> Iterator[Struct]:
    yield struct
    for field in struct.fields:
        if field.type.inner_struct is not None:
            yield from _every_struct(field.type.inner_struct)


def _versions(key: int) -> Sequence[int]:
    valid = dialect("kafka").apis[key].request.VALID_VERSIONS
    return range(valid.lowest, valid.highest + 1)


@lru_cache(maxsize=256)
def _roots(key: int, side: Side) -> tuple[Struct, ...]:
    api = dialect("kafka").apis[key]
    chosen = {"request": (api.request,), "response": (api.response,)}
    return tuple(schema_of(each).root for each in chosen.get(side, (api.request, api.response)))
