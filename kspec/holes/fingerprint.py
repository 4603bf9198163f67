"""What a client did in a case, in a form that two plays can be compared by.

A fingerprint has the values of each field that the client sent, by API and path, and the answers of
its calls. What differs between two plays of the right client, such as ids and times, says nothing
and is left out of the comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kspec.partition_rows import rows
from kspec.results import Result
from kspec.traffic import body_of

__all__ = ["Fingerprint", "Seen", "fingerprint", "seen"]

Seen: TypeAlias = Mapping[str, frozenset[str]]
"""The values at each path, as text."""

_CHANGING: Final = re.compile(r"\d{5,}|[0-9A-Za-z_+/=-]{22,}")
"""Ports, times, ids, and the bytes of batches, whose parts are compared by themselves."""
_COUNTING: Final = ("essionEpoch", "essionId")
"""Fields that a client or a broker counts up, so that their values depend on the time a poll takes.
Whether a session begins, goes on or ends is behaviour."""
_HEARTBEATS: Final = " 12 "
"""Whether the first heartbeat of a member comes before the end of a short case is chance."""
_TIMES_MORE: Final = 3
"""A request that is sent so many times more, or less, often is another behaviour."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What two plays of the right client have in common."""

    stable: Seen
    paths: frozenset[str]
    """Every path that either has."""
    counts: Mapping[str, tuple[int, int]]
    """How many requests of each API there were, at least and at most."""

    def differences(self, found: Seen, counts: Mapping[str, int]) -> list[str]:
        """Return the paths at which another play differs."""
        different = [path for path, values in self.stable.items() if found.get(path) != values]
        different += [path for path in found if path not in self.paths]
        for api in {*counts, *self.counts}:
            least, most = self.counts.get(api, (0, 0))
            number = counts.get(api, 0)
            if number > _TIMES_MORE * (most + 1) or _TIMES_MORE * (number + 1) < least:
                different.append(f"number of {api}")
        by_chance = [
            f"{api}"
            for api in {*counts, *self.counts}
            if _HEARTBEATS in f"{api} " and self.counts.get(api, (0, 0))[0] == 0
        ]
        return [path for path in different if not path.startswith(tuple(by_chance))]


def fingerprint(plays: Sequence[tuple[Seen, Mapping[str, int]]]) -> Fingerprint:
    """Return what the plays have in common."""
    paths = frozenset(path for found, _ in plays for path in found)
    first = plays[0][0]
    stable = {
        path: first[path]
        for path in sorted(paths)
        if path in first and all(found.get(path) == first[path] for found, _ in plays)
    }
    apis = {api for _, counts in plays for api in counts}
    numbers = {api: [counts.get(api, 0) for _, counts in plays] for api in apis}
    return Fingerprint(
        stable, paths, {api: (min(each), max(each)) for api, each in numbers.items()}
    )


def seen(result: Result) -> tuple[Seen, Mapping[str, int]]:
    """Return what a play shows: the values at each path, and the number of requests by API."""
    found: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for number, variant in enumerate(result.variants):
        for call in variant.calls:
            found.setdefault(f"{number} {call.name}", set()).add(_plain(call.answered))
        for entry in variant.entries:
            if entry.direction != "request":
                continue
            api = f"{number} {entry.api_key} {entry.api_version}"
            counts[api] = counts.get(api, 0) + 1
            body = body_of(entry)
            parts = [body, [row for _, row in rows(body, {})]]
            for path, value in _leaves(parts, api):
                if path.endswith(_COUNTING) and value not in ("-1", "0"):
                    value = "#"
                found.setdefault(path, set()).add(value)
            found.setdefault(f"{api} broker", set()).add(str(entry.broker_id))
    return {path: frozenset(values) for path, values in found.items()}, counts


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path}.length", str(len(value))
        for item in value:
            yield from _leaves(item, path)
    else:
        yield path, _plain(str(value))


def _plain(text: str) -> str:
    return _CHANGING.sub("#", text)
