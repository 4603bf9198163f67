"""Which fields give addresses: the rows against the schemas, and each row's rewriting."""

from collections.abc import Iterator
from typing import Any

import pytest

from kproto.codec.registry import plan_of, schema_of
from kproto.dialects import dialect
from kproto.schema.model import Struct
from kproto.schema.versions import Versions
from mockbroker.proxy.addresses import (
    LEFT,
    REWRITTEN,
    AddressRow,
    may_hold_addresses,
    only_tagged_addresses,
    rewrite,
)

KAFKA = dialect("kafka")


def structs_with_addresses(struct: Struct, path: str = "") -> Iterator[tuple[str, str, Versions]]:
    """Every struct that has a field Host or Port: its path and the versions of that field."""
    for field in struct.fields:
        if field.name in ("Host", "Port"):
            yield path, field.name, field.versions
        inner = field.type.inner_struct
        if inner is not None:
            yield from structs_with_addresses(inner, f"{path}.{field.name}".lstrip("."))


def in_schemas() -> dict[tuple[str, str], Versions]:
    found: dict[tuple[str, str], Versions] = {}
    for api in KAFKA.apis.values():
        for cls in (api.request, api.response):
            for path, _, versions in structs_with_addresses(schema_of(cls).root):
                found[cls.MESSAGE_NAME, path] = versions.intersect(cls.VALID_VERSIONS)
    return found


@pytest.mark.requirement("DP-PROXY-12", "DP-PROXY-13", "DP-PROXY-14")
def test_each_field_of_the_schemas_is_rewritten_or_left_for_a_reason() -> None:
    rewritten = {(row.message, row.path) for row in REWRITTEN}
    left = {(row.message, row.path) for row in LEFT}
    assert not rewritten & left
    assert set(in_schemas()) == rewritten | left
    # No request is rewritten, and each row that is left says why.
    assert all(message.endswith("Response") for message, _ in rewritten)
    assert all(row.reason for row in LEFT)


@pytest.mark.parametrize("row", REWRITTEN, ids=lambda row: f"{row.message}.{row.path}")
def test_the_versions_of_a_row_are_those_of_the_schema(row: AddressRow) -> None:
    response = KAFKA.api(row.api_key).response
    assert row.message == response.MESSAGE_NAME
    versions = Versions.parse(row.versions).intersect(response.VALID_VERSIONS)
    assert versions == in_schemas()[row.message, row.path]
    other = set(response.VALID_VERSIONS) - set(versions)
    assert all(may_hold_addresses(row.api_key, version) for version in versions)
    for version in other:
        others = [each for each in REWRITTEN if each.api_key == row.api_key and each != row]
        expected = any(version in Versions.parse(each.versions) for each in others)
        assert may_hold_addresses(row.api_key, version) is expected


@pytest.mark.parametrize("row", REWRITTEN, ids=lambda row: f"{row.message}.{row.path}")
def test_a_row_says_whether_its_field_is_tagged(row: AddressRow) -> None:
    response = KAFKA.api(row.api_key).response
    for version in Versions.parse(row.versions).intersect(response.VALID_VERSIONS):
        tagged = {field.json_name.lower() for field in plan_of(response, version).root.tagged}
        assert (row.path.partition(".")[0].lower() in tagged) is row.tagged
        assert only_tagged_addresses(row.api_key, version) is row.tagged


def test_the_apis_that_give_controllers() -> None:
    """Those of the metadata quorum; brokers' listeners have other ports."""
    controllers = {row.api_key for row in REWRITTEN if row.role == "controller"}
    assert controllers == {52, 53, 54, 55, 59, 82}
    assert {row.api_key for row in REWRITTEN} - controllers == {0, 1, 3, 10, 60, 78, 79}


def filled(row: AddressRow) -> tuple[Any, list[Any]]:
    """A response with the address of node 7 where the row says, and that struct."""
    api = KAFKA.api(row.api_key)
    body: Any = api.response()
    holder, struct = body, schema_of(api.response).root
    for name in row.path.split(".") if row.path else ():
        field = next(each for each in struct.fields if each.name == name)
        inner = field.type.inner_struct
        assert inner is not None
        made: Any = api.response.STRUCTS[inner.name]()
        value = [made] if field.type.kind == "array" else made
        setattr(holder, field.python_name, value)
        for id_name in ("node_id", "broker_id", "leader_id"):
            if hasattr(made, id_name):
                setattr(made, id_name, 7)
        holder, struct = made, inner
    if not row.path:
        body.node_id = 7
    holder.host, holder.port = "upstream", 1234
    return body, holder


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{row.message}.{row.path}",
                     marks=pytest.mark.requirement(row.requirement))
        for row in REWRITTEN
    ],
)  # fmt: skip
def test_a_row_is_rewritten(row: AddressRow) -> None:
    asked: list[tuple[object, ...]] = []

    def endpoint_for(*given: object) -> tuple[str, int]:
        asked.append(given)
        return "proxy", 99

    version = min(Versions.parse(row.versions).intersect(KAFKA.api(row.api_key).valid_versions))
    body, place = filled(row)
    assert rewrite(row.api_key, version, body, endpoint_for)
    assert asked == [(row.role, 7, "upstream", 1234)]
    # It can be encoded, and comes back as the proxy's address.
    api = KAFKA.api(row.api_key)
    again = api.response.decode(body.encode(version), version)
    assert "proxy" in str(again.to_json(version))
    assert "upstream" not in str(again.to_json(version))
    assert (place.host, place.port) == ("proxy", 99)


@pytest.mark.requirement("DP-PROXY-03")
def test_an_error_without_an_address_is_left() -> None:
    row = next(each for each in REWRITTEN if each.path == "Coordinators")
    body, place = filled(row)
    place.host, place.port, place.node_id = "", -1, -1
    assert not rewrite(row.api_key, 4, body, lambda *_: pytest.fail("no address to rewrite"))
    assert (place.host, place.port) == ("", -1)


@pytest.mark.requirement("DP-PROXY-04")
def test_a_list_of_controllers_gets_controllers_addresses() -> None:
    row = next(each for each in REWRITTEN if each.message == "DescribeClusterResponse")
    body, _ = filled(row)
    body.endpoint_type = 2
    roles: list[str] = []

    def endpoint_for(role: str, *_: object) -> tuple[str, int]:
        roles.append(role)
        return "proxy", 99

    assert rewrite(row.api_key, 1, body, endpoint_for)
    assert roles == ["controller"]
