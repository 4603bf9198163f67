"""The command line ``kproto``: show, decode and encode messages, and maintain schemas."""

from __future__ import annotations

import click

import kproto
from kproto.cli.lazy import LazyGroup
from kproto.cli.run import run

__all__ = ["cli", "main"]


_COMMANDS = {
    "admin": "kproto.cli.admin:admin_group",
    "codegen": "kproto.cli.codegen:codegen_command",
    "decode": "kproto.cli.codec:decode_command",
    "encode": "kproto.cli.codec:encode_command",
    "schema": "kproto.cli.schema:schema_group",
    "show": "kproto.cli.show:show_command",
}


@click.group(
    cls=LazyGroup,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=False,
)
@click.version_option(
    kproto.__version__,
    prog_name="kproto",
    message=f"%(prog)s %(version)s ({kproto.engine} engine)"
    + (f": {kproto.engine_note}" if kproto.engine_note else ""),
)
def cli() -> None:
    """Work with the Kafka wire protocol through its message schemas."""


def main() -> None:
    run(cli, "kproto")


if __name__ == "__main__":
    main()
