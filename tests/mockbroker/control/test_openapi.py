"""The OpenAPI document matches the server: every route, body and answer."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from kproto.messages import MetadataRequest
from mockbroker import MockCluster
from mockbroker.control import ROUTES, ControlServer
from mockbroker.control.openapi import document, served_paths
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


def validator(of: dict[str, Any], schema: dict[str, Any]) -> Draft202012Validator:
    return Draft202012Validator({**schema, "components": of["components"]})


def schemas_in(value: Any) -> list[dict[str, Any]]:
    """Every ``schema`` and component of the document."""
    if isinstance(value, list):
        return [found for each in value for found in schemas_in(each)]
    if not isinstance(value, dict):
        return []
    own = [value["schema"]] if isinstance(value.get("schema"), dict) else []
    return own + [found for each in value.values() for found in schemas_in(each)]


BODIES: list[tuple[str, dict[str, Any]]] = [
    ("append", {"partition": "foo-0", "records": {"key": "k", "value": {"hex": "ff"}}}),
    ("append", {"partition": "foo-0", "records": [{"headers": [["a", None]]}]}),
    ("hold-replication", {"partition": "foo-0", "broker": None}),
    ("release-replication", {"partition": "foo-0"}),
    ("release-produces", {"partition": None}),
    ("set-target-assignment", {"group": "c", "target": {"one": ["foo-0"]}}),
    ("release-assignor", {"group": "c"}),
    ("hold-markers", {"transactional_id": None}),
    ("release-markers", {}),
    ("advance", {"duration": "2s"}),
    ("propagation", {"duration": 0}),
    ("write-znode", {"path": "/admin/mine", "text": "here"}),
    ("write-znode", {"path": "/admin/mine", "text": None}),
    *((words(text)[0], body_of(text)) for text in CALLS_OF_OPERATIONS),
]
"""What the control port takes besides text, and a body for each operation."""

# Method, path as documented, values for its braces, query, body.
CALLS: list[tuple[str, str, dict[str, str], str, Any]] = [
    ("GET", "/", {}, "", None),
    ("GET", "/openapi.json", {}, "", None),
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
    ("POST", "/faults", {}, "", {"name": "a", "api": 46, "error": "NOT_CONTROLLER", "nth": "2+"}),
    ("POST", "/faults", {}, "", [{"name": "b", "delay": "1s", "steps_after": ["failover 2"]}]),
    ("POST", "/faults", {}, "", {"faults": [{"name": "c", "api": 3, "throttle": 5}]}),
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
    known = {f"#/components/schemas/{name}" for name in made["components"]["schemas"]}
    assert set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(made))) <= known
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
        assert made["openapi"] == "3.1.0"
        assert set(operations(made)) == served


@pytest.mark.parametrize("prefix", ["", "/clusters/1"])
async def test_answers_are_as_documented(prefix: str):
    """Call every operation at least once, with bodies that the document allows. Those for OAuth
    clients are called by ``tests/mockbroker/simulation/security/test_signed_tokens.py``."""
    async with controlled(clock="manual", profile="kafka-2.4") as (mock, client):
        prepare(mock)
        async with connect(mock) as wire:
            await wire.ask(MetadataRequest(topics=None), 9)
        made = (await client.get("/openapi.json"))[1]
        documented = operations(made)
        called: set[Operation] = set()
        for method, path, values, query, body in CALLS:
            prefixed = "/clusters/{cluster}" + path
            if prefix and (method, prefixed) in documented:
                template, given = prefixed, {"cluster": "1", **values}
            else:
                template, given = path, values
            called.add((method, template))
            await check(client, made, documented[method, template], method,
                        template.format(**given) + query, body)  # fmt: skip
        await check(client, made, documented["GET", "/"], "GET", "/", None, "text/html")
        wanted = {
            (route.method, served_paths(route)[-1 if prefix else 0])
            for route in ROUTES
            if not route.open_to_all
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
        operation = operations(made)[method, template]
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
