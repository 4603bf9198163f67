"""The OpenAPI document of a control port, generated from its routes, in the versions 3.1 and 3.0.

It is made for generators of clients: each path is there once, with the cluster as a parameter,
every operation has a tag and an id that reads as a method's name, and each member has one type.
``document_forms`` has what differs between the versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import kproto
from mockbroker.control.document_forms import DOCUMENT_FORMS, NEWEST, DocumentForm
from mockbroker.control.routes import JSON, TEXT, WHOLE, Member, Route, Schema
from mockbroker.control.schemas import COMPONENTS, object_of, ref

__all__ = ["OF_CLUSTER", "document", "documented_path", "served_paths"]

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

_TAGS: Final = {
    "server": ("The server as a whole.", "/ /openapi.json /openapi-3.0.json /version /proxy"),
    "clusters": ("Clusters, one per test.", "/clusters"),
    "journal": ("What clients and brokers sent.", "/journal"),
    "faults": ("Rules that disturb requests.", "/faults"),
    "state": ("The cluster's state and history.", "/state /log /znode"),
    "data": (
        "Logs, groups, transactions and what waits.",
        "/logs /groups /offsets /transactions /tokens /data-actions /telemetry /sessions /waiting",
    ),
    "scenarios": ("Stories that run on clusters of their own.", "/scenarios"),
    "oauth": ("Tokens for OAuth clients of a cluster.", "/oauth"),
    "operations": ("What a test does to a cluster.", ""),
}
"""The tags with their description and the beginnings of their paths; other paths are operations."""


def served_paths(route: Route) -> tuple[str, ...]:
    """Every path at which a route is served."""
    return (route.path, OF_CLUSTER + route.path) if route.of_cluster else (route.path,)


def documented_path(route: Route) -> str:
    """The path at which the document has a route: the one for every cluster."""
    return served_paths(route)[-1]


def document(
    routes: Iterable[Route],
    *,
    version: str = NEWEST,
    with_token: bool = False,
    server: str = "http://127.0.0.1:40040",
) -> dict[str, Any]:
    """The document as JSON values. ``with_token``: whether requests need the control token;
    ``server``: the URL of the control port."""
    form = DOCUMENT_FORMS[version]
    paths: dict[str, dict[str, Any]] = {}
    schemas = dict(COMPONENTS)
    for route in routes:
        path = documented_path(route)
        if route.body_name and route.body is not None:
            schemas[route.body_name] = _body_schema(route.body)
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, form)
    terms: dict[str, str] = (
        {"identifier": "Apache-2.0"}
        if version == NEWEST
        else {"url": "https://www.apache.org/licenses/LICENSE-2.0"}
    )
    tagged = {each["tags"][0] for methods in paths.values() for each in methods.values()}
    return {
        "openapi": version,
        "info": {
            "title": "mockbroker control port",
            "version": kproto.__version__,
            "description": "Controls mock Kafka clusters and shows the traffic of their clients.",
            "license": {"name": "Apache-2.0", **terms},
        },
        "servers": [{"url": server, "description": "This control port."}],
        "security": [{"token": []}] if with_token else [{}, {"token": []}],
        "tags": [
            {"name": name, "description": text}
            for name, (text, _) in _TAGS.items()
            if name in tagged
        ],
        "paths": paths,
        "components": {
            "schemas": {name: form(schemas[name], "") for name in _used(paths, schemas)},
            "responses": {
                "Refused": {
                    "description": "The token is missing, or a limit is reached, or the server "
                    "failed.",
                    "content": {JSON: {"schema": ref("Error")}},
                }
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _used(paths: object, schemas: Mapping[str, Schema]) -> list[str]:
    """The names of the schemas that these paths, errors included, refer to."""
    found, left = {"Error"}, [json.dumps(paths)]
    while left:
        new = set(re.findall(r"#/components/schemas/(\w+)", left.pop())) - found
        found |= new
        left += [json.dumps(schemas[name]) for name in new]
    return [name for name in schemas if name in found]


def _operation(route: Route, path: str, form: DocumentForm) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": route.id,
        "tags": [_tag(route)],
        "summary": route.summary,
        "parameters": [
            *_path_parameters(path, form),
            *(_query_parameter(each, form) for each in route.query),
        ],
        "responses": _responses(route, path, form),
    }
    if route.details:
        found["description"] = route.details
    if route.open_to_all:
        found["security"] = [{}]
    if route.body is not None:
        body = ref(route.body_name) if route.body_name else form(_body_schema(route.body), "")
        found["requestBody"] = {"required": True, "content": {JSON: {"schema": body}}}
    return found


def _tag(route: Route) -> str:
    first = "/" + route.path.split("/")[1]
    found = (name for name, (_, paths) in _TAGS.items() if first in paths.split())
    return next(found, "operations")


def _path_parameters(path: str, form: DocumentForm) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": form(_PATH_MEMBERS[name][0], name),
            "description": _PATH_MEMBERS[name][1],
        }
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameter(member: Member, form: DocumentForm) -> dict[str, Any]:
    schema = form(member.schema, member.name)
    text = " ".join(filter(None, (member.text, schema.pop("description", ""))))
    found = {"name": member.name, "in": "query", "required": False, "schema": schema}
    return {**found, "description": text} if text else found


def _body_schema(body: tuple[Member, ...] | Schema) -> Schema:
    if not isinstance(body, tuple):
        return body
    optional = tuple(each.name for each in body if not each.required)
    members: dict[str, Any] = {
        each.name: {**each.schema, "description": each.text} if each.text else each.schema
        for each in body
    }
    return object_of(optional=optional, **members)


def _responses(route: Route, path: str, form: DocumentForm) -> dict[str, Any]:
    answers = {route.media: route.schema, **route.also}
    content = {media: {"schema": form(schema, "")} for media, schema in answers.items()}
    refusals = {
        400: "The request is invalid, or the cluster cannot carry it out.",
        403: "The request comes from a page of another site, or names another host.",
    }
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
        "default": {"$ref": "#/components/responses/Refused"},
    }
