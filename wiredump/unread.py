"""Payload that was captured and that nothing was read of: the reasons, in one table.

Each byte of TCP payload is read, or repeats an earlier byte, or is unread for exactly one of these
reasons. ``docs/reference/wiredump.md`` has the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

__all__ = ["REASONS", "Reason", "Unread", "unread_line"]

Unread: TypeAlias = Literal[
    "tls",
    "not-kafka",
    "before-start",
    "out-of-window",
    "reassembly-limit",
    "missing",
    "malformed",
    "unknown-api",
    "unmatched",
    "differing",
    "fragments",
]


class Reason(NamedTuple):
    """``share`` completes "93.1 %" in a command's last line, ``meaning`` is the sentence of the
    documentation. ``option`` may let a command read the bytes; it is empty if none does."""

    share: str
    meaning: str
    option: str = ""


REASONS: Final[dict[Unread, Reason]] = {
    "tls": Reason(
        "TLS without keys",
        "The connection is encrypted, and its secrets are unknown or came too late.",
        "--keylog",
    ),
    "not-kafka": Reason(
        "not recognised as Kafka",
        "The connection, or what precedes its first frame, is another protocol, whose name is in "
        "`connections`, or the port of its broker has to be named.",
        "--port",
    ),
    "before-start": Reason(
        "before the first frame",
        "The capture begins within the connection, and no frame was found before these bytes end.",
    ),
    "out-of-window": Reason(
        "late or out of order",
        "The bytes came after their place in the stream was given up, precede the first byte seen, "
        "are outside any TCP window or follow the connection's end; parts of a rotated capture in "
        "the wrong order look like this.",
    ),
    "reassembly-limit": Reason(
        "beyond the limit of reassembly",
        "So many bytes waited for these that a limit of memory gave up their place in the stream.",
        "--memory",
    ),
    "missing": Reason(
        "next to missing bytes",
        "The bytes belong to a frame of which the capture lacks a part (lost packets, a snap "
        "length), behind that part, or no frame was found behind it. Whole record batches behind "
        "that part are read.",
    ),
    "malformed": Reason(
        "malformed",
        "The bytes follow an impossible frame size, their IP or TCP header cannot be read, or they "
        "are requests that do not decode, and their responses, before the first one that does.",
    ),
    "unknown-api": Reason(
        "of unknown APIs",
        "The frame is a request of an API or a version that the schemas lack, or the response to "
        "one.",
        "--dialect",
    ),
    "unmatched": Reason(
        "responses without a request",
        "The request of the response was not captured, so that its API is unknown.",
    ),
    "differing": Reason(
        "repeated with other content",
        "The bytes repeat earlier ones, but some have other values; the first copy is read.",
    ),
    "fragments": Reason(
        "in incomplete IP datagrams", "The capture lacks other fragments of the datagram."
    ),
}
"""In the order of the documentation."""

assert tuple(REASONS) == get_args(Unread)


def unread_line(unread: Mapping[str, int], payload: int) -> str:
    """Return the sentence about ``unread`` bytes by reason, of ``payload`` bytes in all; empty if
    there are none."""
    total = sum(unread.values())
    if not total:
        return ""
    largest_first = sorted(unread.items(), key=lambda each: -each[1])
    reasons = {name: REASONS[name] for name, size in largest_first if size}  # type: ignore[index]
    shares = ", ".join(
        f"{_percent(unread[name], payload)} {reason.share}" for name, reason in reasons.items()
    )
    options = " or ".join(reason.option for reason in reasons.values() if reason.option)
    return (
        f"{_percent(total, payload)} of {payload:,} payload bytes were not read: {shares}"
        f"{f'; try {options}' if options else ''}"
    )


def _percent(part: int, whole: int) -> str:
    """Return a share with one decimal; it is 0 or 100 only if that is exact."""
    if part >= whole:
        return "100 %"
    tenths = round(1000 * part / whole)
    if tenths == 0:
        return "less than 0.1 %"
    return "more than 99.9 %" if tenths == 1000 else f"{tenths / 10:.1f} %"
