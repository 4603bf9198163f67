"""The options that limit clients, the journal and logs."""

from __future__ import annotations

from typing import Any

import click
from cloup import option_group

from mockbroker.cli.option_types import ParsedOption, duration_or_off, parse_size

__all__ = ["limit_options", "limits_of", "proxy_limit_options"]

_MEBIBYTE = 1024 * 1024


# Importing ``mockbroker.options`` would slow down --help; a test compares the defaults.
_OF_CLIENTS = (
    click.option(
        "--max-frame-bytes",
        type=click.IntRange(1, 100 * _MEBIBYTE),
        default=100 * _MEBIBYTE,
        show_default=True,
        help="The largest request. A connection that announces a larger one is closed.",
    ),
    click.option(
        "--max-connections",
        type=click.IntRange(1, 1_000_000),
        default=1000,
        show_default=True,
        help="The most connections of one broker. Further ones are closed at once.",
    ),
    click.option(
        "--max-buffered-bytes",
        type=click.IntRange(1),
        default=512 * _MEBIBYTE,
        show_default=True,
        help="The most bytes of incomplete requests, pending requests and unread answers, over all "
        "connections. Beyond it, the connection with the most is closed.",
    ),
    click.option(
        "--idle-timeout",
        type=ParsedOption("DURATION|off", duration_or_off),
        default="10m",
        show_default=True,
        help="Close connections that are idle for this long.",
    ),
    click.option(
        "--journal-entries",
        type=click.IntRange(1),
        default=100_000,
        show_default=True,
        help="The most entries that the journal in memory keeps.",
    ),
    click.option(
        "--journal-bytes",
        type=click.IntRange(0),
        default=64 * _MEBIBYTE,
        show_default=True,
        help="The most bytes of frames, client ids and notes that it keeps.",
    ),
)

limit_options = option_group(
    "Limits",
    *_OF_CLIENTS,
    click.option(
        "--log-bytes",
        type=ParsedOption("SIZE", parse_size),
        default="1GiB",
        show_default=True,
        help="The most bytes of record batches in all logs, such as 64MiB. Past it the oldest "
        "batches go, which the action log tells.",
    ),
    click.option(
        "--data-actions",
        type=click.IntRange(1),
        default=10_000,
        show_default=True,
        help="The most events of logs, such as appends, that are kept. The action log tells when "
        "the first one is dropped.",
    ),
)

proxy_limit_options = option_group(
    "Limits",
    *_OF_CLIENTS,
    click.option(
        "--max-targets",
        type=click.IntRange(1, 100_000),
        default=1000,
        show_default=True,
        help="The most brokers and controllers that the upstream may name, each of which gets a "
        "listener. A connection whose answer names more is closed.",
    ),
)
"""The limits of a proxy: of clients, the journal and the upstream."""


def limits_of(options: dict[str, Any]) -> dict[str, Any]:
    """The limits of clients and the journal, as fields of ``ClusterOptions``."""
    return {
        "max_frame_bytes": options["max_frame_bytes"],
        "max_connections": options["max_connections"],
        "max_buffered_bytes": options["max_buffered_bytes"],
        "idle_timeout_ms": options["idle_timeout"],
        "journal_entries": options["journal_entries"],
        "journal_bytes": options["journal_bytes"],
    }
