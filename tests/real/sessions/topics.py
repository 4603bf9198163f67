"""Sessions over CreateTopics (19) and DeleteTopics (20)."""

from __future__ import annotations

from kproto.messages import (
    DeleteTopicsRequest,
)
from tests.real.sessions.registry import session
from tests.real.steps import (
    Ask,
    Rounds,
    alter,
    create,
    metadata,
    try_to_create,
)

# ---- 19 CreateTopics, 20 DeleteTopics --------------------------------------------------------


@session(19, since=2)
def topics_created(t: str) -> Rounds:
    return Rounds(
        [
            try_to_create(t, [1, 2], [2, 3]),
            try_to_create(t, [1]),
            try_to_create(f"{t}-dup", [1, 1]),
            try_to_create(f"{t}-far", [9]),
            try_to_create(f"{t}-none", []),
            try_to_create(f"{t}-uneven", [1, 2], [3]),
            try_to_create(f"{t} bad", [1]),
            try_to_create(f"{t}-config", [1], retention_ms="soon"),
            try_to_create(f"{t}-config", [1], no_such="1"),
            metadata(t),
        ]
    )


@session(20, since=1, until=5)
def topics_deleted(t: str) -> Rounds:
    return Rounds(
        [
            create(t, [1, 2]),
            metadata(t),
            Ask(DeleteTopicsRequest(topic_names=[t, f"{t}-unknown"], timeout_ms=30000)),
            metadata(t),
            alter((t, 0, [1])),
        ]
    )
