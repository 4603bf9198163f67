"""The options of ``mockbroker serve`` about how much clients may take, and how much is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from mockbroker.errors import ClusterError
from mockbroker.topics.spec import parse_milliseconds

__all__ = ["limit_options", "limits_of"]

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_MEBIBYTE = 1024 * 1024


class _IdleTimeout(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # as in ``serve``
    name = "DURATION|off"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return self.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or value == "off":
            return None if value == "off" else value
        try:
            milliseconds = parse_milliseconds(value)
        except ClusterError as error:
            self.fail(str(error), param, ctx)
        if milliseconds < 1:
            self.fail("the shortest is 1ms; use off for none", param, ctx)
        return milliseconds


# Defaults are those of ``mockbroker.serving.limits``, which is slow to import for --help; a test
# holds them together.
_OPTIONS = (
    click.option(
        "--max-frame-bytes",
        type=click.IntRange(1, 100 * _MEBIBYTE),
        default=100 * _MEBIBYTE,
        show_default=True,
        help="The largest request; who announces a larger one is closed on.",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(1, 1_000_000),
        default=1000,
        show_default=True,
        help="To one broker at a time; one more is closed at once.",
    ),
    click.option(
        "--max-buffered-bytes",
        type=click.IntRange(1),
        default=512 * _MEBIBYTE,
        show_default=True,
        help="What all connections together may hold of requests not whole or not answered yet and "
        "of answers unread; over it, the one that holds most is closed.",
    ),
    click.option(
        "--idle-timeout",
        type=_IdleTimeout(),
        default="10m",
        show_default=True,
        help="Close a connection on which nothing comes or goes for so long.",
    ),
    click.option(
        "--journal-entries",
        type=click.IntRange(1),
        default=100_000,
        show_default=True,
        help="How many of the newest entries the journal in memory keeps.",
    ),
    click.option(
        "--journal-bytes",
        type=click.IntRange(0),
        default=64 * _MEBIBYTE,
        show_default=True,
        help="How many bytes of frames it keeps at most, client ids and notes included.",
    ),
)


def limit_options(command: CommandT) -> CommandT:
    """Give a command these options."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def limits_of(options: dict[str, Any]) -> dict[str, Any]:
    """What they say, as arguments of ``MockCluster``."""
    return {
        "max_frame_bytes": options["max_frame_bytes"],
        "max_connections": options["max_connections"],
        "max_buffered_bytes": options["max_buffered_bytes"],
        "idle_timeout_ms": options["idle_timeout"],
        "journal_entries": options["journal_entries"],
        "journal_bytes": options["journal_bytes"],
    }
