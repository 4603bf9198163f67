"""The ``wiredump`` command. How it ends, errors included, is ``kproto.cli.run``'s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import click

import kproto
from kproto.cli.run import run
from wiredump.cli.audit import audit_command
from wiredump.cli.extract import extract_command
from wiredump.cli.report import report_command
from wiredump.cli.show import show_command
from wiredump.cli.spark import spark_command
from wiredump.cli.table import table_command

__all__ = ["cli", "main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(kproto.__version__, prog_name="wiredump", message="%(prog)s %(version)s")
def cli() -> None:
    """Captures and journals of Kafka's wire protocol, decoded to the last byte."""


cli.add_command(audit_command)
cli.add_command(extract_command)
cli.add_command(show_command)
cli.add_command(table_command)
cli.add_command(spark_command)
cli.add_command(report_command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    run(cli, "wiredump", arguments)
