"""The routes of the operations: ``POST /join-isr`` and the like take the arguments as a JSON object
and return the actions that followed."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from mockbroker.control.routes import (
    DURATION,
    WAITS,
    ControlRequest,
    Member,
    Route,
    Schema,
    actions_response,
    wait_for_zookeeper,
)
from mockbroker.control.schemas import ref
from mockbroker.simulation.operations import (
    DEFAULT_BODY_BYTES,
    MILLISECONDS,
    OPERATIONS,
    Argument,
    Operation,
    OperationCall,
)
from mockbroker.simulation.operations.arguments import RECORDS_TEXT

__all__ = ["OPERATION_ROUTES", "operation_id", "operation_members"]


_NAMED: Final = {id(MILLISECONDS): DURATION, id(RECORDS_TEXT): ref("NewRecords")}
"""Schemas in the place of those that take several types."""


def operation_id(operation: Operation) -> str:
    """The operation's name in the OpenAPI document: ``joinIsr``."""
    first, *others = operation.method.split("_")
    return first + "".join(each.capitalize() for each in others)


def _member(argument: Argument) -> Member:
    return Member(
        argument.name,
        _schema(argument),
        argument.from_json,
        argument.help,
        required=not argument.optional,
    )


def _schema(argument: Argument) -> Schema:
    found = _NAMED.get(id(argument.type), argument.type.schema)
    return {"oneOf": [found, {"type": "null"}]} if argument.optional else dict(found)


def operation_members(operation: Operation) -> tuple[Member, ...]:
    """The members of the body of an operation's route."""
    return tuple(map(_member, operation.arguments))


def _route(operation: Operation) -> Route:
    absent = {each.name: None for each in operation.arguments if each.optional}

    async def answer(request: ControlRequest) -> web.Response:
        actions = await wait_for_zookeeper(
            request.mock.run_command(OperationCall(operation, {**absent, **request.body}))
        )
        return actions_response(actions, b'{"actions": %s}')

    return Route(
        "POST",
        f"/{operation.name}",
        operation_id(operation),
        operation.help,
        answer,
        ref("Actions"),
        body=operation_members(operation),
        refusals=WAITS,
        max_body=max(
            (each.type.max_body_bytes for each in operation.arguments), default=DEFAULT_BODY_BYTES
        ),
        details=operation.details,
    )


OPERATION_ROUTES: Final = tuple(map(_route, OPERATIONS.values()))
