"""Minimise a case while the client's behaviour stays the same.

Fewer changes, one altered answer instead of all, normal delivery, and bytes closer to the valid
ones. The number of attempts, each of which is a play, is limited.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from kspec.clientfuzz.clients.case import Case
from kspec.clientfuzz.mutate import Change, Edit

__all__ = ["MOST_PLAYS", "MOST_SLOW_PLAYS", "minimised"]

MOST_PLAYS: Final = 30
MOST_SLOW_PLAYS: Final = 10
"""Limit if each play needs a new process or takes as long as a call may."""
_SMALLER: Final = " (made smaller: "


async def minimised(
    case: Case, same: Callable[[Case], Awaitable[bool]], *, most: int = MOST_PLAYS
) -> Case:
    """Return the smallest case found. ``same`` plays a case and tells whether it behaves like
    ``case``."""
    plays = 0
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(case):
            if plays >= most:
                return case
            plays += 1
            if await same(smaller):
                case, progress = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    """Yield smaller cases, those that remove most first."""
    if case.delivery and case.mutation is not None:
        yield case.without(delivery={})
    if case.persistent:
        yield case.without(persistent=False)
    mutation = case.mutation
    if mutation is None:
        return
    if len(case.delivery) > 1:
        for name in case.delivery:
            left = {key: value for key, value in case.delivery.items() if key != name}
            if set(left) - {"close_with", "split_delay", "unsolicited_correlation_id"}:
                yield case.without(delivery=left)
    if mutation.changes and (mutation.as_version is not None or case.delivery):
        yield case.without(mutation=mutation.only(()))
    if len(mutation.changes) > 1:
        for index in range(len(mutation.changes)):
            kept = mutation.changes[:index] + mutation.changes[index + 1 :]
            yield case.without(mutation=mutation.only(kept))
    elif mutation.as_version is None:
        for change in mutation.changes:
            for nearer in _nearer(change, mutation.base):
                yield case.without(mutation=mutation.only((nearer,)))


def _nearer(change: Change, base: bytes) -> Iterator[Change]:
    """Restore original bytes from the left and from the right, or drop half of what was added."""
    if change.kind == "correlation-id":
        return
    for index, edit in enumerate(change.edits):
        for data in _data(edit, base[edit.offset : edit.offset + edit.length]):
            edits = list(change.edits)
            edits[index] = dataclasses.replace(edit, data=data)
            if data != base[edit.offset : edit.offset + edit.length]:
                detail = f"{change.detail.partition(_SMALLER)[0]}{_SMALLER}{data.hex()[:40]})"
                yield dataclasses.replace(change, edits=tuple(edits), detail=detail)
    if len(change.behind) > 1:
        less = change.behind[: len(change.behind) // 2]
        yield dataclasses.replace(change, behind=less, detail=f"{less.hex()} behind the frame")


def _data(edit: Edit, before: bytes) -> Iterator[bytes]:
    after = edit.data
    if len(after) == len(before):
        for at in range(len(after)):
            if after[at] != before[at]:
                yield after[:at] + before[at : at + 1] + after[at + 1 :]
    elif not before and len(after) > 1:
        yield after[: len(after) // 2]
