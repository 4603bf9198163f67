"""What an account has beside bytes: packets without a TCP segment, what a capture lacks, and what
was not read; and captures without any TCP.

An account maps names to counts: bytes of TCP payload by where they went, packets under
``packets: `` and their protocol (``packets: arp``), damage under ``damage: `` and its kind
(``damage: truncated``), bytes that were not read under ``unread: `` and the reason
(``wiredump.unread``), bytes of files that belong to no record under ``lost: `` and the kind of
damage, and the requests that were read. All can be summed over the processes that read parts of a
capture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from kproto.errors import KprotoError
from wiredump.readers import Account
from wiredump.unread import Unread

__all__ = [
    "NothingReadError", "bytes_of", "damage", "damage_of", "distinct_of", "lacks_requests", "lost",
    "lost_of", "no_tcp", "out_of_order", "read_requests", "requests_of", "require_read", "skipped",
    "skipped_by", "skipped_of", "unread", "unread_of",
]  # fmt: skip

_PACKETS: Final = "packets: "
_DAMAGE: Final = "damage: "
_UNREAD: Final = "unread: "
_LOST: Final = "lost: "
_REQUESTS: Final = "read: requests"
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
    beside = (_PACKETS, _DAMAGE, _UNREAD, _LOST, _REQUESTS)
    return {name: count for name, count in account.items() if not name.startswith(beside)}


def skipped_of(account: Mapping[str, int]) -> dict[str, int]:
    """Return the packets without TCP, by protocol."""
    return _under(_PACKETS, account)


def damage(kinds: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of damage by kind under their names in an account."""
    return {f"{_DAMAGE}{kind}": count for kind, count in kinds.items()}


def out_of_order(times: Sequence[tuple[int, int] | None]) -> dict[str, int]:
    """Return, for an account, how many parts of a rotated capture begin before the one in front of
    them, by the first and last times of the parts in their order."""
    first = [each[0] for each in times if each is not None]
    count = sum(later < earlier for earlier, later in pairwise(first))
    return damage({"order": count}) if count else {}


def damage_of(account: Mapping[str, int]) -> dict[str, int]:
    """Return the counts of damage by kind: ``snaplen`` (packets that were cut),
    ``reassembly-limit`` (bytes), or the kind of an anomaly."""
    return _under(_DAMAGE, account)


def unread(reasons: Mapping[Unread, int] | Mapping[str, int]) -> dict[str, int]:
    """Return the bytes that were not read, by reason, under their names in an account."""
    return {f"{_UNREAD}{reason}": count for reason, count in reasons.items() if count}


def unread_of(account: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes that were not read, by reason."""
    return _under(_UNREAD, account)


def lost(kinds: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes of files that belong to no record, by the kind of damage, under their names
    in an account."""
    return {f"{_LOST}{kind}": count for kind, count in kinds.items() if count}


def lost_of(account: Mapping[str, int]) -> dict[str, int]:
    """Return the bytes of files that belong to no record, by the kind of damage."""
    return _under(_LOST, account)


def distinct_of(account: Mapping[str, int]) -> int:
    """Return the bytes of TCP payload without those that repeat earlier ones."""
    again = account.get("retransmitted", 0) - account.get(f"{_UNREAD}differing", 0)
    return account.get("payload", 0) - again - account.get("copies", 0)


def read_requests(count: int) -> dict[str, int]:
    """Return the number of requests that were read under its name in an account."""
    return {_REQUESTS: count}


def requests_of(account: Mapping[str, int]) -> int:
    """Return the number of requests that were read."""
    return account.get(_REQUESTS, 0)


def lacks_requests(account: Mapping[str, int]) -> bool:
    """Whether the account shows that no request was read."""
    return account.get(_REQUESTS) == 0


def _under(prefix: str, account: Mapping[str, int]) -> dict[str, int]:
    return {
        name.removeprefix(prefix): count
        for name, count in account.items()
        if name.startswith(prefix)
    }


def no_tcp(account: Mapping[str, int]) -> str:
    """Return why nothing can be read of packets without TCP, which are in an account."""
    found = sorted(skipped_of(account).items(), key=lambda each: -each[1])
    named = ", ".join(f"{count} {what}" for what, count in found[:_MOST_NAMED])
    return f"its packets have no TCP: {named}{', ...' * (len(found) > _MOST_NAMED)}"


def require_read(unread: Mapping[str, str], account: Mapping[str, int], also: str = "") -> None:
    """Raise NothingReadError if ``unread`` has a source: its path, and the reason if known. The
    message ends with what there is ``also`` to say."""
    for path, reason in unread.items():
        reason = reason or no_tcp(account)
        more = f"; {also}" if also else ""
        raise NothingReadError(f"{path}: nothing could be read: {reason}{more}")
