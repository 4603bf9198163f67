"""What ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe have in common: who is
refused, and with which code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kproto.error_codes import ErrorCode, message
from mockbroker.apis.calls import Call
from mockbroker.apis.common.authorization import authorized_names
from mockbroker.apis.common.authorized_operations import group_operations
from mockbroker.apis.common.group_answers import coordinator_error
from mockbroker.simulation.groups.modern.modern_group import GroupT
from mockbroker.simulation.groups.modern.modern_groups import ModernGroups
from mockbroker.simulation.security.authorizer import AclOperation, ResourceType

__all__ = ["describe_groups"]

DescribedT = TypeVar("DescribedT", bound=Any)


_HIDDEN = "The group has described topic(s) that the client is not authorized to describe."


def describe_groups(
    call: Call,
    row: Callable[..., DescribedT],
    groups: ModernGroups[GroupT, Any],
    describe: Callable[[GroupT], DescribedT],
    topics: Callable[[DescribedT], Iterable[str]],
    *,
    hidden: str = _HIDDEN,
    explains: bool = False,
) -> list[DescribedT]:
    """Return a row for each group of the request, refused groups first.

    ``row`` is the class of the response's rows. ``describe`` returns the row of one of the
    ``groups``. ``topics`` returns the topics in a row; ``hidden`` is the text if the caller may not
    describe one. ``explains``: errors of the coordinator have a text.
    """

    def refused(group_id: str, code: ErrorCode, text: str | None = None) -> DescribedT:
        return row(group_id=group_id, error_code=code, error_message=text)

    def described(group_id: str) -> DescribedT:
        if not group_id:
            return refused(group_id, ErrorCode.INVALID_GROUP_ID)
        error = coordinator_error(call, group_id)
        if error:
            return refused(group_id, error, message(error) if explains else None)
        group = groups.group(group_id)
        if group is None:
            known = call.cluster.groups.group(group_id) is not None
            problem = f"is not a {groups.kind} group" if known else "not found"
            return refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")
        found = describe(group)
        names = frozenset(topics(found))
        if authorized_names(call, names, AclOperation.DESCRIBE) != names:
            return refused(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, hidden)
        if call.body.include_authorized_operations:
            found.authorized_operations = group_operations(call, group_id)
        return found

    ids: list[str] = call.body.group_ids
    allowed = authorized_names(call, ids, AclOperation.DESCRIBE, ResourceType.GROUP)
    unauthorized = ErrorCode.GROUP_AUTHORIZATION_FAILED
    return [
        *(refused(each, unauthorized) for each in ids if each not in allowed),
        # Those without an id have no coordinator that answers later.
        *map(described, sorted((each for each in ids if each in allowed), key=bool)),
    ]
