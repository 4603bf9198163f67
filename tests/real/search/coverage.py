"""What the programs of a search have reached: versions, fields and error codes of each API.

A field of a request is reached once programs have sent two values of it, a field of a response once
an answer had another value than the field's default. What no program reaches shows which state or
value the search does not draw yet.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kproto.codec.registry import schema_of
from kproto.dialects import dialect
from kproto.error_codes import ErrorCode
from kproto.schema.model import Struct
from kproto.schema.versions import Versions
from tests.real.search.encode import default_of, field_name

__all__ = ["Coverage"]

ENOUGH: Final = 2
ABSENT: Final = "<absent>"


class Coverage:
    """Filled by ``add``, printed by ``lines``."""

    def __init__(self) -> None:
        self._versions: defaultdict[int, set[int]] = defaultdict(set)
        self._sent: defaultdict[tuple[int, str], set[str]] = defaultdict(set)
        self._answered: defaultdict[int, set[str]] = defaultdict(set)
        self._codes: defaultdict[int, set[int]] = defaultdict(set)

    def add(self, step: Mapping[str, Any], answer: Any) -> None:
        """A request, and what Kafka answered."""
        api, version = step["api"], step["version"]
        kinds = dialect("kafka").api(api)
        self._versions[api].add(version)
        for path, _, value in _leaves(schema_of(kinds.request).root, version, step["body"], ""):
            values = self._sent[api, path]
            if len(values) < ENOUGH:
                values.add(json.dumps(value))
        if not isinstance(answer, dict):
            return
        for path, default, value in _leaves(schema_of(kinds.response).root, version, answer, ""):
            if value not in (default, ABSENT):
                self._answered[api].add(path)
                if path.endswith("rrorCode"):
                    self._codes[api].add(value)

    def lines(self, served: Mapping[int, Versions]) -> Iterator[str]:
        for api, versions in sorted(served.items()):
            kinds = dialect("kafka").api(api)
            yield f"{kinds.name} ({api})"
            missing = [each for each in versions if each not in self._versions[api]]
            if missing:
                yield f"    never sent: versions {', '.join(map(str, missing))}"
            for path in _paths(schema_of(kinds.request).root, versions, ""):
                if len(self._sent[api, path]) < ENOUGH:
                    yield f"    one value in requests: {path}"
            for path in _paths(schema_of(kinds.response).root, versions, ""):
                if path not in self._answered[api]:
                    yield f"    always the default in answers: {path}"
            codes = sorted(self._codes[api])
            yield f"    error codes: {', '.join(map(_code, codes)) or 'none'}"


def _code(code: int) -> str:
    try:
        return f"{code} {ErrorCode(code).name}"
    except ValueError:
        return str(code)


def _paths(kind: Struct, versions: Versions, path: str) -> Iterator[str]:
    """Leaves that any of the versions has."""
    for field in kind.fields:
        if not versions.intersect(field.versions):
            continue
        at = f"{path}{field_name(field)}"
        inner = field.type.inner_struct
        if inner is None:
            yield at
        else:
            yield from _paths(inner, versions, f"{at}{_SEPARATOR[field.type.kind == 'array']}")


_SEPARATOR: Final = {True: "[].", False: "."}


def _leaves(
    kind: Struct, version: int, value: Mapping[str, Any], path: str
) -> Iterator[tuple[str, Any, Any]]:
    """The path, the default and the value of each leaf, without those of absent rows."""
    for field in kind.fields:
        if version not in field.versions:
            continue
        name = field_name(field)
        at = f"{path}{name}"
        default = default_of(field)
        given = value.get(name, default)
        inner = field.type.inner_struct
        if inner is None:
            yield at, default, given
            continue
        rows = given if isinstance(given, list) else [given]
        for row in rows:
            if isinstance(row, dict):
                below = f"{at}{_SEPARATOR[field.type.kind == 'array']}"
                yield from _leaves(inner, version, row, below)
