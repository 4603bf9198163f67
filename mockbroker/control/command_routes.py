"""The routes of the commands: ``POST /join-isr`` and the like take the arguments as a JSON object
and return the actions that followed."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from mockbroker.control.routes import (
    WAITS,
    ControlRequest,
    Member,
    Route,
    actions_response,
    wait_for_zookeeper,
)
from mockbroker.control.schemas import ref
from mockbroker.simulation.operations import (
    COMMANDS,
    DEFAULT_BODY_BYTES,
    Argument,
    Command,
    CommandCall,
)

__all__ = ["COMMAND_ROUTES", "command_members"]


def _member(argument: Argument) -> Member:
    return Member(
        argument.name,
        dict(argument.schema),
        argument.from_json,
        argument.help,
        required=not argument.optional,
    )


def command_members(command: Command) -> tuple[Member, ...]:
    """The members of the body of a command's route."""
    return tuple(map(_member, command.arguments))


def _route(command: Command) -> Route:
    absent = {each.name: None for each in command.arguments if each.optional}

    async def answer(request: ControlRequest) -> web.Response:
        actions = await wait_for_zookeeper(
            request.mock.run_command(CommandCall(command, {**absent, **request.body}))
        )
        return actions_response(actions, b'{"actions": %s}')

    return Route(
        "POST", f"/{command.name}", command.help, answer, ref("Actions"),
        body=command_members(command), refusals=WAITS,
        max_body=max(
            (each.type.max_body_bytes for each in command.arguments), default=DEFAULT_BODY_BYTES
        ),
        details=command.details,
    )  # fmt: skip


COMMAND_ROUTES: Final = tuple(map(_route, COMMANDS.values()))
