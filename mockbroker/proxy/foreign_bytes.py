"""Say what bytes are that are no Kafka frames. No I/O."""

from __future__ import annotations

from typing import Final

__all__ = ["describe_foreign"]

_TLS_RECORDS: Final = frozenset({0x14, 0x15, 0x16, 0x17})
_HTTP: Final = (
    b"GET ",
    b"POST",
    b"PUT ",
    b"HEAD",
    b"DELE",
    b"OPTI",
    b"PATC",
    b"CONN",
    b"HTTP",
    b"PRI ",
)


def describe_foreign(first: bytes, *, tls: str) -> str:
    """Return what the first bytes of a connection look like, or nothing. ``tls`` says what to do
    about TLS."""
    if len(first) >= 2 and first[0] in _TLS_RECORDS and first[1] == 3:
        return f"this looks like TLS: {tls}"
    if first[:4] in _HTTP:
        return "this looks like HTTP"
    if first[:4] == b"SSH-":
        return "this looks like SSH"
    return ""
