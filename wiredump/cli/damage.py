"""What every command says on standard error about the captures that it has read: what they lack,
and then, in the last line, the share of the payload that was not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kproto.cli.terminal import echo
from kproto.errors import KprotoError
from wiredump.skipped import (
    damage_of,
    distinct_of,
    lacks_requests,
    lost_of,
    require_read,
    unread_of,
)
from wiredump.unread import unread_line

__all__ = ["NothingJudgedError", "Purpose", "check_read"]

Purpose = Literal["judged", "extracted"]
"""What a command cannot do without a request."""

_COUNTED: Final = (
    ("truncated file", "truncated files", ("truncated",)),
    ("damaged place", "damaged places", ("damaged",)),
    ("unreadable byte", "unreadable bytes", ("lost",)),
    ("unreadable line", "unreadable lines", ("line",)),
    (
        "file beyond the limit of decompressed bytes",
        "files beyond the limit of decompressed bytes",
        ("decompression-limit",),
    ),
    ("unreadable packet", "unreadable packets", ("packet", "malformed", "fragment")),
    ("packet cut by a snap length", "packets cut by a snap length", ("snaplen",)),
    ("missing byte", "missing bytes", ("missing",)),
    ("incomplete frame", "incomplete frames", ("cut",)),
    ("range of bytes outside frames", "ranges of bytes outside frames", ("unframed",)),
)
"""The singular, the plural, and the kinds of damage that are counted under this name."""


_WRONG_ORDER: Final = (
    "wiredump: a part of the rotated capture is older than the one in front of it: name the parts "
    "in the order of their times"
)


class NothingJudgedError(KprotoError):
    """The sources have no request that could be read, so that a verdict on them would be none."""


def check_read(
    unread: Mapping[str, str], account: Mapping[str, int], purpose: Purpose | None = None
) -> None:
    """Say in one line what the captures lack, and in another one which share of the payload was not
    read, if anything.

    Raises NothingReadError if a capture has no TCP at all and, if a command has a ``purpose``,
    NothingJudgedError if no request was read.
    """
    damage = damage_of(account)
    lost, missing = sum(lost_of(account).values()), account.get("missing", 0)
    _echo_damage({**damage, "lost": lost, "missing": missing})
    if limited := damage.get("reassembly-limit"):
        what = "byte" if limited == 1 else "bytes"
        echo(
            f"wiredump: {limited:,} {what} beyond the reassembly limit: more arrived behind them "
            "than is kept (--memory keeps more)",
            err=True,
        )
    if damage.get("order"):
        echo(_WRONG_ORDER, err=True)
    share = unread_line(unread_of(account), distinct_of(account))
    require_read(unread, account, share)
    if purpose is not None and lacks_requests(account):
        without = "the sources have no payload" if not distinct_of(account) else "no request"
        raise NothingJudgedError(f"nothing could be {purpose}: {share or without}")
    if share:
        echo(f"wiredump: {share}", err=True)


def _echo_damage(found: Mapping[str, int]) -> None:
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
