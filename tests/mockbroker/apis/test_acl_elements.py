"""Numbers without a meaning in requests about access rules. Kafka does not read UNKNOWN(0), and
closes the connection."""

from typing import Any

import pytest

from kproto.error_codes import ErrorCode
from mockbroker.simulation.cluster import Cluster
from tests.mockbroker.broker import DirectBroker
from tests.mockbroker.simulated import simulated_cluster
from tests.support.requests import request_of

ELEMENTS = ("resource_type", "pattern_type", "operation", "permission_type")


def request(key: int, **elements: int) -> Any:
    """A good one, but for ``elements``."""
    said = dict.fromkeys(ELEMENTS, 3) | elements
    resource, pattern = said.pop("resource_type"), said.pop("pattern_type")
    who = {"principal": "User:a", "host": "*"}
    if key == 30:
        rule = {
            "resource_type": resource,
            "resource_pattern_type": pattern,
            "resource_name": "r",
            **(who),
            **(said),
        }
        return request_of("CreateAcls", creations=[rule])
    where = {"resource_type_filter": resource, "pattern_type_filter": pattern, **said}
    if key == 31:
        return request_of("DeleteAcls", filters={**(where)})
    return request_of("DescribeAcls", **where)


@pytest.mark.parametrize("key", [29, 30, 31])
@pytest.mark.parametrize("element", ELEMENTS)
def test_only_unknown_itself_closes_the_connection(key: int, element: str) -> None:
    asked = DirectBroker(Cluster())
    assert asked.ask(request(key), 3) is not None
    assert asked.ask(request(key, **{element: 99}), 3) is not None
    assert asked.ask(request(key, **{element: 0}), 3) is None
    (note,) = asked.journal.select(event="malformed", api=key)
    assert f"{element} UNKNOWN(0)" in (note.note or "")


def in_zookeeper_mode() -> DirectBroker:
    cluster = simulated_cluster(1, reassignment="zookeeper", release=(3, 9))
    return DirectBroker(cluster, profile_name="kafka-3.9-zk")


@pytest.mark.requirement("REL-40")
@pytest.mark.parametrize(
    ("element", "number", "since", "until"),
    [
        ("resource_type", 6, (1, 1), (1, 0)),
        ("resource_type", 7, (3, 3), (3, 2)),
        ("operation", 14, (3, 3), (3, 2)),
        ("operation", 15, (4, 1), (4, 0)),
    ],
)
def test_releases_know_other_elements(element, number, since, until):
    codes = [
        DirectBroker(simulated_cluster(1, release=release))
        .ask(request(30, **{element: number}), 3)
        .results[0]
        .error_code
        for release in (since, until)
    ]
    assert codes == [0, ErrorCode.INVALID_REQUEST]


@pytest.mark.requirement("ACL-01")
@pytest.mark.parametrize("element", ELEMENTS)
def test_zookeeper_mode_refuses_unknown_elements_of_rules_alone(element: str) -> None:
    asked = in_zookeeper_mode()
    (refused,) = asked.ask(request(30, **{element: 99}), 3).results
    assert (refused.error_code, refused.error_message) == (42, "Failed to create ACL")
    (matching,) = asked.ask(request(31, **{element: 99}), 3).filter_results
    assert (matching.error_code, matching.error_message) == (0, None)
    assert not matching.matching_acls


@pytest.mark.requirement("ACL-01")
def test_zookeeper_mode_parses_principals_and_takes_any_host() -> None:
    asked = in_zookeeper_mode()
    body = request(30)
    body.creations[0].principal = "nobody"
    (refused,) = asked.ask(body, 3).results
    assert (refused.error_code, refused.error_message) == (-1, None)
    body.creations[0].principal, body.creations[0].host = "User:a", ""
    (created,) = asked.ask(body, 3).results
    assert (created.error_code, created.error_message) == (0, "")
    assert [each.host for each in asked.cluster.acls] == [""]
