"""The OpenAPI 3.1 document of the control port, generated from its routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import kproto
from mockbroker.control.routes import JSON, TEXT, WHOLE, Member, Route, Schema
from mockbroker.control.schemas import COMPONENTS, object_of, ref

__all__ = ["OF_CLUSTER", "document", "served_paths"]

OF_CLUSTER: Final = "/clusters/{cluster}"

_PATH_MEMBERS: Final[dict[str, tuple[Schema, str]]] = {
    "cluster": (TEXT, "The cluster's id, as `GET /clusters` lists it; 1 is the first."),
    "name": (TEXT, "The rule's name."),
    "sequence": (WHOLE, "The entry's sequence number."),
    "group": (TEXT, "The group's id."),
    "transactional_id": (TEXT, "The transactional id."),
    "partition": ({**TEXT, "examples": ["foo-0"]}, "A partition, such as foo-0."),
    "scenario": (TEXT, "The scenario's name."),
}


def served_paths(route: Route) -> tuple[str, ...]:
    """Every path at which a route is served."""
    return (route.path, OF_CLUSTER + route.path) if route.of_cluster else (route.path,)


def document(routes: Iterable[Route], *, with_token: bool = False) -> dict[str, Any]:
    """The document as JSON values. ``with_token``: whether requests need the control token."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        for path in served_paths(route):
            paths.setdefault(path, {})[route.method.lower()] = _operation(
                route, path, with_token=with_token
            )
    made: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "mockbroker control port",
            "version": kproto.__version__,
            "description": "Controls mock Kafka clusters and shows the traffic of their clients.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": COMPONENTS},
    }
    if with_token:
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
    return made


def _operation(route: Route, path: str, *, with_token: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": _operation_id(route.method, path),
        "summary": route.summary,
        "parameters": [*_path_parameters(path), *map(_query_parameter, route.query)],
        "responses": _responses(route, path, with_token=with_token),
    }
    if route.details:
        found["description"] = route.details
    if route.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": _body_schema(route.body)}},
        }
    return found


def _operation_id(method: str, path: str) -> str:
    words = re.findall(r"[A-Za-z]+", path) or ["index"]
    return method.lower() + "".join(word.capitalize() for word in words)


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _PATH_MEMBERS[name][0],
            "description": _PATH_MEMBERS[name][1],
        }
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameter(member: Member) -> dict[str, Any]:
    found = {"name": member.name, "in": "query", "required": False, "schema": member.schema}
    return {**found, "description": member.text} if member.text else found


def _body_schema(body: tuple[Member, ...] | Schema) -> Schema:
    if not isinstance(body, tuple):
        return body
    optional = tuple(each.name for each in body if not each.required)
    members: dict[str, Any] = {
        each.name: {**each.schema, "description": each.text} if each.text else each.schema
        for each in body
    }
    return object_of(optional=optional, **members)


def _responses(route: Route, path: str, *, with_token: bool) -> dict[str, Any]:
    answers = {route.media: route.schema, **route.also}
    content = {media: {"schema": schema} for media, schema in answers.items()}
    refusals = {
        400: "The request is invalid, or the cluster cannot carry it out.",
        403: "The request comes from a page of another site, or names another host.",
    }
    if with_token:
        refusals[401] = "The token is missing or wrong."
    if path.startswith(OF_CLUSTER):
        refusals[404] = "No cluster has this id."
    if route.body is not None:
        refusals[408] = "The body did not arrive in time."
        refusals[413] = "The body is too large."
    refusals |= dict(route.refusals)
    error = {JSON: {"schema": ref("Error")}}
    return {
        str(route.status): {"description": route.summary, "content": content},
        **{
            str(status): {"description": text, "content": error}
            for status, text in sorted(refusals.items())
        },
    }
