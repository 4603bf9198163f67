"""Every command by name, and the text of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mockbroker.errors import ClusterError
from mockbroker.simulation.operations.arguments import BROKER_ID
from mockbroker.simulation.operations.cluster_rows import CLUSTER_ROWS
from mockbroker.simulation.operations.command import Command, CommandCall
from mockbroker.simulation.operations.group_rows import GROUP_ROWS
from mockbroker.simulation.operations.log_rows import LOG_ROWS
from mockbroker.simulation.operations.proxy_rows import PROXY_ROWS
from mockbroker.simulation.operations.transaction_rows import TRANSACTION_ROWS

__all__ = ["COMMANDS", "PROXY_COMMANDS", "STEPS", "parse_command"]

COMMANDS: Final[Mapping[str, Command]] = {
    each.name: each for each in (*CLUSTER_ROWS, *LOG_ROWS, *GROUP_ROWS, *TRANSACTION_ROWS)
}
"""The commands on a mock cluster, by name."""

PROXY_COMMANDS: Final[Mapping[str, Command]] = {each.name: each for each in PROXY_ROWS}
"""The commands on a proxy."""

STEPS: Final[Mapping[str, Command]] = {**COMMANDS, **PROXY_COMMANDS}
"""What a fault rule may name; it is refused where it is added to the other of the two."""


def parse_command(
    text: str,
    *,
    relative_brokers: bool = False,
    commands: Mapping[str, Command] = COMMANDS,
) -> CommandCall:
    """``failover 2``, ``join-isr foo-0 4``, ``advance 500ms``. Raises ClusterError.

    ``relative_brokers``: ``self`` and ``other`` may stand for a broker id.
    """
    name, rest = _first_word(text)
    command = commands.get(name)
    if command is None:
        raise ClusterError(f"{text!r} is not a command; the commands are {', '.join(commands)}")
    values: dict[str, Any] = {}
    for argument in command.arguments:
        word, rest = (rest, "") if argument.type.to_end else _first_word(rest)
        if argument.optional and not word:
            values[argument.name] = None
            continue
        if not word and not argument.type.to_end:
            raise ClusterError(f"{text!r} lacks an argument; use `{command.usage}`")
        try:
            value = argument.type.from_text(word)
        except ClusterError as error:
            raise ClusterError(f"{text!r}: {error}") from None
        if argument.type is BROKER_ID and isinstance(value, str) and not relative_brokers:
            raise ClusterError(f"{text!r}: {value!r} has a meaning in fault rules only")
        values[argument.name] = value
    if rest:
        raise ClusterError(f"{text!r} has too many arguments; use `{command.usage}`")
    return CommandCall(command, values)


def _first_word(text: str) -> tuple[str, str]:
    word, *rest = text.split(maxsplit=1) or [""]
    return word, rest[0].rstrip() if rest else ""
