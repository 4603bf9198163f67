"""``kproto``: look at messages, decode and encode them, and look after schemas."""

from __future__ import annotations

import click

import kproto
from kproto.cli.admin import admin_group
from kproto.cli.codec import decode_command, encode_command
from kproto.cli.codegen import codegen_command
from kproto.cli.run import run
from kproto.cli.schema import schema_group
from kproto.cli.show import show_command

__all__ = ["cli", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(
    kproto.__version__,
    prog_name="kproto",
    message=f"%(prog)s %(version)s ({kproto.engine} engine)"
    + (f": {kproto.engine_note}" if kproto.engine_note else ""),
)
def cli() -> None:
    """The Kafka wire protocol, from its message schemas."""


for command in (
    show_command,
    decode_command,
    encode_command,
    schema_group,
    codegen_command,
    admin_group,
):
    cli.add_command(command)


def main() -> None:
    run(cli, "kproto")


if __name__ == "__main__":
    main()
