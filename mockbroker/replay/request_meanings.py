"""What of a request still means the same when the same client asks again.

Correlation and client ids are not looked at, and neither are the fields of ``PASSING``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from kproto.schema.model import Field, Struct

__all__ = ["PASSING", "json_name", "meaning", "meaning_of_fields"]

PASSING: Final = frozenset(
    {
        "authBytes", "baseSequence", "clientInstanceId", "clientSoftwareName",
        "clientSoftwareVersion", "clusterId", "committedLeaderEpoch", "currentLeaderEpoch",
        "generationId", "generationIdOrMemberEpoch", "maxWaitMs", "memberEpoch", "memberId",
        "metrics", "producerEpoch", "producerId", "records", "sessionEpoch", "sessionId",
        "shareSessionEpoch", "subscriptionId", "timeoutMs",
    }
)  # fmt: skip
"""Fields of requests, by their JSON names, that differ when the same client asks the same again:
sessions, epochs, identities that brokers hand out, time that is left, and records with their
timestamps."""

_TIMESTAMP: Final = "timestamp"
"""Of ListOffsets: below 0 it is a meaning (latest, earliest), else a time."""


def meaning(body: dict[str, Any] | None) -> str:
    """One text for all bodies, as JSON, that mean the same."""
    return msgspec.json.encode(_lasting(body), order="deterministic").decode()


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _lasting(each) for name, each in value.items() if _lasts(name, each)}
    if isinstance(value, list):
        return [_lasting(each) for each in value]
    return value


def _lasts(name: str, value: Any) -> bool:
    return name not in PASSING and not (
        name == _TIMESTAMP and isinstance(value, int) and value >= 0
    )


def meaning_of_fields(value: Any, struct: Struct, skipped: Collection[Field]) -> tuple[Any, ...]:
    """The same of one struct, without some of its fields, in any version: a field that a version
    lacks has its default."""
    out: list[Any] = []
    for field in struct.fields:
        held = getattr(value, field.python_name)
        if field in skipped or not _lasts(json_name(field), held):
            continue
        inner = field.type.inner_struct
        if inner is None or held is None:
            out.append(tuple(held) if isinstance(held, list) else held)
        elif field.type.kind == "array":
            out.append(tuple(meaning_of_fields(each, inner, ()) for each in held))
        else:
            out.append(meaning_of_fields(held, inner, ()))
    return tuple(out)


def json_name(field: Field) -> str:
    return field.name[:1].lower() + field.name[1:]
