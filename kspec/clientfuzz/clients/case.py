"""One case: the client's call, and how the mock cluster's answer to it is altered.

Plain data with a JSON form. ``rule`` is the fault rule that alters the answer in a run, a replay
and ``mockbroker serve --faults``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kproto.errors import KprotoError
from kspec.clientfuzz.mutate import Change, Mutation, MutationError

__all__ = [
    "ARGUMENTS",
    "BROKERS",
    "FORMAT",
    "PROBES",
    "REASSIGNED",
    "TELEMETRY",
    "TOPICS",
    "Case",
    "CaseError",
]

FORMAT: Final = "kproto-fuzz-case"

BROKERS: Final = 4
TOPICS: Final = ("foo=1,2,3/2,3,1", "bar=3,1")
REASSIGNED: Final = ("foo", 1, (2, 3, 4))
"""A reassignment that is in progress in every case, so that there is something to list."""
TELEMETRY: Final = (71, 72)
"""GetTelemetrySubscriptions and PushTelemetry, which are served only in cases about them."""

ARGUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "describe_cluster": {},
    "describe_topics": {"topics": ["foo", "bar"]},
    "list_topics": {},
    "list_reassignments": {"partitions": None},
    "alter_reassignments": {"assignments": {"bar-0": [3, 1, 2]}},
    "elect_leaders": {"type": "preferred", "partitions": ["foo-0", "bar-0"]},
    "create_topics": {"topics": {"new": {"partitions": 2, "replication_factor": 2}}},
}
"""The arguments of each call of docs/reference/adapters.md."""
PROBES: Final[Mapping[str, Mapping[str, Any]]] = {
    "describe_cluster": {},
    "describe_topics": {"topics": ["foo"]},
    "list_topics": {},
    "list_reassignments": {"partitions": None},
}
"""Calls that a healthy client answers before and after a case; the first one it has is used.

The answer after the case must contain the answer before it, whatever the case's own call changed.
"""


class CaseError(KprotoError):
    """A file that does not contain a case."""


@dataclass(frozen=True)
class Case:
    """The client makes the call ``op``. The mutation is applied to the ``nth`` answer of
    ``api_key``, and if ``persistent`` to all later ones. ``delivery`` holds members of a fault rule
    about how it is sent."""

    op: str
    api_key: int
    version: int
    nth: int
    persistent: bool = False
    mutation: Mutation | None = None
    delivery: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def arguments(self) -> Mapping[str, Any]:
        return ARGUMENTS[self.op]

    @property
    def changes(self) -> Sequence[Change]:
        return () if self.mutation is None else self.mutation.changes

    @property
    def kinds(self) -> tuple[str, ...]:
        kinds = self.mutation.kind.split("+") if self.mutation is not None else []
        return tuple(kind for kind in kinds if kind) + tuple(sorted(self.delivery))

    @property
    def detail(self) -> str:
        parts = [self.mutation.detail] if self.mutation is not None and self.mutation.detail else []
        return "; ".join([*parts, *(f"{name} {value}" for name, value in self.delivery.items())])

    def rule(self) -> dict[str, Any]:
        """Return the members of the fault rule."""
        rule: dict[str, Any] = {
            "name": "fuzz",
            "api": self.api_key,
            "version": str(self.version),
            "nth": f"{self.nth}+" if self.persistent else str(self.nth),
        }
        mutation = self.mutation
        if mutation is not None:
            if mutation.as_version is not None:
                rule["as_version"] = mutation.as_version
            for change in mutation.changes:
                _add(rule, change, mutation.base)
        rule |= self.delivery
        if len(rule) == 4:
            rule["correlation_off_by"] = 0  # a rule must have an effect
        return rule

    def without(self, **changes: Any) -> Case:
        return dataclasses.replace(self, **changes)

    # ---- JSON --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "seed": self.seed,
            "op": self.op,
            "api_key": self.api_key,
            "version": self.version,
            "nth": self.nth,
            "persistent": self.persistent,
            "delivery": dict(self.delivery),
            "mutation": None if self.mutation is None else self.mutation.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Case:
        """Parse a case. Raises CaseError."""
        try:
            if document["format"] != FORMAT or document["op"] not in ARGUMENTS:
                raise CaseError(f"its format is not {FORMAT}, or its call is unknown")
            mutation = document["mutation"]
            return cls(
                op=document["op"],
                api_key=int(document["api_key"]),
                version=int(document["version"]),
                nth=int(document["nth"]),
                persistent=bool(document["persistent"]),
                mutation=None if mutation is None else Mutation.from_dict(mutation),
                delivery=dict(document["delivery"]),
                seed=int(document["seed"]),
            )
        except MutationError as error:
            raise CaseError(str(error)) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise CaseError(f"not a case: {type(error).__name__}: {error}") from None

    @classmethod
    def from_json(cls, text: str) -> Case:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise CaseError(f"not JSON: {error}") from None
        return cls.from_dict(document)


def _add(rule: dict[str, Any], change: Change, base: bytes) -> None:
    if change.kind == "correlation-id":
        (edit,) = change.edits
        written = int.from_bytes(edit.data, "big", signed=True)
        off = written - int.from_bytes(base[edit.offset : edit.offset + 4], "big", signed=True)
        rule["correlation_off_by"] = (off + 2**31) % 2**32 - 2**31
        return
    replaced = rule.setdefault("replace_bytes", {}) if change.edits else {}
    for edit in change.edits:
        replaced[f"{edit.offset}+{edit.length}"] = edit.data.hex()
    if change.size is not None:
        rule["length"] = change.size
    if change.behind:
        rule["follow_with"] = change.behind.hex()
