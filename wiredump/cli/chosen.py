"""Which tables a command is to write, from what, and what it says of those it wrote; and what
reading its sources takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, tzinfo
from typing import Final, TypeVar

import click

from kproto.dialects import DIALECTS
from wiredump.conversation import DEFAULT_PORTS
from wiredump.rows.schema import ON_REQUEST, TABLES, UNDECODED
from wiredump.skipped import bytes_of, skipped_of
from wiredump.tables.run import is_run

__all__ = [
    "account_lines",
    "chosen_tables",
    "counts",
    "local",
    "size",
    "source_options",
    "table_options",
]

_LEAST_MEMORY: Final = 1_000_000

CommandT = TypeVar("CommandT", bound=Callable[..., int | None])


def _run(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is not None and not is_run(value):
        problem = f"{value!r} is no id: a letter, then up to 63 letters, digits, '.', '_' or '-'"
        raise click.BadParameter(problem, ctx=context, param=option)
    return value


_OPTIONS = (
    click.option("--tables", "wanted", metavar="NAME,NAME...",
                 help=f"Only these. All: {', '.join(TABLES)}."),
    click.option("--packets", is_flag=True,
                 help="The table packets, too: a row a packet, which is slower."),
    click.option("--no-bodies", is_flag=True, help="Decode headers only, which is quicker."),
    click.option("--secrets", is_flag=True, help="Keep passwords, tokens and keys in bodies."),
    click.option("--values", is_flag=True,
                 help="Keep what records say: their values, and record batches in bodies."),
    click.option("--dialect", "dialect_name", default="auto", show_default=True,
                 metavar="NAME|DIR", help=f"One of {', '.join(DIALECTS)}, or a folder of schemas."),
    click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True,
                 default=sorted(DEFAULT_PORTS), show_default=True,
                 help="A hint at which end is the broker. Repeatable."),
    click.option("--run", metavar="ID", callback=_run,
                 help="Names this run's rows.  [default: made of the sources' contents]"),
    click.option("--append", is_flag=True, help="DIR may have tables of other runs."),
    click.option("--json", "as_json", is_flag=True, help="The counts as one JSON object."),
)  # fmt: skip


def _zone(context: click.Context, option: click.Parameter, value: str) -> tzinfo:
    if value == "UTC":
        return UTC
    # Only now: reading sources takes much that a command's help does not.
    from wiredump.sources.request_logs import time_zone

    try:
        return time_zone(value)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx=context, param=option) from None


_zone_option = click.option(
    "--zone", metavar="NAME", default="UTC", show_default=True, callback=_zone,
    help="The time zone of a request log whose lines do not say it: Europe/Berlin, say.",
)  # fmt: skip
_keylog_option = click.option(
    "--keylog", metavar="FILE",
    help="Secrets of TLS connections, as clients write them where SSLKEYLOGFILE is set.",
)  # fmt: skip


def size(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A number of bytes with its unit: 512MB (millions), 2GiB (powers of 1024). Raises
    click.BadParameter."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(B|[kKMGT]i?B)", value.strip())
    if found is None:
        problem = f"{value!r} is no size: 512MB, 1.5GB, 2GiB"
    else:
        unit = found[2].rstrip("B")
        power = " KMGT".index(unit[:1].upper()) if unit else 0
        bytes_ = int(float(found[1]) * (1024 if "i" in unit else 1000) ** power)
        if bytes_ >= _LEAST_MEMORY:
            return bytes_
        problem = f"{value} is less than it takes: give it 1MB or more"
    raise click.BadParameter(problem, ctx=context, param=option)


def local(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A path on a file system, as it is. Raises click.BadParameter for a URI."""
    if value is not None and "://" in value:
        from wiredump.sources.opening import UriError, require_path

        try:
            require_path(value)
        except UriError as error:
            raise click.BadParameter(str(error), ctx=context, param=option) from None
    return value


_memory_option = click.option(
    "--memory", metavar="SIZE", callback=size,
    help="The most that TCP streams may keep, of all connections: what waits for lost bytes, and "
         "what repetitions are compared with. 512MB, 2GiB.",
)  # fmt: skip


def source_options(command: CommandT) -> CommandT:
    """The options of every command that reads captures."""
    return _keylog_option(_zone_option(_memory_option(command)))


def table_options(command: CommandT) -> CommandT:
    """The options of every command that writes tables, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_tables(wanted: str | None, bodies: bool, packets: bool = False) -> tuple[str, ...]:
    """``--tables`` and ``--packets`` to names. Raises click.BadParameter."""
    possible = tuple(TABLES) if bodies else UNDECODED
    asked = {"packets"} if packets else set()
    if wanted is None:
        return tuple(name for name in possible if name not in ON_REQUEST or name in asked)
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    for name in names:
        if name not in TABLES:
            problem = f"no table {name!r}; there are {', '.join(TABLES)}"
        elif name not in possible:
            problem = f"{name} takes bodies, which --no-bodies leaves out"
        else:
            continue
        raise click.BadParameter(problem, param_hint="--tables")
    if not names:
        raise click.BadParameter("name at least one table", param_hint="--tables")
    return tuple(name for name in TABLES if name in {*names, *asked})


def account_lines(account: Mapping[str, int]) -> Iterator[str]:
    """An account as tables: bytes, and packets without TCP where there are any."""
    if account:
        yield counts("bytes of TCP payload", bytes_of(account))
    if skipped_of(account):
        yield counts("packets without TCP", skipped_of(account))


def counts(title: str, numbers: Mapping[str, int]) -> str:
    """Names with numbers, as a table: its lines, the title's for a terminal."""
    texts = {name: f"{number:,}" for name, number in numbers.items()}
    name_width = max(map(len, texts), default=0)
    width = max(map(len, [title, *texts.values()]))
    lines = [" " * (name_width + 3) + click.style(title.rjust(width), bold=True) + " "]
    lines += [f" {name:{name_width}}  {text:>{width}} " for name, text in texts.items()]
    return "\n".join(lines)
