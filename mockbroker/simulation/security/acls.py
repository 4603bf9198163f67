"""Stored access rules: create (30), describe (29), delete (31).

``mockbroker.simulation.security.authorizer`` applies them. Numbers are those of the protocol, and
texts those of Kafka's ``AclControlManager``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.security.authorizer import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockbroker.simulation.state.actions import AclAdded, AclRemoved
from mockbroker.simulation.state.controller import Controller
from mockbroker.simulation.state.results import (
    AclBinding,
    AclFilter,
    CreateAclResult,
    DeleteAclsResult,
    DescribeAclsResult,
)
from mockbroker.simulation.state.turns import step

__all__ = ["Acls"]

ANY: Final = 1
MATCH: Final = 2
LITERAL: Final = 3
PREFIXED: Final = 4

_RESOURCE_TYPES = tuple(each.name for each in ResourceType)
_PATTERN_TYPES = tuple(each.name for each in PatternType)
_OPERATIONS = tuple(each.name for each in AclOperation)
_PERMISSION_TYPES = tuple(each.name for each in PermissionType)


class Acls(Collection[AclBinding]):
    """All access rules of one cluster, oldest first."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.turns = controller.turns

    def __contains__(self, binding: object) -> bool:
        return binding in self._controller.state.acls

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._controller.state.acls)

    def __len__(self) -> int:
        return len(self._controller.state.acls)

    @step()
    def create(self, bindings: Sequence[AclBinding]) -> tuple[CreateAclResult, ...]:
        """Add rules; return one result per rule, in order. A rule that already exists is
        not an error. A rule that can only be a filter fails all of them."""
        if any(map(_is_filter, bindings)):
            return tuple(CreateAclResult(ErrorCode.UNKNOWN_SERVER_ERROR) for _ in bindings)
        return tuple(self._create_one(binding) for binding in bindings)

    def _create_one(self, binding: AclBinding) -> CreateAclResult:
        try:
            _check(binding)
        except Refusal as refusal:
            return CreateAclResult(refusal.code, refusal.message)
        if binding not in self:
            self._controller.record("create_acls", AclAdded(binding))
        return CreateAclResult()

    def describe(self, acl_filter: AclFilter) -> DescribeAclsResult:
        """Return the rules that the filter matches, sorted. Unknown numbers match none."""
        return DescribeAclsResult(
            bindings=tuple(sorted(binding for binding in self if _matches(acl_filter, binding)))
        )

    @step()
    def delete(self, filters: Sequence[AclFilter]) -> tuple[DeleteAclsResult, ...]:
        """Remove rules; return one result per filter. All filters match the rules before the
        call."""
        found = [self._matching(acl_filter) for acl_filter in filters]
        for binding in dict.fromkeys(binding for result in found for binding in result.bindings):
            self._controller.record("delete_acls", AclRemoved(binding))
        return tuple(DeleteAclsResult(r.error_code, r.error_message, r.bindings) for r in found)

    def _matching(self, acl_filter: AclFilter) -> DescribeAclsResult:
        try:
            _check_filter(acl_filter)
        except Refusal as refusal:
            return DescribeAclsResult(refusal.code, refusal.message)
        return self.describe(acl_filter)


def _is_filter(binding: AclBinding) -> bool:
    """Whether an element is ANY or MATCH. Kafka fails as it reads such a rule."""
    return binding.pattern_type in (ANY, MATCH) or ANY in (
        binding.resource_type,
        binding.operation,
        binding.permission_type,
    )


def _check(binding: AclBinding) -> None:
    if binding.resource_type == ResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
    if not binding.resource_name:
        raise _invalid("Invalid empty resource name")
    _check_known("resourceType", _RESOURCE_TYPES, binding.resource_type)
    _check_known("patternType", _PATTERN_TYPES, binding.pattern_type)
    _check_known("operation", _OPERATIONS, binding.operation)
    _check_known("permissionType", _PERMISSION_TYPES, binding.permission_type)
    if ":" not in binding.principal:
        raise _invalid(
            f"Could not parse principal from `{binding.principal}` (no colon is present "
            "separating the principal type from the principal name)"
        )
    if not binding.host:
        raise _invalid("Host pattern cannot be null or empty")


def _check_known(what: str, names: Sequence[str], value: int) -> None:
    if not _is_known(names, value):
        raise _invalid(f"Invalid {what} UNKNOWN")


def _check_filter(acl_filter: AclFilter) -> None:
    if not (
        _is_known(_RESOURCE_TYPES, acl_filter.resource_type)
        and _is_known(_PATTERN_TYPES, acl_filter.pattern_type)
    ):
        raise _invalid("Unknown patternFilter.")
    if not (
        _is_known(_OPERATIONS, acl_filter.operation)
        and _is_known(_PERMISSION_TYPES, acl_filter.permission_type)
    ):
        raise _invalid("Unknown entryFilter.")


def _is_known(names: Sequence[str], value: int) -> bool:
    return 0 < value < len(names)


def _matches(requested: AclFilter, binding: AclBinding) -> bool:
    return (
        requested.resource_type in (ANY, binding.resource_type)
        and _matches_pattern(requested, binding)
        and requested.principal in (None, binding.principal)
        and requested.host in (None, binding.host)
        and requested.operation in (ANY, binding.operation)
        and requested.permission_type in (ANY, binding.permission_type)
    )


def _matches_pattern(requested: AclFilter, binding: AclBinding) -> bool:
    """KIP-290: MATCH finds every rule that would apply to a resource of that name."""
    if requested.pattern_type not in (ANY, MATCH, binding.pattern_type):
        return False
    if requested.resource_name is None or requested.resource_name == binding.resource_name:
        return True
    if requested.pattern_type != MATCH:
        return False
    if binding.pattern_type == PREFIXED:
        return requested.resource_name.startswith(binding.resource_name)
    return binding.resource_name == WILDCARD


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
