"""The command line ``kproto``: show, decode and encode messages, and maintain schemas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from kproto.cli.program import program
from kproto.cli.run import run

__all__ = ["cli", "main"]

cli = program(
    "kproto",
    "Work with the Kafka wire protocol through its message schemas.",
    {
        "admin": "kproto.cli.admin:admin_group",
        "codegen": "kproto.cli.codegen:codegen_command",
        "decode": "kproto.cli.codec:decode_command",
        "encode": "kproto.cli.codec:encode_command",
        "schema": "kproto.cli.schema:schema_group",
        "show": "kproto.cli.show:show_command",
    },
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    run(cli, "kproto", arguments)


if __name__ == "__main__":
    main()
