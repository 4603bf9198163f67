"""Packets that gave no TCP segment, as accounts carry them, and captures that gave none at all.

An account maps names to counts: bytes of TCP payload under their own names, packets under
``packets: `` and what they are (``packets: arp``). So both are summed alike wherever parts of a
capture are read by several processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kproto.errors import KprotoError
from wiredump.readers import Account

__all__ = ["NothingReadError", "bytes_of", "require_read", "skipped", "skipped_by", "skipped_of"]

_PREFIX: Final = "packets: "
_MOST_NAMED: Final = 4


class NothingReadError(KprotoError):
    """A capture has packets, or is no capture, and no TCP was found in it."""


def skipped(others: Mapping[str, int], malformed: int) -> dict[str, int]:
    """As an account has them."""
    named = {f"{_PREFIX}{what}": count for what, count in sorted(others.items())}
    return {**named, f"{_PREFIX}malformed": malformed} if malformed else named


def skipped_by(account: Account) -> dict[str, int]:
    """Likewise, of what the readers counted."""
    return skipped(account.others, account.malformed)


def bytes_of(account: Mapping[str, int]) -> dict[str, int]:
    """Where bytes of TCP payload went."""
    return {name: count for name, count in account.items() if not name.startswith(_PREFIX)}


def skipped_of(account: Mapping[str, int]) -> dict[str, int]:
    """Packets by what they are."""
    return {
        name.removeprefix(_PREFIX): count
        for name, count in account.items()
        if name.startswith(_PREFIX)
    }


def require_read(unread: Mapping[str, str], account: Mapping[str, int]) -> None:
    """Raise NothingReadError where ``unread`` names a source: by its path, why."""
    for path, reason in unread.items():
        if not reason:
            found = sorted(skipped_of(account).items(), key=lambda each: -each[1])
            named = ", ".join(f"{count} {what}" for what, count in found[:_MOST_NAMED])
            reason = f"its packets carry no TCP: {named}{', ...' * (len(found) > _MOST_NAMED)}"
        raise NothingReadError(f"{path}: nothing in it could be read: {reason}")
