"""What every command says on standard error about the captures that it has read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kproto.cli.terminal import echo
from wiredump.skipped import damage_of, require_read

__all__ = ["check_read"]

_COUNTED: Final = (
    ("truncated file", "truncated files", ("truncated",)),
    ("damaged file", "damaged files", ("damaged",)),
    ("unreadable packet", "unreadable packets", ("packet", "malformed", "fragment")),
    ("packet cut by a snap length", "packets cut by a snap length", ("snaplen",)),
    ("missing byte", "missing bytes", ("missing",)),
    ("incomplete frame", "incomplete frames", ("cut",)),
    ("range of bytes outside frames", "ranges of bytes outside frames", ("unframed",)),
)
"""The singular, the plural, and the kinds of damage that are counted under this name."""


def check_read(unread: Mapping[str, str], account: Mapping[str, int]) -> None:
    """Say in one line what the captures lack, if anything. Raises NothingReadError if one has no
    TCP at all."""
    require_read(unread, account)
    found = {**damage_of(account), "missing": account.get("missing", 0)}
    lacks = []
    for one, many, kinds in _COUNTED:
        count = sum(found.get(kind, 0) for kind in kinds)
        if count:
            lacks.append(f"{count:,} {one if count == 1 else many}")
    if not lacks:
        return
    whole = "; `tcpdump -s 0` captures whole packets" * bool(found.get("snaplen"))
    echo(
        f"wiredump: incomplete capture: {', '.join(lacks)} (the table anomalies and "
        f"`wiredump show --errors` list them{whole})",
        err=True,
    )
