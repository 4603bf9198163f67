"""The meaning of a request: the fields that stay the same when a client repeats the request.

It excludes the correlation id, the client id and the fields in ``PASSING``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from kproto.schema.model import Field, Struct
from mockbroker.replay.partition_names import json_name

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
"""Request fields, by JSON name, that differ when a client repeats a request: sessions, epochs, ids
that brokers assign, remaining time, and records with their timestamps."""

_TIMESTAMP: Final = "timestamp"
"""In ListOffsets: negative values have a meaning (latest, earliest); others are times."""


def meaning(body: dict[str, Any] | None) -> str:
    """Return a text that is equal for all JSON bodies with the same meaning."""
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
    """Return the meaning of a struct without some of its fields. Versions compare equal, because a
    field that a version lacks has its default."""
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
