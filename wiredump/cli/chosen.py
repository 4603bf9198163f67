"""The options of commands that write tables, and the counts that these print when they are done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import click

from kproto.cli.terminal import echo
from wiredump.cli.source_options import dialect_option, port_option
from wiredump.rows.schema import ON_REQUEST, TABLES, UNDECODED
from wiredump.skipped import bytes_of, skipped_of
from wiredump.tables.run import MODES, is_run

__all__ = ["chosen_tables", "mode_option", "print_account", "print_counts", "table_options"]

CommandT = TypeVar("CommandT", bound=Callable[..., int | None])


def _run(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_run(value):
        problem = (
            f"{value!r} is not a valid id: use a letter, then up to 63 letters, digits, '.', '_' "
            "or '-'"
        )
        raise click.BadParameter(problem, ctx=context, param=option)
    return value


_OPTIONS = (
    click.option("--tables", "wanted", metavar="NAME,NAME...",
                 help=f"Write only these tables. All: {', '.join(TABLES)}."),
    click.option("--packets", is_flag=True,
                 help="Also write the table packets, with a row for each packet. Slower."),
    click.option("--no-bodies", is_flag=True, help="Decode only headers. Faster."),
    click.option("--secrets", is_flag=True, help="Keep passwords, tokens and keys in bodies."),
    click.option("--values", is_flag=True,
                 help="Keep the values of records, and record batches in bodies."),
    dialect_option(),
    port_option(),
    click.option("--run", metavar="ID", callback=_run,
                 help="Id of this run, which each row carries.  [default: derived from the "
                      "sources' contents]"),
    click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object."),
)  # fmt: skip


def table_options(command: CommandT) -> CommandT:
    """Add the options of every command that writes tables."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_tables(wanted: str | None, bodies: bool, packets: bool = False) -> tuple[str, ...]:
    """Return the tables that ``--tables`` and ``--packets`` select.

    Raises click.BadParameter for an unknown table, and for one that needs bodies.
    """
    possible = tuple(TABLES) if bodies else UNDECODED
    extra = {"packets"} if packets else set()
    if wanted is None:
        return tuple(name for name in possible if name not in ON_REQUEST or name in extra)
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in TABLES:
            problem = f"there is no table {name!r}; the tables are {', '.join(TABLES)}"
        elif name not in possible:
            problem = f"the table {name} needs bodies: leave out --no-bodies"
        else:
            continue
        raise click.BadParameter(problem, param_hint="--tables")
    if not names:
        raise click.BadParameter("name at least one table", param_hint="--tables")
    return tuple(name for name in TABLES if name in {*names, *extra})


def print_account(account: Mapping[str, int]) -> None:
    """Print an account as tables: bytes, and packets without TCP if there are any."""
    if bytes_of(account):
        print_counts("bytes of TCP payload", bytes_of(account))
    if skipped_of(account):
        print_counts("packets without TCP", skipped_of(account))


def print_counts(title: str, numbers: Mapping[str, int]) -> None:
    """Print numbers by name as a table of two columns, with the title in bold."""
    texts = {name: f"{number:,}" for name, number in numbers.items()}
    name_width = max(map(len, texts), default=0)
    width = max(map(len, [title, *texts.values()]))
    echo(" " * (name_width + 3) + title.rjust(width) + " ", bold=True)
    for name, text in texts.items():
        echo(f" {name:{name_width}}  {text:>{width}} ")


def mode_option(command: CommandT) -> CommandT:
    """Add the option about a folder that has tables."""
    return click.option(
        "--mode", type=click.Choice(MODES), default="error", show_default=True,
        help="What to do if DIR has tables: fail, write beside other runs, or replace them all.",
    )(command)  # fmt: skip
