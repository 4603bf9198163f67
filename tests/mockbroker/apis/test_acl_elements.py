"""UNKNOWN(0) in a request about access rules: Kafka does not read it, and closes the connection."""

from __future__ import annotations

from typing import Any

import pytest

from kproto.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kproto.messages.create_acls_request import AclCreation
from kproto.messages.delete_acls_request import DeleteAclsFilter
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker

ELEMENTS = ("resource_type", "pattern_type", "operation", "permission_type")


def request(key: int, **elements: int) -> Any:
    """A good one, but for ``elements``."""
    said = dict.fromkeys(ELEMENTS, 3) | elements
    resource, pattern = said.pop("resource_type"), said.pop("pattern_type")
    who = {"principal": "User:a", "host": "*"}
    if key == 30:
        rule = AclCreation(
            resource_type=resource, resource_pattern_type=pattern, resource_name="r", **who, **said
        )
        return CreateAclsRequest(creations=[rule])
    where = {"resource_type_filter": resource, "pattern_type_filter": pattern, **said}
    if key == 31:
        return DeleteAclsRequest(filters=[DeleteAclsFilter(**where)])
    return DescribeAclsRequest(**where)


@pytest.mark.parametrize("key", [29, 30, 31])
@pytest.mark.parametrize("element", ELEMENTS)
def test_only_unknown_itself_closes_the_connection(key: int, element: str) -> None:
    asked = DirectBroker(Cluster())
    assert asked.ask(request(key), 3) is not None
    assert asked.ask(request(key, **{element: 99}), 3) is not None
    assert asked.ask(request(key, **{element: 0}), 3) is None
    (note,) = asked.journal.select(event="malformed", api=key)
    assert f"{element} UNKNOWN(0)" in (note.note or "")
