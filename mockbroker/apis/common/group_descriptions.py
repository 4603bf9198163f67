"""What ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe have in common: who is
refused, and with which code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kproto.error_codes import ErrorCode, message
from mockbroker.apis.calls import Call
from mockbroker.apis.common.authorization import may
from mockbroker.apis.common.authorized_operations import group_operations
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.simulation.security.authorizer import ResourceType

__all__ = ["describe_groups"]

DescribedT = TypeVar("DescribedT", bound=Any)


def describe_groups(
    call: Call,
    row: Callable[..., DescribedT],
    kind: str,
    describe: Callable[[str], DescribedT | None],
    *,
    explains: bool = False,
) -> list[DescribedT]:
    """Return a row for each group of the request, refused groups first.

    ``row`` is the class of the response's rows. ``describe`` returns the row of a group of this
    ``kind`` (``consumer``), or None if there is none with that id. ``explains`` is
    whether errors of the coordinator have a text.
    """
    ids: list[str] = call.body.group_ids
    refused = ErrorCode.GROUP_AUTHORIZATION_FAILED
    allowed = [each for each in ids if may(call, ResourceType.GROUP, each)]
    return [row(group_id=each, error_code=refused) for each in ids if each not in allowed] + [
        _described(call, row, kind, describe, each, explains=explains) for each in allowed
    ]


def _described(
    call: Call,
    row: Callable[..., DescribedT],
    kind: str,
    describe: Callable[[str], DescribedT | None],
    group_id: str,
    *,
    explains: bool,
) -> DescribedT:
    if not group_id:
        return row(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    error = coordinator_error(call, group_id)
    if error:
        text = message(error) if explains else None
        return row(group_id=group_id, error_code=error, error_message=text)
    described = describe(group_id)
    if described is not None:
        if call.body.include_authorized_operations:
            described.authorized_operations = group_operations(call, group_id)
        return described
    known = call.cluster.groups.group(group_id) is not None
    problem = f"is not a {kind} group" if known else "not found"
    return row(
        group_id=group_id,
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} {problem}.",
    )
