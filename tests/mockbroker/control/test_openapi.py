"""The OpenAPI document matches the server: every route, body and answer."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from mockbroker import MockCluster
from mockbroker.control import ROUTES, ControlServer
from mockbroker.control.document_forms import DOCUMENT_FORMS, OLDEST
from mockbroker.control.openapi import document, documented_path, served_paths
from mockbroker.control.options import CLUSTER_OPTIONS
from mockbroker.control.page import page_files
from tests.mockbroker.control.test_control import Client, controlled
from tests.mockbroker.operation_calls import CALLS as CALLS_OF_OPERATIONS
from tests.mockbroker.operation_calls import body_of, prepare, words
from tests.mockbroker.wire import connect

Operation = tuple[str, str]


def operations(of: dict[str, Any]) -> dict[Operation, dict[str, Any]]:
    return {
        (method.upper(), path): operation
        for path, methods in of["paths"].items()
        for method, operation in methods.items()
    }


def of_type(
    self: Any, types: Any, instance: Any, schema: dict[str, Any]
) -> Iterator[ValidationError]:
    """As JSON Schema says; and what generated clients read into 32 bits has these."""
    yield from Draft202012Validator.VALIDATORS["type"](self, types, instance, schema)
    narrow = types == "integer" and schema.get("format") != "int64"
    if narrow and isinstance(instance, int) and not -(2**31) <= instance < 2**31:
        yield ValidationError(f"{instance} needs the format int64")


ClientValidator = extend(Draft202012Validator, {"type": of_type})


def validator(of: dict[str, Any], schema: dict[str, Any]) -> Any:
    return ClientValidator({**schema, "components": of["components"]})


def schemas_in(value: Any) -> list[dict[str, Any]]:
    """Every ``schema`` and component of the document."""
    if isinstance(value, list):
        return [found for each in value for found in schemas_in(each)]
    if not isinstance(value, dict):
        return []
    own = [value["schema"]] if isinstance(value.get("schema"), dict) else []
    return own + [found for each in value.values() for found in schemas_in(each)]


def documented(body: dict[str, Any]) -> dict[str, Any]:
    """The body of an operation with the texts of JSON in the form of the document."""
    if isinstance(body.get("target"), str):
        body = {**body, "target": json.loads(body["target"])}
    records = body.get("records")
    if not isinstance(records, str):
        return body
    try:
        found = json.loads(records)
    except ValueError:
        found = {"value": records}
    if isinstance(found, dict) and not {"records", "batch"} & found.keys():
        found = [found]
    return {**body, "records": {"records": found} if isinstance(found, list) else found}


BODIES: list[tuple[str, dict[str, Any]]] = [
    ("append", {"partition": "foo-0", "records": {"records": [{"headers": [["a", None]]}]}}),
    ("hold-replication", {"partition": "foo-0", "broker": None}),
    ("release-replication", {"partition": "foo-0"}),
    ("release-produces", {"partition": None}),
    ("set-target-assignment", {"group": "c", "target": {"one": ["foo-0"]}}),
    ("release-assignor", {"group": "c"}),
    ("hold-markers", {"transactional_id": None}),
    ("release-markers", {}),
    ("advance", {"duration": "2s"}),
    ("write-znode", {"path": "/admin/mine", "text": "here"}),
    ("write-znode", {"path": "/admin/mine", "text": None}),
    *((words(text)[0], documented(body_of(text))) for text in CALLS_OF_OPERATIONS),
]
"""What the control port takes besides text, and a body for each operation."""

WIDER: list[tuple[str, Any]] = [
    ("append", {"partition": "foo-0", "records": {"key": "k", "value": {"hex": "ff"}}}),
    ("append", {"partition": "foo-0", "records": [{"headers": [["a", None]]}]}),
    ("append", {"partition": "foo-0", "records": "text"}),
    ("set-target-assignment", {"group": "c", "target": '{"one": ["foo-0"]}'}),
    ("propagation", {"duration": 0}),
    ("faults", {"name": "a", "api": 46, "error": 41, "nth": "2+"}),
    ("faults", [{"name": "b", "delay": 5, "steps_after": ["failover 2"]}]),
    ("clusters", {"brokers": "0-2", "named_controller": 1}),
]
"""Bodies that are accepted, although the document describes each member with one type alone."""

# Method, path as documented, values for its braces, query, body.
CALLS: list[tuple[str, str, dict[str, str], str, Any]] = [
    ("GET", "/", {}, "", None),
    ("GET", "/openapi.json", {}, "", None),
    ("GET", "/openapi-3.0.json", {}, "", None),
    ("GET", "/version", {}, "", None),
    ("GET", "/journal/wait", {}, "?api=Metadata&count=1&client_id=wire", None),
    ("GET", "/journal/wait", {}, "?api=Produce&timeout=1ms", None),
    ("GET", "/state", {}, "", None),
    ("GET", "/log", {}, "?since=1", None),
    ("GET", "/log/stream", {}, "", None),
    ("GET", "/znode", {}, "?path=/brokers/topics/foo", None),
    ("GET", "/znode", {}, "?path=/", None),
    ("GET", "/journal", {}, "?api=Metadata&direction=response&raw=hex&last=1", None),
    ("GET", "/journal", {}, "?connection=1&broker=1&client_id=wire&limit=5&after=1", None),
    ("GET", "/journal/stream", {}, "", None),
    ("GET", "/journal/{sequence}", {"sequence": "2"}, "", None),
    (
        "POST",
        "/faults",
        {},
        "",
        {
            "faults": [
                {"name": "c", "api": "3", "throttle": "5ms"},
                {"name": "a", "error": "41", "nth": "2+"},
                {"name": "b", "delay": "1s"},
            ]
        },
    ),
    ("GET", "/faults", {}, "", None),
    ("DELETE", "/faults/{name}", {"name": "a"}, "", None),
    ("GET", "/faults/{name}/wait", {"name": "b"}, "?hits=1&timeout=1ms", None),
    ("DELETE", "/faults", {}, "", None),
    *(("POST", f"/{name}", {}, "", body) for name, body in BODIES),
    ("GET", "/logs", {}, "", None),
    ("GET", "/logs", {}, "?only=written", None),
    ("GET", "/logs/{partition}", {"partition": "foo-0"}, "", None),
    ("GET", "/logs/{partition}/records", {"partition": "foo-0"}, "?from=1&max=5&values=hex", None),
    ("GET", "/groups", {}, "", None),
    ("GET", "/groups/{group}", {"group": "g"}, "", None),
    ("GET", "/groups/{group}/wait", {"group": "g"}, "?members=1&timeout=1ms", None),
    ("GET", "/groups/{group}/wait", {"group": "g"}, "?state=Stable&timeout=1ms", None),
    ("GET", "/offsets/{group}", {"group": "g"}, "", None),
    ("GET", "/tokens", {}, "", None),
    ("GET", "/transactions", {}, "", None),
    ("GET", "/transactions/{transactional_id}", {"transactional_id": "t"}, "", None),
    (
        "GET",
        "/transactions/{transactional_id}/wait",
        {"transactional_id": "t"},
        "?state=Empty&timeout=1ms",
        None,
    ),
    ("GET", "/offsets/{group}/wait", {"group": "g"}, "?partition=foo-0&timeout=1ms", None),
    ("GET", "/telemetry", {}, "", None),
    ("GET", "/sessions", {}, "", None),
    ("GET", "/data-actions", {}, "?since=1", None),
    ("GET", "/waiting", {}, "", None),
    ("GET", "/clusters", {}, "?label=a=b", None),
    ("POST", "/clusters", {}, "", {"brokers": 2, "topics": ["bar:1:2"], "clock": "manual"}),
    ("POST", "/clusters", {}, "", {"strict_faults": True, "labels": {"a": "b"}}),
    ("GET", "/clusters", {}, "?label=a=b", None),
    ("DELETE", "/clusters/{cluster}", {"cluster": "3"}, "", None),
    ("GET", "/clusters/{cluster}", {"cluster": "2"}, "", None),
    ("DELETE", "/clusters/{cluster}", {"cluster": "2"}, "", None),
    ("GET", "/scenarios", {}, "", None),
    ("POST", "/scenarios/{scenario}", {"scenario": "cancel-is-a-revert"}, "", {}),
]


@pytest.mark.slow
def test_schemas_and_references_are_valid():
    made = json.loads(json.dumps(document(ROUTES)))
    for schema in [*schemas_in(made["paths"]), *made["components"]["schemas"].values()]:
        Draft202012Validator.check_schema(schema)
    known = {
        f"#/components/{kind}/{name}"
        for kind, names in made["components"].items()
        for name in names
        if kind != "securitySchemes"
    }
    assert set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(made))) == known
    identifiers = [each["operationId"] for each in operations(made).values()]
    assert len(identifiers) == len(set(identifiers))


async def test_served_and_documented_routes_are_the_same():
    async with controlled() as (mock, client):
        server = ControlServer(mock)
        await server.start()
        assert server._runner is not None
        served = {
            (route.method, route.resource.canonical)
            for route in server._runner.app.router.routes()
            if route.resource is not None and route.resource.canonical not in page_files()
        }
        await server.stop()
        made = (await client.get("/openapi.json"))[1]
        assert (made["openapi"], made["servers"][0]["url"]) == ("3.1.0", client.url)
        assert served == {(route.method, path) for route in ROUTES for path in served_paths(route)}
        documented = {(route.method, documented_path(route)) for route in ROUTES}
        assert set(operations(made)) == documented
        older = (await client.get("/openapi-3.0.json"))[1]
        assert older["openapi"] == "3.0.3"
        assert set(operations(older)) == documented


@pytest.mark.parametrize("version", DOCUMENT_FORMS)
def test_no_schema_needs_a_union(version: str):
    """Generators of clients make unusable types of unions, and send defaults in every request."""
    null = {"type": "null"}

    def within(value: Any) -> Iterator[dict[str, Any]]:
        if isinstance(value, dict):
            yield value
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, dict | list):
                yield from within(each)

    made = document(ROUTES, version=version)
    for schema in (*schemas_in(made["paths"]), made["components"]["schemas"]):
        for each in within(schema):
            assert not isinstance(each.get("type"), list), each
            assert "anyOf" not in each, each
            assert "enum" not in each or each["type"] == "string", each
            choices = [choice for choice in each.get("oneOf", ()) if choice != null]
            assert len(choices) <= 1, each
            if version == OLDEST:
                assert not {"oneOf", "const", "examples", "prefixItems"} & each.keys(), each
            if "type" in each:
                assert "default" not in each, each


@pytest.mark.parametrize("version", DOCUMENT_FORMS)
def test_operations_make_readable_methods(version: str):
    """An id that is a name of a method, a tag, a summary, described parameters, declared errors."""
    for (method, path), each in operations(document(ROUTES, version=version)).items():
        assert re.fullmatch(r"[a-z]+([A-Z][a-z]+|(?<=Api)\d\d)*", each["operationId"]), each
        assert len(each["tags"]) == 1, path
        assert each["summary"], path
        assert any(code.startswith("4") for code in each["responses"]), path
        parameters = each.get("parameters", ())
        assert all(every["description"] for every in parameters), path
        templated = re.findall(r"{(\w+)}", path)
        assert [every["name"] for every in parameters if every["in"] == "path"] == templated, method


async def test_bodies_beyond_the_document_are_accepted():
    async with controlled(clock="manual", profile="kafka-2.4") as (mock, client):
        prepare(mock)
        for name, body in WIDER:
            status, answer = await client.post(f"/{name}", json=body)
            assert status in (200, 201), answer


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "/clusters/1"])
async def test_answers_are_as_documented(prefix: str):
    """Call every operation at least once, with bodies that the document allows. Those for OAuth
    clients are called by ``tests/mockbroker/simulation/security/test_signed_tokens.py``."""
    async with controlled(clock="manual", profile="kafka-2.4") as (mock, client):
        prepare(mock)
        async with connect(mock) as wire:
            await wire.ask("Metadata", 9, topics=None)
        made = (await client.get("/openapi.json"))[1]
        documented = operations(made)
        called: set[Operation] = set()
        for method, path, values, query, body in CALLS:
            prefixed = "/clusters/{cluster}" + path
            of_cluster = (method, prefixed) in documented
            template = prefixed if of_cluster else path
            called.add((method, template))
            where = (prefix if of_cluster else "") + path.format(**values) + query
            await check(client, made, documented[method, template], method, where, body)
        await check(client, made, documented["GET", "/"], "GET", "/", None, "text/html")
        wanted = {
            (route.method, documented_path(route)) for route in ROUTES if not route.open_to_all
        }
        assert called == wanted


async def check(
    client: Client, made: dict[str, Any], operation: dict[str, Any], method: str, path: str,
    body: Any, accept: str = "*/*",
) -> None:  # fmt: skip
    if body is not None:
        content = operation["requestBody"]["content"]["application/json"]
        validator(made, content["schema"]).validate(body)
    async with client.session.request(
        method, client.url + path, json=body, headers={"Accept": accept}
    ) as response:
        described = operation["responses"][str(response.status)]["content"]
        assert response.content_type in described, path
        if response.content_type == "application/json":
            answer = await response.json()
            try:
                validator(made, described["application/json"]["schema"]).validate(answer)
            except ValidationError as error:
                pytest.fail(f"{method} {path}: {error}")
            if "/wait" not in path:
                assert response.status < 300, answer


REFUSED: list[tuple[str, str, Any, int]] = [
    ("GET", "/state?x=1", None, 400),
    ("GET", "/journal?direction=sideways", None, 400),
    ("GET", "/journal?api=1&api=2", None, 400),
    ("GET", "/journal/999", None, 404),
    ("GET", "/journal/x", None, 400),
    ("GET", "/journal/stream?after=999", None, 400),
    ("GET", "/log/stream?since=999", None, 400),
    ("GET", "/clusters/9", None, 404),
    ("GET", "/clusters/9/state", None, 404),
    ("DELETE", "/clusters/9", None, 404),
    ("GET", "/clusters?label=mine", None, 400),
    ("GET", "/journal?api=Prodcue", None, 400),
    ("GET", "/journal/wait?count=0", None, 400),
    ("GET", "/journal/wait?api=Produce&timeout=1ms", None, 408),
    ("POST", "/scenarios/none", {}, 404),
    ("POST", "/clusters", {"brokers": 0}, 400),
    ("POST", "/clusters", {"brokers": "three"}, 400),
    ("POST", "/clusters", {"brokers": 1001}, 400),
    ("POST", "/clusters", {"broker": 3}, 400),
    ("POST", "/clusters", {"topics": "foo:1:1"}, 400),
    ("POST", "/clusters", {"topics": ["foo:1:9"]}, 400),
    ("POST", "/clusters", {"profile": "kafka-0.1"}, 400),
    ("POST", "/clusters", {"dialect": "/tmp"}, 400),
    ("POST", "/clusters", {"apis": {"45": "x"}}, 400),
    ("POST", "/clusters", {"clock": "sun"}, 400),
    ("POST", "/clusters", {"auto_progress_ms": 0}, 400),
    ("POST", "/clusters", {"authorizer": {"who": 1}}, 400),
    ("POST", "/clusters", {"external_brokers": {"x": "127.0.0.1:9"}}, 400),
    ("POST", "/clusters", {"faults": [{"erorr": 1}]}, 400),
    ("POST", "/clusters", {"sasl": ["PLAIN"]}, 400),
    ("POST", "/clusters", {"host": "256.1.1.1"}, 400),
    ("POST", "/clusters", {"reply35": 1}, 400),
    ("POST", "/clusters", {"labels": {"a": 1}}, 400),
    ("POST", "/clusters", {"tls": {"certificate": "x"}}, 400),
    ("POST", "/clusters", {"tls": {"certificate": "x", "key": "y"}}, 400),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"), REFUSED, ids=lambda value: str(value)[:40]
)
async def test_refusals_are_documented_and_one_line(method, path, body, status):
    async with controlled() as (_, client):
        made = (await client.get("/openapi.json"))[1]
        template = re.sub(r"(?<=/clusters/)\d+", "{cluster}", path.partition("?")[0])
        template = re.sub(r"(?<=/journal/)(\d+|x)", "{sequence}", template)
        template = re.sub(r"(?<=/scenarios/)\w+", "{scenario}", template)
        documented = operations(made)
        prefixed = (method, "/clusters/{cluster}" + template)
        operation = documented[prefixed if prefixed in documented else (method, template)]
        async with client.session.request(method, client.url + path, json=body) as response:
            answer = await response.json()
            assert response.status == status, answer
        schema = operation["responses"][str(status)]["content"]["application/json"]["schema"]
        validator(made, schema).validate(answer)
        assert "\n" not in answer["error"]
        assert (await client.get("/clusters"))[1]["clusters"][1:] == []


def test_every_cluster_option_is_in_the_body_or_has_no_json():
    import inspect

    arguments = set(inspect.signature(MockCluster).parameters)
    assert {each.name for each in CLUSTER_OPTIONS} == arguments - {"journal"} | {"faults", "labels"}
