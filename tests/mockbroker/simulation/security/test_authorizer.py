"""The authorizer: which rules allow what, and what holds of any set of rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mockbroker.errors import ClusterError
from mockbroker.simulation.security.authorizer import (
    AclOperation,
    Authorizer,
    PatternType,
    PermissionType,
    ResourceType,
)
from mockbroker.simulation.state.results import AclBinding

Op = AclOperation
ALLOW, DENY = PermissionType.ALLOW, PermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
ALICE, HOST = "User:alice", "10.0.0.7"

STRICT = Authorizer()
LAX = Authorizer(allow_everyone_if_no_acl_found=True)


def rule(operation: int, permission: int = ALLOW, **changes: object) -> AclBinding:
    """About alice and the topic foo, from everywhere."""
    plain = AclBinding(TOPIC, "foo", LITERAL, ALICE, "*", operation, permission)
    return replace(plain, **changes)  # type: ignore[arg-type]


def may(
    operation: int,
    *acls: AclBinding,
    by: Authorizer = STRICT,
    who: str = ALICE,
    kind: int = TOPIC,
    name: str = "foo",
) -> bool:
    return by.allows(acls, who, HOST, operation, kind, name)


def test_without_a_rule() -> None:
    assert not may(Op.READ)
    assert may(Op.READ, by=LAX)
    # A rule about somebody else is one about the topic.
    other = rule(Op.READ, principal="User:bob")
    assert not may(Op.READ, other, by=LAX)
    assert may(Op.READ, other, by=LAX, name="bar")
    assert may(Op.READ, other, by=LAX, kind=ResourceType.GROUP)


def test_super_users_are_above_rules() -> None:
    boss = Authorizer(frozenset({"User:boss"}))
    deny = rule(Op.ALL, DENY, principal="User:*")
    assert may(Op.READ, deny, by=boss, who="User:boss")
    assert not may(Op.READ, deny, by=boss)
    assert not may(Op.READ, deny, by=boss, who="Group:boss")


@pytest.mark.parametrize("wrong", ["admin", "", "User:", ":admin"])
def test_a_super_user_is_a_principal(wrong: str) -> None:
    with pytest.raises(ClusterError, match="use TYPE:NAME, as in User:admin"):
        Authorizer(frozenset({wrong}))


@pytest.mark.parametrize(
    ("changes", "covers"),
    [
        ({}, True),
        ({"resource_name": "*"}, True),
        ({"resource_name": "fo"}, False),
        ({"resource_name": "fo", "pattern_type": PREFIXED}, True),
        ({"resource_name": "foo", "pattern_type": PREFIXED}, True),
        ({"resource_name": "food", "pattern_type": PREFIXED}, False),
        # As a prefix a star is a character like any other.
        ({"resource_name": "*", "pattern_type": PREFIXED}, False),
        ({"resource_type": ResourceType.GROUP}, False),
        ({"principal": "User:*"}, True),
        ({"principal": "Group:*"}, False),
        ({"principal": "User:bob"}, False),
        ({"principal": "*"}, False),
        ({"host": HOST}, True),
        ({"host": "10.0.0.8"}, False),
    ],
)
def test_whom_and_what_a_rule_is_about(changes: dict[str, object], covers: bool) -> None:
    assert may(Op.READ, rule(Op.READ, **changes)) is covers
    everything = rule(Op.ALL, resource_name="*")
    assert may(Op.READ, everything, rule(Op.READ, DENY, **changes)) is not covers


IMPLIED = {
    Op.DESCRIBE: {Op.READ, Op.WRITE, Op.DELETE, Op.ALTER},
    Op.DESCRIBE_CONFIGS: {Op.ALTER_CONFIGS},
}
OPERATIONS = [op for op in Op if op > Op.ALL]


@pytest.mark.parametrize("asked", OPERATIONS, ids=lambda op: op.name)
@pytest.mark.parametrize("ruled", [Op.ALL, *OPERATIONS], ids=lambda op: op.name)
def test_what_an_operation_implies(asked: AclOperation, ruled: AclOperation) -> None:
    same = ruled in (asked, Op.ALL)
    assert may(asked, rule(ruled)) is (same or ruled in IMPLIED.get(asked, ()))
    # Denying implies nothing: who may not read may still describe.
    assert may(asked, rule(Op.ALL), rule(ruled, DENY)) is not same


rules = st.builds(
    AclBinding,
    resource_type=st.sampled_from([TOPIC, CLUSTER]),
    resource_name=st.sampled_from(["*", "f", "foo", "bar"]),
    pattern_type=st.sampled_from([LITERAL, PREFIXED]),
    principal=st.sampled_from([ALICE, "User:bob", "User:*"]),
    host=st.sampled_from(["*", HOST]),
    operation=st.sampled_from([Op.ALL, *OPERATIONS]),
    permission_type=st.sampled_from([ALLOW, DENY]),
)


@given(
    acls=st.lists(rules, max_size=8, unique=True),
    more=rules,
    operation=st.sampled_from(OPERATIONS),
    order=st.randoms(),
)
def test_one_rule_more(acls, more, operation, order):
    """A DENY takes away only, an ALLOW gives only, and the order says nothing."""
    before, after = may(operation, *acls), may(operation, *acls, more)
    if more.permission_type == DENY:
        assert before or not after
    else:
        assert after or not before
    mixed = [*acls, more]
    order.shuffle(mixed)
    assert may(operation, *mixed) is after
    # Being lax matters where no rule is about the topic at all, and only there.
    whatever = {"principal": "User:*", "host": "*", "operation": Op.ALL, "permission_type": ALLOW}
    about = any(may(operation, replace(acl, **whatever)) for acl in mixed)  # type: ignore[arg-type]
    assert may(operation, *mixed, by=LAX) is (after or not about)
