"""The options that several commands share: which tables to write, and how to read sources. Also
the counts that commands print when they are done."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Final, TypeVar

import click

from kproto.cli.completing import dialect_names
from kproto.dialects import DIALECTS
from wiredump.conversation import DEFAULT_PORTS
from wiredump.rows.schema import ON_REQUEST, TABLES, UNDECODED
from wiredump.skipped import bytes_of, skipped_of
from wiredump.tables.run import MODES, Mode, is_run

__all__ = [
    "account_lines",
    "chosen_mode",
    "chosen_tables",
    "counts",
    "expanded",
    "mode_options",
    "size",
    "source_options",
    "table_options",
]

_LEAST_MEMORY: Final = 1_000_000

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
    click.option("--dialect", "dialect_name", default="auto", show_default=True,
                 metavar="NAME|DIR", shell_complete=dialect_names,
                 help=f"One of {', '.join(DIALECTS)}, or a folder of schemas."),
    click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True,
                 default=sorted(DEFAULT_PORTS), show_default=True,
                 help="Port on which brokers listen; tells clients from brokers. Repeatable."),
    click.option("--run", metavar="ID", callback=_run,
                 help="Id of this run, which each row carries.  [default: derived from the "
                      "sources' contents]"),
    click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object."),
)  # fmt: skip


def _zone(context: click.Context, option: click.Parameter, value: str) -> tzinfo:
    if value == "UTC":
        return UTC
    # Imported late: --help does not need the readers.
    from wiredump.sources.request_logs import time_zone

    try:
        return time_zone(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=context, param=option) from None


_zone_option = click.option(
    "--zone", metavar="NAME", default="UTC", show_default=True, callback=_zone,
    help="Time zone of request logs whose lines do not give one, such as Europe/Berlin.",
)  # fmt: skip
_keylog_option = click.option(
    "--keylog", metavar="FILE",
    help="Decrypt TLS with the secrets of FILE, as clients write it if SSLKEYLOGFILE is set.",
)  # fmt: skip


def size(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Parse a number of bytes with a unit: 512MB (powers of 1000) or 2GiB (powers of 1024).

    Raises click.BadParameter.
    """
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(B|[kKMGT]i?B)", value.strip())
    if found is None:
        problem = f"{value!r} is not a size; use a number with a unit, such as 512MB or 2GiB"
    else:
        unit = found[2].rstrip("B")
        power = " KMGT".index(unit[:1].upper()) if unit else 0
        bytes_ = int(float(found[1]) * (1024 if "i" in unit else 1000) ** power)
        if bytes_ >= _LEAST_MEMORY:
            return bytes_
        problem = f"{value} is too little; the minimum is 1MB"
    raise click.BadParameter(problem, ctx=context, param=option)


def expanded(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources with the files that match URIs with patterns in their place."""
    if not any("://" in path for path in sources):
        return sources
    from wiredump.storage import expand

    return tuple(path for each in sources for path in expand(each))


_memory_option = click.option(
    "--memory", metavar="SIZE", callback=size,
    help="Limit of the memory for TCP reassembly, of all connections together, such as 512MB or "
         "2GiB: bytes behind a hole, and bytes to compare retransmissions with.",
)  # fmt: skip


def source_options(command: CommandT) -> CommandT:
    """Add the options of every command that reads captures."""
    return _keylog_option(_zone_option(_memory_option(command)))


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
    asked = {"packets"} if packets else set()
    if wanted is None:
        return tuple(name for name in possible if name not in ON_REQUEST or name in asked)
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
    return tuple(name for name in TABLES if name in {*names, *asked})


def account_lines(account: Mapping[str, int]) -> Iterator[str]:
    """Format an account as tables: bytes, and packets without TCP if there are any."""
    if account:
        yield counts("bytes of TCP payload", bytes_of(account))
    if skipped_of(account):
        yield counts("packets without TCP", skipped_of(account))


def counts(title: str, numbers: Mapping[str, int]) -> str:
    """Format numbers by name as a table of two columns, with the title in bold."""
    texts = {name: f"{number:,}" for name, number in numbers.items()}
    name_width = max(map(len, texts), default=0)
    width = max(map(len, [title, *texts.values()]))
    lines = [" " * (name_width + 3) + click.style(title.rjust(width), bold=True) + " "]
    lines += [f" {name:{name_width}}  {text:>{width}} " for name, text in texts.items()]
    return "\n".join(lines)


def mode_options(command: CommandT) -> CommandT:
    """Add the options about a folder that has tables (``chosen_mode``)."""
    mode = click.option(
        "--mode", type=click.Choice(MODES),
        help="What to do if DIR has tables: fail, write beside other runs, or replace them all.  "
        "[default: error]",
    )  # fmt: skip
    append = click.option("--append", is_flag=True, help="Deprecated: use --mode append.")
    return mode(append(command))


def chosen_mode(mode: Mode | None, append: bool) -> Mode:
    """Return the mode. Raises click.UsageError for options that contradict each other."""
    if not append:
        return mode or "error"
    if mode not in (None, "append"):
        raise click.UsageError("--append and --mode contradict each other.")
    click.echo("wiredump: --append is deprecated; use --mode append", err=True)
    return "append"
