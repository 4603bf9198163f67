"""What an account has beside bytes: packets without a TCP segment, and what a capture lacks; and
captures without any TCP.

An account maps names to counts: bytes of TCP payload by where they went, packets under
``packets: `` and their protocol (``packets: arp``), and damage under ``damage: `` and its kind
(``damage: truncated``). All can be summed over the processes that read parts of a capture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kproto.errors import KprotoError
from wiredump.readers import Account

__all__ = [
    "NothingReadError", "bytes_of", "damage", "damage_of", "require_read", "skipped", "skipped_by",
    "skipped_of",
]  # fmt: skip

_PACKETS: Final = "packets: "
_DAMAGE: Final = "damage: "
_MOST_NAMED: Final = 4


class NothingReadError(KprotoError):
    """No TCP was found in a source, which may not be a capture at all."""


def skipped(others: Mapping[str, int], malformed: int) -> dict[str, int]:
    """Return the counts under their names in an account."""
    named = {f"{_PACKETS}{what}": count for what, count in sorted(others.items())}
    return {**named, f"{_PACKETS}malformed": malformed} if malformed else named


def skipped_by(account: Account) -> dict[str, int]:
    """Return those of the readers' account."""
    return skipped(account.others, account.malformed)


def bytes_of(account: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes of TCP payload by where they went."""
    beside = (_PACKETS, _DAMAGE)
    return {name: count for name, count in account.items() if not name.startswith(beside)}


def skipped_of(account: Mapping[str, int]) -> dict[str, int]:
    """Return the packets without TCP, by protocol."""
    return _under(_PACKETS, account)


def damage(kinds: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of damage by kind under their names in an account."""
    return {f"{_DAMAGE}{kind}": count for kind, count in kinds.items()}


def damage_of(account: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of damage by kind: ``snaplen`` (packets that were cut), or the kind of an
    anomaly."""
    return _under(_DAMAGE, account)


def _under(prefix: str, account: Mapping[str, int]) -> dict[str, int]:
    return {
        name.removeprefix(prefix): count
        for name, count in account.items()
        if name.startswith(prefix)
    }


def require_read(unread: Mapping[str, str], account: Mapping[str, int]) -> None:
    """Raise NothingReadError if ``unread`` has a source: its path, and the reason if known."""
    for path, reason in unread.items():
        if not reason:
            found = sorted(skipped_of(account).items(), key=lambda each: -each[1])
            named = ", ".join(f"{count} {what}" for what, count in found[:_MOST_NAMED])
            reason = f"its packets have no TCP: {named}{', ...' * (len(found) > _MOST_NAMED)}"
        raise NothingReadError(f"{path}: nothing could be read: {reason}")
