"""What every command says on standard error about the captures that it has read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

from wiredump.skipped import damage_of, require_read

__all__ = ["check_read"]

_NAMES: Final = {
    "truncated file": ("truncated",),
    "damaged file": ("damaged",),
    "unreadable packet": ("packet", "malformed", "fragment"),
    "packet{} cut by a snap length": ("snaplen",),
    "missing byte": ("missing",),
    "incomplete frame": ("cut",),
    "range{} of bytes outside frames": ("unframed",),
}
"""What is counted, with the place of a plural's s unless it is the end, and the kinds of damage
that it adds up."""


def check_read(unread: Mapping[str, str], account: Mapping[str, int]) -> None:
    """Say in one line what the captures lack, if anything. Raises NothingReadError if one has no
    TCP at all."""
    require_read(unread, account)
    found = {**damage_of(account), "missing": account.get("missing", 0)}
    counts = {name: sum(found.get(kind, 0) for kind in kinds) for name, kinds in _NAMES.items()}
    lacks = [f"{count:,} {_counted(name, count)}" for name, count in counts.items() if count]
    if not lacks:
        return
    whole = "; `tcpdump -s 0` captures whole packets" * bool(found.get("snaplen"))
    click.echo(
        f"wiredump: incomplete capture: {', '.join(lacks)} (the table anomalies and "
        f"`wiredump show --errors` list them{whole})",
        err=True,
    )


def _counted(name: str, count: int) -> str:
    name = name if "{}" in name else f"{name}{{}}"
    return name.format("s" * (count != 1))
