"""The options about sources that commands share, as one value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, tzinfo
from functools import wraps
from typing import Any, NamedTuple, TypedDict, TypeVar

import click

from kproto.cli.completing import dialect_names
from kproto.dialects import DIALECTS
from wiredump.cli.sizes import size
from wiredump.conversation import DEFAULT_PORTS

__all__ = [
    "SourceOptions", "dialect_option", "expanded", "jobs_option", "port_option", "source_options",
]  # fmt: skip

CommandT = TypeVar("CommandT", bound=Callable[..., int | None])


class _Reading(TypedDict):
    ports: frozenset[int]
    keylog: str | None
    zone: tzinfo
    memory: int | None
    max_decompressed: int | None


class SourceOptions(NamedTuple):
    """How to read sources. A command without one of the options has its default."""

    ports: tuple[int, ...]
    keylog: str | None
    zone: tzinfo
    memory: int | None
    max_decompressed: int | None
    dialect_name: str = "auto"
    jobs: int = 1

    @property
    def reading(self) -> _Reading:
        """The arguments of ``open_sources``, without the codec."""
        return {
            "ports": frozenset(self.ports), "keylog": self.keylog, "zone": self.zone,
            "memory": self.memory, "max_decompressed": self.max_decompressed,
        }  # fmt: skip

    @property
    def of_work(self) -> dict[str, Any]:
        """The same as arguments of ``Work``."""
        return {
            "dialect": self.dialect_name, "ports": self.ports, "keylog": self.keylog,
            "zone": self.zone, "memory": self.memory, "max_decompressed": self.max_decompressed,
        }  # fmt: skip


def dialect_option(what: str = "") -> Callable[[CommandT], CommandT]:
    """Return ``--dialect``, whose help begins with ``what`` it is the dialect of."""
    one = f"{what}: one" if what else "One"
    return click.option(
        "--dialect", "dialect_name", default="auto", show_default=True, metavar="NAME|DIR",
        shell_complete=dialect_names,
        help=f"{one} of {', '.join(DIALECTS)}, or a folder of schemas.",
    )  # fmt: skip


def port_option(whose: str = "brokers") -> Callable[[CommandT], CommandT]:
    """Return ``--port``."""
    return click.option(
        "--port", "ports", type=click.IntRange(0, 65535), multiple=True,
        default=sorted(DEFAULT_PORTS), show_default=True,
        help=f"Port on which {whose} listen; tells clients from brokers. Repeatable.",
    )  # fmt: skip


jobs_option = click.option(
    "--jobs", type=click.IntRange(0), default=1, show_default=True, metavar="N",
    help="Number of processes that share the work, at most; 0 means one for each processor. Small "
         "captures are read by one.",
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


_OPTIONS = (
    click.option("--keylog", metavar="FILE",
                 help="Decrypt TLS with the secrets of FILE, as clients write it if SSLKEYLOGFILE "
                      "is set."),
    click.option("--zone", metavar="NAME", default="UTC", show_default=True, callback=_zone,
                 help="Time zone of request logs whose lines do not give one, such as "
                      "Europe/Berlin."),
    click.option("--memory", metavar="SIZE", callback=size,
                 help="Limit of the memory for TCP reassembly, of all connections together, such "
                      "as 512MB or 2GiB: bytes behind a hole, and bytes to compare "
                      "retransmissions with."),
    click.option("--max-decompressed", metavar="SIZE", callback=size,
                 help="Limit of the decompressed size of each compressed source, which is not read "
                      "beyond it. By default 1 GiB, or 250 times the compressed size if that is "
                      "more."),
)  # fmt: skip


def source_options(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of every command that reads sources. The command takes them, and those of
    ``dialect_option``, ``port_option`` and ``jobs_option``, as ``options``."""

    @wraps(command)
    def with_options(**given: Any) -> int | None:
        own = {name: given.pop(name) for name in SourceOptions._fields if name in given}
        return command(options=SourceOptions(**own), **given)

    found: Callable[..., int | None] = with_options
    for option in reversed(_OPTIONS):
        found = option(found)
    return found


def expanded(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources with the files that match URIs with patterns in their place."""
    if not any("://" in path for path in sources):
        return sources
    from wiredump.storage import expand

    return tuple(path for each in sources for path in expand(each))
