"""The access rules of cases, and what a case's cluster does with them."""

from __future__ import annotations

import pytest

from kspec.access_rules import access_rule
from kspec.case_parser import parse_case
from kspec.errors import CaseError, KspecError
from kspec.runner.stage import Stage
from mockbroker.simulation.security.authorizer import AclOperation, PermissionType, ResourceType

CASE = """
title: t
source: KIP-35
about: a
cluster: {brokers: 1, topics: ["foo=1"], acls: [allow describe topic foo]}
steps: [{acls: []}]
may: [{says: s, requests: {api: Metadata}}]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "allow describe topic foo",
            (ResourceType.TOPIC, "foo", AclOperation.DESCRIBE, PermissionType.ALLOW),
        ),
        ("deny read group g", (ResourceType.GROUP, "g", AclOperation.READ, PermissionType.DENY)),
        (
            "allow idempotent-write cluster",
            (
                ResourceType.CLUSTER,
                "kafka-cluster",
                AclOperation.IDEMPOTENT_WRITE,
                PermissionType.ALLOW,
            ),
        ),
        (
            "allow all transactional-id t",
            (ResourceType.TRANSACTIONAL_ID, "t", AclOperation.ALL, PermissionType.ALLOW),
        ),
    ],
)
def test_a_rule(text: str, expected: tuple[int, str, int, int]) -> None:
    rule = access_rule(text)
    found = (rule.resource_type, rule.resource_name, rule.operation, rule.permission_type)
    assert found == expected
    assert (rule.principal, rule.host) == ("User:*", "*")


@pytest.mark.parametrize(
    "text",
    ["", "allow", "allow read topic", "permit read topic foo", "allow see topic foo",
     "allow any topic foo", "allow read broker 1", "allow read topic foo bar"],
)  # fmt: skip
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(KspecError, match="is not allow or deny"):
        access_rule(text)


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("allow describe topic foo", "allow topic foo", "cluster.acls[0]"),
        ("[{acls: []}]", "[{acls: [all]}]", "steps[0].acls[0]"),
        (", acls: [allow describe topic foo]", "", "steps[0].acls"),
    ],
)
def test_a_case_with_a_rule_that_is_none(old: str, new: str, place: str) -> None:
    with pytest.raises(CaseError) as caught:
        parse_case(CASE.replace(old, new), "g/001-x.yaml")
    assert caught.value.place == place


async def test_rules_are_replaced() -> None:
    stage = Stage(parse_case(CASE, "g/001-x.yaml").case)
    await stage.start()
    try:
        assert [each.resource_name for each in stage.mock.cluster.acls] == ["foo"]
        stage.set_acls(["deny read topic bar", "allow alter cluster"])
        names = {each.resource_name for each in stage.mock.cluster.acls}
        assert names == {"bar", "kafka-cluster"}
        stage.set_acls([])
        assert not stage.mock.cluster.acls
    finally:
        await stage.stop()
