"""Sessions over DescribeAcls (29), CreateAcls (30) and DeleteAcls (31) where nobody authorizes.

With an authorizer, which takes another cluster: ``secured_sessions``.
"""

from __future__ import annotations

from kproto.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kproto.messages.create_acls_request import AclCreation
from kproto.messages.delete_acls_request import DeleteAclsFilter
from tests.real.sessions.registry import session
from tests.real.steps import Ask, Rounds

ANY, TOPIC, LITERAL, READ, ALLOW = 1, 2, 3, 3, 3


@session(29, since=3)
def acls_described_without_authorizer(t: str) -> Rounds:
    body = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    return Rounds([Ask(body), Ask(body, broker_id=2)])


@session(30, since=3)
def acls_created_without_authorizer(t: str) -> Rounds:
    rule = AclCreation(
        resource_type=TOPIC,
        resource_name=t,
        resource_pattern_type=LITERAL,
        principal="User:somebody",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    two = CreateAclsRequest(creations=[rule, rule])
    return Rounds([Ask(two), Ask(CreateAclsRequest(creations=[])), Ask(two, broker_id=3)])


@session(31, since=3)
def acls_deleted_without_authorizer(t: str) -> Rounds:
    rule = DeleteAclsFilter(
        resource_type_filter=TOPIC,
        resource_name_filter=t,
        pattern_type_filter=LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    return Rounds(
        [Ask(DeleteAclsRequest(filters=[rule])), Ask(DeleteAclsRequest(filters=[rule, rule]))]
    )
