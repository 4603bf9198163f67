"""Error codes found wherever a response has them, and dialects that decode it."""

from __future__ import annotations

from typing import Any

import pytest

import kproto
from kproto.codec.message import Message
from kproto.codec.registry import schema_of
from kproto.reference.random_trees import random_tree
from tests.support import seeds
from tests.support.instances import to_instance
from tests.wiredump.show import examples
from wiredump.bodies import find_errors, read
from wiredump.model import Exchange

KAFKA = kproto.dialect("kafka")


def codes_in(value: Any, path: str = "") -> list[tuple[str, int]]:
    """Every error code by the looks of the JSON alone."""
    found: list[tuple[str, int]] = []
    if isinstance(value, list):
        for index, item in enumerate(value):
            found += codes_in(item, f"{path}[{index}].")
    elif isinstance(value, dict):
        for name, item in value.items():
            if name.lower().endswith("errorcode") and item:
                found.append((path + name, item))
            elif isinstance(item, list):
                found += codes_in(item, path + name)
            elif isinstance(item, dict):
                found += codes_in(item, f"{path}{name}.")
    return found


def responses() -> list[type[Message]]:
    return [KAFKA.apis[key].response for key in KAFKA.apis]


def test_every_error_code_is_found() -> None:
    total = 0
    for cls in responses():
        for version in {cls.VALID_VERSIONS.lowest, cls.VALID_VERSIONS.highest}:
            rng = seeds.generator(f"errors:{cls.MESSAGE_NAME}:{version}")
            tree = random_tree(schema_of(cls), version, rng, size=60)
            body = to_instance(cls, tree, schema_of(cls)).to_json_value(version)
            found = [(each.path, each.code) for each in find_errors(cls, version, body)]
            assert sorted(found) == sorted(codes_in(body)), cls
            total += len(found)
    assert total > 200


@pytest.mark.parametrize(
    ("message", "version", "body", "where"),
    [
        ("MetadataResponse", 1, {"topics": [{"errorCode": 3, "name": "foo"}]}, "foo"),
        (
            "ElectLeadersResponse",
            1,
            {
                "replicaElectionResults": [
                    {"topic": "foo", "partitionResult": [{"partitionId": 7, "errorCode": 3}]}
                ]
            },
            "foo-7",
        ),
        (
            "DescribeConfigsResponse",
            1,
            {"results": [{"errorCode": 3, "resourceType": 2, "resourceName": "foo"}]},
            "foo",
        ),
        ("HeartbeatResponse", 1, {"errorCode": 3}, ""),
        ("HeartbeatResponse", 1, {"throttleTimeMs": 3}, None),
    ],
)
def test_where_as_people_name_it(
    message: str, version: int, body: dict[str, Any], where: str | None
) -> None:
    """Also of a body that is not all there."""
    found = find_errors(KAFKA.message(message), version, body)
    assert [each.where for each in found] == ([] if where is None else [where])
    assert all(each.name == "UNKNOWN_TOPIC_OR_PARTITION" for each in found)


def test_a_draft_is_read_by_its_own_messages() -> None:
    codec = kproto.dialect("kip-240")
    api = codec.apis[32240]
    request = codec.encode_request(api.request(), api_version=0, correlation_id=5, client_id="x")
    response = codec.encode_response(api.response(), api_version=0, correlation_id=5)
    (exchange,) = examples.listen([examples.Piece(True, request), examples.Piece(False, response)])
    assert isinstance(exchange, Exchange)
    bodies = read(exchange)
    assert bodies.api == "ListReassignments"
    assert bodies.request is not None
    assert bodies.response is not None
    assert bodies.request.body == api.request().to_json_value(0)
    assert bodies.response.body == api.response().to_json_value(0)


def test_a_dialect_of_ones_own_is_passed_in(tmp_path) -> None:
    (tmp_path / "HeartbeatRequest.json").write_text(
        '{"apiKey": 12, "type": "request", "name": "HeartbeatRequest", "validVersions": "0",'
        '"flexibleVersions": "none", "fields": ['
        '{"name": "Mine", "type": "int32", "versions": "0+"}]}'
    )
    codec = kproto.load_dialect(tmp_path, name="mine")
    body = codec.message("HeartbeatRequest")(mine=7)
    frame = codec.encode_request(body, api_version=0, correlation_id=5, client_id="x")
    (exchange, _) = examples.listen([examples.Piece(True, frame)])
    assert isinstance(exchange, Exchange)
    exchange.dialect = "mine"
    with_it, without = read(exchange, codec), read(exchange)
    assert with_it.request is not None
    assert without.request is not None
    assert with_it.request.body == {"mine": 7}
    assert without.request.problem
