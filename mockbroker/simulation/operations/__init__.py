"""The commands a tester gives to a running cluster, in one table.

``mockbroker ctl``, the control port's routes and their OpenAPI document, the steps of fault rules,
scenarios and kspec cases are all derived from ``COMMANDS``: a new command is one entry of
``cluster_rows``, ``log_rows`` or ``group_rows``.

A command is written as text (``join-isr foo-0 4``) or sent as a JSON object
(``{"partition": "foo-0", "broker": 4}``). Nothing here knows sockets or HTTP; whatever a command
needs besides the simulated cluster is listed in ``CommandTarget``.
"""

from __future__ import annotations

from mockbroker.simulation.operations.arguments import (
    DEFAULT_BODY_BYTES,
    MAX_INTEGER,
    MILLISECONDS,
    Argument,
    ArgumentType,
    BrokerChoice,
    integer_of,
    text_of,
)
from mockbroker.simulation.operations.command import Command, CommandCall, CommandTarget
from mockbroker.simulation.operations.table import COMMANDS, PROXY_COMMANDS, STEPS, parse_command

__all__ = [
    "COMMANDS",
    "DEFAULT_BODY_BYTES",
    "MAX_INTEGER",
    "MILLISECONDS",
    "PROXY_COMMANDS",
    "STEPS",
    "Argument",
    "ArgumentType",
    "BrokerChoice",
    "Command",
    "CommandCall",
    "CommandTarget",
    "integer_of",
    "parse_command",
    "text_of",
]
