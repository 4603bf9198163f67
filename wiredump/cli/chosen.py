"""Which tables a command is to write, from what, and what it says of those it wrote; and what
reading its sources takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from typing import TypeVar

import click

from kproto.dialects import DIALECTS
from wiredump.conversation import DEFAULT_PORTS
from wiredump.rows.schema import TABLES, UNDECODED

__all__ = ["chosen_tables", "counts", "source_options", "table_options"]

CommandT = TypeVar("CommandT", bound=Callable[..., int | None])

_OPTIONS = (
    click.option("--tables", "wanted", metavar="NAME,NAME...",
                 help=f"Only these. All: {', '.join(TABLES)}."),
    click.option("--no-bodies", is_flag=True, help="Decode headers only, which is quicker."),
    click.option("--secrets", is_flag=True, help="Keep passwords, tokens and keys in bodies."),
    click.option("--values", is_flag=True,
                 help="Keep the values of records, not only their hashes."),
    click.option("--dialect", "dialect_name", default="auto", show_default=True,
                 metavar="NAME|DIR", help=f"One of {', '.join(DIALECTS)}, or a folder of schemas."),
    click.option("--port", "ports", type=click.IntRange(0, 65535), multiple=True,
                 default=sorted(DEFAULT_PORTS), show_default=True,
                 help="A hint at which end is the broker. Repeatable."),
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


def source_options(command: CommandT) -> CommandT:
    """The options of every command that reads captures."""
    return _keylog_option(_zone_option(command))


def table_options(command: CommandT) -> CommandT:
    """The options of every command that writes tables, in this order."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen_tables(wanted: str | None, bodies: bool) -> tuple[str, ...]:
    """``--tables`` to names. Raises click.BadParameter."""
    possible = tuple(TABLES) if bodies else UNDECODED
    if wanted is None:
        return possible
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
    return tuple(name for name in TABLES if name in names)


def counts(title: str, numbers: Mapping[str, int]) -> str:
    """Names with numbers, as a table: its lines, the title's for a terminal."""
    texts = {name: f"{number:,}" for name, number in numbers.items()}
    name_width = max(map(len, texts), default=0)
    width = max(map(len, [title, *texts.values()]))
    lines = [" " * (name_width + 3) + click.style(title.rjust(width), bold=True) + " "]
    lines += [f" {name:{name_width}}  {text:>{width}} " for name, text in texts.items()]
    return "\n".join(lines)
