"""Stored access rules: create (30), describe (29), delete (31).

``mockbroker.simulation.security.authorizer`` applies them. Numbers are those of the protocol, and
texts those of Kafka's ``AclControlManager`` and, in ZooKeeper mode, ``AclAuthorizer``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kproto.error_codes import ErrorCode
from mockbroker.errors import Refusal
from mockbroker.simulation.releases import facts
from mockbroker.simulation.releases.release import Release
from mockbroker.simulation.security.authorizer import (
    CLUSTER_NAME,
    WILDCARD,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockbroker.simulation.security.filter_order import hashed_places
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
from mockbroker.simulation.state.znode_paths import path_problem

__all__ = ["Acls", "filter_element"]

ANY: Final = 1
MATCH: Final = 2
LITERAL: Final = 3
PREFIXED: Final = 4
_PRINCIPAL: Final = "expected a string in format principalType:principalName but got "

_RESOURCE_TYPES: Final = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken")
_OPERATIONS: Final = (
    "Read", "Write", "Create", "Delete", "Alter", "Describe", "ClusterAction", "AlterConfigs",
    "DescribeConfigs", "IdempotentWrite", "All",
)  # fmt: skip
_PERMISSION_TYPES: Final = ("Allow", "Deny")


class Acls(Collection[AclBinding]):
    """All access rules of one cluster, oldest first."""

    def __init__(self, controller: Controller, release: Release) -> None:
        self._controller = controller
        release.follow(self._use_release)
        self.turns = controller.turns

    def _use_release(self, release: Release) -> None:
        self._largest_type = release.value_of(facts.LARGEST_RESOURCE_TYPE)
        self._largest_operation = release.value_of(facts.LARGEST_ACL_OPERATION)
        self._explains = self._controller.keeps_znodes and release.has(facts.FAILURES_EXPLAINED)
        self._reads_principals = release.has(facts.PRINCIPALS_OF_RULES_READ)
        self._reads_hosts = release.has(facts.HOSTS_OF_RULES_READ)
        self._hashes_filters = release.has(facts.ACL_FILTERS_HASHED)
        self._lists_names = self._controller.keeps_znodes and release.has(facts.ACL_NAMES_LISTED)

    def __contains__(self, binding: object) -> bool:
        return binding in self._controller.state.acls

    def __iter__(self) -> Iterator[AclBinding]:
        return iter(self._controller.state.acls)

    def __len__(self) -> int:
        return len(self._controller.state.acls)

    @step()
    def create(self, bindings: Sequence[AclBinding]) -> tuple[CreateAclResult, ...]:
        """Add rules; return one result per rule, in order. A rule that already exists is
        not an error. A rule that can only be a filter fails all of them, and a failure those of the
        same resource."""
        unreadable = next(filter(None, map(filter_element, bindings)), None)
        if unreadable is not None:
            text = unreadable if self._explains else None
            return tuple(CreateAclResult(ErrorCode.UNKNOWN_SERVER_ERROR, text) for _ in bindings)
        checked = [self._checked(binding) for binding in bindings]
        failures = {
            _resource(binding): result
            for binding, result in zip(bindings, checked, strict=True)
            if result.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        }
        results = tuple(
            result if result.error_code else failures.get(_resource(binding), result)
            for binding, result in zip(bindings, checked, strict=True)
        )
        for binding, result in zip(bindings, results, strict=True):
            if not result.error_code and binding not in self:
                self._controller.record("create_acls", AclAdded(binding))
        return results

    def _checked(self, binding: AclBinding) -> CreateAclResult:
        try:
            self._check(binding)
        except Refusal as refusal:
            return CreateAclResult(refusal.code, refusal.message)
        return CreateAclResult()

    def describe(self, acl_filter: AclFilter) -> DescribeAclsResult:
        """Return the rules that the filter matches, sorted. Unknown numbers match none."""
        return DescribeAclsResult(
            bindings=tuple(sorted(binding for binding in self if _matches(acl_filter, binding)))
        )

    @step()
    def delete(self, filters: Sequence[AclFilter]) -> tuple[DeleteAclsResult, ...]:
        """Remove rules; return one result per filter. All filters match the rules before the
        call. In ZooKeeper mode a rule that several match is that of the first, or up to 2.3 of the
        first in the order of a hash table."""
        found = [self._matching(acl_filter) for acl_filter in filters]
        if self._controller.keeps_znodes:
            places = hashed_places(len(found)) if self._hashes_filters else range(len(found))
            found = _once(found, places)
        for binding in dict.fromkeys(binding for result in found for binding in result.bindings):
            self._controller.record("delete_acls", AclRemoved(binding))
        return tuple(DeleteAclsResult(r.error_code, r.error_message, r.bindings) for r in found)

    def _matching(self, acl_filter: AclFilter) -> DescribeAclsResult:
        if not self._controller.keeps_znodes:
            try:
                self._check_filter(acl_filter)
            except Refusal as refusal:
                return DescribeAclsResult(refusal.code, refusal.message)
        return self.describe(acl_filter)

    # ---- checks --------------------------------------------------------------------------------

    def _check(self, binding: AclBinding) -> None:
        if self._lists_names:
            self._check_names(binding)
        if binding.resource_type == ResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
            raise _invalid(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
        if not binding.resource_name:
            raise _invalid("Invalid empty resource name")
        unknown = self._unknown_element(binding)
        has_principal = ":" in binding.principal
        if self._controller.keeps_znodes:
            if unknown:
                raise _invalid("Failed to create ACL")
            if not has_principal:
                text = f"java.lang.IllegalArgumentException: {_PRINCIPAL}{binding.principal}"
                raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, text if self._explains else None)
            self._check_znode(binding)
            return
        if unknown:
            raise _invalid(f"Invalid {unknown} UNKNOWN")
        if not has_principal and self._reads_principals:
            raise _invalid(
                f"Could not parse principal from `{binding.principal}` (no colon is present "
                "separating the principal type from the principal name)"
            )
        if not binding.host and self._reads_hosts:
            raise _invalid("Host pattern cannot be null or empty")

    def _check_znode(self, binding: AclBinding) -> None:
        """The name of a resource is that of a znode."""
        prefixed = binding.pattern_type == PatternType.PREFIXED
        folder = "/kafka-acl-extended/prefixed" if prefixed else "/kafka-acl"
        names = (*_RESOURCE_TYPES, "User")
        path = f"{folder}/{names[binding.resource_type - 2]}/{binding.resource_name}"
        problem, failure = path_problem(path), "java.lang.IllegalArgumentException"
        parent, slash, _ = binding.resource_name.rpartition("/")
        if slash and not problem and not self._has_rules(replace(binding, resource_name=parent)):
            problem = f"KeeperErrorCode = NoNode for {path}"
            failure = "org.apache.zookeeper.KeeperException$NoNodeException"
        if problem:
            text = problem if self._lists_names else f"{failure}: {problem}"
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, text if self._explains else None)

    def _has_rules(self, binding: AclBinding) -> bool:
        return any(_resource(each) == _resource(binding) for each in self)

    def _check_names(self, binding: AclBinding) -> None:
        """Raise Refusal with the texts of Scala's classes, which list the names that are valid. The
        pattern type is the last element that Kafka reads."""
        unknown = self._unknown_element(replace(binding, pattern_type=PatternType.LITERAL))
        names = {
            "resourceType": _RESOURCE_TYPES[: self._largest_type - 1],
            "operation": _OPERATIONS,
            "permissionType": _PERMISSION_TYPES,
        }.get(unknown or "")
        if unknown != "resourceType" and ":" not in binding.principal:
            raise _invalid(f"{_PRINCIPAL}{binding.principal}")
        if names:
            raise _invalid(
                f"UNKNOWN not a valid {unknown} name. The valid names are {','.join(names)}"
            )
        if self._unknown_element(binding):
            raise _invalid("patternType must not be UNKNOWN")

    def _check_filter(self, acl_filter: AclFilter) -> None:
        unknown = self._unknown_element(acl_filter)
        if unknown:
            part = "pattern" if unknown in ("resourceType", "patternType") else "entry"
            raise _invalid(f"Unknown {part}Filter.")

    def _unknown_element(self, given: AclBinding | AclFilter) -> str | None:
        """Return the first element whose number the release does not know."""
        largest = (
            ("resourceType", given.resource_type, self._largest_type),
            ("patternType", given.pattern_type, PatternType.PREFIXED),
            ("operation", given.operation, self._largest_operation),
            ("permissionType", given.permission_type, PermissionType.ALLOW),
        )
        return next((name for name, value, last in largest if not 0 < value <= last), None)


def filter_element(binding: AclBinding) -> str | None:
    """Return Kafka's text about an element that is ANY or MATCH. Kafka fails as it reads such a
    rule."""
    if binding.pattern_type in (ANY, MATCH):
        return f"patternType must not be {PatternType(binding.pattern_type).name}"
    elements = (
        ("resourceType", binding.resource_type),
        ("operation", binding.operation),
        ("permissionType", binding.permission_type),
    )
    return next((f"{name} must not be ANY" for name, value in elements if value == ANY), None)


def _once(found: Sequence[DescribeAclsResult], places: Iterable[int]) -> list[DescribeAclsResult]:
    """Each rule with the first filter that matches it, in the order of their places."""
    seen: set[AclBinding] = set()
    rows = list(found)
    for place in places:
        result = rows[place]
        left = tuple(each for each in result.bindings if each not in seen)
        rows[place] = replace(result, bindings=left)
        seen.update(result.bindings)
    return rows


def _resource(binding: AclBinding) -> tuple[int, str, int]:
    return binding.resource_type, binding.resource_name, binding.pattern_type


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
